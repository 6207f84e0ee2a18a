/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/share-box.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "manager/guests/gate-link.h"
#include "manager/guests/ticket-process.h"
#include "manager/model/account.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/sharing.h"
#include "wire/gate.h"

/* Of one process: as many as it shares memory with on a host of eight GPUs, in each direction. */
#define BOXES_MAX 8

/*
 * The kernel lets a user have so many descriptors under way in sockets as one of his processes may have open, often
 * 1024; with more nobody of his can send any. This is room for about a dozen.
 */
#define BOX_BYTES 4608

/* So of those that one user's processes fill there are as many as eight of them need among themselves. */
#define BOXES_OF_USER_MAX 56

struct share_box {
        struct list of_user, of_maker; /* in user->boxes, maker->filled_boxes */
        struct guest *user, *maker;
        uint64_t number;
};

static bool tell(const struct guest *guest, const struct share_box *box, enum gate_box_role role,
                 const int *fds, size_t n_fds)
{
        struct gate_box message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_BOX },
                .number = box->number,
                .role = role,
        };

        return guest->gate && ticket_process_get(box->maker, &message.maker) &&
               gate_link_send(guest->gate, &message, sizeof(message), fds, n_fds) == 0;
}

/* Who hangs up or cannot be told has none any more, or uses it no more. */
static void end(struct share_box *box)
{
        (void)tell(box->user, box, GATE_BOX_OVER, NULL, 0);
        (void)tell(box->maker, box, GATE_BOX_OVER, NULL, 0);
        list_remove(&box->of_user);
        list_remove(&box->of_maker);
        free(box);
}

static struct share_box *find(const struct guest *user, const struct guest *maker)
{
        struct share_box *box;

        list_for_each(box, &user->share.boxes, of_user)
                if (box->maker == maker)
                        return box;
        return NULL;
}

static size_t count_filled_by(const struct manager *manager, uid_t user)
{
        const struct instance *instance;
        const struct guest *guest;
        size_t n = 0;

        list_for_each(instance, &manager->instances, link)
                list_for_each(guest, &instance->guests, link)
                        if (guest->payer == user)
                                n += list_count(&guest->share.filled_boxes);
        return n;
}

/* Descriptors that its gate does not read are its user's to pay. */
static bool may_have_one(const struct guest *guest, const struct list *boxes)
{
        const struct accounts *accounts = guest->instance->manager->accounts;

        return guest->gate && guest->gate->version >= GATE_WIRE_BOXES &&
               list_count(boxes) < BOXES_MAX &&
               account_get_room(accounts, guest->payer, ACCOUNT_DESCRIPTORS) >= 2;
}

static bool make_ends(int *ret_out, int *ret_in)
{
        const int bytes = BOX_BYTES;
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
                return false;
        *ret_out = ends[0];
        *ret_in = ends[1];
        return setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0;
}

static bool hand_out(const struct share_box *box)
{
        CLEANUP(fd_closep) int out = -1;
        CLEANUP(fd_closep) int in = -1;

        return make_ends(&out, &in) && tell(box->user, box, GATE_BOX_USER, &out, 1) &&
               tell(box->maker, box, GATE_BOX_MAKER, (int[]){ out, in }, 2);
}

void share_box_begin(struct guest *user, struct guest *maker)
{
        static uint64_t last_number;
        struct share_box *box;

        if (find(user, maker) || !may_have_one(user, &user->share.boxes) ||
            !may_have_one(maker, &maker->share.filled_boxes) ||
            count_filled_by(maker->instance->manager, maker->payer) >= BOXES_OF_USER_MAX)
                return;
        box = calloc(1, sizeof(*box));
        if (!box)
                return;
        box->number = ++last_number;
        box->user = user;
        box->maker = maker;
        list_append(&user->share.boxes, &box->of_user);
        list_append(&maker->share.filled_boxes, &box->of_maker);
        if (!hand_out(box))
                end(box);
}

void share_box_fill(const struct guest *user, const struct guest *maker)
{
        const struct share_box *box = find(user, maker);

        if (box)
                (void)tell(maker, box, GATE_BOX_FILL, NULL, 0);
}

void share_box_settle(struct guest *user)
{
        struct share_box *box, *after;

        list_for_each_safe(box, after, &user->share.boxes, of_user)
                if (!sharing_has(user, box->maker))
                        end(box);
}

void share_box_end(struct guest *guest)
{
        struct share_box *box, *after;

        list_for_each_safe(box, after, &guest->share.boxes, of_user)
                end(box);
        list_for_each_safe(box, after, &guest->share.filled_boxes, of_maker)
                end(box);
}
