/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SPILLED_H
#define MANAGER_SPILLED_H

/*
 * A guest whose memory is in a file of the spill (spill/spill.h), and not in the pool any more.
 *
 * The file has no name. The keeper holds its descriptor, and the store says that the memory is in it: one extent in
 * slab 0, which no pool has. So it survives what the pool survives, and it is gone with its process, with its vGPU
 * and with the machine's next start.
 */

#include <stdint.h>

#include "spill/spill.h"
#include "store/store.h"

struct guest;
struct manager;
struct pool_reservation;
struct spill_copy;

/* spilled_make_mark() - whose memory the file has. */
void spilled_make_mark(const struct guest *guest, uint64_t generation, struct spill_mark *ret_mark);

/*
 * spilled_set() - the guest's memory is in the file @fd from now on, which is taken in any case, and its reservation
 * is spare. @begin: where in the vGPU's reserve, or 0. Errors: those of the keeper and the store, and the reservation has it as before.
 */
int spilled_set(struct guest *guest, int fd, uint64_t begin);

/* spilled_adopt() - what a former manager has spilled. Errors: -ENOENT: the file is gone. */
int spilled_adopt(struct guest *guest, const struct store_extent *stored);

/*
 * spilled_keep() - @reservation has what the file has, and is taken: it is spare from now on
 * Whoever needs the room takes it. Errors: those of pool_spare(), and the reservation is the caller's still.
 */
int spilled_keep(struct guest *guest, struct pool_reservation *reservation);

/*
 * spilled_take() - what is kept is needed: it is the caller's
 * @ret_reservation: NULL: nothing is kept any more. Errors: those of pool_need(); it is kept still.
 */
int spilled_take(struct guest *guest, struct pool_reservation **ret_reservation);

/* spilled_begin_read() - from the file to @reservation, which is prepared. Errors: those of spill_begin(). */
int spilled_begin_read(struct guest *guest, const struct pool_reservation *reservation,
                       struct spill_copy **ret_copy, spill_done_fn done, void *userdata);

/* spilled_drop() - the file is not needed any more. */
void spilled_drop(struct guest *guest);

/* spilled_forget() - at the end of vgpud: the keeper has it. */
void spilled_forget(struct guest *guest);

/* spilled_drop_ownerless() - after loading: files of the keeper that the store does not name. */
void spilled_drop_ownerless(struct manager *manager);

#endif
