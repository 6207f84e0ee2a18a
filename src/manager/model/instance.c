/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/instance.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "daemon/uuid.h"
#include "manager/model/account.h"
#include "manager/model/manager.h"

#define LETTERS_AND_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static const char *const state_names[] = {
        [STATE_IDLE] = "idle",
        [STATE_RUNNING] = "running",
        [STATE_SUSPENDING] = "suspending",
        [STATE_SUSPENDED] = "suspended",
        [STATE_EVICTED] = "evicted",
        [STATE_RESUMING] = "resuming",
        [STATE_MIGRATING] = "migrating",
        [STATE_FAILED] = "failed",
};

const char *instance_state_name(enum state_instance_state state)
{
        return state_names[state];
}

struct place instance_place(const struct instance *instance)
{
        struct place place = place_nowhere;

        for (size_t i = 0; i < instance->n_parts; i++)
                place.device[i] = instance->part[i].device;
        return place;
}

struct instance_part *instance_find_part(struct instance *instance, const struct device *device)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                if (instance->part[i].device == device)
                        return &instance->part[i];
        return NULL;
}

bool instance_has_id(const struct instance *instance, uint32_t id)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                if (instance->part[i].id == id)
                        return true;
        return false;
}

bool instance_is_on(const struct instance *instance, const struct device *device)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                if (instance->part[i].device == device)
                        return true;
        return false;
}

bool instance_is_off(const struct instance *instance)
{
        return instance->state == STATE_SUSPENDED || instance->state == STATE_EVICTED;
}

bool instance_is_bound_for(const struct instance *instance, const struct device *device)
{
        return place_has(&instance->course.target, device) && !instance_is_on(instance, device);
}

bool instance_is_away(const struct instance *instance)
{
        return instance_is_off(instance) && instance->residency.has_left;
}

bool instance_is_usable(const struct instance *instance)
{
        return instance->state == STATE_IDLE || instance->state == STATE_RUNNING;
}

/* Finding and checking. */

/* Two letters wrong at most, and not all of them. */
static struct instance *refuse_name(const struct manager *manager, const char *name,
                                    struct failure *failure)
{
        char hint[STORE_NAME_MAX + 32] = "vgpu ls lists the vGPUs";
        const struct instance *instance;
        size_t least = 3;

        list_for_each(instance, &manager->instances, link) {
                size_t distance = text_distance(name, instance->name);

                if (distance >= least || distance >= strlen(instance->name))
                        continue;
                least = distance;
                snprintf(hint, sizeof(hint), "did you mean '%s'?", instance->name);
        }
        (void)failure_set(failure, -ENOENT, "NoSuchVgpu", hint, "there is no vGPU '%.64s'", name);
        return NULL;
}

struct instance *instance_find(struct manager *manager, const char *name, struct failure *failure)
{
        struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (strcmp(instance->name, name) == 0 || strcasecmp(instance->uuid, name) == 0)
                        return instance;
        return refuse_name(manager, name, failure);
}

int instance_check_name(const char *name, struct failure *failure)
{
        size_t length = strlen(name);
        uint8_t uuid[16];

        if (length == UUID_TEXT_MAX - 1 && uuid_parse(uuid, name) == 0)
                return failure_parameter(failure, "name", "choose another name",
                                         "'%.64s' would be taken for a UUID", name);
        if (length > 0 && strspn(name, "0123456789") == length)
                return failure_parameter(failure, "name", "put a letter into it",
                                         "'%.64s' would be taken for the id of a vGPU", name);
        if (length > 0 && length < STORE_NAME_MAX && strspn(name, LETTERS_AND_DIGITS) > 0 &&
            strspn(name, LETTERS_AND_DIGITS "._-") == length)
                return 0;
        return failure_parameter(
                failure, "name",
                "use 1 to 63 letters, digits, '.', '_' or '-', the first of them a "
                "letter or digit",
                "'%.64s' cannot be the name of a vGPU", name);
}

int instance_check_owner(const struct instance *instance, uid_t uid, struct failure *failure)
{
        if (uid == instance->owner || account_is_operator(uid))
                return 0;
        return failure_set(failure, -EPERM, "PermissionDenied", "ask its owner, or do it as root",
                           "vGPU %s belongs to user %u, you are user %u", instance->name,
                           instance->owner, uid);
}

struct instance *instance_find_own(struct manager *manager, const char *name, uid_t uid,
                                   struct failure *failure)
{
        struct instance *instance = instance_find(manager, name, failure);

        return instance && instance_check_owner(instance, uid, failure) == 0 ? instance : NULL;
}

int instance_check_no_image(const struct instance *instance, struct failure *failure)
{
        if (!instance->image)
                return 0;
        return failure_set(failure, -EBUSY, "Busy", "try again when it is over",
                           "an image of vGPU %s is being written or read", instance->name);
}

int instance_check_idle(const struct instance *instance, struct failure *failure)
{
        if (instance->operation && instance_is_usable(instance))
                return failure_set(failure, -EBUSY, "Busy", "try again in a moment",
                                   "the last operation of vGPU %s is not quite over",
                                   instance->name);
        if (instance->operation)
                return failure_set(failure, -EBUSY, "Busy", "try again when it is over",
                                   "vGPU %s is %s", instance->name,
                                   instance_state_name(instance->state));
        return instance_check_no_image(instance, failure);
}
