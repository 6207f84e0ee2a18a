/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TURNS_H
#define CLI_TURNS_H

/* What the commands of the scheduler share. */

#include <openvgpu/turns.h>

#include "base/cleanup.h"
#include "cli/arguments.h"

DEFINE_CLEANUP(struct vgpu_turns *, vgpu_turns_free);
DEFINE_CLEANUP(struct vgpu_turns_log *, vgpu_turns_log_free);

/* Of the option --device, "0" where it is not given. */
static inline const char *turns_device(const struct arguments *arguments)
{
        const char *device = arguments_get(arguments, "device");

        return device ? device : "0";
}

#define TURNS_DEVICE_OPTION                                                   \
        {                                                                     \
                .name = "device", .argument = "DEVICE",                       \
                .help = "index, UUID or beginning of a UUID (default: GPU 0)" \
        }

#endif
