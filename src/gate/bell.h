/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_BELL_H
#define GATE_BELL_H

/*
 * A bell: an eventfd that one thread polls and others ring. It stands in the table of descriptors of a program that may
 * close all of them and open others under the same numbers: before each use a bell looks whether its number is still an
 * eventfd's, so that nothing of the program's is written to or closed.
 *
 * Threads: any.
 */

struct bell {
        _Atomic int fd;
};

#define BELL_INIT  \
        {          \
                -1 \
        }

/* bell_open() - returns the descriptor, made now unless it is there; -1: there are none left. */
int bell_open(struct bell *bell);

/* bell_get_fd() - readable once it was rung; -1: not opened, or the program has closed it. */
int bell_get_fd(const struct bell *bell);

/* bell_ring() - nothing happens before bell_open(). */
void bell_ring(const struct bell *bell);

/* bell_forget() - as if it had never been opened. */
void bell_forget(struct bell *bell);

#endif
