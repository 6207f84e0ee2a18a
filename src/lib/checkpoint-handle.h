/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_CHECKPOINT_HANDLE_H
#define LIB_CHECKPOINT_HANDLE_H

/* The handle (checkpoint.c). Actions (checkpoint-action.c) and waits (checkpoint-wait.c) use it. */

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
        const struct vgpu_checkpoint_process
                *results[CHECKPOINT_PROCESSES_MAX]; /* to those processes */
};

/*
 * checkpoint_ask() - send @request about all processes of the handle to the helper, and take its answer
 * If the helper dies before it answers, another helper undoes what the first one began. Returns 0 or the
 * error's code.
 */
int checkpoint_ask(struct vgpu_checkpoint *checkpoint, struct checkpoint_wire_request *request);

/*
 * checkpoint_milliseconds() - round up, so that a short time never becomes 0. A time that does not fit
 * lasts for ever.
 */
uint32_t checkpoint_milliseconds(double seconds);

#endif
