/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CDI_NVIDIA_H
#define CDI_NVIDIA_H

/*
 * The driver in a container as NVIDIA's container toolkit has it there: vgpud keeps what 'nvidia-ctk cdi generate' said
 * in a file of the run directory. It has all libraries of the driver, where images of other distributions look too.
 */

#include <jansson.h>

#include "base/paths.h"

#define CDI_NVIDIA_FILE "nvidia-cdi.json"

/*
 * cdi_nvidia_add() - what the file says of all GPUs, to @edits
 * @ret_driver:  where the driver's libcuda.so is in the container
 * @ret_version: of CDI, that it needs; at most 15 letters
 *
 * Returns 0. -ENOENT: there is no such file, or it says nothing of the driver, and nothing was added.
 */
int cdi_nvidia_add(json_t *edits, const char *run_directory, char ret_driver[PATHS_MAX],
                   char ret_version[16]);

#endif
