/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/setting/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/driver-path.h"
#include "daemon/log.h"
#include "manager/meter/meter.h"
#include "manager/model/container-record.h"
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/schedule/schedule.h"
#include "manager/setting/settings-internal.h"
#include "state/state-page.h"

static bool any_is_active(const struct manager *manager)
{
        for (size_t i = 0; i < manager->n_devices; i++) {
                const struct settings_site site = {
                        .device = (struct device *)(uintptr_t)&manager->device[i],
                        .gpu_instance = STATE_NONE,
                };

                if (settings_is_active(manager, &site))
                        return true;
        }
        return false;
}

/* Capabilities. */

static bool can_be_set(uint32_t capability)
{
        return capability == STATE_CAN_MINI_QUARTER ||
               capability == STATE_CAN_COMPUTE_MEDIA_ENGINE ||
               capability == STATE_CAN_MIG_TIME_SLICING_ENABLED;
}

static bool put_capability(struct manager *manager, const struct device *device,
                           uint32_t capability, bool enabled)
{
        struct state_device_detail detail;

        if (!state_read_device_detail(settings_get_state_page(manager), device->index, &detail))
                return false;
        detail.capability[capability] = enabled;
        state_write_device_detail(settings_get_state_page(manager), device->index, &detail);
        return true;
}

int settings_set_capability(struct manager *manager, struct device *device, uint32_t capability,
                            bool enabled, struct failure *failure)
{
        const struct settings_site site = { .device = device, .gpu_instance = STATE_NONE };
        struct state_device_detail detail;
        char name[SETTING_NAME_MAX];
        int r;

        if (capability >= STATE_CAPABILITIES)
                return failure_parameter(failure, "capability", "",
                                         "capability must be 0 to %d, not %u",
                                         STATE_CAPABILITIES - 1, capability);
        if (!can_be_set(capability))
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "6, 7 and 11 can be set",
                                   "the capability %u is a fact", capability);
        if (!state_read_device_detail(settings_get_state_page(manager), device->index, &detail))
                return -EIO;
        if (capability == STATE_CAN_MIG_TIME_SLICING_ENABLED && enabled &&
            !detail.capability[STATE_CAN_MIG_TIME_SLICING])
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "",
                                   "vGPUs cannot share a GPU instance of device %u", device->index);
        if (settings_is_active(manager, &site))
                return failure_set(failure, -EBUSY, "Unsupported",
                                   "remove or suspend its vGPUs first",
                                   "a capability cannot be set while vGPUs are active");
        snprintf(name, sizeof(name), "capability/%u/%s", capability, device->uuid);
        r = settings_remember(manager, name, 0, enabled ? "1" : "0", failure);
        if (r == 0)
                (void)put_capability(manager, device, capability, enabled);
        return r;
}

/* The range of versions. */

static void put_range(struct manager *manager, uint32_t min, uint32_t max,
                      struct state_host *ret_host)
{
        struct state_host host = { 0 };

        if (!state_read_host(settings_get_state_page(manager), 0, &host))
                return;
        host.current_min = min;
        host.current_max = max;
        host.changed_ns = clock_now(CLOCK_REALTIME);
        state_write_host(settings_get_state_page(manager), 0, &host);
        observer_tell_changed(&manager->observers); /* each vGPU shows the version as well */
        *ret_host = host;
}

int settings_set_version_range(struct manager *manager, uint32_t min, uint32_t max,
                               struct state_host *ret_host, struct failure *failure)
{
        struct state_host host;
        char value[SETTING_VALUE_MAX];
        int r;

