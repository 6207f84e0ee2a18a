/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_INSTANCE_H
#define LIB_INSTANCE_H

#include <openvgpu/instance.h>

#include "lib/client.h"

DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);

/* instance_decode() - the vGPU that @json, a part of the answer to @method, tells of. */
int instance_decode(struct vgpu_client *client, const char *method, json_t *json,
                    struct vgpu_instance **ret_instance);

/* instance_state_from_name() - as the protocol has it; UNKNOWN for any other. */
enum vgpu_instance_state instance_state_from_name(const char *name);

#endif
