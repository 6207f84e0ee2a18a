/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_REAL_H
#define NVML_REAL_H

/*
 * Loads NVIDIA's own libnvidia-ml.so.1, which stands behind ours on a machine with GPUs.
 *
 * It is loaded only if there is a driver: without a driver, and as root, its initialisation
 * makes device nodes in /dev.
 */

/*
 * real_load() - load NVIDIA's library, or NULL when there is none.
 * @path: where the manager found it, or "" to look at the usual places
 * Never loads our own library under another name. A loaded library stays loaded.
 */
void *real_load(const char *path);

#endif
