/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_STORE_H
#define CHECKPOINT_STORE_H

/*
 * A store holds the device memory of one checkpointed process, in files of a directory of its own.
 *
 * The memory of one device is cut into segments, each a file: several threads write several files
 * at once, but would wait for each other in a single file. A note (note.h) has the state of the
 * store:
 *
 *     reserved   a helper is filling it, or died while it did; others cannot use it
 *     saved      it is complete, and the process' only copy
 *     lost       there is no store, and the process cannot continue
 *
 * A helper that fills or empties a store locks its directory. The store of a dead helper is not
 * locked, and the next helper removes it. A generation, in the note and in the directory,
 * distinguishes a store from another store in its place.
 */

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/store-state.h"

#define STORE_SEGMENT ((uint64_t)256 << 20)

/*
 * store_make() - make a store for process @pid, in a directory below @base, or in memory if @base is NULL.
 * There must be room for @bytes. Errors: -ENOSPC; -EEXIST, the process has a valid store, which stays;
 * those of making a directory.
 */
int store_make(struct store *store, int pid, const char *base, uint64_t bytes);

/* store_find_part() - find the part of the device @uuid; -1: there is none. store_add_part() - add one. */
int store_find_part(const struct store *store, const char *uuid);
int store_add_part(struct store *store, const char *uuid);

/* store_reserve() - allocate room for @bytes in part @i on the file system. Errors: -ENOSPC. */
int store_reserve(struct store *store, unsigned int i, uint64_t bytes);

/* store_open_segment() - open a segment; @is_direct: without the page cache, if the file system can. */
int store_open_segment(const struct store *store, unsigned int part, uint64_t segment,
                       bool is_writing, bool is_direct);

/* store_commit() - make the store valid: its parts have their sizes and contents. */
int store_commit(struct store *store);

/*
 * store_find() - find the store of process @pid; its state is STORE_NONE if there is none
 * store_check() - is the store there, whole and the right one? Locks it. On failure @problem, a text of
 * at most @room bytes, says what is wrong. Errors: -ENODATA; -EBUSY, another helper has the store.
 */
void store_find(struct store *store, int pid);
int store_check(struct store *store, char *problem, size_t room);

/* store_spend() - forbid any further use: its contents are back, or will be when the driver says so. */
int store_spend(struct store *store);

/* store_remove() - remove the store and its note. store_lose() - leave a note that process @pid cannot go on. */
void store_remove(struct store *store);
void store_lose(struct store *store, int pid);

/* store_deinit() - let go of the store; its contents stay. */
void store_deinit(struct store *store);

/*
 * store_is_unknown() - has memory a store of process @pid that its owner, root or we made, and for which
 * we have no note? Then its path goes to @ret_path, of PATHS_MAX bytes.
 */
bool store_is_unknown(int pid, char *ret_path);

/* store_take() - lock the store that store_find() found, if there is one. Errors: -EBUSY, it is locked. */
int store_take(struct store *store);

/* store_forget_unlocked() - remove the store, unless another helper works on it. */
void store_forget_unlocked(struct store *store);

/* store_sweep() - remove all stores whose process has ended. */
void store_sweep(void);

#endif
