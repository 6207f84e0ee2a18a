/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/offer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cleanup.h"
#include "gate/box.h"
#include "gate/child.h"
#include "gate/fork-guard.h"
#include "gate/mapping.h"
#include "gate/memory.h"
#include "gate/offer-internal.h"

/* Boxes. */

static bool is_there(const struct mapping *mapping)
{
        return mapping->has_memory && mapping_is_exportable(mapping);
}

/* Into all boxes, or into @box. False: there was no room. What cannot be exported now is left out. */
static bool put_locked(struct mapping *mapping, const uint64_t *box)
{
        CLEANUP(fd_closep) int fd = -1;
        bool is_put = true;
        const char *call;

        if (!is_there(mapping) || mapping_export(mapping, &fd, &call) != CUDA_SUCCESS)
                return true;
        mapping->box_round = offer.round;
        if (box)
                is_put = box_fill(*box, mapping->name, fd);
        else
                box_put(mapping->name, fd);
        return is_put;
}

void offer_put(const uint8_t name[GATE_NAME_SIZE])
{
        struct mapping *mapping;

        if (!box_is_any())
                return;
        fork_guard_enter();
        pthread_mutex_lock(&offer.offering);
        mapping = memory_find_named(name);
        if (mapping && mapping->box_round != offer.round)
                (void)put_locked(mapping, NULL);
        pthread_mutex_unlock(&offer.offering);
        fork_guard_leave();
}

static bool fill_with_next(uint64_t box, CUdeviceptr *from)
{
        struct mapping *mapping;
        bool is_put;

        fork_guard_enter();
        pthread_mutex_lock(&offer.offering);
        mapping = memory_next_named(from);
        is_put = mapping && put_locked(mapping, &box);
        pthread_mutex_unlock(&offer.offering);
        fork_guard_leave();
        return is_put;
}

void offer_fill(uint64_t box)
{
        CUdeviceptr from = offer.behind_last;

        while (fill_with_next(box, &from))
                ;
}

void offer_empty(void)
{
        fork_guard_enter();
        pthread_mutex_lock(&offer.offering);
        offer.round++;
        box_empty();
        pthread_mutex_unlock(&offer.offering);
        fork_guard_leave();
}

/* The manager asks. */

/* An imported handle cannot be exported again; only while nobody uses it can the memory be exchanged. */
int offer_make(int *ret_fd, const uint8_t name[GATE_NAME_SIZE], bool is_closed)
{
        CUresult result = CUDA_SUCCESS;
        struct mapping *mapping;
        const char *call;
        int r = 0;

        pthread_mutex_lock(&offer.offering);
        mapping = memory_find_named(name);
        if (!mapping)
                r = -ENOENT;
        else if (!mapping->has_memory)
                r = -EAGAIN;
        else if (is_closed)
                result = mapping_make_own(mapping, &call);
        else if (!mapping_is_exportable(mapping))
                r = -EBUSY;
        if (r == 0 && result == CUDA_SUCCESS)
                result = mapping_export(mapping, ret_fd, &call);
        if (r == 0)
                offer.behind_last = mapping->address + mapping->size;
        pthread_mutex_unlock(&offer.offering);
        return result == CUDA_SUCCESS ? r : -EIO;
}

void offer_forget(void)
{
        pthread_mutex_init(&offer.naming, NULL);
        pthread_mutex_init(&offer.offering, NULL);
        offer.round = 1;
        offer.behind_last = 0;
}
