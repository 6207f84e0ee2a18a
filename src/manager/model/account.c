/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/account.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/list.h"
#include "daemon/log.h"

/* Of vgpud itself, its movers and slabs, and for root: one in so many, and so many at least. */
#define RESERVE_PART     8
#define RESERVE_LEAST    128
#define REQUESTS         8192
#define BYTES_PART       64                   /* of the machine's memory */
#define OBJECTS_PART     16                   /* likewise, */
#define OBJECT_SIZE      (UINT64_C(16) << 10) /* of so many bytes each, at the very most */
#define DESCRIPTORS_MOST (UINT64_C(1) << 30)

struct account_user {
        struct list link;
        struct accounts *accounts;
        uid_t uid;
        bool is_operator; /* who needs no share */
        struct account_cost has;
        struct account_charge waiting; /* descriptors that wait to be closed */
};

struct accounts {
        struct list users;
        struct account_cost capacity, all, n_users;
        bool is_near[ACCOUNT_KINDS];
};

static const struct {
        const char *what, *hint;
} kinds[ACCOUNT_KINDS] = {
        [ACCOUNT_BYTES] = { "bytes of messages", "read the answers, or hang up connections" },
        [ACCOUNT_DESCRIPTORS] = { "descriptors of vgpud",
                                  "end processes or connections that are not needed, or have "
                                  "vgpud run with a higher limit (ulimit -Hn, LimitNOFILE=)" },
        [ACCOUNT_OBJECTS] = { "connections, vGPUs and processes", "end those that are not needed" },
        [ACCOUNT_REQUESTS] = { "requests under way", "wait for some of them, and try again" },
        [ACCOUNT_POOL] = { "bytes of the pool", "resume or end a suspended vGPU" },
};

bool account_is_operator(uid_t uid)
{
        return uid == 0 || uid == geteuid();
}

uint64_t account_room(uint64_t capacity, uint64_t all, uint64_t own, uint64_t n)
{
        uint64_t left = capacity > all ? capacity - all : 0;

        return own <= left / n ? (left - n * own) / (n + 1) : 0;
}

struct account_cost accounts_get_capacity(void)
{
        uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        uint64_t descriptors = DESCRIPTORS_MOST, reserve;
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < descriptors)
                descriptors = limit.rlim_cur;
        reserve = descriptors / RESERVE_PART;
        if (reserve < RESERVE_LEAST)
                reserve = RESERVE_LEAST;
        return (struct account_cost){ {
                [ACCOUNT_BYTES] = memory / BYTES_PART,
                [ACCOUNT_DESCRIPTORS] = descriptors > reserve ? descriptors - reserve : 0,
                [ACCOUNT_OBJECTS] = memory / OBJECTS_PART / OBJECT_SIZE,
                [ACCOUNT_REQUESTS] = REQUESTS,
        } };
}

int accounts_new(struct accounts **ret_accounts, const struct account_cost *capacity)
{
        struct accounts *accounts = calloc(1, sizeof(*accounts));

        if (!accounts)
                return -ENOMEM;
        accounts->capacity = *capacity;
        list_init(&accounts->users);
        *ret_accounts = accounts;
        return 0;
}

struct accounts *accounts_free(struct accounts *accounts)
{
        struct account_user *user, *after;

        if (!accounts)
                return NULL;
        list_for_each_safe(user, after, &accounts->users, link)
                free(user);
        free(accounts);
        return NULL;
}

/* Users. */

static struct account_user *find(const struct accounts *accounts, uid_t uid)
{
        struct account_user *user;

        list_for_each(user, &accounts->users, link)
                if (user->uid == uid)
                        return user;
        return NULL;
}

static struct account_user *find_or_add(struct accounts *accounts, uid_t uid)
{
        struct account_user *user = find(accounts, uid);

        if (user)
                return user;
        user = calloc(1, sizeof(*user));
        if (!user)
                return NULL;
        user->accounts = accounts;
        user->uid = uid;
        user->is_operator = account_is_operator(uid);
        list_append(&accounts->users, &user->link);
        return user;
}

static void forget_if_idle(struct account_user *user)
{
        for (size_t i = 0; i < ACCOUNT_KINDS; i++)
                if (user->has.of[i] > 0)
                        return;
        list_remove(&user->link);
        free(user);
}

/* Charging. */

/* Said once, well before the first refusal to all, and again only after it was over. */
static void watch_limit(struct accounts *accounts, enum account_kind kind)
{
        uint64_t all = accounts->all.of[kind], capacity = accounts->capacity.of[kind];
        bool is_near = all > capacity / 4 * 3;

        if (is_near && !accounts->is_near[kind])
                log_event(LOG_LEVEL_WARNING, "a limit is near",
                          "of=\"%s\" used=%" PRIu64 " limit=%" PRIu64 " hint=\"%s\"",
                          kinds[kind].what, all, capacity, kinds[kind].hint);
        if (is_near || all < capacity / 2)
                accounts->is_near[kind] = is_near;
}

