/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/ring.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* Registers, as bytes from the beginning of their page and of the usermode object. */
#define REGISTER_GET 0x88u
#define REGISTER_PUT 0x8cu
#define DOORBELL     0x90u

/* An entry: an address of 40 bits, whose lowest two are 0, and a number of words. */
#define ENTRY_ADDRESS    0xfffffffffcull
#define ENTRY_WORDS(e)   ((e) >> 42 & 0x1fffff)
#define ENTRY(at, words) (((at)&ENTRY_ADDRESS) | (uint64_t)(words) << 42)

#define ENTRIES_MAX     65536u
#define ENTRY_WORDS_MAX 65536u /* the library's longest has 13,711 */

/* Longer ones are code and data for the device behind one header: nothing of them is kept. */
#define ENTRY_SCAN_MAX 4096u

/* The kernel copies so much at once through a pipe, whatever its size is. */
#define COPY_PART 4096u

/* While the device fetches: it takes about a tenth of a millisecond, more if others have their turn. */
#define NAP_NS 20000

/* Through a pipe, because a system call answers EFAULT where a load would raise a signal. */
static bool memory_copy(void *to, uint64_t from, size_t size)
{
        CLEANUP(fd_closep) int in = -1;
        CLEANUP(fd_closep) int out = -1;
        int pipes[2];
        bool is_good = true;

        if (pipe2(pipes, O_CLOEXEC) < 0)
                return false;
        in = pipes[1];
        out = pipes[0];
        for (size_t at = 0; at < size && is_good; at += COPY_PART) {
                size_t part = size - at < COPY_PART ? size - at : COPY_PART;

                is_good = write(in, (const void *)(uintptr_t)(from + at), part) == (ssize_t)part &&
                          read(out, (char *)to + at, part) == (ssize_t)part;
        }
        return is_good;
}

static volatile uint32_t *word_at(uint64_t address)
{
        return (volatile uint32_t *)(uintptr_t)address;
}

static uint32_t register_read(const struct ring *ring, uint32_t name)
{
        return *word_at(ring->user + name);
}

/* What was written to memory of the device goes out before the register that tells of it. */
static void register_write(const struct ring *ring, uint32_t name, uint32_t value)
{
        atomic_thread_fence(memory_order_seq_cst);
        *word_at(ring->user + name) = value;
        atomic_thread_fence(memory_order_seq_cst);
}

/* Is all of it there, and is what it says possible? */
static enum ring_error ring_check(const struct ring *ring, uint32_t *ret_put)
{
        uint32_t registers[2], word, last;
        uint64_t entry;

        if (ring->n_entries < 4 || ring->n_entries > ENTRIES_MAX)
                return RING_STRANGE;
        if (!memory_copy(registers, ring->user + REGISTER_GET, sizeof(registers)) ||
            !memory_copy(&word, ring->doorbell, sizeof(word)))
                return RING_UNREADABLE;
        if (registers[1] >= ring->n_entries || registers[0] >= ring->n_entries)
                return RING_STRANGE;
        *ret_put = registers[1];
        last = (registers[1] + ring->n_entries - 1) % ring->n_entries;
        if (!memory_copy(&entry, ring->address + last * sizeof(entry), sizeof(entry)))
                return RING_UNREADABLE;
        if (entry ==
            0) /* the library begins with one: this is other memory by now, which is all 0 */
                return RING_STRANGE;
        return registers[0] == registers[1] ? RING_OK : RING_BUSY;
}

static enum ring_error entry_scan(uint64_t entry, struct method_scan *scan)
{
        uint32_t words[ENTRY_SCAN_MAX];
        size_t n = ENTRY_WORDS(entry);

        if (n > ENTRY_WORDS_MAX)
                return RING_STRANGE;
        if (n > ENTRY_SCAN_MAX)
                return RING_OK;
        if (!memory_copy(words, entry & ENTRY_ADDRESS, n * sizeof(*words)))
                return RING_UNREADABLE;
        method_scan(scan, words, n);
        return RING_OK;
}

enum ring_error ring_scan(const struct ring *ring, struct method_scan *scan)
{
        enum ring_error error;
        uint64_t entry;
        uint32_t put;

