/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/context-pairs.h"

#include <string.h>

#include "manager/model/device.h"
#include "manager/model/manager.h"
#include "manager/model/place.h"

static bool has_part(const struct place *place, const struct device *device, size_t *ret_part)
{
        for (size_t i = 0; i < place_count(place); i++)
                if (place->device[i] == device) {
                        *ret_part = i;
                        return true;
                }
        return false;
}

/*
 * The driver wants a permutation of all devices of the machine. What is in the way of a process goes where
 * the chain of those that leave begins; so two devices change places.
 */
static const struct device *image_of(const struct device *device, const struct place *from,
                                     const struct place *to)
{
        size_t part;

        if (has_part(from, device, &part))
                return to->device[part];
        while (has_part(to, device, &part))
                device = from->device[part];
        return device;
}

size_t context_make_pairs(const struct place *from, const struct place *to,
                          struct mover_pair pairs[MOVER_PAIRS_MAX])
{
        const struct manager *manager = from->device[0]->manager;
        size_t n = 0;

        if (place_is_equal(from, to))
                return 0;
        for (; n < manager->n_devices && n < MOVER_PAIRS_MAX; n++) {
                const struct device *old = &manager->device[n];
                const struct device *new = image_of(old, from, to);

                memcpy(pairs[n].old_uuid, old->uuid_bytes, sizeof(pairs[n].old_uuid));
                memcpy(pairs[n].new_uuid, new->uuid_bytes, sizeof(pairs[n].new_uuid));
        }
        return n;
}
