/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/spill-use.h"

#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

uint64_t spill_use_get(const struct instance *instance)
{
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(guest, &instance->guests, link)
                if (guest->spilled)
                        sum += guest->spilled->bytes;
        return sum;
}

uint64_t spill_use_get_sum(const struct manager *manager)
{
        const struct instance *instance;
        uint64_t sum = 0;

        list_for_each(instance, &manager->instances, link)
                sum += spill_use_get(instance);
        return sum;
}

uint64_t spill_use_get_own(const struct instance *instance)
{
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(guest, &instance->guests, link)
                if (guest->spilled && guest->spilled->begin == 0)
                        sum += guest->spilled->bytes;
        return sum;
}

uint64_t spill_use_get_files(const struct manager *manager)
{
        const struct instance *instance;
        uint64_t sum = 0;

        list_for_each(instance, &manager->instances, link)
                sum += spill_use_get_own(instance);
        return sum;
}
