/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/methods/methods-setting.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/publish/virtual-limit.h"
#include "manager/publish/virtual.h"
#include "manager/setting/settings.h"

static uint32_t get_number(const struct control_pending *pending, const char *name,
                           uint32_t otherwise)
{
        return control_call_number(&pending->call, name, otherwise);
}

static struct device *find_device(const struct control_pending *pending, struct failure *failure)
{
        return device_find(pending->manager, control_call_text(&pending->call, "device"), failure);
}

static int find_site(const struct control_pending *pending, struct settings_site *ret_site,
                     struct failure *failure)
{
        struct device *device = find_device(pending, failure);

        if (!device)
                return -ENODEV;
        return settings_find_site(pending->manager, device,
                                  get_number(pending, "gpu_instance", STATE_NONE), ret_site,
                                  failure);
}

static uint32_t get_arr(const struct control_pending *pending)
{
        if (!control_call_has(&pending->call, "arr"))
                return STATE_ARR_DEFAULT;
        return control_call_bool(&pending->call, "arr") ? STATE_ARR_ENABLED : STATE_ARR_DISABLED;
}

static int set_scheduler_as(struct control_pending *pending, bool is_ours, struct failure *failure)
{
        const struct settings_scheduler wanted = {
                .engine = get_number(pending, "engine", STATE_ENGINE_GRAPHICS),
                .policy = get_number(pending, "policy", 0),
                .arr = get_arr(pending),
                .averaging_factor = get_number(pending, "averaging_factor", 0),
                .frequency = get_number(pending, "frequency", 0),
                .time_slice = get_number(pending, "time_slice", 0),
                .is_ours = is_ours,
        };
        struct state_scheduler scheduler;
        struct settings_site site;
        int r = find_site(pending, &site, failure);

        if (r == 0)
                r = settings_set_scheduler(pending->manager, &site, &wanted, &scheduler, failure);
        if (r < 0)
                return r;
        control_reply(pending, json_pack("{si, sb, si, si, sI}", "policy", (int)scheduler.policy,
                                         "arr", scheduler.arr == STATE_ARR_ENABLED,
                                         "averaging_factor", (int)scheduler.averaging_factor,
                                         "frequency", (int)scheduler.frequency, "time_slice",
                                         (json_int_t)scheduler.time_slice));
        return 0;
}

static int set_scheduler(struct control_pending *pending, struct failure *failure)
{
        return set_scheduler_as(pending, false, failure);
}

static int set_our_scheduler(struct control_pending *pending, struct failure *failure)
{
        return set_scheduler_as(pending, true, failure);
}

static int set_share(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance =
                instance_find(pending->manager, control_call_text(&pending->call, "name"), failure);
        uint32_t before;
        int r;

        if (!instance)
                return -ENOENT;
        before = instance->share;
        r = settings_set_share(instance, get_number(pending, "percent", 0), failure);
        if (r < 0)
                return r;
        if (instance->share != before)
                observer_tell_instance(&pending->manager->observers, instance, INSTANCE_SHARE_SET);
        control_reply(pending, json_pack("{si}", "percent", (int)instance->share));
        return 0;
}

static void reply_enabled(struct control_pending *pending, bool enabled)
{
        control_reply(pending, json_pack("{sb}", "enabled", enabled));
}

static int set_heterogeneous(struct control_pending *pending, struct failure *failure)
{
        bool enabled = control_call_bool(&pending->call, "enabled");
        struct settings_site site;
        int r = find_site(pending, &site, failure);

        if (r == 0)
                r = settings_set_heterogeneous(pending->manager, &site, enabled, failure);
        if (r < 0)
                return r;
        reply_enabled(pending, enabled);
        return 0;
}

static int set_version_range(struct control_pending *pending, struct failure *failure)
{
        struct state_host host = { 0 };
        int r = settings_set_version_range(pending->manager, get_number(pending, "min", 0),
                                           get_number(pending, "max", 0), &host, failure);

        if (r < 0)
                return r;
        control_reply(pending,
                      json_pack("{sI, sI, sI, sI}", "supported_min", (json_int_t)host.supported_min,
                                "supported_max", (json_int_t)host.supported_max, "current_min",
                                (json_int_t)host.current_min, "current_max",
                                (json_int_t)host.current_max));
        return 0;
}

