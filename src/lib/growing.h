/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_GROWING_H
#define LIB_GROWING_H

/*
 * A buffer that grows until the driver's answer fits. NVML has six ways to ask how much room an
 * answer needs, and the answer may have grown before the second call. One loop handles all of them.
 *
 *     CLEANUP(growing_deinit) struct growing types = GROWING(nvmlVgpuTypeId_t, 0);
 *
 *     do
 *             r = HOST_CALL(host, about, nvmlDeviceGetSupportedVgpus, device, &types.count,
 *                           types.items);
 *     while (growing_again(host, &types, &r));
 */

#include "lib/host.h"

struct growing {
        void *items; /* NULL: no room yet */
        unsigned int
                count; /* the driver gets the room here, and returns how many items there are, or how many it needs */
        unsigned int room;
        unsigned int first; /* room to begin with */
        unsigned int rounds;
        size_t item_size;
};

/* Begins with room for @first_ items; 0 asks for the number first. */
#define GROWING(type_, first_) ((struct growing){ .item_size = sizeof(type_), .first = (first_) })

/* growing_start() - make the first room. Only needed if it is not 0. */
int growing_start(struct vgpu_host *host, struct growing *growing);

/*
 * growing_again() - does the caller have to make the call again? If not, @r is its result; if @r is 0,
 * the answer is in @items and has @count items.
 */
bool growing_again(struct vgpu_host *host, struct growing *growing, int *r);

void growing_deinit(struct growing *growing);

#endif
