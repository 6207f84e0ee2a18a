/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instruction takes eight bytes, can begin every cycle and answers after three: so three streams
 * run side by side, and are joined by advancing a checksum over the length of the stream after it,
 * which is a multiplication of polynomials and comes from tables.
 */
#include "image/checksum.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* The polynomial, lowest power in the highest bit. */
#define POLYNOMIAL 0x82f63b78u

/* Bytes of one of the three streams. */
#define STREAM ((size_t)4096)

static struct {
        uint32_t byte[256];       /* the checksum of one byte */
        uint32_t advance[4][256]; /* over STREAM bytes of zeros, byte by byte of the checksum */
        bool has_instruction;
} tables;

static uint32_t add_bytes(uint32_t state, const unsigned char *data, size_t size)
{
        while (size-- > 0)
                state = tables.byte[(state ^ *data++) & 0xff] ^ (state >> 8);
        return state;
}

static uint32_t advance_slowly(uint32_t state)
{
        for (size_t i = 0; i < STREAM; i++)
                state = tables.byte[state & 0xff] ^ (state >> 8);
        return state;
}

static void make_tables(void)
{
        for (uint32_t i = 0; i < 256; i++) {
                uint32_t value = i;

                for (int bit = 0; bit < 8; bit++)
                        value = value & 1 ? (value >> 1) ^ POLYNOMIAL : value >> 1;
                tables.byte[i] = value;
        }
        for (uint32_t byte = 0; byte < 4; byte++)
                for (uint32_t i = 0; i < 256; i++)
                        tables.advance[byte][i] = advance_slowly(i << (8 * byte));
#ifdef __x86_64__
        tables.has_instruction = __builtin_cpu_supports("sse4.2");
#endif
}

#ifdef __x86_64__
static uint32_t advance(uint32_t state)
{
        return tables.advance[0][state & 0xff] ^ tables.advance[1][state >> 8 & 0xff] ^
               tables.advance[2][state >> 16 & 0xff] ^ tables.advance[3][state >> 24];
}

static uint64_t load(const unsigned char *data)
{
        uint64_t word;

        memcpy(&word, data, sizeof(word));
        return word;
}

__attribute__((target("sse4.2"))) static uint32_t
add_by_instruction(uint32_t state, const unsigned char *data, size_t size)
{
        for (; size >= 3 * STREAM; data += 3 * STREAM, size -= 3 * STREAM) {
                uint64_t a = state, b = 0, c = 0;

                for (size_t i = 0; i < STREAM; i += 8) {
                        a = __builtin_ia32_crc32di(a, load(data + i));
                        b = __builtin_ia32_crc32di(b, load(data + STREAM + i));
                        c = __builtin_ia32_crc32di(c, load(data + 2 * STREAM + i));
                }
                state = advance(advance((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
        }
        for (; size >= 8; data += 8, size -= 8)
                state = (uint32_t)__builtin_ia32_crc32di(state, load(data));
        return add_bytes(state, data, size);
}
#endif

uint32_t checksum_add(uint32_t checksum, const void *data, size_t size)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, make_tables);
#ifdef __x86_64__
        if (tables.has_instruction)
                return ~add_by_instruction(~checksum, data, size);
#endif
        return ~add_bytes(~checksum, data, size);
}
