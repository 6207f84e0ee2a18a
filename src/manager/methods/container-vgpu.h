/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTAINER_VGPU_H
#define MANAGER_CONTAINER_VGPU_H

/* Makes the vGPUs that containers order (guests/container-order.h): of the user of vgpud, as its doors are. */

struct manager;

void container_vgpu_set_up(struct manager *manager);

#endif
