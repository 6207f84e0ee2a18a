/* SPDX-License-Identifier: Apache-2.0 */
/* What is set, and where: a device or a GPU instance of one. */
#include <errno.h>
#include <stdio.h>

#include "daemon/driver-path.h"
#include "daemon/log.h"
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/setting/settings-internal.h"
#include "manager/setting/settings.h"
#include "state/state-page.h"

struct state_page *settings_get_state_page(const struct manager *manager)
{
        return manager->state_page;
}

static uint32_t find_gpu_instance(const struct state_page *state_page, uint32_t device, uint32_t id)
{
        struct state_gpu_instance record;

        for (uint32_t slot = 0; slot < STATE_GPU_INSTANCES_MAX; slot++)
                if (state_read_gpu_instance(state_page, slot, &record) && record.device == device &&
                    record.id == id)
                        return slot;
        return STATE_NONE;
}

int settings_find_site(struct manager *manager, struct device *device, uint32_t gpu_instance,
                       struct settings_site *ret_site, struct failure *failure)
{
        uint32_t slot = STATE_NONE;

        if (gpu_instance != STATE_NONE) {
                slot = find_gpu_instance(settings_get_state_page(manager), device->index,
                                         gpu_instance);
                if (slot == STATE_NONE)
                        return failure_parameter(failure, "gpu_instance", "",
                                                 "device %u has no GPU instance %u", device->index,
                                                 gpu_instance);
        }
        *ret_site = (struct settings_site){
                .device = device,
                .gpu_instance = gpu_instance,
                .site = slot == STATE_NONE ? state_site_of_device(device->index)
                                           : state_site_of_gpu_instance(slot),
        };
        return 0;
}

bool settings_is_on_site(const struct state_instance *record, const struct settings_site *site)
{
        return record->state != STATE_SUSPENDED && record->device == site->device->index &&
               (site->gpu_instance == STATE_NONE || record->gpu_instance == site->gpu_instance);
}

/* Live ones are on the state page a moment late; those of a scenario are nowhere else. */
bool settings_is_active(const struct manager *manager, const struct settings_site *site)
{
        const struct state_page *state_page = settings_get_state_page(manager);
        const struct instance *instance;
        struct state_instance record;

        list_for_each(instance, &manager->instances, link)
                if (instance_is_on(instance, site->device) && instance->state != STATE_SUSPENDED &&
                    site->gpu_instance == STATE_NONE)
                        return true;
        for (uint32_t slot = 0; slot < state_end_instance(state_page); slot++)
                if (state_read_instance(state_page, slot, &record) && record.is_virtual &&
                    settings_is_on_site(&record, site))
                        return true;
        return false;
}

/* What is cut into GPU instances is set there, not at the device. */
int settings_check_mig(const struct manager *manager, const struct settings_site *site,
                       struct failure *failure)
{
        struct state_device record;

        if (site->gpu_instance == STATE_NONE &&
            state_read_device(settings_get_state_page(manager), site->device->index, &record) &&
            record.mig == 1)
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "name a GPU instance",
                                   "device %u is in MIG mode", site->device->index);
        return 0;
}

void settings_format_site(char *text, const struct settings_site *site)
{
        int n = snprintf(text, SETTING_NAME_MAX / 2, "%s", site->device->uuid);

        if (site->gpu_instance != STATE_NONE)
                snprintf(text + n, (size_t)(SETTING_NAME_MAX / 2 - n), "/%u", site->gpu_instance);
}

static void log_setting(const struct manager *manager, const char *name, uint32_t id,
                        const char *value)
{
        const struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (id && instance->id == id) {
                        log_event_of(instance->owner, LOG_LEVEL_NOTICE, "set", "vgpu=%s %s=\"%s\"",
                                     instance->name, name, value);
                        return;
                }
        log_event(LOG_LEVEL_NOTICE, "set", "%s=\"%s\"", name, value);
}

int settings_remember(struct manager *manager, const char *name, uint32_t instance,
                      const char *value, struct failure *failure)
{
        char load[SETTING_VALUE_MAX];
        int r;

        driver_path_get_load(load, sizeof(load), manager->simulation);
        r = instance ? store_put_setting(manager->store, name, instance, value)
                     : store_put_driver_setting(manager->store, load, name, value);
        if (r < 0)
                return failure_from_errno(failure, r, "remembering a setting");
        log_setting(manager, name, instance, value);
        return 0;
}
