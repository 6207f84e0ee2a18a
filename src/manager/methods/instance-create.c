/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/methods/instance-create.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "daemon/uuid.h"
#include "manager/methods/placement.h"
#include "manager/model/backing.h"
#include "manager/model/container-record.h"
#include "manager/model/device.h"
#include "manager/model/instance-life.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/place-text.h"
#include "manager/model/policy.h"
#include "manager/model/pool-group.h"
#include "manager/model/promise-room.h"
#include "manager/model/promise.h"
#include "manager/publish/virtual.h"
#include "manager/schedule/schedule.h"
#include "manager/setting/settings.h"

static bool has_name(const struct manager *manager, const char *name)
{
        const struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (strcmp(instance->name, name) == 0)
                        return true;
        return false;
}

/* What one that is overcommitted may promise is the pool's, and the same for all: they are told apart by how far they are. */
static int64_t get_unpromised(const struct device *device)
{
        if (device->meter.is_lost)
                return INT64_MIN / STATE_DEVICES_MAX;
        return (int64_t)device->memory_total - (int64_t)promise_get_sum(device, NULL);
}

static bool is_roomier(const struct device *device, const struct device *than, uint64_t bytes)
{
        bool has_room = promise_get_left(device) >= bytes,
             than_has = promise_get_left(than) >= bytes;

        return has_room == than_has ? get_unpromised(device) > get_unpromised(than) : has_room;
}

/* Of those that can promise @bytes, if there are any. */
static struct device *roomiest_device(struct manager *manager, uint64_t bytes)
{
        struct device *best = NULL;

        for (size_t i = 0; i < manager->n_devices; i++)
                if (!best || promise_is_left_out(best) ||
                    (!promise_is_left_out(&manager->device[i]) &&
                     is_roomier(&manager->device[i], best, bytes)))
                        best = &manager->device[i];
        return best;
}

#define MADE_UP_NAME "vgpu-"

/* N of a name as make_up_name() gives it; 0: it is none. */
static unsigned long made_up_number(const char *name)
{
        const char *digits = name + strlen(MADE_UP_NAME);
        unsigned long n;
        char *end;

        if (strncmp(name, MADE_UP_NAME, strlen(MADE_UP_NAME)) != 0 || *digits < '1' ||
            *digits > '9')
                return 0;
        n = strtoul(digits, &end, 10);
        return *end ? 0 : n;
}

/* With the lowest number that is free: at most one for each vGPU is taken. */
static void make_up_name(struct manager *manager, char name[STORE_NAME_MAX])
{
        bool is_taken[STATE_INSTANCES_MAX + 2] = { true };
        struct instance *instance;
        unsigned long n;

        list_for_each(instance, &manager->instances, link) {
                n = made_up_number(instance->name);
                if (n <= STATE_INSTANCES_MAX)
                        is_taken[n] = true;
        }
        for (n = 1; is_taken[n]; n++)
                ;
        snprintf(name, STORE_NAME_MAX, MADE_UP_NAME "%lu", n);
}

/* What the gate takes from the device at once: less is of no use, but is "40" without its G. */
#define FRAME_BUFFER_MIN (2 * MIB)

int instance_check_size(const struct device *device, uint64_t frame_buffer, struct failure *failure)
{
        char wanted[SIZE_TEXT_MAX], total[SIZE_TEXT_MAX];

        if (frame_buffer < FRAME_BUFFER_MIN)
                return failure_parameter(
                        failure, "frame_buffer",
                        frame_buffer < KIB ? "sizes have a unit: 40G, 512M" : "the smallest is 2M",
                        "a vGPU has at least 2 MiB, not %s", size_format(wanted, frame_buffer));
        if (frame_buffer <= device->memory_total)
                return 0;
        size_format(total, device->memory_total);
        return failure_set(failure, -ENOSPC, "NoRoom", "ask for less", "device %u has %s, not %s",
                           device->index, total, size_format(wanted, frame_buffer));
}

static int check_free_name(struct manager *manager, const char *name, struct failure *failure)
{
        int r = instance_check_name(name, failure);

        if (r == 0 && (has_name(manager, name) || virtual_find(manager->stage, name)))
                r = failure_set(failure, -EEXIST, "VgpuExists",
                                "choose another name, or vgpu rm that one",
                                "there is a vGPU '%s' already", name);
        return r;
}

static int check_settings(const struct instance_request *request, const struct device *device,
                          struct failure *failure)
{
        int r = settings_check_size(device, request->frame_buffer, NULL, failure);
        if (r == 0)
                r = schedule_check_share(device, NULL, request->share, failure);
        if (r == 0 && request->n_devices > 1)
                r = schedule_check_several(device, failure);
        return r;
}

/* Of all of its devices, or of one that may become one of them. */
static int check_place(const struct instance_request *request, const struct place *place,
                       struct failure *failure)
{
        int r = promise_check_place(place, failure);

