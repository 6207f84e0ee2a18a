/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offset  63: 1 | 32..62: mark of the pool        | 0..31: offset / 512
 * size    63: 1 | 41..62: size of the piece / 2 M | 0..40: size of the allocation
 */
#include "gate/pool-ticket.h"

#include <string.h>

#define OF_POOL \
        0x4c4f4f5055504756ull /* "VGPUPOOL": an offset beyond that of any memory, with bit 63 off */

#define OF_POINTER  ((uint64_t)1 << 63)
#define MARK_SHIFT  32
#define MARK_MAX    0x7fffffffu
#define OFFSET_UNIT 512u
#define OFFSET_MAX  0xffffffffull
#define PIECE_SHIFT 41
#define PIECE_UNIT  ((uint64_t)2 << 20)
#define PIECE_MAX   0x3fffffull
#define BYTES_MAX   (((uint64_t)1 << PIECE_SHIFT) - 1)

void pool_ticket_write(struct gate_ticket *ticket, uint64_t device)
{
        ticket->offset = OF_POOL;
        ticket->size = device;
}

bool pool_ticket_read(const struct gate_ticket *ticket, uint64_t *ret_device)
{
        *ret_device = ticket->size;
        return ticket->offset == OF_POOL;
}

uint32_t pool_ticket_mark(const uint8_t name[GATE_NAME_SIZE])
{
        uint32_t mark;

        memcpy(&mark, name, sizeof(mark));
        return mark & MARK_MAX;
}

static bool is_sensible(const struct pool_place *place)
{
        return place->size > 0 && place->size <= place->piece &&
               place->offset <= place->piece - place->size;
}

bool pool_place_write(struct gate_ticket *ticket, const struct pool_place *place)
{
        uint64_t offset = place->offset / OFFSET_UNIT, piece = place->piece / PIECE_UNIT;

        if (!is_sensible(place) || place->offset % OFFSET_UNIT || place->piece % PIECE_UNIT ||
            offset > OFFSET_MAX || piece > PIECE_MAX || place->size > BYTES_MAX)
                return false;
        ticket->offset = OF_POINTER | (uint64_t)(place->pool & MARK_MAX) << MARK_SHIFT | offset;
        ticket->size = OF_POINTER | piece << PIECE_SHIFT | place->size;
        return true;
}

bool pool_place_read(const struct gate_ticket *ticket, struct pool_place *ret_place)
{
        if (!(ticket->offset & OF_POINTER) || !(ticket->size & OF_POINTER))
                return false;
        *ret_place = (struct pool_place){
                .pool = ticket->offset >> MARK_SHIFT & MARK_MAX,
                .offset = (ticket->offset & OFFSET_MAX) * OFFSET_UNIT,
                .size = ticket->size & BYTES_MAX,
                .piece = (ticket->size >> PIECE_SHIFT & PIECE_MAX) * PIECE_UNIT,
        };
        return is_sensible(ret_place);
}
