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

#include "sim/host-view.h"

/* What we hold. We believe only this; others read it in our slot, where anybody may write (host-view.h). */
struct holdings_own {
        _Atomic uint32_t state; /* CUprocessState */
        uint32_t pid_namespace;
        int32_t pid, service_thread;
        uint64_t used[HOST_DEVICES_MAX], contexts[HOST_DEVICES_MAX];
        _Atomic uint64_t busy[HOST_DEVICES_MAX][HOST_BUSY_KINDS];
};

struct holdings {
        struct host_view view;
        int number; /* of our slot; -1: none */
        struct holdings_own own;
        int directory, lock, memory;
};

/* holdings_open() - open the host and claim a slot. Errors: -EPROTO (no host), -EUSERS (no slot). */
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

/* holdings_set_state() - tell others what a checkpoint made of us (CUprocessState). Needs no lock, and nor do these. */
void holdings_set_state(struct holdings *holdings, uint32_t state);
void holdings_set_service_thread(struct holdings *holdings, int32_t thread);

/* holdings_is_off() - does the host's manager hold us off the devices? Its own programs never are. */
bool holdings_is_off(const struct holdings *holdings);

/* holdings_tell_waiting() - tell others that a stream of ours waits for @device, or none does any more. */
void holdings_tell_waiting(const struct holdings *holdings, int device, bool is_waiting);

/* holdings_are_awaited() - does another process wait for @device, which is not held off it? */
bool holdings_are_awaited(const struct holdings *holdings, int device);

/*
 * holdings_find() - find the slot of process @pid, and what it says of itself: numbers that only the process vouches for
 * Returns its number or -ESRCH: there is none, or the process is dead.
 */
int holdings_find(struct holdings *holdings, int pid, struct host_slot *ret_slot);

#endif