        for (size_t i = 0; r == 0 && i < place_count(place); i++)
                r = instance_check_size(place->device[i], request->frame_buffer, failure);
        if (r == 0)
                r = promise_check_room(place, request->frame_buffer, NULL, failure);
        for (size_t i = 0; r == 0 && i < place_count(place); i++)
                r = check_settings(request, place->device[i], failure);
        return r;
}

static int check_device(const struct instance_request *request, struct device *device,
                        struct failure *failure)
{
        const struct place place = { { device } };

        return check_place(request, &place, failure);
}

static int check_named(const struct instance_request *request, struct failure *failure)
{
        struct place place = place_nowhere;

        for (size_t i = 0; i < request->n_devices; i++)
                place.device[i] = request->device[i];
        return place_is_nowhere(&place) ? 0 : check_place(request, &place, failure);
}

static int check_request(struct manager *manager, const struct instance_request *request,
                         struct failure *failure)
{
        int r = request->name ? check_free_name(manager, request->name, failure) : 0;

        if (r == 0 && request->pool_group)
                r = pool_group_check(request->pool_group, failure);
        if (r == 0)
                r = policy_check_limits(manager, request->owner,
                                        request->frame_buffer * request->n_devices, failure);
        if (r == 0 && request->space)
                r = policy_check_containers(manager, request->frame_buffer, request->share,
                                            failure);
        return r < 0 ? r : check_named(request, failure);
}

/* Whatever else is there. */
static size_t count_large_enough(const struct manager *manager, uint64_t frame_buffer)
{
        size_t n = 0;

        for (size_t i = 0; i < manager->n_devices; i++)
                n += manager->device[i].memory_total >= frame_buffer;
        return n;
}

static const char *advise_on_number(const struct manager *manager,
                                    const struct instance_request *request,
                                    const struct failure *why)
{
        size_t n = count_large_enough(manager, request->frame_buffer);

        if (n == 0)
                return "ask for less";
        if (n < request->n_devices)
                return "ask for less or for fewer";
        if (why->name && strcmp(why->name, "Unsupported") == 0)
                return "ask for fewer, or name the devices (--device)";
        return "ask for less or for fewer, or suspend or remove a vGPU";
}

static int refuse_number(const struct manager *manager, const struct instance_request *request,
                         size_t n, const struct failure *why, struct failure *failure)
{
        char wanted[SIZE_TEXT_MAX];

        if (request->n_devices > manager->n_devices)
                return failure_set(failure, -ENODEV, "NoSuchDevice", "ask for fewer",
                                   "there %s %zu device%s, not %zu",
                                   manager->n_devices == 1 ? "is" : "are", manager->n_devices,
                                   manager->n_devices == 1 ? "" : "s", request->n_devices);
        return failure_set(failure, -ENOSPC, "NoRoom", advise_on_number(manager, request, why),
                           "%zu of %zu devices can take a part of %s, and %zu are needed: %s", n,
                           manager->n_devices, size_format(wanted, request->frame_buffer),
                           request->n_devices, why->message);
}

/* Among those that are overcommitted, or those that are not. Returns how many could take a part. */
static size_t place_among(struct manager *manager, struct instance_request *request,
                          bool is_overcommitted, struct failure *why)
{
        struct placement_candidate candidates[STATE_DEVICES_MAX];
        size_t n = 0;

        for (size_t i = 0; i < manager->n_devices; i++) {
                struct device *device = &manager->device[i];

                if (promise_is_overcommitted(device) == is_overcommitted &&
                    check_device(request, device, why) == 0)
                        candidates[n++] =
                                (struct placement_candidate){ device, get_unpromised(device) };
        }
        (void)placement_choose(request->device, request->n_devices, candidates, n);
        return n;
}

/* Of several devices that nobody has named; one that cannot take it is none of them. */
static int place(struct manager *manager, struct instance_request *request, struct failure *failure)
{
        struct failure why = { 0 };
        size_t n = place_among(manager, request, false, &why), n_overcommitted;

        if (request->device[0])
                return 0;
        n_overcommitted = place_among(manager, request, true, &why);
        if (request->device[0])
                return 0;
        if (!why.name && n > 0 && n_overcommitted > 0)
                (void)failure_set(&why, -EOPNOTSUPP, "Unsupported", "",
                                  "some devices are overcommitted and others are not, and a vGPU "
                                  "takes turns on all of its devices, or on none");
        return refuse_number(manager, request, n > n_overcommitted ? n : n_overcommitted, &why,
                             failure);
}

static int find_place(struct manager *manager, struct instance_request *request,
                      struct failure *failure)
{
        if (request->device[0])
                return 0;
        if (request->n_devices > 1)
                return place(manager, request, failure);
        request->device[0] = roomiest_device(manager, request->frame_buffer);
        return check_device(request, request->device[0], failure);
}

static void note_devices(struct store_instance *stored, const struct instance_request *request)
{
        snprintf(stored->device_uuid, sizeof(stored->device_uuid), "%s", request->device[0]->uuid);
        stored->n_more = request->n_devices - 1;
        for (size_t i = 0; i < stored->n_more; i++)
                snprintf(stored->more[i].device_uuid, sizeof(stored->more[i].device_uuid), "%s",
                         request->device[i + 1]->uuid);
}

