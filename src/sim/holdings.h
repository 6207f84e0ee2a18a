/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_HOLDINGS_H
#define SIM_HOLDINGS_H

/*
 * The holdings say how much memory of each device of the simulated host each process holds.
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

struct holdings {
        struct host *host;
        struct host_slot *slot; /* ours */
        int directory, file, lock, memory;
};

/* holdings_open() - map the host and claim a slot. Errors: -EPROTO (no host), -EUSERS (no slot). */
int holdings_open(struct holdings *holdings, const char *directory);

/* holdings_abandon() - in a forked child, let go of the slot: it is the parent's. */
void holdings_abandon(struct holdings *holdings);

/* holdings_charge() - charge @size bytes. Errors: -ENOMEM, the device has less left. */
int holdings_charge(struct holdings *holdings, int device, uint64_t size);
void holdings_refund(struct holdings *holdings, int device, uint64_t size);

/* holdings_note_context() - note that @size more (or fewer) of the charged bytes are a context's. */
void holdings_note_context(struct holdings *holdings, int device, int64_t size);

/* holdings_get_free() - return the free bytes, exact at the moment of the call. */
uint64_t holdings_get_free(struct holdings *holdings, int device);

/* holdings_share() - give the nameless file @fd a name, and take its @size out of our slot. */
int holdings_share(struct holdings *holdings, int fd, int device, uint64_t size);

/* holdings_note_busy() - note that our work kept @device busy for @ns more; needs no lock. */
void holdings_note_busy(struct holdings *holdings, int device, enum host_busy kind, uint64_t ns);

/* holdings_find() - find the slot of process @pid; NULL: there is none, or the process is dead. */
struct host_slot *holdings_find(struct holdings *holdings, int pid);
uint32_t holdings_slot_number(const struct holdings *holdings, const struct host_slot *slot);

#endif
