/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/pool-group.h"

#include <stdio.h>

#include "manager/model/instance.h"
#include "manager/model/manager.h"

void pool_group_name(const struct instance *instance, char ret_name[POOL_OWNER_MAX])
{
        snprintf(ret_name, POOL_OWNER_MAX, "user %u", instance->owner);
}

static bool is_first_of_user(const struct instance *instance)
{
        const struct instance *other;

        list_for_each(other, &instance->manager->instances, link) {
                if (other == instance)
                        return true;
                if (other->owner == instance->owner)
                        return false;
        }
        return true;
}

uint64_t pool_group_get_owned(const struct instance *instance)
{
        char group[POOL_OWNER_MAX];
        uint64_t room;

        if (!is_first_of_user(instance))
                return 0;
        pool_group_name(instance, group);
        return pool_get_owned(instance->manager->pool, group, &room);
}
