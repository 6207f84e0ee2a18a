/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

/* Finding. */

struct device *device_find_uuid(struct manager *manager, const char *uuid)
{
        for (size_t i = 0; i < manager->n_devices; i++)
                if (strcasecmp(manager->device[i].uuid, uuid) == 0)
                        return &manager->device[i];
        return NULL;
}

/* A number as short as this is an index, even if a UUID begins like it. */
#define INDEX_DIGITS_MAX 3

static bool is_index(const char *text)
{
        size_t length = strlen(text);

        return length > 0 && length <= INDEX_DIGITS_MAX && strspn(text, "0123456789") == length;
}

static struct device *find_index(struct manager *manager, const char *text)
{
        unsigned long index = strtoul(text, NULL, 10);

        return index < manager->n_devices ? &manager->device[index] : NULL;
}

static size_t find_prefix(struct manager *manager, const char *text, struct device **ret_device)
{
        const char *prefix = strncasecmp(text, "GPU-", 4) == 0 ? text + 4 : text;
        size_t n = 0;

        for (size_t i = 0; *prefix && i < manager->n_devices; i++)
                if (strncasecmp(manager->device[i].uuid + 4, prefix, strlen(prefix)) == 0) {
                        *ret_device = &manager->device[i];
                        n++;
                }
        return n;
}

struct device *device_find(struct manager *manager, const char *text, struct failure *failure)
{
        struct device *device = NULL;
        size_t n = 0;

        if (is_index(text))
                device = find_index(manager, text);
        else
                n = find_prefix(manager, text, &device);
        if (device && n <= 1)
                return device;
        (void)failure_set(failure, -ENODEV, "NoSuchDevice",
                          "vgpu devices shows those that there are",
                          n ? "'%.64s' is the beginning of several devices' UUIDs"
                            : "there is no device '%.64s'",
                          text);
        return NULL;
}

/* What is used. */

uint64_t device_get_used(const struct device *device)
{
        struct instance *instance;
        uint64_t sum = device->virtual_used;

        list_for_each(instance, &device->manager->instances, link) {
                const struct instance_part *part = instance_find_part(instance, device);

                if (part && !instance_is_off(instance))
                        sum += guests_get_used_of(instance, part);
        }
        return sum;
}
