/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_INSTANCE_DEVICES_H
#define CLI_INSTANCE_DEVICES_H

/* The devices of a vGPU, as people read them. */

#include <openvgpu/instance.h>

#define INSTANCE_DEVICES_MAX 48

/* instance_devices_format() - "0", or "0,1". Returns @text. */
const char *instance_devices_format(char text[INSTANCE_DEVICES_MAX],
                                    const struct vgpu_instance *instance);

#endif
