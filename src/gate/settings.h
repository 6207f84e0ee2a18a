/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_SETTINGS_H
#define GATE_SETTINGS_H

/*
 * The settings in the environment. They are read once, at the first CUDA call, because the guest
 * may change its environment at any time, and getenv() is not safe beside setenv() in another
 * thread.
 */

#include <stdbool.h>

#include "base/paths.h"

struct settings {
        char driver[PATHS_MAX]; /* OPENVGPU_DRIVER: the file; "" if it does not say */
        char log[PATHS_MAX];    /* OPENVGPU_GATE_LOG: a file for the gate's log, or "" */
        bool is_native;         /* OPENVGPU_NATIVE_IPC=1: all allocations are the driver's own */
        bool has_native_pools;  /* OPENVGPU_NATIVE_POOLS=1: those of pools are */
        bool sees_all;   /* OPENVGPU_ALL_DEVICES=1: the driver sees all devices of the host */
        bool is_in_vgpu; /* OPENVGPU_VGPU: before cuInit(), which joins it, too */
};

extern struct settings settings;

void settings_read(void);

#endif
