/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/attendant.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <openvgpu/instance.h>
#include <openvgpu/operation.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "slurm/sentry.h"
#include "slurm/standstill.h"

DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);

/* Between two tries, and between two looks at programs that must not stand still. */
#define AGAIN_MS 100

/* Between two looks whether the job stands still without a notice: Slurm may have sent it before there was a sentry. */
#define LOOK_MS 1000

/* A program that has not come to rest by then, while Slurm wants it to stand still, is let stand still. */
#define REST_SECONDS 30

/* A vGPU of the step, and the thread that operates it. */
struct charge {
        struct attendant *attendant;
        const char *vgpu;
        struct vgpu_client *client; /* of the thread */
        bool is_leaving;
};

struct attendant {
        pthread_mutex_t lock;
        pthread_cond_t has_changed;
        struct charge *charges;
        size_t n_charges;
        bool is_away;  /* what Slurm wants */
        uint64_t wish; /* counts how often it has changed its mind */

        /* Of the thread that hears the sentry. */
        int pipe;
        struct vgpu_client *client;
        struct standstill standstill;
};

/* A thread for each vGPU. */

/* Somebody else's operation is under way, the job that makes room has not left yet, or vgpud is started anew. */
static bool is_worth_another_try(enum vgpu_error_kind kind)
{
        return kind == VGPU_ERROR_BUSY || kind == VGPU_ERROR_NO_ROOM ||
               kind == VGPU_ERROR_NO_MANAGER || kind == VGPU_ERROR_CONNECTION_LOST;
}

static int operate(const struct charge *charge, bool is_away)
{
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;

        if (!is_away)
                return vgpu_operation_resume(charge->client, charge->vgpu, NULL, NULL, NULL);
        options.timeout_seconds = REST_SECONDS;
        return vgpu_operation_suspend(charge->client, charge->vgpu, &options, NULL);
}

/* Is it worth another try? */
static bool try_once(const struct charge *charge, bool is_away)
{
        const struct vgpu_error *error;

        if (operate(charge, is_away) == 0)
                return false;
        error = vgpu_client_get_error(charge->client);
        if (is_worth_another_try(error->kind))
                return true;
        if (error->kind != VGPU_ERROR_WRONG_STATE) /* it is so already */
                slurm_error("vgpu: %s cannot %s: %s", charge->vgpu,
                            is_away ? "leave its GPU" : "come back to a GPU", error->message);
        return false;
}

static void wait_a_moment(struct attendant *attendant)
{
        uint64_t until_ns = clock_now(CLOCK_REALTIME) + AGAIN_MS * 1000000ull;
        const struct timespec until = clock_timespec(until_ns);

        (void)pthread_cond_timedwait(&attendant->has_changed, &attendant->lock, &until);
}

/* Called and returns with the lock held; what Slurm wants meanwhile ends it. */
static void react(struct charge *charge)
{
        struct attendant *attendant = charge->attendant;
        uint64_t wish = attendant->wish;
        bool is_away = attendant->is_away, is_over = false;

        while (!is_over && attendant->wish == wish) {
                pthread_mutex_unlock(&attendant->lock);
                is_over = !try_once(charge, is_away);
                pthread_mutex_lock(&attendant->lock);
                if (!is_over && attendant->wish == wish)
                        wait_a_moment(attendant);
        }
        if (attendant->wish == wish)
                charge->is_leaving = false;
}

__attribute__((noreturn)) static void *run_charge(void *userdata)
{
        struct charge *charge = userdata;
        struct attendant *attendant = charge->attendant;
        uint64_t seen = 0;

        pthread_mutex_lock(&attendant->lock);
        for (;;) {
                while (attendant->wish == seen)
                        pthread_cond_wait(&attendant->has_changed, &attendant->lock);
                seen = attendant->wish;
                react(charge);
        }
}

/* And one that hears the sentry. */

static void want(struct attendant *attendant, bool is_away)
{
        pthread_mutex_lock(&attendant->lock);
        attendant->is_away = is_away;
        attendant->wish++;
        for (size_t i = 0; i < attendant->n_charges; i++)
                attendant->charges[i].is_leaving = is_away;
        pthread_cond_broadcast(&attendant->has_changed);
        pthread_mutex_unlock(&attendant->lock);
}

