/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_INSTANCE_DEVICES_H
#define CLI_INSTANCE_DEVICES_H

/* The devices of a vGPU, as people read them. */

#include <stdbool.h>

#include <openvgpu/device.h>
#include <openvgpu/instance.h>

#include "base/cleanup.h"

DEFINE_CLEANUP(struct vgpu_device_list *, vgpu_device_list_free);

#define INSTANCE_DEVICES_MAX 48

/* instance_devices_format() - "0", or "0,1". Returns @text. */
const char *instance_devices_format(char text[INSTANCE_DEVICES_MAX],
                                    const struct vgpu_instance *instance);

/*
 * instance_devices_are_overcommitted() - does @instance leave when others need its device?
 * @devices: of vgpud; NULL: not known
 */
bool instance_devices_are_overcommitted(const struct vgpu_instance *instance,
                                        const struct vgpu_device_list *devices);

#endif
