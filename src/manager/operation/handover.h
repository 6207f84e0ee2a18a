/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_HANDOVER_H
#define MANAGER_HANDOVER_H

/*
 * One vGPU leaves a device while another one comes there, into the room that it leaves.
 *
 * The one that leaves (operation->hands_over) lets go of its memory in parts, as soon as each is in the pool. Such
 * memory is parked (undo-release.h): should the operation be undone, it comes back from the pool. The room for that
 * is promised to it (guest->room[].handed), until the end is recorded.
 *
 * The one that comes (operation->is_early; one on a device) creates and fills its memory in parts, in what is free
 * and as more becomes free (arrival.h). The promises of those that hand over do not count for it, and it is the only one of whom
 * that is true: all that it has taken it can give back, for the pool has it still. So
 *
 *   - it does not record its end before all that hand over on its device have recorded theirs;
 *   - one that hands over and is undone breaks it, and waits until it has let go.
 *
 * The driver clears memory that is freed, before anybody gets it, with the engine that copies to the device. So what
 * is let go may be given to the one that comes as it is, without being freed: an allocation for one of the same size,
 * which is filled, and then mapped by its gate (gate.h: GIVEN). What there was in it could be read, and what will be
 * there written, by the process that has left it; so that must be one that could do so anyway: of the same user, in the
 * same container or none, and in a vGPU of the same owner.
 *
 * After a restart both are undone, in this order, too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct guest;
struct instance;
struct operation;

/* handover_may() - may @guest's memory be let go in parts, while it is copied to its reservation? */
bool handover_may(const struct guest *guest);

/*
 * handover_pass() - @n of its allocations from @first on are in the reservation, and the mover has let them go
 * False: they are kept, and so must be those behind them.
 */
bool handover_pass(struct guest *guest, size_t first, size_t n);

/* handover_count() - how many allocations from the first on are parked. */
size_t handover_count(const struct guest *guest);

/* handover_has_parked() - is anything of its memory in its reservation, and nowhere else? */
bool handover_has_parked(const struct guest *guest);

/* handover_expect_back() - after a restart: what is parked will need its room. */
void handover_expect_back(struct operation *operation);

/* handover_expect_guest_back() - of one, whenever what is parked of it changes in an undo. */
void handover_expect_guest_back(const struct operation *operation, struct guest *guest);

/* handover_is_valid() - is the room promised to @guest that its parked memory will need to come back? */
bool handover_is_valid(const struct guest *guest);

/* handover_end() - it is recorded: nothing of @operation's comes back. */
void handover_end(struct operation *operation);

/* handover_get_lent() - of what is promised on @device, what is lent to the one that comes early. */
uint64_t handover_get_lent(const struct device *device);

/* handover_is_under_way() - does anybody who leaves @device hand over, or is about to? */
bool handover_is_under_way(const struct device *device);

/* handover_is_ahead() - has one of them let go of nothing yet? */
bool handover_is_ahead(const struct device *device);

/*
 * handover_may_begin() - do all who leave @instance's device hand over by now, and does nobody come early yet? One of
 * several devices neither comes early nor hands over.
 * Who is there with its context may begin as soon as they stand still, in what is free besides; who needs room for
 * that, when some of theirs is free.
 */
bool handover_may_begin(const struct instance *instance);

/* handover_find_early() - the one that comes to @device early; NULL: none. */
struct operation *handover_find_early(const struct device *device);

/* handover_has_passed() - is memory of its guests parked? */
bool handover_has_passed(const struct operation *operation);

/* handover_must_wait() - may the next step of @operation, or its undoing, not begin yet? */
bool handover_must_wait(const struct operation *operation);

#endif