        if (!state_read_host(settings_get_state_page(manager), 0, &host))
                return -EIO;
        if (min > max)
                return failure_parameter(failure, "min", "", "min is above max");
        if (min < host.supported_min || max > host.supported_max)
                return failure_parameter(failure, min < host.supported_min ? "min" : "max", "",
                                         "the range must be within %#x to %#x", host.supported_min,
                                         host.supported_max);
        if (any_is_active(manager))
                return failure_set(failure, -EBUSY, "InUse",
                                   "remove or suspend all vGPUs of the host first",
                                   "the range cannot be set while vGPUs are active");
        snprintf(value, sizeof(value), "%u %u", min, max);
        r = settings_remember(manager, "version_range", 0, value, failure);
        if (r == 0)
                put_range(manager, min, max, ret_host);
        return r;
}

/* vGPUs. */

int settings_check_percent(uint32_t percent, struct failure *failure)
{
        if (percent <= 100)
                return 0;
        return failure_parameter(failure, "percent", "", "percent must be 0 to 100, not %u",
                                 percent);
}

static bool find_record(const struct state_page *state_page, uint32_t id, uint32_t *ret_slot,
                        struct state_instance *ret_record)
{
        for (uint32_t slot = 0; slot < state_end_instance(state_page); slot++)
                if (state_read_instance(state_page, slot, ret_record) && ret_record->id == id) {
                        *ret_slot = slot;
                        return true;
                }
        return false;
}

int settings_clear_accounting(struct manager *manager, uint32_t id, uint32_t *ret_cleared,
                              struct failure *failure)
{
        struct state_page *state_page = settings_get_state_page(manager);
        struct state_instance record;
        struct instance *instance;
        struct state_account account;
        uint64_t count;
        uint32_t slot;

        *ret_cleared = 0;
        list_for_each(instance, &manager->instances, link)
                if (instance_has_id(instance, id)) {
                        *ret_cleared = (uint32_t)meter_clear_accounting(instance);
                        return 0;
                }
        if (!find_record(state_page, id, &slot, &record))
                return 0; /* too new to have any */
        if (record.accounting != 1)
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "",
                                   "accounting is off in this vGPU");
        count = state_count_account(state_page, slot);
        for (uint64_t i = state_first_account(state_page, slot); i < count; i++)
                if (state_read_account(state_page, slot, i, &account) && !account.is_running) {
                        state_write_account(state_page, slot, i, NULL);
                        ++*ret_cleared;
                }
        return 0;
}

static int remember_number(struct instance *instance, const char *name, uint32_t number,
                           struct failure *failure)
{
        char value[SETTING_VALUE_MAX];

        snprintf(value, sizeof(value), "%u", number);
        return settings_remember(instance->manager, name, instance->id, value, failure);
}

int settings_set_share(struct instance *instance, uint32_t share, struct failure *failure)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < instance->n_parts; i++)
                r = schedule_check_share(instance->part[i].device, instance, share, failure);
        for (size_t i = 0; r == 0 && instance->operation && i < instance->n_parts; i++)
                r = schedule_check_share(instance->course.target.device[i], instance, share,
                                         failure); /* where the operation may take it */
        if (r == 0)
                r = remember_number(instance, "share", share, failure);
        if (r < 0)
                return r;
        instance->share = share;
        observer_tell_changed(&instance->manager->observers);
        return 0;
}

int settings_set_encoder_capacity(struct instance *instance, uint32_t percent,
                                  struct failure *failure)
{
        int r = settings_check_percent(percent, failure);

        if (r == 0)
                r = remember_number(instance, "encoder_capacity", percent, failure);
        if (r < 0)
                return r;
        instance->encoder_capacity = percent;
        observer_tell_changed(&instance->manager->observers);
        return 0;
}

/*
 * After a start. What does not fit any more (a device that is gone) is passed over, and so is what
 * was set under another load of the driver: the driver would have forgotten it.
 */

static bool parse_site(struct manager *manager, const char *text, struct settings_site *ret_site)
{
        struct failure failure = { 0 };
        char uuid[STORE_UUID_MAX];
        uint32_t gpu_instance = STATE_NONE;
        struct device *device;

        if (sscanf(text, "%47[^/]/%u", uuid, &gpu_instance) < 1)
                return false;
        device = device_find_uuid(manager, uuid);
        return device && settings_find_site(manager, device, gpu_instance, ret_site, &failure) == 0;
}