static int make_stored(struct manager *manager, const struct instance_request *request,
                       struct store_instance *stored)
{
        int r = 0;

        *stored = (struct store_instance){
                .frame_buffer = request->frame_buffer,
                .created_ns = clock_now(CLOCK_REALTIME),
                .state = STATE_IDLE,
                .owner = request->owner,
                .is_transient = request->is_transient,
                .creator = request->creator,
        };
        note_devices(stored, request);
        if (request->name)
                snprintf(stored->name, sizeof(stored->name), "%s", request->name);
        else
                make_up_name(manager, stored->name);
        if (request->is_transient)
                r = process_get_start_time(request->creator, &stored->creator_start);
        if (request->uuid)
                snprintf(stored->uuid, sizeof(stored->uuid), "%s", request->uuid);
        else if (r == 0)
                r = uuid_make(stored->uuid);
        return r;
}

/* In the same transaction as itself. */
static int set_settings(struct instance *instance, const void *userdata, struct failure *failure)
{
        const struct instance_request *request = userdata;
        const struct place place = instance_place(instance);
        int r = backing_hold(instance, &place, instance->frame_buffer, failure);

        if (r == 0 && request->share)
                r = settings_set_share(instance, request->share, failure);
        if (r == 0 && request->space)
                r = container_record_set(instance, request->space);
        if (r == 0 && request->pool_group)
                r = pool_group_set(instance, request->pool_group);
        if (r == 0 && request->class)
                r = residency_record_set_class(&instance->residency, instance->manager->store,
                                               instance->id, request->class, failure);
        if (r == 0 && (request->idle_after_ms || request->idle_keeps_context))
                r = residency_record_set(&instance->residency, instance->manager->store,
                                         instance->id, request->idle_after_ms,
                                         request->idle_keeps_context, failure);
        return r;
}

static void log_created(const struct instance *instance)
{
        const struct place place = instance_place(instance);
        char devices[PLACE_TEXT_MAX];

        log_event_of(instance->owner, LOG_LEVEL_INFO, "created",
                     "vgpu=%s uuid=%s device=%s frame_buffer=%" PRIu64 " uid=%u transient=%d",
                     instance->name, instance->uuid, place_describe(&place, devices),
                     instance->frame_buffer, instance->owner, instance->is_transient);
}

static int settle_request(struct manager *manager, struct instance_request *request,
                          struct failure *failure)
{
        int r = check_request(manager, request, failure);

        return r < 0 ? r : find_place(manager, request, failure);
}

int instance_check_new(struct manager *manager, const struct instance_request *wanted,
                       struct failure *failure)
{
        struct instance_request request = *wanted;

        return settle_request(manager, &request, failure);
}

int instance_create(struct manager *manager, const struct instance_request *wanted,
                    struct instance **ret_instance, struct failure *failure)
{
        struct instance_request request = *wanted;
        struct store_instance stored;
        struct instance *instance = NULL;
        int r = settle_request(manager, &request, failure);

        if (r == 0)
                r = make_stored(manager, &request, &stored);
        if (r == 0)
                r = instance_add(manager, &stored, set_settings, &request, &instance, failure);
        if (r < 0)
                return failure_from_errno(failure, r, "creating the vGPU");

        log_created(instance);
        observer_tell_changed(&manager->observers);
        *ret_instance = instance;
        return 0;
}

static int rename_in_store(const struct instance *instance, const char *name)
{
        struct store *store = instance->manager->store;
        int r = store_begin_durable(store);

        if (r == 0)
                r = store_rename_instance(store, instance->id, name);
        if (r == 0)
                r = store_commit(store);
        if (r < 0)
                store_rollback(store);
        return r;
}

bool instance_may_have_name(struct manager *manager, const char *name)
{
        struct failure failure = { 0 };

        return check_free_name(manager, name, &failure) == 0;
}

int instance_rename(struct instance *instance, const char *name, struct failure *failure)
{
        struct observers *observers = &instance->manager->observers;
        int r = instance_check_idle(instance, failure);

        if (r == 0 && strcmp(instance->name, name) == 0)
                r = failure_set(failure, -EEXIST, "VgpuExists", "choose another name",
                                "vGPU %s has that name already", name);
        if (r == 0)
                r = check_free_name(instance->manager, name, failure);
        if (r < 0)
                return r;
        r = rename_in_store(instance, name);
        if (r < 0)
                return failure_from_errno(failure, r, "renaming the vGPU");
        log_event_of(instance->owner, LOG_LEVEL_INFO, "renamed", "vgpu=%s name=%s", instance->name,
                     name);
        snprintf(instance->name, sizeof(instance->name), "%s", name);
        observer_tell_instance(observers, instance, INSTANCE_RENAMED);
        observer_tell_changed(observers);
        return 0;
}
