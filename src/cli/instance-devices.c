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

bool instance_devices_are_overcommitted(const struct vgpu_instance *instance,
                                        const struct vgpu_device_list *devices)
{
        for (size_t i = 0; devices && i < devices->n_devices; i++)
                if (devices->devices[i]->index == instance->device)
                        return devices->devices[i]->is_overcommitted;
        return false;
}
