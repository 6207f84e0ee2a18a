/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/parting.h"

#include "hash/hash.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/policy.h"

size_t parting_count(const struct guest *guest)
{
        return pool_get_length(guest->reservation) / HASH_BLOCK;
}

/* What parting takes of the pool counts as anything else that its owner puts there. */
static int check(const struct guest *guest, size_t n_common, struct failure *failure)
{
        char owner[POOL_OWNER_MAX];

        if (n_common == 0)
                return 0;
        policy_name_owner(guest->instance, owner);
        return policy_check_pool(guest->instance, owner, n_common * HASH_BLOCK, failure);
}

int parting_part(struct guest *guest, uint32_t device, bool is_free, struct pool_place *ret_places,
                 struct pool_reservation **ret_others, struct failure *failure)
{
        struct pool *pool = guest->instance->manager->pool;
        size_t n = parting_count(guest);
        size_t n_common = pool_get_common(pool, guest->reservation, HASH_BLOCK, n, ret_places);
        int r = is_free ? 0 : check(guest, n_common, failure);

        *ret_others = NULL;
        return r < 0 ? r
                     : pool_part(pool, guest->reservation, device, HASH_BLOCK, n, ret_places,
                                 ret_others);
}
