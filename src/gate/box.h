/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_BOX_H
#define GATE_BOX_H

/*
 * Boxes (wire/gate.h): where descriptors of memory lie for a process that has some of its maker's memory already, so
 * that its next import asks nobody. A box is a pair of sockets, one end to put in and one to take out. The kernel
 * keeps what lies in it; both the maker and the user can take out, so what the maker frees or lets go is gone from
 * the box at once.
 *
 * Nothing here waits, and all may be missed: what is not found in a box is asked for as ever. The caller is within
 * the fork guard, so that no child gets what is in our hands.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/gate.h"

/*
 * box_open() - the manager gives us one: @message says what for, and @fds, which are taken, are its ends. Errors:
 * -EPROTO. What there is no room for is closed.
 */
int box_open(const struct gate_box *message, int *fds);

/* box_close() - that one is over; with all that lies in it. box_close_all(): all, as the manager is gone. */
void box_close(uint64_t number);
void box_close_all(void);

/* For the maker. */

/* box_is_any() - does anybody have a box of ours? Without a lock, for each export. */
bool box_is_any(void);

/* box_put() - into all boxes; the oldest makes room. box_fill() - into this one; false: it is full, or gone. */
void box_put(const uint8_t name[GATE_NAME_SIZE], int fd);
bool box_fill(uint64_t number, const uint8_t name[GATE_NAME_SIZE], int fd);

/* box_remove() - take @name out of all boxes. box_empty(): take out everything. */
void box_remove(const uint8_t name[GATE_NAME_SIZE]);
void box_empty(void);

/* For the user. */

/* box_take() - what @ticket stands for, if it lies in the box of its maker: a descriptor; else -1. */
int box_take(const struct gate_ticket *ticket);

#endif
