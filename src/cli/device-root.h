/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DEVICE_ROOT_H
#define CLI_DEVICE_ROOT_H

/*
 * A folder that looks like the root of a machine with NVIDIA's driver, for tools that look for device nodes and
 * for libraries with the driver's version in their names: nvidia-ctk, gpu-feature-discovery.
 *
 *     dev/nvidia0, ..., nvidiactl, nvidia-uvm, nvidia-uvm-tools
 *     usr/lib/x86_64-linux-gnu/libnvidia-ml.so.VERSION, libcuda.so.VERSION, and their ".so.1"
 *
 * The nodes are of the device 0, 0, which nobody can open and everybody can make (Linux 5.8). Where even this is
 * forbidden there are none. The libraries are copies, because nvidia-ctk takes the version from the name behind all
 * links.
 */

#include <stdint.h>

/*
 * device_root_make() - at @root, which must not exist
 * @nvml, @cuda:  the libraries
 */
int device_root_make(const char *root, const char *version, const char *nvml, const char *cuda,
                     uint32_t n_devices);

#endif
