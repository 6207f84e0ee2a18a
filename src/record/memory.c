/* SPDX-License-Identifier: Apache-2.0 */
#include "record/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Parts are small and many; what is larger than half of it has a piece of its own. */
#define PIECE_SIZE 16384

struct record_piece {
        struct record_piece *next;
        size_t used, room;
        max_align_t bytes[];
};

static struct record_piece *add_piece(struct record_memory *memory, size_t room)
{
        struct record_piece *piece = malloc(sizeof(*piece) + room);

        if (!piece)
                return NULL;
        piece->used = 0;
        piece->room = room;
        piece->next = memory->pieces;
        memory->pieces = piece;
        return piece;
}

void *record_memory_get(struct record_memory *memory, size_t n, size_t size)
{
        struct record_piece *piece = memory->pieces;
        size_t bytes;
        char *at;

        if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
                return NULL;
        bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
        if (!piece || piece->room - piece->used < bytes)
                piece = add_piece(memory, bytes > PIECE_SIZE / 2 ? bytes : PIECE_SIZE);
        if (!piece)
                return NULL;
        at = (char *)piece->bytes + piece->used;
        piece->used += bytes;
        return memset(at, 0, bytes);
}

void record_memory_deinit(struct record_memory *memory)
{
        while (memory->pieces) {
                struct record_piece *next = memory->pieces->next;

                free(memory->pieces);
                memory->pieces = next;
        }
}
