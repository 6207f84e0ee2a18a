/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/process-call.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "mover/answer.h"
#include "mover/driver.h"

/* The wire's pairs are the driver's: two UUIDs of 16 bytes. NULL with a count would kill us. */
_Static_assert(sizeof(struct mover_pair) == sizeof(CUcheckpointGpuPair), "pairs are copied");

struct call {
        struct call *next; /* in calls.left */
        const char *name;
        CUresult (*make)(struct call *call);
        int pid, pidfd;
        union {
                CUprocessState state;
                CUcheckpointLockArgs lock;
                CUcheckpointCheckpointArgs checkpoint;
                CUcheckpointRestoreArgs restore;
                CUcheckpointUnlockArgs unlock;
        } arguments;
        CUcheckpointGpuPair pairs[MOVER_PAIRS_MAX];
        pthread_cond_t returned;
        CUresult result;
        unsigned int n_untold; /* requests that were left by it, and are not answered yet */
        enum {
                CALL_AWAITED = 0,
                CALL_RETURNED,
                CALL_LEFT,
                CALL_LATE /* it has returned; the last of n_untold tells */
        } state;
};

static struct {
        pthread_mutex_t lock;
        struct call *left;
} calls = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The call that this thread's request was left by: it stays in calls.left until process_told(). */
static _Thread_local struct call *untold;

static bool has_ended(int pidfd)
{
        struct pollfd end = { .fd = pidfd, .events = POLLIN };

        return poll(&end, 1, 0) != 0;
}

bool process_has_ended(const struct process_target *target)
{
        return has_ended(target->pidfd);
}

static void call_free(struct call *call)
{
        if (call->pidfd >= 0)
                (void)close(call->pidfd);
        pthread_cond_destroy(&call->returned);
        free(call);
}

static void leave_locked(struct call *call)
{
        if (untold)
                return;
        untold = call;
        call->n_untold++;
}

/* True: it has returned, and all threads that said that it has not have said so: it is the caller's. */
static bool take_late_locked(struct call *call)
{
        struct call **place = &calls.left;

        if (call->state != CALL_LATE || call->n_untold > 0)
                return false;
        while (*place != call)
                place = &(*place)->next;
        *place = call->next;
        return true;
}

/* It is gone when the manager hears of its end, and asks about the process again. */
static void tell_returned(struct call *call)
{
        answer_returned(call->pid);
        call_free(call);
}

void process_told(void)
{
        struct call *call = untold;
        bool is_ours;

        if (!call)
                return;
        untold = NULL;
        pthread_mutex_lock(&calls.lock);
        call->n_untold--;
        is_ours = take_late_locked(call);
        pthread_mutex_unlock(&calls.lock);
        if (is_ours)
                tell_returned(call);
}

/* The thread that awaits it frees it. */
static void end_call(struct call *call, CUresult result)
{
        bool is_ours;

        pthread_mutex_lock(&calls.lock);
        call->result = result;
        call->state = call->state == CALL_LEFT ? CALL_LATE : CALL_RETURNED;
        pthread_cond_signal(&call->returned);
        is_ours = take_late_locked(call);
        pthread_mutex_unlock(&calls.lock);
        if (is_ours)
                tell_returned(call);
}

static void *run_call(void *data)
{
        struct call *call = data;

        end_call(call, call->make(call));
        return NULL;
}

static struct call *find_left_locked(int pid)
{
        struct call *call = calls.left;

        while (call && (call->pid != pid || has_ended(call->pidfd)))
                call = call->next;
        return call;
}

/* Another process may have the number of one with a call that was never heard of again. */
static const char *meet_left(int pid)
{
        const char *name = NULL;
        struct call *call;

        pthread_mutex_lock(&calls.lock);
        call = find_left_locked(pid);
        if (call) {
                leave_locked(call);
                name = call->name;
        }
        pthread_mutex_unlock(&calls.lock);
        return name;
}

/* True: it has returned; else its thread has it from now on. */
static bool await(struct call *call, uint32_t ms)
{
        const struct timespec deadline = clock_in(ms);
        bool has_returned;
        int r = 0;

        pthread_mutex_lock(&calls.lock);
        while (call->state == CALL_AWAITED && r == 0)
                r = ms == 0 ? pthread_cond_wait(&call->returned, &calls.lock)
                            : pthread_cond_clockwait(&call->returned, &calls.lock, CLOCK_MONOTONIC,
                                                     &deadline);
        has_returned = call->state == CALL_RETURNED;
        if (!has_returned) {
                call->state = CALL_LEFT;
                call->next = calls.left;
                calls.left = call;
                leave_locked(call);
        }
        pthread_mutex_unlock(&calls.lock);
        return has_returned;
}

