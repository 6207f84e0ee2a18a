/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPILL_SPILL_RESERVE_H
#define SPILL_SPILL_RESERVE_H

/*
 * Room on the disk that is held: a file without a name whose blocks the file system has given away already. What is
 * written to it later needs no more room.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"

struct spill;

/*
 * spill_reserve() - make sure that the file *@fd has @size bytes on the disk; -1: make one
 *
 * A disk that does not answer is waited for two seconds. Until it has answered, all others are refused at once.
 * @path: of the directory, for messages. Errors: NoRoom: the disk is full, cannot hold room, or does not answer;
 * then *@fd is as it was.
 */
int spill_reserve(struct spill *spill, const char *path, int *fd, uint64_t size,
                  struct failure *failure);

/*
 * spill_get_free() - what may be held on the disk, as far as it says
 * @ret_kept: how much of what is free stays so, for whatever else is on that disk: a twentieth of it, at least 1 GiB,
 * on a small one at most a tenth. NULL: not asked.
 */
uint64_t spill_get_free(const struct spill *spill, uint64_t *ret_kept);

/* spill_get_kept() - of a disk of @size bytes */
uint64_t spill_get_kept(uint64_t size);

/* spill_reserve_is_stuck() - does the disk owe an answer? */
bool spill_reserve_is_stuck(const struct spill *spill);

#endif