static bool is_leaving(struct attendant *attendant, const struct charge *charge)
{
        bool is;

        pthread_mutex_lock(&attendant->lock);
        is = charge->is_leaving;
        pthread_mutex_unlock(&attendant->lock);
        return is;
}

/* True if one of them is on its way. */
static bool let_run_while_leaving(struct attendant *attendant)
{
        bool is_one_leaving = false;

        for (size_t i = 0; i < attendant->n_charges; i++) {
                CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
                const struct charge *charge = &attendant->charges[i];

                if (!is_leaving(attendant, charge))
                        continue;
                is_one_leaving = true;
                if (vgpu_instance_lookup(attendant->client, charge->vgpu, &instance) < 0)
                        continue;
                for (size_t j = 0; j < instance->n_processes; j++)
                        standstill_lift(&attendant->standstill, instance->processes[j]->pid);
        }
        return is_one_leaving;
}

static void on_notice(struct attendant *attendant, const struct sentry_notice *notice)
{
        attendant->standstill.sentry = notice->pid;
        if (notice->signal == SIGCONT)
                standstill_end(&attendant->standstill);
        if (notice->signal != 0)
                want(attendant, notice->signal == SIGTSTP);
}

/* Milliseconds until the next look. */
static int look_after_programs(struct attendant *attendant)
{
        pid_t sentry = attendant->standstill.sentry;

        if (!attendant->is_away && sentry && standstill_has_begun(sentry))
                want(attendant, true);
        if (!attendant->is_away)
                return LOOK_MS;
        if (let_run_while_leaving(attendant))
                return AGAIN_MS;
        standstill_restore(&attendant->standstill);
        return -1;
}

static void *run_attendant(void *userdata)
{
        struct attendant *attendant = userdata;
        struct pollfd fd = { .fd = attendant->pipe, .events = POLLIN };
        struct sentry_notice notice;
        ssize_t n;

        for (;;) {
                if (poll(&fd, 1, look_after_programs(attendant)) == 0)
                        continue;
                n = read(attendant->pipe, &notice, sizeof(notice));
                if (n == sizeof(notice))
                        on_notice(attendant, &notice);
                else if (n >= 0)
                        break; /* no sentry any more */
        }
        standstill_end(&attendant->standstill);
        return NULL;
}

/* Starting. */

static bool start_thread(void *(*run)(void *), void *userdata)
{
        pthread_t thread;

        return pthread_create(&thread, NULL, run, userdata) == 0 && pthread_detach(thread) == 0;
}

static bool start_all(struct attendant *attendant, const struct attendant_step *step)
{
        if (vgpu_client_new(&attendant->client, step->run_directory) < 0)
                return false;
        for (size_t i = 0; i < step->n_vgpus; i++) {
                struct charge *charge = &attendant->charges[i];

                charge->attendant = attendant;
                charge->vgpu = step->vgpus[i];
                if (vgpu_client_new(&charge->client, step->run_directory) < 0 ||
                    !start_thread(run_charge, charge))
                        return false;
                attendant->n_charges++;
        }
        return start_thread(run_attendant, attendant);
}

/* Signals of slurmstepd are for its own threads. */
int attendant_start(const struct attendant_step *step)
{
        struct attendant *attendant = calloc(1, sizeof(*attendant));
        sigset_t all, former;
        bool has_started;
        int ends[2];

        if (!attendant)
                return -1;
        attendant->charges = calloc(step->n_vgpus, sizeof(*attendant->charges));
        if (!attendant->charges || pipe2(ends, O_CLOEXEC) < 0)
                return -1;
        attendant->pipe = ends[0];
        attendant->standstill.job = step->job;
        attendant->standstill.user = step->user;
        (void)pthread_mutex_init(&attendant->lock, NULL);
        (void)pthread_cond_init(&attendant->has_changed, NULL);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &former);
        has_started = start_all(attendant, step);
        pthread_sigmask(SIG_SETMASK, &former, NULL);
        return has_started ? ends[1] : -1;
}
