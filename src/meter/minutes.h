/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_MINUTES_H
#define METER_MINUTES_H

/*
 * Usage by the minute, on its way to the ledger.
 *
 * An amount is added with its span of time and cut at the full minutes. Rows that are taken out are
 * put back if the ledger cannot be written, so that none is lost.
 *
 * At most MINUTES_ROWS_MAX rows are kept, however long the ledger cannot be written. Beyond that,
 * an amount goes to the latest minute for which its key has a row. Sums stay right, and minutes
 * become coarse. Only a key that has no row yet still gets one.
 */

#include <stddef.h>
#include <stdint.h>

#include "meter/usage.h"

#define MINUTES_ROWS_MAX 65536

struct minutes_row {
        uint64_t minute; /* since the epoch */
        struct usage_key key;
        struct usage_amount amount;
};

struct minutes {
        struct minutes_row *rows;
        size_t n, room;
        uint32_t *buckets; /* row numbers + 1, hashed by key and minute */
        size_t n_buckets;
};

/* minutes_deinit() - free all rows. A zeroed struct is empty. */
void minutes_deinit(struct minutes *minutes);

/*
 * minutes_add() - add @amount, which accrued evenly from @from_ms to @to_ms of CLOCK_REALTIME
 *
 * A span that is empty, or ends before it begins, counts as the instant @to_ms. Errors: -ENOMEM; then
 * part of the amount may have been added, and @amount is the rest.
 */
int minutes_add(struct minutes *minutes, const struct usage_key *key, struct usage_amount *amount,
                uint64_t from_ms, uint64_t to_ms);

/* minutes_move() - move all rows of @from to @to. Errors: -ENOMEM; the rest stays in @from. */
int minutes_move(struct minutes *to, struct minutes *from);

/* minutes_clear() - forget all rows, because the ledger has them. */
void minutes_clear(struct minutes *minutes);

#endif
