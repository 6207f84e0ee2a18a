/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_OPERATION_H
#define LIB_OPERATION_H

/* What of operations the rest of the library uses. */

#include <openvgpu/operation.h>

/*
 * operation_suspend_to_detach() - vgpu_operation_suspend() of a vGPU whose processes are to be made anew
 * from an image. Those that share memory are refused before anything is touched.
 */
int operation_suspend_to_detach(struct vgpu_client *client, const char *name,
                                const struct vgpu_operation_options *options);

#endif
