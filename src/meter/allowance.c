/* SPDX-License-Identifier: Apache-2.0 */
#include "meter/allowance.h"

#include <stdlib.h>

#define MOST_MS ((uint64_t)ALLOWANCE_BURST * ALLOWANCE_INTERVAL_MS)

struct user {
        struct list link;
        uid_t uid;
        uint64_t whole_ms; /* when the user has the whole allowance again */
};

void allowance_init(struct allowance *allowance)
{
        list_init(&allowance->users);
}

void allowance_deinit(struct allowance *allowance)
{
        struct user *user, *after;

        list_for_each_safe(user, after, &allowance->users, link)
                free(user);
        list_init(&allowance->users);
}

/* A user with the whole allowance needs no entry. */
static struct user *find(struct allowance *allowance, uid_t uid, uint64_t now_ms)
{
        struct user *user, *after, *found = NULL;

        list_for_each_safe(user, after, &allowance->users, link) {
                if (user->whole_ms <= now_ms) {
                        list_remove(&user->link);
                        free(user);
                } else if (user->uid == uid) {
                        found = user;
                }
        }
        return found;
}

static struct user *add(struct allowance *allowance, uid_t uid, uint64_t now_ms)
{
        struct user *user = calloc(1, sizeof(*user));

        if (!user)
                return NULL;
        user->uid = uid;
        user->whole_ms = now_ms;
        list_append(&allowance->users, &user->link);
        return user;
}

bool allowance_take(struct allowance *allowance, uid_t uid, uint64_t now_ms)
{
        struct user *user = find(allowance, uid, now_ms);

        if (!user)
                user = add(allowance, uid, now_ms);
        if (!user || user->whole_ms + ALLOWANCE_INTERVAL_MS - now_ms > MOST_MS)
                return false;
        user->whole_ms += ALLOWANCE_INTERVAL_MS;
        return true;
}
