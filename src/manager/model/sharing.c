/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/sharing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "manager/model/guest.h"

/* More processes than NCCL has on one host. Each pair is memory of ours. */
#define MAKERS_MAX 256

struct sharing {
        struct list of_user, of_maker; /* in user->makers, maker->users */
        struct guest *user, *maker;
};

static void end(struct sharing *sharing)
{
        sharing->user->n_makers--;
        list_remove(&sharing->of_user);
        list_remove(&sharing->of_maker);
        free(sharing);
}

static bool is_there(const struct guest *user, const struct guest *maker)
{
        const struct sharing *sharing;

        list_for_each(sharing, &user->makers, of_user)
                if (sharing->maker == maker)
                        return true;
        return false;
}

int sharing_add(struct guest *user, struct guest *maker)
{
        struct sharing *sharing;

        if (is_there(user, maker))
                return 0;
        if (user->n_makers == MAKERS_MAX)
                return -ENOMEM;
        sharing = calloc(1, sizeof(*sharing));
        if (!sharing)
                return -ENOMEM;
        sharing->user = user;
        sharing->maker = maker;
        user->n_makers++;
        list_append(&user->makers, &sharing->of_user);
        list_append(&maker->users, &sharing->of_maker);
        return 0;
}

void sharing_forget(struct guest *user)
{
        struct sharing *sharing, *after;

        list_for_each_safe(sharing, after, &user->makers, of_user)
                end(sharing);
}

void sharing_end(struct guest *guest)
{
        struct sharing *sharing, *after;

        sharing_forget(guest);
        list_for_each_safe(sharing, after, &guest->users, of_maker)
                end(sharing);
}

bool sharing_is_any(const struct guest *guest)
{
        return !list_is_empty(&guest->makers) || !list_is_empty(&guest->users);
}

int sharing_each_partner(struct guest *guest, int (*each)(struct guest *partner, void *userdata),
                         void *userdata)
{
        struct sharing *sharing;
        int r = 0;

        list_for_each(sharing, &guest->makers, of_user)
                if (r == 0)
                        r = each(sharing->maker, userdata);
        list_for_each(sharing, &guest->users, of_maker)
                if (r == 0)
                        r = each(sharing->user, userdata);
        return r;
}