/* The id of a vGPU is what NVML's clients have. */
static struct instance *find_by_id(struct manager *manager, uint32_t id)
{
        struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (instance_has_id(instance, id))
                        return instance;
        return NULL;
}

/* A live one, or the id of a scenario's. No name is a number: an id cannot be mistaken for one. */
static int find_vgpu(const struct control_pending *pending, struct instance **ret_instance,
                     uint32_t *ret_virtual, struct failure *failure)
{
        const char *name = control_call_text(&pending->call, "name");
        uint32_t id = 0;
        int at = 0;

        *ret_instance = NULL;
        *ret_virtual = virtual_find(pending->manager->stage, name);
        if (*ret_virtual)
                return 0;
        if (sscanf(name, "%u%n", &id, &at) == 1 && name[at] == '\0')
                *ret_instance = find_by_id(pending->manager, id);
        if (!*ret_instance)
                *ret_instance = instance_find(pending->manager, name, failure);
        return *ret_instance ? 0 : -ENOENT;
}

static int set_encoder_capacity(struct control_pending *pending, struct failure *failure)
{
        uint32_t percent = get_number(pending, "percent", 0), virtual_id;
        struct instance *instance;
        int r = find_vgpu(pending, &instance, &virtual_id, failure);

        if (r == 0)
                r = settings_check_percent(percent, failure);
        if (r < 0)
                return r;
        if (virtual_id)
                virtual_set_encoder_capacity(pending->manager->stage, virtual_id, percent);
        else
                r = settings_set_encoder_capacity(instance, percent, failure);
        if (r < 0)
                return r;
        control_reply(pending, json_pack("{si}", "percent", (int)percent));
        return 0;
}

static int clear_accounting(struct control_pending *pending, struct failure *failure)
{
        struct instance *instance;
        uint32_t virtual_id, cleared;
        int r = find_vgpu(pending, &instance, &virtual_id, failure);

        if (r == 0)
                r = settings_clear_accounting(pending->manager,
                                              virtual_id ? virtual_id : instance->id, &cleared,
                                              failure);
        if (r < 0)
                return r;
        control_reply(pending, json_pack("{si}", "cleared", (int)cleared));
        return 0;
}

static int set_capability(struct control_pending *pending, struct failure *failure)
{
        bool enabled = control_call_bool(&pending->call, "enabled");
        struct device *device = find_device(pending, failure);
        int r = device ? settings_set_capability(pending->manager, device,
                                                 get_number(pending, "capability", 0), enabled,
                                                 failure)
                       : -ENODEV;

        if (r < 0)
                return r;
        reply_enabled(pending, enabled);
        return 0;
}

static int set_virtualization_mode(struct control_pending *pending, struct failure *failure)
{
        uint32_t mode = get_number(pending, "mode", 0);

        if (!find_device(pending, failure))
                return -ENODEV;
        if (mode > STATE_VIRTUALIZATION_HOST_VSGA)
                return failure_parameter(failure, "mode", "", "mode must be 0 to 4, not %u", mode);
        if (mode != STATE_VIRTUALIZATION_HOST_VGPU)
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "end vgpud for that",
                                   "every device of vgpud hosts vGPUs");
        control_reply(pending, json_pack("{si}", "mode", (int)mode));
        return 0;
}

static int set_accounting_mode(struct control_pending *pending, struct failure *failure)
{
        if (!find_device(pending, failure))
                return -ENODEV;
        if (!control_call_bool(&pending->call, "enabled"))
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "",
                                   "on a host of vGPUs accounting is always on");
        reply_enabled(pending, true);
        return 0;
}

static int force_gsp_unload(struct control_pending *pending, struct failure *failure)
{
        if (!find_device(pending, failure))
                return -ENODEV;
        return failure_set(failure, -EOPNOTSUPP, "Unsupported", "",
                           "the firmware of a device is its driver's");
}

