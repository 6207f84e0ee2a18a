/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_END_PROGRAMS_H
#define CLI_END_PROGRAMS_H

/* Ends the programs in a vGPU, for 'vgpu rm --force'. */

#include <openvgpu/instance.h>

#include "cli/arguments.h"

/*
 * end_programs_confirm() - ask on the terminal whether the programs in @instance may be ended; --yes
 * answers. Returns 0, or an exit code after it has said why not.
 */
int end_programs_confirm(const struct arguments *arguments, const struct vgpu_instance *instance);

/*
 * end_programs() - those that are in the vGPU @name now: with SIGTERM, and those that stay with SIGKILL
 * @ret_n:  how many there were
 *
 * Returns 0 when all of them have ended, or the vGPU is gone, or an exit code after it has said what is wrong.
 */
int end_programs(const struct arguments *arguments, struct vgpu_client *client, const char *name,
                 size_t *ret_n);

#endif
