/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CLEAN_COPY_H
#define MANAGER_CLEAN_COPY_H

/*
 * A clean copy: what the pool had of a guest that is back on its device, and still has.
 *
 * When the guest goes out again, the mover compares its memory with the hashes of the copy and copies
 * only what differs. A copy is never believed by itself: each time all of the guest's memory is hashed
 * anew, with its gate closed. So it does not matter where the guest has been meanwhile.
 *
 * It costs its owner nothing and nobody room: its reservation is spare (pool.h). It has no stamps, the
 * store and the keeper do not know it, and it goes with the process and with vgpud. What is worth
 * something is never in it alone.
 *
 *     guest->reservation --put_back--> spare --take--> guest->reservation --begin, end, complete--> new hashes
 *
 * Blocks of it that others hold too (equal-blocks.h) are not to be written to. So they are parted from the
 * reservation when it is taken, and others that are empty stand in for them. The mover is told the former
 * hashes: what has changed it copies to the empty ones; what has not changed it copies nowhere, and
 * clean_copy_complete() holds the former block again. Until then, and whatever fails before, what the
 * reservation has of such blocks is nothing: the hash is unknown, and nothing is stamped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clean_copy;
struct guest;
struct hash_value;
struct mover;

/* clean_copy_make_key() - what all hashes of this vgpud are made with, in a file for the movers. */
int clean_copy_make_key(int *ret_fd);

/*
 * clean_copy_take() - the guest's reservation is its clean copy's from now on, if that has @bytes; else
 * there is none any more. True: it has one.
 */
bool clean_copy_take(struct guest *guest, uint64_t bytes);

/* clean_copy_can_be_taken() - is there a true one, and does it cost others nothing to take it? */
bool clean_copy_can_be_taken(const struct guest *guest);

/*
 * clean_copy_begin() - all of the guest's memory is about to be copied to its reservation
 *
 * Returns the hashes of what the pool has of it, one for each block, unknown where nothing is known. Until
 * clean_copy_end() they are the mover's. @must_verify: those that the mover could not compare are unknown.
 * NULL: its memory is not made of blocks, or there is no memory.
 */
struct hash_value *clean_copy_begin(struct guest *guest, bool must_verify, size_t *ret_n);

/*
 * clean_copy_end() - the copy has arrived
 * @is_compared: some devices have compared what is theirs; of what the others copied the hashes are unknown.
 * @is_true: all have, and the hashes are those of the copy.
 */
void clean_copy_end(struct guest *guest, bool is_compared, bool is_true);

/*
 * clean_copy_complete() - after that: blocks that others hold and that have not changed are held again
 * Only then is everything in the reservation. @ret_has_moved: its extents are others now. Errors: those of
 * pool_join(), and it is not.
 */
int clean_copy_complete(struct guest *guest, bool *ret_has_moved);

/* clean_copy_get_hashes() - of what is in the guest's reservation, in its order. NULL: not known. */
const struct hash_value *clean_copy_get_hashes(const struct guest *guest, size_t *ret_n);

/* clean_copy_is_whole() - is nothing of what it has to have in others' blocks, for which empty ones stand in? */
bool clean_copy_is_whole(const struct guest *guest);

/* clean_copy_spoil() - something else is written to the reservation. */
void clean_copy_spoil(struct guest *guest);

/*
 * clean_copy_follow() - what the reservation with the generation @former had is in the guest's reservation now: so
 * are its hashes.
 */
void clean_copy_follow(struct guest *guest, uint64_t former);

/* clean_copy_put_back() - nobody needs the guest's reservation: a clean copy, or given back to the pool. */
void clean_copy_put_back(struct guest *guest);

/* clean_copy_put_back_unlisted() - unless the store lists it; then its forgetting does this. */
void clean_copy_put_back_unlisted(struct guest *guest);

/* clean_copy_drop() - what is spare goes; the guest's reservation stays. */
void clean_copy_drop(struct guest *guest);

/* clean_copy_forget() - at the end of vgpud: in memory only. */
void clean_copy_forget(struct guest *guest);

/* clean_copy_get_length() - bytes that the guest would not have to get from the pool. */
uint64_t clean_copy_get_length(const struct guest *guest);

#endif
