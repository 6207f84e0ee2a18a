/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SCHEDULER_H
#define CLI_SCHEDULER_H

/* Shared by the commands 'vgpu scheduler ...'. */

#include <openvgpu/time-sharing.h>

#include "base/cleanup.h"
#include "cli/arguments.h"

DEFINE_CLEANUP(struct vgpu_time_sharing *, vgpu_time_sharing_free);
DEFINE_CLEANUP(struct vgpu_time_sharing_log *, vgpu_time_sharing_log_free);

/*
 * scheduler_each_device() - do it to the device of --device, or to each: one that refuses stops none of
 * the others. With --json, @act adds to @documents (scheduler_add()), which are then printed; otherwise
 * they are NULL, and it prints. Returns the exit code of the first failure.
 */
typedef int scheduler_act(const struct arguments *arguments, struct vgpu_client *client,
                          const char *device, json_t *documents, void *userdata);
int scheduler_each_device(const struct arguments *arguments, struct vgpu_client *client,
                          scheduler_act *act, void *userdata);
int scheduler_add(const struct arguments *arguments, json_t *documents,
                  const struct vgpu_time_sharing *turns);

/* The value of --device, or "0" without the option. */
static inline const char *scheduler_device(const struct arguments *arguments)
{
        const char *device = arguments_get(arguments, "device");

        return device ? device : "0";
}

#define SCHEDULER_DEVICE_OPTION                                               \
        {                                                                     \
                .name = "device", .argument = "DEVICE",                       \
                .help = "index, UUID or beginning of a UUID (default: GPU 0)" \
        }

#endif
