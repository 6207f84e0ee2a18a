/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "daemon/options.h"
#include "manager/model/account.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/recovery-internal.h"
#include "manager/model/spill-use.h"
#include "spill/spill-file.h"
#include "spill/spill-reserve.h"

/* Beside the memory: a table and a trailer for each process, and what is lost by rounding. */
#define EXTRA      MIB
#define EXTRA_PART 65536

static void make_label(char label[KEEPER_LABEL_MAX], const struct instance *instance)
{
        snprintf(label, KEEPER_LABEL_MAX, RECOVERY_RESERVE "%s", instance->uuid);
}

uint64_t reserve_get_size(uint64_t quota)
{
        return SPILL_FILE_BEGIN_MIN + spill_file_get_room(quota) +
               quota / EXTRA_PART / SPILL_FILE_BEGIN_MIN * SPILL_FILE_BEGIN_MIN + EXTRA;
}

bool reserve_has(const struct instance *instance, uint64_t quota)
{
        return instance->reserve && instance->manager->options->spill_directory[0] &&
               instance->reserve->size >= reserve_get_size(quota);
}

bool reserve_is_backed(const struct instance *instance)
{
        return reserve_has(instance, instance_get_quota(instance));
}

/* Holding. */

static int set(struct instance *instance, int fd, uint64_t size)
{
        if (!instance->reserve)
                instance->reserve = calloc(1, sizeof(*instance->reserve));
        if (!instance->reserve)
                return -ENOMEM;
        *instance->reserve = (struct reserve){ fd, size };
        return 0;
}

/* The keeper has it before anybody counts on it. */
static int put(struct instance *instance, int fd, uint64_t size)
{
        char label[KEEPER_LABEL_MAX];
        int r;

        make_label(label, instance);
        r = keeper_put(instance->manager->keeper, label, fd);
        return r < 0 ? r : set(instance, fd, size);
}

int reserve_hold(struct instance *instance, uint64_t quota, struct failure *failure)
{
        struct manager *manager = instance->manager;
        uint64_t size = reserve_get_size(quota);
        int fd = instance->reserve ? instance->reserve->fd : -1, r;

        if (reserve_has(instance, quota))
                return 0;
        r = spill_reserve(manager->spill, manager->options->spill_directory, &fd, size, failure);
        if (r < 0)
                return r;
        r = put(instance, fd, size);
        if (r < 0 && !instance->reserve)
                fd_close(fd);
        return r < 0 ? failure_from_errno(failure, r, "holding room on the disk of the spill") : 0;
}

void reserve_forget(struct instance *instance)
{
        if (!instance->reserve)
                return;
        fd_close(instance->reserve->fd);
        free(TAKE(instance->reserve));
}

void reserve_drop(struct instance *instance)
{
        char label[KEEPER_LABEL_MAX];

        if (!instance->reserve)
                return;
        make_label(label, instance);
        (void)keeper_drop(instance->manager->keeper, label);
        reserve_forget(instance);
}

/* What is in it. */

static bool is_in_place(const struct guest *guest)
{
        return guest->spilled && guest->spilled->begin > 0;
}

bool reserve_is_used(const struct instance *instance)
{
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link)
                if (is_in_place(guest) || guest->spilling)
                        return true;
        return false;
}

/* Past all that overlaps with @bytes from *@begin. False: nothing does. */
static bool pass(const struct instance *instance, uint64_t bytes, uint64_t *begin)
{
        uint64_t end = *begin + spill_file_get_room(bytes);
        const struct guest *guest;
        bool has_passed = spill_use_pass(instance, end, begin);

        list_for_each(guest, &instance->guests, link) {
                uint64_t behind;

                if (!is_in_place(guest))
                        continue;
                behind = guest->spilled->begin + spill_file_get_room(guest->spilled->bytes);
                if (guest->spilled->begin >= end || behind <= *begin)
                        continue;
                *begin = behind;
                has_passed = true;
        }
        return has_passed;
}

