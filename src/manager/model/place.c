/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/place.h"

#include <string.h>

const struct place place_nowhere = { { NULL } };

bool place_is_nowhere(const struct place *place)
{
        return place->device[0] == NULL;
}

bool place_is_equal(const struct place *a, const struct place *b)
{
        return memcmp(a->device, b->device, sizeof(a->device)) == 0;
}

size_t place_count(const struct place *place)
{
        size_t n = 0;

        while (n < GATE_DEVICES_MAX && place->device[n])
                n++;
        return n;
}

bool place_has(const struct place *place, const struct device *device)
{
        for (size_t i = 0; i < place_count(place); i++)
                if (place->device[i] == device)
                        return true;
        return false;
}
