/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

/*
 * Which driver is simulated: that of CUDA 13.0, or, with OPENVGPU_SIM_CUDA=13040, one that also has
 * the checkpoint to custom storage, as the documentation of CUDA 13.4 describes it.
 */

#define DRIVER_VERSION_VARIABLE "OPENVGPU_SIM_CUDA"
#define DRIVER_VERSION          13000
#define DRIVER_VERSION_STORAGE  13040

/* driver_get_version() - as cuDriverGetVersion() answers it. */
int driver_get_version(void);

#endif
