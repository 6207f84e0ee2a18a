/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_REST_H
#define MANAGER_REST_H

/*
 * Brings all guests of an operation, or of a group of operations (group.h), to rest at the same time.
 *
 * A guest is at rest when its gate is closed, no thread is in a driver call and the device has nothing to
 * do for it. Closing all gates does not bring guests to rest that take part in collectives (NCCL): the
 * kernel of one waits for a kernel that another cannot launch any more, because its gate is closed.
 *
 * So after all gates are closed, and while some guests are at rest and others are not, those at rest take
 * steps. In a step a guest makes a number of launches, one at first; then its gate closes again. It comes
 * to rest again, or its last kernel waits for others. This goes on until no guest is missing. A guest
 * alone never takes a step. Neither do guests that all come to rest within a moment.
 *
 * Guests in step meet in the next collective, at the latest. It may be many launches away, so a guest's
 * number of launches doubles with each step that changes nothing. It halves when a guest comes to rest
 * that had been missing: others may have gone past it, and now it has to follow. The pause between two
 * steps doubles then, for the answer may only have been late.
 *
 * What a guest launches in a step it was about to launch anyway, and nobody may begin a launch later than
 * STEP_MS after the step began. So steps that bring nothing, because a guest has a long kernel and waits
 * for nobody, at most double the time until all are at rest.
 *
 * The operations of a group share one struct rest: none of them goes on before the guests of all are at rest,
 * and all fail together.
 *
 * At the deadline all gates open. The failure names the guests that did not come to rest, those that were
 * at rest and waited for them, and which of them share memory.
 */

struct operation;

/* rest_begin() - close the gates that are open; a step of the operation, which ends for all of a group at once. */
void rest_begin(struct operation *operation);

/* rest_leave() - the operation ends here and now, or the step does. */
void rest_leave(struct operation *operation);

#endif
