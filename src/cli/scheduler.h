/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SCHEDULER_H
#define CLI_SCHEDULER_H

/* Shared by the commands 'vgpu scheduler ...'. */

#include <openvgpu/time-sharing.h>

#include "base/cleanup.h"
#include "cli/arguments.h"

DEFINE_CLEANUP(struct vgpu_time_sharing *, vgpu_time_sharing_free);
DEFINE_CLEANUP(struct vgpu_time_sharing_log *, vgpu_time_sharing_log_free);

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