uint64_t reserve_find_place(const struct instance *instance, uint64_t bytes)
{
        uint64_t begin = SPILL_FILE_BEGIN_MIN;

        if (!instance->reserve || !instance->manager->options->spill_directory[0])
                return 0;
        while (pass(instance, bytes, &begin))
                ;
        return begin + spill_file_get_room(bytes) <= instance->reserve->size ? begin : 0;
}

uint64_t reserve_get_sum(const struct manager *manager)
{
        const struct instance *instance;
        uint64_t sum = 0;

        list_for_each(instance, &manager->instances, link)
                sum += instance->reserve ? instance->reserve->size : 0;
        return sum;
}

uint64_t reserve_get_free(const struct manager *manager, uint64_t *ret_kept)
{
        const struct options *options = manager->options;
        uint64_t free, used;

        if (ret_kept)
                *ret_kept = 0;
        if (!manager->spill || !options->spill_directory[0] || manager->spill_failure[0])
                return 0;
        free = spill_get_free(manager->spill, ret_kept);
        used = reserve_get_sum(manager) + spill_use_get_files(manager) +
               spill_use_get_coming(manager, (uid_t)-1);
        if (options->spill_limit > 0 && used >= options->spill_limit)
                return 0;
        if (options->spill_limit > 0 && options->spill_limit - used < free)
                free = options->spill_limit - used;
        return free;
}

static uint64_t get_on_disk(const struct instance *instance)
{
        return (instance->reserve ? instance->reserve->size : 0) + spill_use_get_own(instance);
}

static int compare_owners(const void *a, const void *b)
{
        uid_t one = *(const uid_t *)a, other = *(const uid_t *)b;

        return (one > other) - (one < other);
}

static uint64_t count_different(uid_t *owners, size_t n)
{
        uint64_t n_different = n > 0;

        qsort(owners, n, sizeof(*owners), compare_owners);
        for (size_t i = 1; i < n; i++)
                n_different += owners[i] != owners[i - 1];
        return n_different;
}

/* Without memory each vGPU counts as a user's: nobody gets more than his share. */
struct reserve_users reserve_count_users(const struct manager *manager)
{
        struct reserve_users users = { .all = spill_use_get_coming(manager, (uid_t)-1) };
        CLEANUP(freep) uid_t *owners = NULL;
        const struct instance *instance;
        size_t n = 0;

        list_for_each(instance, &manager->instances, link)
                n++;
        owners = calloc(n + 1, sizeof(*owners));
        n = 0;
        list_for_each(instance, &manager->instances, link) {
                uint64_t bytes = get_on_disk(instance);

                users.all += bytes;
                if (bytes > 0 && owners)
                        owners[n] = instance->owner;
                n += bytes > 0;
        }
        users.n = owners ? count_different(owners, n) : n;
        return users;
}

uint64_t reserve_get_share(const struct manager *manager, const struct reserve_users *users,
                           uid_t user, uint64_t free)
{
        uint64_t own = 0;
        const struct instance *instance;

        if (account_is_operator(user))
                return free;
        list_for_each(instance, &manager->instances, link)
                if (instance->owner == user)
                        own += get_on_disk(instance);
        /* Whose memory is only coming is not among those that have some. */
        return account_room(users->all + free, users->all,
                            own + spill_use_get_coming(manager, user), users->n + (own == 0));
}

/* After a restart. */

void reserve_adopt(struct instance *instance)
{
        char label[KEEPER_LABEL_MAX];
        struct stat status;
        int fd;

        make_label(label, instance);
        fd = keeper_find(instance->manager->keeper, label);
        fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (fd >= 0 && (fstat(fd, &status) < 0 || set(instance, fd, (uint64_t)status.st_size) < 0))
                fd_close(fd);
}

static int drop_ownerless(const char *label, int fd, void *userdata)
{
        const struct manager *manager = userdata;
        const struct instance *instance;

        (void)fd;
        list_for_each(instance, &manager->instances, link)
                if (strcmp(label + strlen(RECOVERY_RESERVE), instance->uuid) == 0)
                        return 0;
        (void)keeper_drop(manager->keeper, label);
        return 0;
}

void reserve_drop_ownerless(struct manager *manager)
{
        (void)keeper_list(manager->keeper, RECOVERY_RESERVE, drop_ownerless, manager);
}
