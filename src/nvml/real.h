/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_REAL_H
#define NVML_REAL_H

/*
 * NVIDIA's own libnvidia-ml.so.1, which stands behind ours on a machine with GPUs.
 *
 * It is loaded only when there is a driver to talk to: without one, and as root, its
 * initialisation makes device nodes in /dev.
 */

/*
 * real_load() - load NVIDIA's library, or NULL when there is none.
 * @path: where the manager found it, or "" to look at the usual places
 * Never loads ourselves under another name. What is loaded stays loaded.
 */
void *real_load(const char *path);

#endif
