/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_CHECKPOINT_HANDLE_H
#define LIB_CHECKPOINT_HANDLE_H

/* The handle (checkpoint.c), for what acts on it (checkpoint-action.c) and looks (checkpoint-wait.c). */

#include <openvgpu/checkpoint.h>

#include "lib/checkpoint-error.h"
#include "lib/checkpoint-helper.h"

struct vgpu_checkpoint {
        struct checkpoint_helper helper;
        struct checkpoint_error error;
        size_t n;
        int pid[CHECKPOINT_PROCESSES_MAX];
        int pidfd[CHECKPOINT_PROCESSES_MAX];
        size_t n_results;
        struct vgpu_checkpoint_process result[CHECKPOINT_PROCESSES_MAX];
        const struct vgpu_checkpoint_process *results[CHECKPOINT_PROCESSES_MAX]; /* to those */
};

/*
 * checkpoint_ask() - send @request about all processes of the handle to the helper, and take its answer
 * When the helper dies in it, another one undoes what it had begun. Returns 0 or the error's code.
 */
int checkpoint_ask(struct vgpu_checkpoint *checkpoint, struct checkpoint_wire_request *request);

/* checkpoint_milliseconds() - rounded up, so that a little time is never none; what does not fit is for ever. */
uint32_t checkpoint_milliseconds(double seconds);

#endif
