/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_RING_H
#define GATE_RING_H

/*
 * The ring of a channel (GPFIFO): entries that name words for the device (method.h), behind them the registers PUT, up to
 * where entries are valid, and GET, up to where the device has fetched them. The driver's library maps it at
 * the address that it has on the device, and remembers PUT by itself. So words are sent behind its
 * back in a whole round: one entry names them, all others name a word that does nothing, and in the end PUT is
 * what it was.
 *
 * All of a process' memory may be gone from one moment to the next for what a gate knows. What is read here
 * is first copied by the kernel, which fails where a load would kill the process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/method.h"

struct ring {
        uint64_t address; /* of the entries */
        uint32_t n_entries;
        uint32_t token;    /* what the doorbell is rung with */
        uint64_t user;     /* address of the registers */
        uint64_t doorbell; /* address */
        uint64_t scratch;  /* address of RING_SCRATCH_SIZE bytes below 1 TiB that nothing uses */
};

#define RING_SCRATCH_SIZE 512u

/*
 * Why words could not be sent, or found: for the log and the instance page. RING_BUSY passes.
 */
enum ring_error {
        RING_OK = 0,
        RING_UNREADABLE, /* it is not mapped where it was said to be */
        RING_BUSY,       /* the device has not fetched all of it */
        RING_STRANGE,    /* its registers, its entries or the scratch have what was not expected */
        RING_SLOW,       /* the device does not fetch what was sent */
};

/* ring_scan() - look through all that was sent since the channel was made. */
enum ring_error ring_scan(const struct ring *ring, struct method_scan *scan);

/* A round that is under way. */
struct ring_round {
        const struct ring *ring;
        uint32_t put; /* before, and in the end */
        uint32_t half;
        enum ring_error error;
};

/*
 * ring_begin() - the first half of a round, with the @n words of @words, which are in the ring's scratch from then on
 *
 * The library must not be in a call. A round whose ring_end() fails leaves the ring as it was.
 */
void ring_begin(struct ring_round *round, const struct ring *ring, const uint32_t *words, size_t n);

/* ring_end() - the second half; waits for the device to begin until @deadline_ns of CLOCK_MONOTONIC. */
enum ring_error ring_end(struct ring_round *round, uint64_t deadline_ns);

/* ring_clear_scratch() - when no round is under way that uses it. */
void ring_clear_scratch(const struct ring *ring);

#endif
