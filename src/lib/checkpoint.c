/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handle of one or more processes, and the actions on them: each is one request to the helper.
 *
 * When the helper dies in the middle (the driver has crashed in it), another one undoes what it had
 * begun; the notes of the first say what that was.
 */

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <openvgpu/checkpoint.h>

#include "base/cleanup.h"
#include "lib/checkpoint-error.h"
#include "lib/checkpoint-guest.h"
#include "lib/checkpoint-helper.h"

struct vgpu_checkpoint {
        struct checkpoint_helper helper;
        struct checkpoint_error error;
        size_t n;
        int pid[CHECKPOINT_PROCESSES_MAX];
        int pidfd[CHECKPOINT_PROCESSES_MAX];
        size_t n_results;
        struct vgpu_checkpoint_process result[CHECKPOINT_PROCESSES_MAX];
};

DEFINE_CLEANUP(struct vgpu_checkpoint *, vgpu_checkpoint_free);

const char *vgpu_checkpoint_state_get_name(enum vgpu_checkpoint_state state)
{
        return checkpoint_state_name((int)state);
}

/* The process of thread @tid, in which the driver and pidfds know only the process. */
static int find_process(pid_t tid)
{
        CLEANUP(freep) char *line = NULL;
        char path[32];
        size_t room = 0;
        int pid = -ESRCH;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
        file = fopen(path, "re");
        if (!file)
                return -ESRCH;
        while (getline(&line, &room, file) > 0)
                if (sscanf(line, "Tgid: %d", &pid) == 1)
                        break;
        fclose(file);
        return pid;
}

int vgpu_checkpoint_add(struct vgpu_checkpoint *checkpoint, pid_t pid)
{
        int process, pidfd;

        if (pid <= 0)
                return -EINVAL;
        if (checkpoint->n == CHECKPOINT_PROCESSES_MAX)
                return -E2BIG;
        process = find_process(pid);
        if (process < 0)
                return process;
        for (size_t i = 0; i < checkpoint->n; i++)
                if (checkpoint->pid[i] == process)
                        return 0;
        pidfd = (int)syscall(SYS_pidfd_open, process, 0);
        if (pidfd < 0)
                return -errno;
        checkpoint->pid[checkpoint->n] = process;
        checkpoint->pidfd[checkpoint->n++] = pidfd;
        return 0;
}

int vgpu_checkpoint_new(struct vgpu_checkpoint **ret_checkpoint, pid_t pid)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        int r;

        checkpoint = calloc(1, sizeof(*checkpoint));
        if (!checkpoint)
                return -ENOMEM;
        checkpoint->helper = CHECKPOINT_HELPER_NONE;
        checkpoint_error_clear(&checkpoint->error);
        r = vgpu_checkpoint_add(checkpoint, pid);
        if (r < 0)
                return r;
        *ret_checkpoint = TAKE(checkpoint);
        return 0;
}

int vgpu_checkpoint_new_current(struct vgpu_checkpoint **ret_checkpoint)
{
        return vgpu_checkpoint_new(ret_checkpoint, getpid());
}

struct vgpu_checkpoint *vgpu_checkpoint_free(struct vgpu_checkpoint *checkpoint)
{
        if (!checkpoint)
                return NULL;
        checkpoint_helper_stop(&checkpoint->helper);
        for (size_t i = 0; i < checkpoint->n; i++)
                fd_close(checkpoint->pidfd[i]);
        free(checkpoint);
        return NULL;
}

pid_t vgpu_checkpoint_get_pid(const struct vgpu_checkpoint *checkpoint)
{
        return checkpoint->pid[0];
}

const struct vgpu_checkpoint_error *
vgpu_checkpoint_get_error(const struct vgpu_checkpoint *checkpoint)
{
        return &checkpoint->error.value;
}

const struct vgpu_checkpoint_process *
vgpu_checkpoint_get_processes(const struct vgpu_checkpoint *checkpoint, size_t *ret_n)
{
        *ret_n = checkpoint->n_results;
        return checkpoint->result;
}

static void take_results(struct vgpu_checkpoint *checkpoint,
                         const struct checkpoint_wire_answer *answer)
{
        checkpoint->n_results = answer->n_processes;
        for (uint32_t i = 0; i < answer->n_processes; i++) {
                const struct checkpoint_wire_process *from = &answer->process[i];

                checkpoint->result[i] = (struct vgpu_checkpoint_process){
                        .pid = from->pid,
                        .restore_thread = from->thread,
                        .state_before = (enum vgpu_checkpoint_state)from->state_before,
                        .state = (enum vgpu_checkpoint_state)from->state,
                        .lock_seconds = (double)from->lock_ns * 1e-9,
                        .checkpoint_seconds = (double)from->checkpoint_ns * 1e-9,
                        .restore_seconds = (double)from->restore_ns * 1e-9,
                        .unlock_seconds = (double)from->unlock_ns * 1e-9,
                        .bytes = from->bytes,
                };
        }
}

