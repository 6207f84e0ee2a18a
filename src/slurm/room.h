/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLURM_ROOM_H
#define SLURM_ROOM_H

/*
 * Room on the GPUs for the vGPU of a step. Slurm starts an urgent job when it has sent SIGTSTP to the one that it suspends,
 * and perhaps before: the memory of that job is on its way. Its urgent job waits for it.
 */

#include <stdint.h>

#include <openvgpu/instance.h>

#define ROOM_SECONDS_MAX 300

struct room_wait {
        uint32_t job;         /* whose terminal is told about it */
        uint32_t seconds_max; /* 0: do not wait */
        uint32_t seconds;     /* that room_create() has waited, in all */
};

/* room_create() - creates a vGPU once there is room for it; what it failed with is the client's error */
int room_create(struct vgpu_client *client, const struct vgpu_instance_options *options,
                struct room_wait *wait);

#endif
