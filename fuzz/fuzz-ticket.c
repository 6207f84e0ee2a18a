/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another process says is a ticket of its pool, or of a pointer into it: whatever is accepted lies in its piece,
 * is written again as it was, and would not be taken for a ticket of other memory.
 */
#include <assert.h>
#include <string.h>

#include "fuzz/target.h"
#include "gate/pool-ticket.h"
#include "wire/gate.h"

#define BLOCK ((uint64_t)2 << 20) /* the greatest offset of legacy IPC */

/* As hook-ipc.c and hook-vmm.c look at one. */
static void check_is_no_other(const struct gate_ticket *ticket)
{
        bool is_of_ipc =
                ticket->size > 0 && ticket->size <= UINT64_MAX / 4 && ticket->offset < BLOCK;
        bool is_of_descriptor = ticket->offset == 0;

        assert(!is_of_ipc && !is_of_descriptor);
}

static void check_place(const struct gate_ticket *ticket, const struct pool_place *place)
{
        struct gate_ticket written = *ticket;
        struct pool_place again;

        assert(place->size > 0 && place->size <= place->piece);
        assert(place->offset < place->piece && place->offset + place->size <= place->piece);
        assert(pool_place_write(&written, place));
        assert(memcmp(&written.process, &ticket->process, sizeof(written.process)) == 0);
        assert(memcmp(written.name, ticket->name, sizeof(written.name)) == 0);
        assert(pool_place_read(&written, &again));
        assert(again.pool == place->pool && again.offset == place->offset);
        assert(again.size == place->size && again.piece == place->piece);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct gate_ticket ticket;
        struct pool_place place;
        bool is_pool, is_place;
        uint64_t device;

        memset(&ticket, 0, sizeof(ticket));
        memcpy(&ticket, data, size < sizeof(ticket) ? size : sizeof(ticket));
        is_pool = pool_ticket_read(&ticket, &device);
        is_place = pool_place_read(&ticket, &place);
        assert(!(is_pool && is_place));
        if (is_pool || is_place)
                check_is_no_other(&ticket);
        if (is_place)
                check_place(&ticket, &place);
        return 0;
}
