/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/guest-allocations.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "daemon/foreign.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"

/* Even in pieces of 2 MiB that is 128 GiB; more descriptors would crowd out other guests. */
#define MEMORIES_MAX 65536

/* All real granularities are multiples of it. */
#define GRANULARITY 4096

static bool is_behind_all(const struct guest *guest, const struct gate_allocation *allocation)
{
        const struct guest_memory *last;

        if (guest->n_memory == 0)
                return true;
        last = &guest->memory[guest->n_memory - 1];
        return allocation->address > last->address &&
               allocation->address - last->address >= last->size;
}

/*
 * A process that has too many descriptors is not cut off: the rest of what it sends is let go, and then the request
 * has failed.
 */
static int charge(struct guest *guest, int (*take)(struct guest *, struct failure *))
{
        struct failure failure = { 0 };

        guest->request.refused = take(guest, &failure);
        return guest->request.refused;
}

/* Of what is refused, which is memory: its end waits for nobody. No more than could have been accepted. */
static int let_go(struct guest *guest, int *fd)
{
        *fd = fd_close(*fd);
        return ++guest->request.n_refused > MEMORIES_MAX ? -EPROTO : 0;
}

/* However large its devices are: no more than all of them have. */
static uint64_t sum_devices(const struct instance *instance)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < instance->n_parts; i++)
                sum += instance->part[i].device->memory_total;
        return sum;
}

static int add_memory(struct guest *guest, const struct gate_allocations *batch,
                      const struct gate_allocation *allocation, int *fd)
{
        struct guest_memory *memory;

        if (guest->n_memory == MEMORIES_MAX || !is_behind_all(guest, allocation) ||
            guest->memory_bytes + allocation->size > sum_devices(guest->instance))
                return -EPROTO;
        if (charge(guest, guest_charge_source) < 0)
                return let_go(guest, fd);
        memory = reallocarray(guest->memory, guest->n_memory + 1, sizeof(*memory));
        if (!memory)
                return -ENOMEM;
        guest->memory = memory;
        guest->memory[guest->n_memory++] = (struct guest_memory){
                .address = allocation->address,
                .size = allocation->size,
                .part = batch->device,
                .is_plain = batch->flags & GATE_BATCH_PLAIN,
                .source = TAKE_FD(*fd),
                .target = -1,
        };
        guest->memory_bytes += allocation->size;
        return 0;
}

/* Those of the range that was asked for, in the order of their addresses. */
static int set_target(struct guest *guest, const struct gate_allocation *allocation, int *fd)
{
        size_t i = guest_find_memory(guest, guest->request.range.from) + guest->request.n_received;
        struct guest_memory *memory = i < guest->n_memory ? &guest->memory[i] : NULL;

        if (!memory || memory->address != allocation->address || memory->size != allocation->size ||
            memory->address >= guest->request.range.to || memory->target >= 0)
                return -EPROTO;
        if (charge(guest, guest_charge_target) < 0)
                return let_go(guest, fd);
        memory->target = TAKE_FD(*fd);
        guest->request.n_received++;
        return 0;
}

int guest_receive_allocations(struct guest *guest, const void *message, size_t size, int *fds,
                              size_t n_fds)
{
        const struct gate_allocations *batch = message;
        int r = 0;

        if (size != sizeof(*batch) || batch->count == 0 || batch->count > GATE_BATCH_MAX ||
            batch->count != n_fds || batch->device >= guest->instance->n_parts)
                return -EPROTO;

        for (uint32_t i = 0; r == 0 && i < batch->count; i++) {
                const struct gate_allocation *allocation = &batch->allocation[i];

                if (allocation->size == 0 || allocation->size % GRANULARITY ||
                    allocation->size > sum_devices(guest->instance) || !foreign_is_memory(fds[i]))
                        return -EPROTO;
                if (guest->request.refused)
                        r = let_go(guest, &fds[i]);
                else if (guest->request.message == GATE_EXPORT)
                        r = add_memory(guest, batch, allocation, &fds[i]);
                else
                        r = set_target(guest, allocation, &fds[i]);
        }
        return r;
}
