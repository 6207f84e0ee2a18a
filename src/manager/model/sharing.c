/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/sharing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "manager/model/guest.h"

/* More processes than NCCL has on one host. Each pair is memory of ours. */
#define MAKERS_MAX 256

struct sharing {
        struct list of_user, of_maker; /* in user->makers, maker->users */
        struct guest *user, *maker;
        struct gate_process process; /* without a maker: whom the user waits for */
};

static void end(struct sharing *sharing)
{
        sharing->user->sharing.n_makers--;
        list_remove(&sharing->of_user);
        list_remove(&sharing->of_maker);
        free(sharing);
}

static bool has(const struct guest *user, const struct guest *maker)
{
        const struct sharing *sharing;

        list_for_each(sharing, &user->sharing.makers, of_user)
                if (sharing->maker == maker)
                        return true;
        return false;
}

/* Without a maker. */
static struct sharing *make(struct guest *user)
{
        struct sharing *sharing = NULL;

        if (user->sharing.n_makers < MAKERS_MAX)
                sharing = calloc(1, sizeof(*sharing));
        if (!sharing)
                return NULL;
        sharing->user = user;
        user->sharing.n_makers++;
        list_append(&user->sharing.makers, &sharing->of_user);
        list_init(&sharing->of_maker);
        return sharing;
}

static void set_maker(struct sharing *sharing, struct guest *maker)
{
        sharing->maker = maker;
        list_append(&maker->sharing.users, &sharing->of_maker);
}

int sharing_add(struct guest *user, struct guest *maker)
{
        user->sharing.n_shared++;
        maker->sharing.n_shared++;
        struct sharing *sharing;

        if (has(user, maker))
                return 0;
        sharing = make(user);
        if (!sharing)
                return -ENOMEM;
        set_maker(sharing, maker);
        return 0;
}

/* Makers that are away. */

static struct sharing *find_awaited(const struct guest *user, const struct gate_process *process)
{
        struct sharing *sharing;

        list_for_each(sharing, &user->sharing.makers, of_user)
                if (!sharing->maker && sharing->process.slot == process->slot &&
                    sharing->process.start_time == process->start_time &&
                    memcmp(sharing->process.vgpu, process->vgpu, sizeof(process->vgpu)) == 0)
                        return sharing;
        return NULL;
}

void sharing_part(struct guest *maker, const struct gate_process *process)
{
        struct sharing *sharing, *after;

        sharing_forget(maker);
        list_for_each_safe(sharing, after, &maker->sharing.users, of_maker) {
                list_remove(&sharing->of_maker);
                sharing->maker = NULL;
                sharing->process = *process;
        }
}

int sharing_await(struct guest *user, const struct gate_process *process)
{
        struct sharing *sharing = find_awaited(user, process);

        if (sharing)
                return 0;
        sharing = make(user);
        if (!sharing)
                return -ENOMEM;
        sharing->process = *process;
        return 0;
}

bool sharing_awaits(const struct guest *user, const struct gate_process *process)
{
        return find_awaited(user, process) != NULL;
}

void sharing_meet(struct guest *user, struct guest *maker, const struct gate_process *process)
{
        struct sharing *sharing = find_awaited(user, process);

        if (sharing && has(user, maker))
                end(sharing);
        else if (sharing)
                set_maker(sharing, maker);
}

void sharing_forget(struct guest *user)
{
        struct sharing *sharing, *after;

        list_for_each_safe(sharing, after, &user->sharing.makers, of_user)
                end(sharing);
}

void sharing_end(struct guest *guest)
{
        struct sharing *sharing, *after;

        sharing_forget(guest);
        list_for_each_safe(sharing, after, &guest->sharing.users, of_maker)
                end(sharing);
}

bool sharing_is_any(const struct guest *guest)
{
        return !list_is_empty(&guest->sharing.makers) || !list_is_empty(&guest->sharing.users);
}

int sharing_each_partner(struct guest *guest, int (*each)(struct guest *partner, void *userdata),
                         void *userdata)
{
        struct sharing *sharing;
        int r = 0;

        list_for_each(sharing, &guest->sharing.makers, of_user)
                if (r == 0 && sharing->maker)
                        r = each(sharing->maker, userdata);
        list_for_each(sharing, &guest->sharing.users, of_maker)
                if (r == 0)
                        r = each(sharing->user, userdata);
        return r;
}