static int start_helper(struct vgpu_checkpoint *checkpoint)
{
        int r = checkpoint_helper_start(&checkpoint->helper);

        if (r == 0)
                return 0;
        return checkpoint_error_set(&checkpoint->error, VGPU_CHECKPOINT_ERROR_FAILED,
                                    r == -ENOENT ? "install OpenVGPU whole, or set OPENVGPU_LIB to "
                                                   "its folder lib/openvgpu"
                                                 : "",
                                    "the helper vgpu-checkpointer cannot be started: %s",
                                    strerrordesc_np(-r));
}

/* Another helper brings back what the one that died had changed. */
static int undo(struct vgpu_checkpoint *checkpoint, const struct checkpoint_helper_notes *notes,
                struct checkpoint_wire_answer *answer)
{
        struct checkpoint_wire_request request = {
                .header = { CHECKPOINT_WIRE_MAGIC, CHECKPOINT_REQUEST }, .action = CHECKPOINT_UNDO
        };
        struct checkpoint_helper_notes ignored;
        int pidfds[CHECKPOINT_PROCESSES_MAX], pidfd, r;

        for (size_t i = 0; i < notes->n; i++) {
                pidfd = (int)syscall(SYS_pidfd_open, notes->process[i].pid, 0);
                if (pidfd < 0)
                        continue;
                request.pid[request.n_processes] = notes->process[i].pid;
                request.goal[request.n_processes] = notes->process[i].state_before;
                pidfds[request.n_processes++] = pidfd;
        }
        r = start_helper(checkpoint);
        if (r == 0)
                r = checkpoint_helper_ask(&checkpoint->helper, &request, pidfds, answer, &ignored);
        for (uint32_t i = 0; i < request.n_processes; i++)
                fd_close(pidfds[i]);
        return r == 0 && request.n_processes < notes->n ? -ESRCH : r;
}

/* How a process has come through it: as it was, in another state, or lost. */
enum outcome { OUTCOME_UNDONE, OUTCOME_CHANGED, OUTCOME_LOST };

static enum outcome get_outcome(const struct checkpoint_wire_answer *answer)
{
        enum outcome outcome = OUTCOME_UNDONE;

        for (uint32_t i = 0; i < answer->n_processes; i++) {
                const struct checkpoint_wire_process *process = &answer->process[i];

                if (process->state_before < 0 || process->state == process->state_before)
                        continue;
                if (process->state < 0 || process->state == VGPU_CHECKPOINT_STATE_FAILED)
                        return OUTCOME_LOST;
                outcome = OUTCOME_CHANGED;
        }
        return outcome;
}

static int fail_with_helper(struct vgpu_checkpoint *checkpoint,
                            const struct checkpoint_helper_notes *notes)
{
        static const char *const ends[] = {
                [OUTCOME_UNDONE] = ", and all is as it was",
                [OUTCOME_CHANGED] = "",
                [OUTCOME_LOST] = ", and a process could not be brought back",
        };
        struct checkpoint_wire_answer answer = { 0 };
        enum outcome outcome =
                undo(checkpoint, notes, &answer) < 0 ? OUTCOME_LOST : get_outcome(&answer);

        take_results(checkpoint, &answer);
        answer.kind = outcome == OUTCOME_LOST ? VGPU_CHECKPOINT_ERROR_LOST
                                              : VGPU_CHECKPOINT_ERROR_DRIVER_FAILED;
        answer.is_undone = outcome == OUTCOME_UNDONE;
        answer.pid = notes->pid;
        memcpy(answer.call, notes->call, sizeof(answer.call));
        snprintf(answer.message, sizeof(answer.message), "the helper died in %.47s on process %d%s",
                 *notes->call ? notes->call : "its start", notes->pid, ends[outcome]);
        snprintf(answer.hint, sizeof(answer.hint), "%s",
                 outcome == OUTCOME_UNDONE ? "" : "look with 'vgpu checkpoint state'");
        return checkpoint_error_set_answer(&checkpoint->error, &answer);
}

