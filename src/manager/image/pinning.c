/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/image/pinning.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"

struct user {
        struct list link;
        uid_t uid;
        unsigned int n_active;
        uint64_t debt_ns, since_ns; /* as of then */
};

struct pinning {
        struct list users;
};

int pinning_new(struct pinning **ret_pinning)
{
        struct pinning *pinning = calloc(1, sizeof(*pinning));

        if (!pinning)
                return -ENOMEM;
        list_init(&pinning->users);
        *ret_pinning = pinning;
        return 0;
}

struct pinning *pinning_free(struct pinning *pinning)
{
        struct user *user, *after;

        if (!pinning)
                return NULL;
        list_for_each_safe(user, after, &pinning->users, link)
                free(user);
        free(pinning);
        return NULL;
}

static void settle(struct user *user, uint64_t now_ns)
{
        uint64_t passed_ns = now_ns - user->since_ns;

        if (user->n_active > 0)
                user->debt_ns += passed_ns;
        else
                user->debt_ns -= passed_ns < user->debt_ns ? passed_ns : user->debt_ns;
        user->since_ns = now_ns;
}

/* As of now; those who owe nothing any more are forgotten. */
static struct user *find(struct pinning *pinning, uid_t uid, uint64_t now_ns)
{
        struct user *user, *after, *found = NULL;

        list_for_each_safe(user, after, &pinning->users, link) {
                settle(user, now_ns);
                if (user->n_active == 0 && user->debt_ns == 0) {
                        list_remove(&user->link);
                        free(user);
                } else if (user->uid == uid) {
                        found = user;
                }
        }
        return found;
}

static struct user *add(struct pinning *pinning, uid_t uid, uint64_t now_ns)
{
        struct user *user = calloc(1, sizeof(*user));

        if (!user)
                return NULL;
        user->uid = uid;
        user->since_ns = now_ns;
        list_append(&pinning->users, &user->link);
        return user;
}

int pinning_begin(struct pinning *pinning, uid_t uid, uint64_t now_ns)
{
        struct user *user = find(pinning, uid, now_ns);

        if (!user)
                user = add(pinning, uid, now_ns);
        if (!user)
                return -ENOMEM;
        user->n_active++;
        return 0;
}

void pinning_end(struct pinning *pinning, uid_t uid, uint64_t now_ns)
{
        struct user *user = find(pinning, uid, now_ns);

        if (user && user->n_active > 0)
                user->n_active--;
}

uint64_t pinning_get_wait(struct pinning *pinning, uid_t uid, uint64_t now_ns)
{
        const struct user *user = find(pinning, uid, now_ns);

        return user && user->debt_ns > PINNING_CREDIT_NS ? user->debt_ns - PINNING_CREDIT_NS : 0;
}
