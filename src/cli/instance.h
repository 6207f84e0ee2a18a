/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_INSTANCE_H
#define CLI_INSTANCE_H

/* Scope-bound ownership for the library's results. */

#include <openvgpu/instance.h>

#include "base/cleanup.h"

DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);
DEFINE_CLEANUP(struct vgpu_instance_list *, vgpu_instance_list_free);

#endif
