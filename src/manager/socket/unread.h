/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_UNREAD_H
#define MANAGER_UNREAD_H

/*
 * Descriptors that we have sent and that the peer has not received.
 *
 * The kernel counts them against the user who sent them, root, also after we have hung up. With as many
 * under way as vgpud may have open (and without CAP_SYS_RESOURCE) it lets us send none to anybody: no
 * process would join, nothing would go to the keeper. So they are charged to the peer's user, and a
 * connection that ends with unread ones stays charged until the peer has received them or is gone.
 */

#include <stddef.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "manager/model/account.h"

struct unread;

int unread_new(struct unread **ret_unread, sd_event *event, struct accounts *accounts);

/* unread_free() - gives all charges back. Returns NULL. */
struct unread *unread_free(struct unread *unread);

/* Of one connection. */
struct unread_fds {
        size_t n; /* charged */
};

/*
 * unread_take() - charge @n descriptors that are about to be sent on @socket, beside those that are under
 * way. Errors: as account_take().
 */
int unread_take(struct unread *unread, struct unread_fds *fds, struct account_charge *charge,
                int socket, uid_t user, size_t n, struct failure *failure);

/*
 * unread_force() - the same for @n that were just sent, and it is not refused. unread_settle() goes before the sending:
 * what was sent before may have been read by then, and this was not.
 */
void unread_force(struct unread *unread, struct unread_fds *fds, struct account_charge *charge,
                  int socket, uid_t user, size_t n);

/* unread_settle() - give back the charge if the peer has received all. */
void unread_settle(struct unread_fds *fds, struct account_charge *charge, int socket);

/* unread_hang_up() - as foreign_hang_up(); takes @charge as well. Returns -1. */
int unread_hang_up(struct unread *unread, struct unread_fds *fds, struct account_charge *charge,
                   int socket, uid_t user);

#endif
