/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/place-text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "manager/model/device.h"

void place_format(const struct place *place, char ret_text[STORE_PLACE_MAX])
{
        size_t at = 0;

        ret_text[0] = '\0';
        for (size_t i = 0; i < place_count(place); i++)
                at += (size_t)snprintf(ret_text + at, STORE_PLACE_MAX - at, "%s%s",
                                       i > 0 ? "," : "", place->device[i]->uuid);
}

const char *place_describe(const struct place *place, char ret_text[PLACE_TEXT_MAX])
{
        size_t at = 0;

        ret_text[0] = '\0';
        for (size_t i = 0; i < place_count(place); i++)
                at += (size_t)snprintf(ret_text + at, PLACE_TEXT_MAX - at, "%s%u", i > 0 ? "," : "",
                                       place->device[i]->index);
        return ret_text;
}

struct place place_parse(struct manager *manager, const char *text)
{
        struct place place = place_nowhere;

        for (size_t n = 0; *text && n < GATE_DEVICES_MAX; n++) {
                char uuid[STORE_UUID_MAX];
                size_t length = strcspn(text, ",");

                snprintf(uuid, sizeof(uuid), "%.*s", (int)length, text);
                place.device[n] = device_find_uuid(manager, uuid);
                if (!place.device[n])
                        return place_nowhere;
                text += length + (text[length] == ',');
        }
        return place;
}

static int add(struct place *place, struct device *device, struct failure *failure)
{
        size_t n = place_count(place);

        if (place_has(place, device))
                return failure_parameter(failure, "device", "name each device once",
                                         "device %u is named twice", device->index);
        if (n == GATE_DEVICES_MAX)
                return failure_parameter(failure, "device", "name fewer",
                                         "a vGPU has at most %d devices", GATE_DEVICES_MAX);
        place->device[n] = device;
        return 0;
}

int place_find(struct manager *manager, const char *list, struct place *ret_place,
               struct failure *failure)
{
        CLEANUP(freep) char *copy = strdup(list);
        char *rest = copy, *name;
        int r = copy ? 0 : -ENOMEM;

        *ret_place = place_nowhere;
        while (r == 0 && (name = strsep(&rest, ","))) {
                struct device *device;

                if (*name == '\0' && *list)
                        return failure_parameter(failure, "device",
                                                 "one comma between two devices: 0,1",
                                                 "'%.64s' has no device beside a comma", list);
                device = device_find(manager, name, failure);
                r = device ? add(ret_place, device, failure) : -ENODEV;
        }
        return r;
}
