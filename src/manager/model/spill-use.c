/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/spill-use.h"

#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/spilling-internal.h"
#include "spill/spill.h"

/* Of its processes' parts on disk; only of those in files of their own, or of all. */
static uint64_t sum_parts(const struct instance *instance, bool only_own)
{
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(guest, &instance->guests, link)
                if (guest->spilled && (!only_own || guest->spilled->begin == 0))
                        sum += guest->spilled->bytes;
        return sum;
}

static uint64_t sum_instances(const struct manager *manager, bool only_own)
{
        const struct instance *instance;
        uint64_t sum = 0;

        list_for_each(instance, &manager->instances, link)
                sum += sum_parts(instance, only_own);
        return sum;
}

uint64_t spill_use_get(const struct instance *instance)
{
        return sum_parts(instance, false);
}

uint64_t spill_use_get_sum(const struct manager *manager)
{
        return sum_instances(manager, false);
}

uint64_t spill_use_get_own(const struct instance *instance)
{
        return sum_parts(instance, true);
}

uint64_t spill_use_get_files(const struct manager *manager)
{
        return sum_instances(manager, true);
}

uint64_t spill_use_get_coming(const struct manager *manager, uid_t user)
{
        const struct spilling *spilling;
        uint64_t sum = 0;

        list_for_each(spilling, &manager->spillings, link)
                if (!spilling->reserve && (user == (uid_t)-1 || spilling->owner == user))
                        sum += spilling->bytes;
        return sum;
}

bool spill_use_pass(const struct instance *instance, uint64_t end, uint64_t *begin)
{
        const struct spilling *spilling;
        bool has_passed = false;

        list_for_each(spilling, &instance->manager->spillings, link) {
                uint64_t behind = spilling->begin + spill_file_get_room(spilling->bytes);

                if (!spilling->reserve || spilling->reserve != instance->reserve ||
                    spilling->begin >= end || behind <= *begin)
                        continue;
                *begin = behind;
                has_passed = true;
        }
        return has_passed;
}