static int set_memory_limit(struct control_pending *pending, struct failure *failure)
{
        struct device *device = find_device(pending, failure);
        int r = device ? virtual_set_memory_limit(pending->manager->stage, device->index,
                                                  control_call_text(&pending->call, "path"),
                                                  control_call_size(&pending->call, "soft"),
                                                  control_call_size(&pending->call, "hard"),
                                                  failure)
                       : -ENODEV;

        if (r == 0)
                control_reply(pending, json_object());
        return r;
}

static const struct control_parameter scheduler_parameters[] = {
        { "device", CONTROL_TEXT, true },
        { "gpu_instance", CONTROL_NUMBER, false },
        { "engine", CONTROL_NUMBER, false },
        { "policy", CONTROL_NUMBER, true },
        { "arr", CONTROL_BOOL, false },
        { "averaging_factor", CONTROL_NUMBER, false },
        { "frequency", CONTROL_NUMBER, false },
        { "time_slice", CONTROL_NUMBER, false },
        { 0 },
};
static const struct control_parameter heterogeneous_parameters[] = {
        { "device", CONTROL_TEXT, true },
        { "gpu_instance", CONTROL_NUMBER, false },
        { "enabled", CONTROL_BOOL, true },
        { 0 },
};
static const struct control_parameter range_parameters[] = { { "min", CONTROL_NUMBER, true },
                                                             { "max", CONTROL_NUMBER, true },
                                                             { 0 } };
static const struct control_parameter encoder_parameters[] = { { "name", CONTROL_TEXT, true },
                                                               { "percent", CONTROL_NUMBER, true },
                                                               { 0 } };
static const struct control_parameter name_parameters[] = { { "name", CONTROL_TEXT, true }, { 0 } };
static const struct control_parameter capability_parameters[] = {
        { "device", CONTROL_TEXT, true },
        { "capability", CONTROL_NUMBER, true },
        { "enabled", CONTROL_BOOL, true },
        { 0 },
};
static const struct control_parameter mode_parameters[] = { { "device", CONTROL_TEXT, true },
                                                            { "mode", CONTROL_NUMBER, true },
                                                            { 0 } };
static const struct control_parameter switch_parameters[] = { { "device", CONTROL_TEXT, true },
                                                              { "enabled", CONTROL_BOOL, true },
                                                              { 0 } };
static const struct control_parameter device_parameters[] = { { "device", CONTROL_TEXT, true },
                                                              { 0 } };

static const struct control_parameter limit_parameters[] = { { "device", CONTROL_TEXT, true },
                                                             { "path", CONTROL_TEXT, true },
                                                             { "soft", CONTROL_SIZE, false },
                                                             { "hard", CONTROL_SIZE, false },
                                                             { 0 } };

const struct control_method methods_setting[] = {
        { "SetVgpuSchedulerState", CONTROL_OPERATOR, set_scheduler, scheduler_parameters },
        { "SetScheduler", CONTROL_OPERATOR, set_our_scheduler, scheduler_parameters },
        { "SetVgpuShare", CONTROL_STEWARD, set_share, encoder_parameters },
        { "SetVgpuHeterogeneousMode", CONTROL_OPERATOR, set_heterogeneous,
          heterogeneous_parameters },
        { "SetVgpuVersionRange", CONTROL_OPERATOR, set_version_range, range_parameters },
        { "SetVgpuEncoderCapacity", CONTROL_OPERATOR, set_encoder_capacity, encoder_parameters },
        { "ClearVgpuAccounting", CONTROL_OPERATOR, clear_accounting, name_parameters },
        { "SetVgpuCapability", CONTROL_OPERATOR, set_capability, capability_parameters },
        { "SetVirtualizationMode", CONTROL_OPERATOR, set_virtualization_mode, mode_parameters },
        { "SetAccountingMode", CONTROL_OPERATOR, set_accounting_mode, switch_parameters },
        { "ForceGspUnload", CONTROL_OPERATOR, force_gsp_unload, device_parameters },
        { "SetMemoryLimit", CONTROL_OPERATOR, set_memory_limit, limit_parameters },
};

const size_t n_methods_setting = sizeof(methods_setting) / sizeof(methods_setting[0]);
