/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_INSTANCE_H
#define LIB_INSTANCE_H

#include <openvgpu/instance.h>

#include "lib/client.h"

DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);

/* instance_read() - read the vGPU that @json, a part of the answer to @method, describes. */
int instance_read(struct vgpu_client *client, const char *method, json_t *json,
                  struct vgpu_instance **ret_instance);

#endif
