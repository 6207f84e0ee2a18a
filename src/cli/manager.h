/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MANAGER_H
#define CLI_MANAGER_H

/* Scope-bound ownership for the manager's facts about itself. */

#include <openvgpu/manager.h>

#include "base/cleanup.h"

DEFINE_CLEANUP(struct vgpu_manager *, vgpu_manager_free);

#endif