static int fail_left(struct mover_done *done, const char *name)
{
        (void)driver_check(done, name, CUDA_ERROR_UNKNOWN); /* for its name */
        done->driver_code = CUDA_SUCCESS;
        return -EINPROGRESS;
}

static struct call *call_new(const struct call *template)
{
        struct call *call = malloc(sizeof(*call));

        if (!call)
                return NULL;
        *call = *template;
        call->pidfd = fcntl(template->pidfd, F_DUPFD_CLOEXEC, 0);
        pthread_cond_init(&call->returned, NULL);
        return call;
}

static bool start(struct call *call)
{
        pthread_t thread;

        if (call->pidfd < 0 || pthread_create(&thread, NULL, run_call, call) != 0)
                return false;
        pthread_detach(thread);
        return true;
}

/* @template is the caller's, and has what the driver has written when the call has returned. */
static int make(const struct process_target *target, struct call *template, uint32_t ms,
                struct mover_done *done)
{
        const char *left = meet_left(target->pid);
        struct call *call;

        if (left)
                return fail_left(done, left);
        if (has_ended(target->pidfd))
                return -ESRCH;
        template->pid = target->pid;
        template->pidfd = target->pidfd;
        call = call_new(template);
        if (!call ||
            !start(call)) { /* a restore that is not made is worse than one that may hang */
                if (call)
                        call_free(call);
                return driver_check(done, template->name, template->make(template));
        }
        if (!await(call, ms))
                return fail_left(done, template->name);
        template->result = call->result;
        template->arguments = call->arguments;
        call_free(call);
        return driver_check(done, template->name, template->result);
}

#define CALL(function)                                     \
        {                                                  \
                .name = #function, .make = make_##function \
        }

static CUresult make_cuCheckpointProcessGetState(struct call *call)
{
        return driver.cuCheckpointProcessGetState(call->pid, &call->arguments.state);
}

int process_get_state(const struct process_target *target, CUprocessState *ret_state,
                      struct mover_done *done)
{
        struct call call = CALL(cuCheckpointProcessGetState);
        int r = make(target, &call, target->call_ms, done);

        if (r == 0)
                *ret_state = call.arguments.state;
        return r;
}

static CUresult make_cuCheckpointProcessLock(struct call *call)
{
        return driver.cuCheckpointProcessLock(call->pid, &call->arguments.lock);
}

int process_lock(const struct process_target *target, uint32_t timeout_ms, struct mover_done *done)
{
        struct call call = CALL(cuCheckpointProcessLock);

        call.arguments.lock = (CUcheckpointLockArgs){ .timeoutMs = timeout_ms };
        return make(target, &call, target->call_ms ? timeout_ms + target->call_ms : 0, done);
}

static CUresult make_cuCheckpointProcessCheckpoint(struct call *call)
{
        return driver.cuCheckpointProcessCheckpoint(call->pid, &call->arguments.checkpoint);
}

int process_checkpoint(const struct process_target *target, struct mover_done *done)
{
        struct call call = CALL(cuCheckpointProcessCheckpoint);

        call.arguments.checkpoint = (CUcheckpointCheckpointArgs){ 0 };
        return make(target, &call, target->call_ms, done);
}

static CUresult make_cuCheckpointProcessRestore(struct call *call)
{
        if (call->arguments.restore.gpuPairsCount > 0)
                call->arguments.restore.gpuPairs = call->pairs;
        return driver.cuCheckpointProcessRestore(call->pid, &call->arguments.restore);
}

int process_restore(const struct process_target *target, const struct mover_pair *pairs, size_t n,
                    struct mover_done *done)
{
        struct call call = CALL(cuCheckpointProcessRestore);

        call.arguments.restore = (CUcheckpointRestoreArgs){ 0 };
        if (n > 0) {
                memcpy(call.pairs, pairs, n * sizeof(pairs[0]));
                call.arguments.restore.gpuPairsCount = (unsigned int)n;
        }
        return make(target, &call, target->call_ms, done);
}

static CUresult make_cuCheckpointProcessUnlock(struct call *call)
{
        return driver.cuCheckpointProcessUnlock(call->pid, &call->arguments.unlock);
}

int process_unlock(const struct process_target *target, struct mover_done *done)
{
        struct call call = CALL(cuCheckpointProcessUnlock);

        call.arguments.unlock = (CUcheckpointUnlockArgs){ 0 };
        return make(target, &call, target->call_ms, done);
}
