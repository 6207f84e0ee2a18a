/* SPDX-License-Identifier: Apache-2.0 */
#ifndef METER_ACCOUNT_RING_H
#define METER_ACCOUNT_RING_H

/*
 * The accounting of a vGPU (meter/accounting.h) as the state page shows it.
 *
 * The ring of a vGPU's accounts holds as many records as its accounting. Each record has one place
 * in the ring, which is rewritten while its process runs. Two cases would cost a record a second
 * place or its only one: a process that ends after others that began later (ended processes come in
 * the order of their ends), and a process that runs while thousands come and go. When this has made
 * a record fall out of the ring, all records are written again, one after the other.
 *
 * The number of a record is that of its place plus one; 0: it has no place.
 */

#include "meter/accounting.h"
#include "state/state-page.h"

struct account_ring {
        struct state_page *state_page;
        uint32_t slot;     /* of the vGPU on the state page */
        uint32_t instance; /* id */
        struct accounting *accounting;
};

/* account_ring_write() - write all records again. */
void account_ring_write(const struct account_ring *ring);

/* account_ring_update() - rewrite the records of the processes that run. */
void account_ring_update(const struct account_ring *ring);

/* account_ring_start() - call accounting_start(), and show the new record. Errors: as accounting_start(). */
int account_ring_start(const struct account_ring *ring, const struct accounting_record *record);

/* account_ring_end() - call accounting_end(), and show the record as ended. */
void account_ring_end(const struct account_ring *ring, uint64_t serial);

#endif