        *scan = (struct method_scan){ 0 };
        error = ring_check(ring, &put);
        if (error == RING_BUSY) /* what it has fetched or not is still there */
                error = RING_OK;
        for (uint32_t i = 0; error == RING_OK && i < put; i++)
                error = memory_copy(&entry, ring->address + i * sizeof(entry), sizeof(entry))
                                ? entry_scan(entry, scan)
                                : RING_UNREADABLE;
        return error;
}

static bool scratch_is_unused(const struct ring *ring)
{
        static const char zeros[RING_SCRATCH_SIZE];
        char bytes[RING_SCRATCH_SIZE];

        return memory_copy(bytes, ring->scratch, sizeof(bytes)) &&
               memcmp(bytes, zeros, sizeof(bytes)) == 0;
}

static bool scratch_has(const struct ring *ring, const uint32_t *words, size_t n)
{
        uint32_t bytes[RING_SCRATCH_SIZE / sizeof(uint32_t)];

        return memory_copy(bytes, ring->scratch, sizeof(bytes)) &&
               memcmp(bytes, words, n * sizeof(*words)) == 0;
}

/* The words at its beginning; its last one does nothing, which is what a word of 0 means. */
static bool scratch_fill(const struct ring *ring, const uint32_t *words, size_t n)
{
        if (n >= RING_SCRATCH_SIZE / sizeof(uint32_t) ||
            ring->scratch + RING_SCRATCH_SIZE > ENTRY_ADDRESS)
                return false;
        if (scratch_has(ring, words, n))
                return true; /* of another ring's round */
        if (!scratch_is_unused(ring))
                return false;
        memcpy((void *)(uintptr_t)ring->scratch, words, n * sizeof(*words));
        return true;
}

static void entries_write(const struct ring *ring, uint32_t put, size_t n_words)
{
        uint64_t nothing = ring->scratch + RING_SCRATCH_SIZE - sizeof(uint32_t);

        for (uint32_t i = 0; i < ring->n_entries; i++)
                ((volatile uint64_t *)(uintptr_t)ring->address)[i] =
                        i == put ? ENTRY(ring->scratch, n_words) : ENTRY(nothing, 1);
}

static void put_set(const struct ring *ring, uint32_t put)
{
        register_write(ring, REGISTER_PUT, put);
        *word_at(ring->doorbell + DOORBELL) = ring->token;
        atomic_thread_fence(memory_order_seq_cst);
}

void ring_begin(struct ring_round *round, const struct ring *ring, const uint32_t *words, size_t n)
{
        *round = (struct ring_round){ .ring = ring };
        round->error = ring_check(ring, &round->put);
        if (round->error != RING_OK)
                return;
        if (!scratch_fill(ring, words, n)) {
                round->error = RING_STRANGE;
                return;
        }
        entries_write(ring, round->put, n);
        round->half = (round->put + ring->n_entries / 2) % ring->n_entries;
        put_set(ring, round->half);
}

static void round_nap(void)
{
        const struct timespec nap = { .tv_nsec = NAP_NS };

        nanosleep(&nap, NULL);
}

/* False: at the deadline the device has not begun. */
static bool round_wait_half(const struct ring_round *round, uint64_t deadline_ns)
{
        uint32_t get;

        while ((get = register_read(round->ring, REGISTER_GET)) != round->half) {
                if (get == round->put && clock_now(CLOCK_MONOTONIC) >= deadline_ns)
                        return false;
                round_nap();
        }
        return true;
}

/*
 * A round that the device has begun is waited for however long it takes: with a part of it open, the library would send
 * entries that the device has gone past. Until it has come round nothing of the program could run anyway.
 */
enum ring_error ring_end(struct ring_round *round, uint64_t deadline_ns)
{
        if (round->error != RING_OK)
                return round->error;
        if (!round_wait_half(round, deadline_ns))
                round->error = RING_SLOW;
        put_set(round->ring, round->put);
        while (register_read(round->ring, REGISTER_GET) != round->put)
                round_nap();
        return round->error;
}

void ring_clear_scratch(const struct ring *ring)
{
        memset((void *)(uintptr_t)ring->scratch, 0, RING_SCRATCH_SIZE);
}
