/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_RESTORE_ROOM_H
#define MANAGER_RESTORE_ROOM_H

/*
 * The room of a restore, which belongs to the process: not to the operation, the mover or the manager that asks for it.
 *
 * The driver takes the memory of a restore whenever it comes to that, also when nobody waits for the call any more, and a
 * restore that finds none has lost its process for ever. So from before the driver is asked (GUEST_CONTEXT_RESUMING) until
 * it has told a state, or the process has ended, each device that the process is restored to has promised that room to it.
 * What an operation has promised is kept when the operation ends before that (restore_room_end()); the next operation takes
 * it over (restore_room_promise()), and the next manager promises it before anybody else is admitted (restore_room_load()).
 *
 * What is kept is free memory. For gates to take what is left beside it the mover has to say how much is free, so it needs
 * its context (restore_room_is_kept()).
 */

#include <stdbool.h>
#include <stddef.h>

struct device;
struct guest;
struct room_promise;

/* restore_room_promise() - what @guest was promised for its context, on @device as part @part; made if need be. */
struct room_promise *restore_room_promise(struct guest *guest, size_t part, struct device *device);

/* restore_room_expect() - anew, as much as its context is known to take now: @guest may have to go back there. */
void restore_room_expect(struct guest *guest, size_t part, struct device *device);

/* restore_room_end() - @promise, one of part @part, is of an operation that ends. */
void restore_room_end(struct guest *guest, size_t part, struct room_promise *promise);

/* restore_room_load() - as a former manager has left @guest. */
void restore_room_load(struct guest *guest);

/* restore_room_forget() - the driver has told a state, or the process has ended. */
void restore_room_forget(struct guest *guest);

/* restore_room_is_kept() - on @device, for any process. */
bool restore_room_is_kept(const struct device *device);

/* restore_room_is_valid() - has @guest the room of its restore, if the driver may take it, and else none that is kept? */
bool restore_room_is_valid(const struct guest *guest);

#endif
