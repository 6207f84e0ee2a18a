/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

/*
 * The ledger: who holds how much memory of which device of the simulated host.
 *
 * A process counts what it alone holds in its own slot, so that a process that is killed takes
 * exactly its own with it. What it exports is from then on a file with a name, that belongs to all
 * who hold a descriptor or a mapping of it: an flock() stays with the open file description
 * through dup(), SCM_RIGHTS and mmap(), so whoever can take the lock on the name has the proof that
 * nobody holds the memory any more, and removes it.
 *
 * Calls are made with the process' lock held. Devices are numbers of the host, not ordinals.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sim/host-layout.h"

struct ledger {
        struct host *host;
        struct host_slot *slot; /* ours */
        int directory, file, lock, memory;
};

/* ledger_open() - map the host and claim a slot. Errors: -EPROTO (no host), -EUSERS (no slot). */
int ledger_open(struct ledger *ledger, const char *directory);

/* ledger_abandon() - in a forked child: the slot is the parent's. */
void ledger_abandon(struct ledger *ledger);

/* ledger_charge() - Errors: -ENOMEM, the device has not so much left. */
int ledger_charge(struct ledger *ledger, int device, uint64_t size);
void ledger_refund(struct ledger *ledger, int device, uint64_t size);

/* ledger_note_context() - of what is charged, so much more (or less) is a context's. */
void ledger_note_context(struct ledger *ledger, int device, int64_t size);

/* ledger_get_free() - exact at the moment of the call. */
uint64_t ledger_get_free(struct ledger *ledger, int device);

/* ledger_share() - give the nameless file @fd a name, and take its @size out of our slot. */
int ledger_share(struct ledger *ledger, int fd, int device, uint64_t size);

/* ledger_note_busy() - our work kept @device busy for @ns more; needs no lock. */
void ledger_note_busy(struct ledger *ledger, int device, enum host_busy kind, uint64_t ns);

/* ledger_find() - the slot of process @pid; NULL: there is none, or it is dead. */
struct host_slot *ledger_find(struct ledger *ledger, int pid);
uint32_t ledger_slot_number(const struct ledger *ledger, const struct host_slot *slot);

#endif
