/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

/*
 * vgpu checkpoint: actions on processes, without a manager. An action is a row of a table
 * (checkpoint.c); checkpoint-say.c prints what an action did, or why it failed.
 */

#include <openvgpu/checkpoint.h>

#include "cli/arguments.h"

/* checkpoint_say_error() - why the last call with @checkpoint failed. Returns the exit code. */
int checkpoint_say_error(const struct arguments *arguments,
                         const struct vgpu_checkpoint *checkpoint);

/* checkpoint_say_states(), checkpoint_say_threads() - one, or a line for each. Return 0. */
int checkpoint_say_states(const struct arguments *arguments,
                          const struct vgpu_checkpoint *checkpoint);
int checkpoint_say_threads(const struct arguments *arguments,
                           const struct vgpu_checkpoint *checkpoint);

/* checkpoint_say_done() - what was done to each process, and how long it took. Returns 0. */
int checkpoint_say_done(const struct arguments *arguments,
                        const struct vgpu_checkpoint *checkpoint);

#endif