static int ask(struct vgpu_checkpoint *checkpoint, struct checkpoint_wire_request *request)
{
        struct checkpoint_wire_answer answer;
        struct checkpoint_helper_notes notes;
        int r;

        checkpoint_error_clear(&checkpoint->error);
        checkpoint->n_results = 0;
        r = start_helper(checkpoint);
        if (r < 0)
                return r;
        request->header = (struct checkpoint_header){ CHECKPOINT_WIRE_MAGIC, CHECKPOINT_REQUEST };
        request->n_processes = (uint32_t)checkpoint->n;
        memcpy(request->pid, checkpoint->pid, sizeof(request->pid));
        if (checkpoint_helper_ask(&checkpoint->helper, request, checkpoint->pidfd, &answer,
                                  &notes) < 0)
                return fail_with_helper(checkpoint, &notes);
        take_results(checkpoint, &answer);
        return answer.kind ? checkpoint_error_set_answer(&checkpoint->error, &answer) : 0;
}

/* Rounded up, so that a little time is never none; what does not fit is for ever. */
static uint32_t milliseconds(double seconds)
{
        double exact = seconds * 1000;

        if (!(exact >= 0 && exact < CHECKPOINT_FOREVER_MS - 1))
                return CHECKPOINT_FOREVER_MS;
        return (uint32_t)exact + ((uint32_t)exact < exact);
}

static int fail_invalid(struct vgpu_checkpoint *checkpoint, const char *what)
{
        checkpoint->n_results = 0;
        return checkpoint_error_set(&checkpoint->error, VGPU_CHECKPOINT_ERROR_INVALID, "", "%s",
                                    what);
}

static int set_pairs(struct vgpu_checkpoint *checkpoint, struct checkpoint_wire_request *request,
                     const struct vgpu_checkpoint_options *options)
{
        if (options->n_pairs > CHECKPOINT_PAIRS_MAX)
                return fail_invalid(checkpoint, "more pairs than a host has devices");
        if (options->n_pairs > 0 && !options->pairs)
                return fail_invalid(checkpoint, "a number of pairs, but no pairs");
        for (size_t i = 0; i < options->n_pairs; i++) {
                const struct vgpu_checkpoint_pair *pair = &options->pairs[i];

                if (!pair->from || !pair->to || strlen(pair->from) >= CHECKPOINT_DEVICE_MAX ||
                    strlen(pair->to) >= CHECKPOINT_DEVICE_MAX)
                        return fail_invalid(checkpoint, "a pair without two devices");
                strcpy(request->pair[i].from, pair->from);
                strcpy(request->pair[i].to, pair->to);
        }
        request->n_pairs = (uint32_t)options->n_pairs;
        return 0;
}

/* What a manager looks after is handled by it: its gate closes first, and its memory moves faster. */
static int refuse_guests(struct vgpu_checkpoint *checkpoint)
{
        char name[CHECKPOINT_GUEST_NAME_MAX], hint[192];

        for (size_t i = 0; i < checkpoint->n; i++) {
                if (!checkpoint_guest_find(checkpoint->pid[i], name))
                        continue;
                checkpoint->n_results = 0;
                snprintf(hint, sizeof(hint), "use 'vgpu suspend %s' and 'vgpu resume %s'", name,
                         name);
                return checkpoint_error_set(&checkpoint->error, VGPU_CHECKPOINT_ERROR_GUEST, hint,
                                            "process %d is a program of the vGPU %s",
                                            checkpoint->pid[i], name);
        }
        return 0;
}

static int act(struct vgpu_checkpoint *checkpoint, enum checkpoint_action action,
               const struct vgpu_checkpoint_options *given)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        struct checkpoint_wire_request request = { .action = action };
        int r;

        if (given && given->size > sizeof(options))
                return fail_invalid(checkpoint, "options of a newer version of the library");
        if (given)
                memcpy(&options, given, given->size);
        r = set_pairs(checkpoint, &request, &options);
        if (r == 0 && !options.is_forced && action != CHECKPOINT_STATE)
                r = refuse_guests(checkpoint);
        if (r < 0)
                return r;
        request.timeout_ms = milliseconds(options.timeout_seconds);
        request.flags = (options.with_children ? CHECKPOINT_WITH_CHILDREN : 0) |
                        (options.is_careful ? CHECKPOINT_CAREFUL : 0) |
                        (options.is_forced ? CHECKPOINT_FORCED : 0);
        return ask(checkpoint, &request);
}

int vgpu_checkpoint_look(struct vgpu_checkpoint *checkpoint,
                         const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_STATE, options);
}

int vgpu_checkpoint_lock(struct vgpu_checkpoint *checkpoint,
                         const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_LOCK, options);
}

int vgpu_checkpoint_try_lock(struct vgpu_checkpoint *checkpoint,
                             const struct vgpu_checkpoint_options *options)
{
        int r = act(checkpoint, CHECKPOINT_LOCK, options);

        if (r < 0 && checkpoint->error.value.kind == VGPU_CHECKPOINT_ERROR_TIMED_OUT &&
            checkpoint->error.value.is_undone)
                return 0;
        return r < 0 ? r : 1;
}

