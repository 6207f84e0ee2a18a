/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

/* cuDriverGetVersion() answers this: CUDA 13.0. */
#define DRIVER_VERSION 13000

#endif
