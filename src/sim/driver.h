/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

/*
 * The simulated driver is that of CUDA 13.0. With OPENVGPU_SIM_CUDA=13040 it also has the checkpoint to
 * custom storage, as the documentation of CUDA 13.4 describes it.
 */

#define DRIVER_VERSION_VARIABLE "OPENVGPU_SIM_CUDA"
#define DRIVER_VERSION          13000
#define DRIVER_VERSION_STORAGE  13040

/* driver_get_version() - return the version that cuDriverGetVersion() answers. */
int driver_get_version(void);

#endif