int vgpu_checkpoint_checkpoint(struct vgpu_checkpoint *checkpoint,
                               const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_CHECKPOINT, options);
}

int vgpu_checkpoint_restore(struct vgpu_checkpoint *checkpoint,
                            const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_RESTORE, options);
}

int vgpu_checkpoint_unlock(struct vgpu_checkpoint *checkpoint,
                           const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_UNLOCK, options);
}

int vgpu_checkpoint_suspend(struct vgpu_checkpoint *checkpoint,
                            const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_SUSPEND, options);
}

int vgpu_checkpoint_resume(struct vgpu_checkpoint *checkpoint,
                           const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_RESUME, options);
}

int vgpu_checkpoint_toggle(struct vgpu_checkpoint *checkpoint,
                           const struct vgpu_checkpoint_options *options)
{
        return act(checkpoint, CHECKPOINT_TOGGLE, options);
}

int vgpu_checkpoint_get_state(struct vgpu_checkpoint *checkpoint,
                              enum vgpu_checkpoint_state *ret_state)
{
        struct checkpoint_wire_request request = { .action = CHECKPOINT_STATE };
        int r = ask(checkpoint, &request);

        if (r == 0)
                *ret_state = checkpoint->result[0].state;
        return r;
}

static int is_in(struct vgpu_checkpoint *checkpoint, enum vgpu_checkpoint_state wanted)
{
        enum vgpu_checkpoint_state state;
        int r = vgpu_checkpoint_get_state(checkpoint, &state);

        return r < 0 ? r : state == wanted;
}

int vgpu_checkpoint_is_running(struct vgpu_checkpoint *checkpoint)
{
        return is_in(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
}

int vgpu_checkpoint_is_locked(struct vgpu_checkpoint *checkpoint)
{
        return is_in(checkpoint, VGPU_CHECKPOINT_STATE_LOCKED);
}

int vgpu_checkpoint_is_checkpointed(struct vgpu_checkpoint *checkpoint)
{
        return is_in(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
}

int vgpu_checkpoint_get_restore_thread(struct vgpu_checkpoint *checkpoint, pid_t *ret_thread)
{
        struct checkpoint_wire_request request = { .action = CHECKPOINT_THREAD };
        int r = ask(checkpoint, &request);

        if (r == 0)
                *ret_thread = checkpoint->result[0].restore_thread;
        return r;
}

static double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* The driver tells nobody of a change: we look again, at first soon, then every 25 ms. */
#define LOOK_MS_MAX 25

/* Sleeps until it is time to look again, or the process ends. */
static void pause_between_looks(const struct vgpu_checkpoint *checkpoint, int *look_ms, double left)
{
        struct pollfd fd = { .fd = checkpoint->pidfd[0], .events = POLLIN };
        int timeout = *look_ms;

        if (left < timeout / 1000.0)
                timeout = (int)milliseconds(left);
        (void)poll(&fd, 1, timeout);
        if (*look_ms < LOOK_MS_MAX)
                (*look_ms)++;
}

static bool may_still_come(const struct vgpu_checkpoint *checkpoint, int r)
{
        return r == 0 || checkpoint->error.value.kind == VGPU_CHECKPOINT_ERROR_NO_CUDA;
}

int vgpu_checkpoint_wait(struct vgpu_checkpoint *checkpoint, enum vgpu_checkpoint_state state,
                         double timeout_seconds)
{
        double deadline = timeout_seconds < 0 ? INFINITY : now() + timeout_seconds;
        enum vgpu_checkpoint_state is = VGPU_CHECKPOINT_STATE_UNKNOWN;
        int look_ms = 1, r;

        for (;;) {
                r = vgpu_checkpoint_get_state(checkpoint, &is);
                if (!may_still_come(checkpoint, r))
                        return r;
                if (r == 0 && is == state)
                        return 0;
                if (r == 0 && is == VGPU_CHECKPOINT_STATE_FAILED)
                        return checkpoint_error_set(
                                &checkpoint->error, VGPU_CHECKPOINT_ERROR_LOST,
                                "nothing but to kill it is left",
                                "process %d has failed: it will not be %s any more",
                                checkpoint->pid[0], vgpu_checkpoint_state_get_name(state));
                if (now() >= deadline)
                        break;
                pause_between_looks(checkpoint, &look_ms, deadline - now());
        }
        return checkpoint_error_set(&checkpoint->error, VGPU_CHECKPOINT_ERROR_TIMED_OUT, "",
                                    "process %d is not %s yet: it is %s", checkpoint->pid[0],
                                    vgpu_checkpoint_state_get_name(state),
                                    r < 0 ? "without CUDA" : vgpu_checkpoint_state_get_name(is));
}