static void restore_scheduler(struct manager *manager, const char *name, const char *value)
{
        struct state_scheduler scheduler = { 0 };
        struct settings_site site;
        uint32_t engine;
        int at = 0;

        if (sscanf(name, "%u/%n", &engine, &at) < 1 || !parse_site(manager, name + at, &site))
                return;
        if (sscanf(value, "%u %u %u %u %u", &scheduler.policy, &scheduler.arr,
                   &scheduler.averaging_factor, &scheduler.frequency, &scheduler.time_slice) == 5)
                settings_put_scheduler(manager, &site, engine, &scheduler);
}

static void restore_heterogeneous(struct manager *manager, const char *name, const char *value)
{
        struct settings_site site;

        if (parse_site(manager, name, &site))
                settings_put_heterogeneous(manager, &site, *value == '1');
}

static void restore_capability(struct manager *manager, const char *name, const char *value)
{
        struct settings_site site;
        uint32_t capability;
        int at = 0;

        if (sscanf(name, "%u/%n", &capability, &at) == 1 && capability < STATE_CAPABILITIES &&
            parse_site(manager, name + at, &site))
                (void)put_capability(manager, site.device, capability, *value == '1');
}

static void restore_range(struct manager *manager, const char *name, const char *value)
{
        struct state_host host;
        uint32_t min, max;

        (void)name;
        if (sscanf(value, "%u %u", &min, &max) == 2)
                put_range(manager, min, max, &host);
}

struct restoring {
        struct manager *manager;
        char load[SETTING_VALUE_MAX];
        bool is_forgotten; /* what belongs to no vGPU */
};

static int compare_load(const char *name, uint32_t instance_id, const char *value, void *userdata)
{
        struct restoring *restoring = userdata;

        if (instance_id == 0 && strcmp(name, STORE_DRIVER_LOAD) == 0)
                restoring->is_forgotten = strcmp(value, restoring->load) != 0;
        return 0;
}

static int restore(const char *name, uint32_t instance_id, const char *value, void *userdata)
{
        static const struct {
                const char *prefix;
                void (*restore)(struct manager *manager, const char *name, const char *value);
        } kinds[] = {
                { "scheduler/", restore_scheduler },
                { "mixes_sizes/", restore_heterogeneous },
                { "capability/", restore_capability },
                { "version_range", restore_range },
        };
        const struct restoring *restoring = userdata;
        struct manager *manager = restoring->manager;
        struct instance *instance;

        if (instance_id) {
                list_for_each(instance, &manager->instances, link)
                        if (instance->id == instance_id && strcmp(name, "encoder_capacity") == 0)
                                (void)sscanf(value, "%u", &instance->encoder_capacity);
                        else if (instance->id == instance_id && strcmp(name, "share") == 0)
                                (void)sscanf(value, "%u", &instance->share);
                        else if (instance->id == instance_id) {
                                residency_record_restore(&instance->residency, name, value);
                                container_record_restore(instance, name, value);
                        }
                return 0;
        }
        for (size_t i = 0; !restoring->is_forgotten && i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
                        kinds[i].restore(manager, name + strlen(kinds[i].prefix), value);
        return 0;
}

int settings_restore(struct manager *manager)
{
        struct restoring restoring = { .manager = manager };
        int r;

        driver_path_get_load(restoring.load, sizeof(restoring.load), manager->simulation);
        r = store_each_setting(manager->store, compare_load, &restoring);
        if (r < 0)
                return r;
        if (restoring.is_forgotten)
                log_event(LOG_LEVEL_NOTICE, "the driver was loaded anew",
                          "forgotten=\"schedulers, sizes, capabilities, versions\"");
        return store_each_setting(manager->store, restore, &restoring);
}
