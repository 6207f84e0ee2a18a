/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/socket/unread.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/list.h"
#include "daemon/foreign.h"

/* Nothing tells when a peer has read. */
#define LOOK_US 250000

/* A connection that we have hung up. */
struct rest {
        struct list link;
        int socket;
        uid_t user;
        struct account_charge charge;
};

struct unread {
        struct accounts *accounts;
        sd_event *event;
        struct list rests;
        sd_event_source *timer; /* NULL: there are none */
};

int unread_new(struct unread **ret_unread, sd_event *event, struct accounts *accounts)
{
        struct unread *unread = calloc(1, sizeof(*unread));

        if (!unread)
                return -ENOMEM;
        unread->accounts = accounts;
        unread->event = event;
        list_init(&unread->rests);
        *ret_unread = unread;
        return 0;
}

static void end(struct rest *rest)
{
        list_remove(&rest->link);
        account_end(&rest->charge);
        (void)foreign_hang_up(rest->socket, rest->user);
        free(rest);
}

struct unread *unread_free(struct unread *unread)
{
        struct rest *rest, *after;

        if (!unread)
                return NULL;
        list_for_each_safe(rest, after, &unread->rests, link)
                end(rest);
        sd_event_source_disable_unref(unread->timer);
        free(unread);
        return NULL;
}

/* What the peer has not read keeps its buffers, which are ours. */
static bool has_unread(int socket)
{
        int n;

        return ioctl(socket, SIOCOUTQ, &n) == 0 && n > 0;
}

void unread_settle(struct unread_fds *fds, struct account_charge *charge, int socket)
{
        if (fds->n == 0 || has_unread(socket))
                return;
        account_give(charge, ACCOUNT_DESCRIPTORS, fds->n);
        fds->n = 0;
}

int unread_take(struct unread *unread, struct unread_fds *fds, struct account_charge *charge,
                int socket, uid_t user, size_t n, struct failure *failure)
{
        const struct account_cost cost = { { [ACCOUNT_DESCRIPTORS] = n } };
        int r;

        unread_settle(fds, charge, socket);
        r = account_take(unread->accounts, charge, user, &cost, failure);
        if (r == 0)
                fds->n += n;
        return r;
}

void unread_force(struct unread *unread, struct unread_fds *fds, struct account_charge *charge,
                  int socket, uid_t user, size_t n)
{
        const struct account_cost cost = { { [ACCOUNT_DESCRIPTORS] = n } };

        if (n > 0 && account_force(unread->accounts, charge, user, &cost) == 0)
                fds->n += n;
        unread_settle(fds, charge, socket);
}

static int on_timer(sd_event_source *source, uint64_t time_us, void *userdata);

static void arm(struct unread *unread)
{
        unread->timer = sd_event_source_disable_unref(unread->timer);
        if (!list_is_empty(&unread->rests))
                (void)sd_event_add_time_relative(unread->event, &unread->timer, CLOCK_MONOTONIC,
                                                 LOOK_US, 0, on_timer, unread);
}

static int on_timer(sd_event_source *source, uint64_t time_us, void *userdata)
{
        struct unread *unread = userdata;
        struct rest *rest, *after;

        (void)source, (void)time_us;
        list_for_each_safe(rest, after, &unread->rests, link)
                if (!has_unread(rest->socket))
                        end(rest);
        arm(unread);
        return 0;
}

int unread_hang_up(struct unread *unread, struct unread_fds *fds, struct account_charge *charge,
                   int socket, uid_t user)
{
        struct rest *rest;

        if (socket >= 0)
                unread_settle(fds, charge, socket);
        rest = fds->n > 0 ? calloc(1, sizeof(*rest)) : NULL;
        if (!rest) {
                account_end(charge);
                return foreign_hang_up(socket, user);
        }
        (void)shutdown(socket, SHUT_RDWR);
        *rest = (struct rest){ .socket = socket, .user = user, .charge = *charge };
        *charge = (struct account_charge){ 0 };
        list_append(&unread->rests, &rest->link);
        if (!unread->timer)
                arm(unread);
        return -1;
}
