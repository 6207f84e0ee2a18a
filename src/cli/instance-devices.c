/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/instance-devices.h"

#include <stdio.h>

const char *instance_devices_format(char text[INSTANCE_DEVICES_MAX],
                                    const struct vgpu_instance *instance)
{
        size_t length = (size_t)snprintf(text, INSTANCE_DEVICES_MAX, "%u", instance->device);

        for (size_t i = 1; i < instance->n_parts && length < INSTANCE_DEVICES_MAX; i++)
                length += (size_t)snprintf(text + length, INSTANCE_DEVICES_MAX - length, ",%u",
                                           instance->parts[i]->device);
        return text;
}
