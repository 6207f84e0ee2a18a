/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_STORE_H
#define CHECKPOINT_STORE_H

/*
 * A store: the device memory of one checkpointed process, in files of a directory of its own.
 *
 * The memory of one device is cut into segments, each a file: several threads write several files
 * at once, but would wait for each other in a single file. A note (note.h) has the state of the
 * store:
 *
 *     reserved   a helper is filling it, or died while it did; worth nothing to others
 *     saved      complete, and the process' only copy
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
 * store_make() - for process @pid, in a directory below @base, or for NULL in memory; there must be
 * room for @bytes. Errors: -ENOSPC; -EEXIST, it has one that counts, which stays; those of making a
 * directory.
 */
int store_make(struct store *store, int pid, const char *base, uint64_t bytes);

/* store_find_part() - the number of that of the device @uuid, which is added; -1: it has none. */
int store_find_part(const struct store *store, const char *uuid);
int store_add_part(struct store *store, const char *uuid);

/* store_reserve() - room for @bytes in part @i: really there, not only promised. Errors: -ENOSPC. */
int store_reserve(struct store *store, unsigned int i, uint64_t bytes);

/* store_open_segment() - for @direct: around the page cache, if the file system can. */
int store_open_segment(const struct store *store, unsigned int part, uint64_t segment,
                       bool is_writing, bool is_direct);

/* store_commit() - the parts have their sizes and contents: from here on it counts. */
int store_commit(struct store *store);

/*
 * store_find() - that of process @pid; its state is STORE_NONE if there is none
 * store_check() - is it there, whole and the right one? Locks it. On failure @problem, a text of
 * @room bytes, says what is wrong. Errors: -ENODATA; -EBUSY, somebody else has it.
 */
void store_find(struct store *store, int pid);
int store_check(struct store *store, char *problem, size_t room);

/* store_spend() - its contents are back, or will be when the driver says so: nobody may use it again. */
int store_spend(struct store *store);

/* store_remove() - and the note. store_lose() - leave a note that process @pid cannot go on. */
void store_remove(struct store *store);
void store_lose(struct store *store, int pid);

/* store_deinit() - let go of it; what is in it stays. */
void store_deinit(struct store *store);

/*
 * store_is_unknown() - is there one of process @pid in memory, by its owner, root or ourselves, of
 * which no note of ours tells? Then its path goes to @ret_path, of PATHS_MAX bytes.
 */
bool store_is_unknown(int pid, char *ret_path);

/* store_take() - lock what store_find() has found, if there is anything. Errors: -EBUSY: somebody has. */
int store_take(struct store *store);

/* store_forget_unlocked() - remove it, unless somebody is at work on it. */
void store_forget_unlocked(struct store *store);

/* store_sweep() - remove all whose process has ended. */
void store_sweep(void);

#endif
