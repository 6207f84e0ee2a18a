/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_STORE_NOTE_H
#define CHECKPOINT_STORE_NOTE_H

/* The note on a store has lines of a word and a value. */

#include "checkpoint/store-state.h"

#define STORE_NOTE_SUFFIX ".storage"

/* store_note_write() - write the note with @state to store->note, in one step if there is room; set store->state. */
int store_note_write(struct store *store, enum store_state state);

/* store_note_read() - read all of @store but its lock. Errors: -ENOENT; -EBADMSG. */
int store_note_read(struct store *store, const char *path);

#endif
