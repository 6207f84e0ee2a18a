/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/pool-group.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "daemon/failure.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

/* A setting of an instance. */
#define POOL_GROUP "pool-group"

int pool_group_check(const char *name, struct failure *failure)
{
        size_t length = strlen(name), n = 0;

        while (isalnum((unsigned char)name[n]) || (n > 0 && name[n] && strchr("._-", name[n])))
                n++;
        if (length > 0 && n == length && length < INSTANCE_POOL_GROUP_MAX)
                return 0;
        return failure_parameter(failure, "pool_group", "for example models",
                                 "a pool group has 1 to %d letters, digits, '.', '_' and '-', and "
                                 "begins with a letter or digit",
                                 INSTANCE_POOL_GROUP_MAX - 1);
}

int pool_group_set(struct instance *instance, const char *name)
{
        snprintf(instance->pool_group, sizeof(instance->pool_group), "%s", name);
        return store_put_setting(instance->manager->store, POOL_GROUP, instance->id, name);
}

static int restore(const char *name, uint32_t instance_id, const char *value, void *userdata)
{
        struct manager *manager = userdata;
        struct instance *instance;

        if (instance_id == 0 || strcmp(name, POOL_GROUP) != 0)
                return 0;
        list_for_each(instance, &manager->instances, link)
                if (instance->id == instance_id)
                        snprintf(instance->pool_group, sizeof(instance->pool_group), "%s", value);
        return 0;
}

int pool_group_restore(struct manager *manager)
{
        return store_each_setting(manager->store, restore, manager);
}

bool pool_group_is_same(const struct instance *instance, const struct instance *other)
{
        return strcmp(instance->pool_group, other->pool_group) == 0 &&
               (instance->pool_group[0] || instance->owner == other->owner);
}

void pool_group_name(const struct instance *instance, char ret_name[POOL_OWNER_MAX])
{
        if (instance->pool_group[0])
                snprintf(ret_name, POOL_OWNER_MAX, "group %s", instance->pool_group);
        else
                snprintf(ret_name, POOL_OWNER_MAX, "user %u", instance->owner);
}

static bool is_first(const struct instance *instance)
{
        const struct instance *other;

        list_for_each(other, &instance->manager->instances, link) {
                if (other == instance)
                        return true;
                if (pool_group_is_same(other, instance))
                        return false;
        }
        return true;
}

/* What its guests have in the pool, counting what others have too. */
static uint64_t sum_reserved(const struct instance *instance)
{
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(guest, &instance->guests, link)
                sum += guest->reservation ? pool_get_length(guest->reservation) : 0;
        return sum;
}

/* Of @bytes, in the ratio of what each has in the pool. All parts make up the whole. */
static uint64_t get_part(const struct instance *instance, uint64_t bytes)
{
        uint64_t own = sum_reserved(instance), before = 0, sum = 0;
        const struct instance *other;
        bool is_before = true;

        list_for_each(other, &instance->manager->instances, link) {
                is_before &= other != instance;
                if (!pool_group_is_same(other, instance))
                        continue;
                sum += sum_reserved(other);
                before += is_before ? sum_reserved(other) : 0;
        }
        if (sum == 0)
                return is_first(instance) ? bytes : 0;
        return (uint64_t)((unsigned __int128)bytes * (before + own) / sum -
                          (unsigned __int128)bytes * before / sum);
}

/* The vGPUs of one user need not be told apart. */
uint64_t pool_group_get_owned(const struct instance *instance)
{
        char group[POOL_OWNER_MAX];
        uint64_t room, bytes;

        if (!instance->pool_group[0] && !is_first(instance))
                return 0;
        pool_group_name(instance, group);
        bytes = pool_get_owned(instance->manager->pool, group, &room);
        return instance->pool_group[0] ? get_part(instance, bytes) : bytes;
}
