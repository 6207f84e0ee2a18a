/* SPDX-License-Identifier: Apache-2.0 */
/* Heterogeneous mode: may vGPUs of different sizes share a device or a GPU instance? */
#include <errno.h>
#include <stdio.h>

#include "catalog/catalog.h"
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/setting/settings-internal.h"
#include "manager/setting/settings.h"
#include "state/state-page.h"

static state_switch get_heterogeneous(const struct manager *manager,
                                      const struct settings_site *site)
{
        struct state_gpu_instance gpu_instance;
        struct state_device device;

        if (site->gpu_instance == STATE_NONE)
                return state_read_device(settings_get_state_page(manager), site->device->index,
                                         &device)
                               ? device.is_heterogeneous
                               : STATE_NONE;
        return state_read_gpu_instance(settings_get_state_page(manager),
                                       site->site - state_site_of_gpu_instance(0), &gpu_instance)
                       ? gpu_instance.is_heterogeneous
                       : STATE_NONE;
}

void settings_put_heterogeneous(struct manager *manager, const struct settings_site *site,
                                bool is_heterogeneous)
{
        uint32_t slot = site->site - state_site_of_gpu_instance(0);
        struct state_page *state_page = settings_get_state_page(manager);
        struct state_gpu_instance gpu_instance;
        struct state_device device;

        if (site->gpu_instance == STATE_NONE) {
                if (!state_read_device(state_page, site->device->index, &device))
                        return;
                device.is_heterogeneous = is_heterogeneous;
                state_write_device(state_page, site->device->index, &device);
        } else if (state_read_gpu_instance(state_page, slot, &gpu_instance)) {
                gpu_instance.is_heterogeneous = is_heterogeneous;
                state_write_gpu_instance(state_page, slot, &gpu_instance);
        }
}

int settings_set_heterogeneous(struct manager *manager, const struct settings_site *site,
                               bool is_heterogeneous, struct failure *failure)
{
        char name[SETTING_NAME_MAX], where[SETTING_NAME_MAX / 2];
        int r = settings_check_mig(manager, site, failure);

        if (r < 0)
                return r;
        if (get_heterogeneous(manager, site) == STATE_NONE)
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "",
                                   "vGPUs of different sizes cannot share this device");
        if (settings_is_active(manager, site))
                return failure_set(failure, -EBUSY, "InUse", "remove or suspend its vGPUs first",
                                   "this cannot be set while vGPUs are active");
        settings_format_site(where, site);
        snprintf(name, sizeof(name), "mixes_sizes/%s", where);
        r = settings_remember(manager, name, 0, is_heterogeneous ? "1" : "0", failure);
        if (r == 0) {
                settings_put_heterogeneous(manager, site, is_heterogeneous);
                observer_tell_changed(&manager->observers);
        }
        return r;
}

static int refuse_size(const struct device *device, struct failure *failure)
{
        return failure_set(failure, -EOPNOTSUPP, "Unsupported",
                           "ask for the same size, or turn its heterogeneous mode on",
                           "device %u hosts vGPUs of one size only, and has vGPUs of another size",
                           device->index);
}

int settings_check_size(const struct device *device, uint64_t bytes, const struct instance *except,
                        struct failure *failure)
{
        struct manager *manager = device->manager;
        const struct settings_site site = { .device = (struct device *)(uintptr_t)device,
                                            .gpu_instance = STATE_NONE,
                                            .site = state_site_of_device(device->index) };
        const struct instance *instance;
        struct state_instance record;
        const struct state_page *state_page;
        uint32_t type;

        if (!manager->publisher || get_heterogeneous(manager, &site) != 0)
                return 0;
        state_page = settings_get_state_page(manager);
        type = catalog_type_of_quota(state_page, site.site, bytes);
        list_for_each(instance, &manager->instances, link)
                if (instance != except && instance_is_on(instance, device) &&
                    instance->state != STATE_SUSPENDED &&
                    catalog_type_of_quota(state_page, site.site, instance->frame_buffer) != type)
                        return refuse_size(device, failure);
        for (uint32_t slot = 0; slot < state_end_instance(state_page); slot++)
                if (state_read_instance(state_page, slot, &record) && record.is_virtual &&
                    settings_is_on_site(&record, &site) && record.type_id != type)
                        return refuse_size(device, failure);
        return 0;
}
