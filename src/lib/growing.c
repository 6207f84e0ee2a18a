/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/growing.h"

#define ROUNDS_MAX 16
#define BYTES_MAX  ((size_t)64 << 20) /* more than that is nonsense, not an answer */

static int make_room(struct vgpu_host *host, struct growing *growing, size_t room)
{
        void *items;

        if (room > BYTES_MAX / growing->item_size)
                return host_set_error(host, host->about, VGPU_ERROR_DRIVER_FAILED, "",
                                      "the driver wants room for %zu items", room);
        items = realloc(growing->items, room * growing->item_size);
        if (!items)
                return host_set_no_memory(host);

        memset(items, 0, room * growing->item_size);
        growing->items = items;
        growing->room = growing->count = (unsigned int)room;
        return 0;
}

int growing_start(struct vgpu_host *host, struct growing *growing)
{
        return make_room(host, growing, growing->first);
}

bool growing_again(struct vgpu_host *host, struct growing *growing, int *r)
{
        bool is_too_small = *r < 0 && host->code == NVML_ERROR_INSUFFICIENT_SIZE;
        size_t want = growing->count;

        if (*r < 0 && !is_too_small)
                return false;
        if (*r == 0 && want <= growing->room)
                return false;
        if (++growing->rounds > ROUNDS_MAX) {
                *r = host_end(host, NVML_ERROR_INSUFFICIENT_SIZE);
                return false;
        }

        /* A driver that does not say how much, or says too little, gets twice as much. */
        if (want <= growing->room)
                want = 2 * (size_t)growing->room;
        *r = make_room(host, growing, want + want / 8 + 1);
        return *r == 0;
}

void growing_deinit(struct growing *growing)
{
        free(growing->items);
        growing->items = NULL;
}