static int refuse(const struct account_user *user, enum account_kind kind, uint64_t room,
                  uint64_t wanted, struct failure *failure)
{
        uint64_t has = user->has.of[kind];

        return failure_set(failure, -EDQUOT, "NoRoom", kinds[kind].hint,
                           "user %u has %" PRIu64 " of the %" PRIu64
                           " %s that all users may have together, and may now have %" PRIu64
                           ": %" PRIu64 " more is too much, others need the rest",
                           user->uid, has, user->accounts->capacity.of[kind], kinds[kind].what,
                           has + room, wanted);
}

uint64_t account_get_room(const struct accounts *accounts, uid_t uid, enum account_kind kind)
{
        uint64_t capacity = accounts->capacity.of[kind], all = accounts->all.of[kind];
        uint64_t own = account_get(accounts, uid, kind);

        if (account_is_operator(uid))
                return capacity > all ? capacity - all : 0;
        return account_room(capacity, all, own, accounts->n_users.of[kind] + (own == 0));
}

static int check(const struct account_user *user, const struct account_cost *cost,
                 struct failure *failure)
{
        if (user->is_operator)
                return 0;
        for (size_t i = 0; i < ACCOUNT_KINDS; i++) {
                uint64_t room = account_get_room(user->accounts, user->uid, i);

                if (cost->of[i] > room)
                        return refuse(user, i, room, cost->of[i], failure);
        }
        return 0;
}

static void add(struct account_user *user, enum account_kind kind, uint64_t amount)
{
        struct accounts *accounts = user->accounts;

        accounts->n_users.of[kind] += user->has.of[kind] == 0 && !user->is_operator;
        user->has.of[kind] += amount;
        accounts->all.of[kind] += amount;
        watch_limit(accounts, kind);
}

int account_take(struct accounts *accounts, struct account_charge *charge, uid_t uid,
                 const struct account_cost *cost, struct failure *failure)
{
        struct account_user *user = charge->user ? charge->user : find_or_add(accounts, uid);
        int r = user ? check(user, cost, failure) : -ENOMEM;

        if (r == 0)
                r = account_force(accounts, charge, uid, cost);
        else if (user)
                forget_if_idle(user);
        return r;
}

int account_force(struct accounts *accounts, struct account_charge *charge, uid_t uid,
                  const struct account_cost *cost)
{
        struct account_user *user = charge->user ? charge->user : find_or_add(accounts, uid);

        if (!user)
                return -ENOMEM;
        for (size_t i = 0; i < ACCOUNT_KINDS; i++) {
                if (cost->of[i] == 0)
                        continue;
                add(user, i, cost->of[i]);
                charge->cost.of[i] += cost->of[i];
                charge->user = user;
        }
        return 0;
}

static void subtract(struct account_charge *charge, enum account_kind kind, uint64_t amount)
{
        struct account_user *user = charge->user;
        struct accounts *accounts = user->accounts;

        if (amount == 0)
                return;
        charge->cost.of[kind] -= amount;
        user->has.of[kind] -= amount;
        accounts->all.of[kind] -= amount;
        accounts->n_users.of[kind] -= user->has.of[kind] == 0 && !user->is_operator;
        watch_limit(accounts, kind);
}

static bool is_empty(const struct account_charge *charge)
{
        for (size_t i = 0; i < ACCOUNT_KINDS; i++)
                if (charge->cost.of[i] > 0)
                        return false;
        return true;
}

void account_give(struct account_charge *charge, enum account_kind kind, uint64_t amount)
{
        struct account_user *user = charge->user;

        if (!user)
                return;
        subtract(charge, kind, amount < charge->cost.of[kind] ? amount : charge->cost.of[kind]);
        if (!is_empty(charge))
                return;
        charge->user = NULL;
        forget_if_idle(user);
}

void account_end(struct account_charge *charge)
{
        for (size_t i = 0; i < ACCOUNT_KINDS; i++)
                account_give(charge, i, charge->cost.of[i]);
}

void account_set_waiting(struct accounts *accounts, uid_t uid, uint64_t n)
{
        struct account_user *user = find_or_add(accounts, uid);
        uint64_t before = user ? user->waiting.cost.of[ACCOUNT_DESCRIPTORS] : 0;
        const struct account_cost cost = { { [ACCOUNT_DESCRIPTORS] =
                                                     n > before ? n - before : 0 } };

        if (user && n > before)
                (void)account_force(accounts, &user->waiting, uid, &cost);
        else if (user && n < before)
                account_give(&user->waiting, ACCOUNT_DESCRIPTORS, before - n);
        else if (user)
                forget_if_idle(user);
}

uint64_t accounts_get_all(const struct accounts *accounts, enum account_kind kind,
                          uint64_t *ret_capacity)
{
        *ret_capacity = accounts->capacity.of[kind];
        return accounts->all.of[kind];
}

uint64_t account_get(const struct accounts *accounts, uid_t uid, enum account_kind kind)
{
        const struct account_user *user = find(accounts, uid);

        return user ? user->has.of[kind] : 0;
}
