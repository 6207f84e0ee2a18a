/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MOVER_TARGET_H
#define TESTS_MOVER_TARGET_H

/* A process that the mover checkpoints: the test's own program again, as a guest with a context. */

#include <stdbool.h>
#include <sys/types.h>

#include "fixture.h"

struct target {
        pid_t pid;
        int input, output;
};

/* target_run_guest() - for main(), when its first argument is "guest". */
int target_run_guest(void);

/* target_start() - it has its context when this returns. Returns the UUID of its device. */
CUuuid target_start(struct target *target);

/* target_start_as() - with the pid @number, unless it is 0. False: this test may not choose pids. */
bool target_start_as(struct target *target, pid_t number, CUuuid *ret_uuid);
void target_end(struct target *target);

/* target_open() - a pidfd of @pid, or of this process if there is no @pid. */
int target_open(pid_t pid);

/* target_ask() - asks the mover; perform() waits for the answer. target_checkpoint() does both. */
int target_ask(struct fixture *fixture, pid_t pid, enum mover_checkpoint_action action,
               const struct mover_checkpoint_options *options);
int target_checkpoint(struct fixture *fixture, pid_t pid, enum mover_checkpoint_action action);

/* target_assert_runs() - it answers, and its device is the one with @uuid. */
void target_assert_runs(const struct target *target, const CUuuid *uuid);

/* A mover that stops at the fault point @point. */
void start_mover_that_pauses_at(struct fixture *fixture, const char *point);
void await_pause(const char *point);
void end_pause(const char *point);

#endif
