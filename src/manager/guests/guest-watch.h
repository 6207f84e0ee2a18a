/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GUEST_WATCH_H
#define MANAGER_GUEST_WATCH_H

/* What a guest's gate is to tell of its work, and of who waits at it. */

#include <stdbool.h>
#include <stddef.h>

#include "wire/gate.h"

struct guest;

/*
 * guest_watch() - for the turns: tell its gate, if it has not been told yet. guest_watch_demand() - for
 * the residency: it shall say at least whether it has work, and when a thread waits at it while it is closed.
 */
void guest_watch(struct guest *guest, enum gate_watch watch);
void guest_watch_demand(struct guest *guest, bool wants_demand);

/* guest_watch_forget() - its gate is a new connection, which was told nothing. */
void guest_watch_forget(struct guest *guest);

/* guest_watch_flush() - what it was not told because its socket was full. */
void guest_watch_flush(struct guest *guest);

/* guest_watch_renew() - it has opened: it may tell once more who waits at it. */
void guest_watch_renew(struct guest *guest);

/* guest_watch_receive() - WAITING. -EPROTO: cut it off. */
int guest_watch_receive(struct guest *guest, size_t size, size_t n_fds);

#endif
