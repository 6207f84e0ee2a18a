/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_STORE_STATE_H
#define CHECKPOINT_STORE_STATE_H

/* A helper knows this of a store (store.h). */

#include <stdint.h>

#include <openvgpu/checkpoint.h>

#include "base/paths.h"
#include "checkpoint/device.h"

enum store_state { STORE_NONE, STORE_RESERVED, STORE_SAVED, STORE_LOST };

struct store_part {
        char uuid[DEVICE_UUID_MAX]; /* the device on which the memory was */
        uint64_t room;              /* bytes for which there are segments */
        uint64_t size;              /* bytes of memory */
};

struct store {
        enum store_state state;
        enum vgpu_checkpoint_storage place;
        char note[PATHS_MAX];
        char path[PATHS_MAX];
        int directory; /* -1: not open; else we have locked it */
        uint64_t generation;
        unsigned int n_parts;
        struct store_part part[CHECKPOINT_PAIRS_MAX];
};

#define STORE_INIT ((struct store){ .directory = -1 })

#endif
