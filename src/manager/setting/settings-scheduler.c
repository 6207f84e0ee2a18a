/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/schedule/schedule.h"
#include "manager/setting/settings-internal.h"
#include "manager/setting/settings.h"
#include "scheduler/settings.h"
#include "state/state-page.h"

/* Schedulers. */

static bool has_policy(const struct state_scheduler_limits *limits, uint32_t policy)
{
        for (size_t i = 0; i < sizeof(limits->policy) / sizeof(limits->policy[0]); i++)
                if (policy != 0 && limits->policy[i] == policy)
                        return true;
        return false;
}

static int check_range(const char *name, uint32_t value, uint32_t min, uint32_t max,
                       struct failure *failure)
{
        if (value == 0 || (value >= min && value <= max))
                return 0;
        return failure_parameter(failure, name, "0 is the default", "%s must be %u to %u, not %u",
                                 name, min, max, value);
}

static int check_policy(const struct settings_scheduler *wanted,
                        const struct state_scheduler_limits *limits, struct failure *failure)
{
        if (wanted->policy < STATE_POLICY_BEST_EFFORT || wanted->policy > STATE_POLICY_FIXED_SHARE)
                return failure_parameter(failure, "policy", "",
                                         "policy must be 1 (best effort), 2 (equal share) or 3 "
                                         "(fixed share), not %u",
                                         wanted->policy);
        if (wanted->policy == STATE_POLICY_BEST_EFFORT)
                return 0;
        if (wanted->engine != STATE_ENGINE_GRAPHICS || !has_policy(limits, wanted->policy))
                return failure_set(failure, -EOPNOTSUPP, "Unsupported",
                                   "use best effort (1), or the graphics engine (1)",
                                   "the engine %u of this device does not have the policy %u",
                                   wanted->engine, wanted->policy);
        if (wanted->arr == STATE_ARR_ENABLED && !limits->can_arr)
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "set arr to false",
                                   "this device has no adaptive round robin");
        return 0;
}

static int check_scheduler(const struct settings_scheduler *wanted,
                           const struct state_scheduler_limits *limits, struct failure *failure)
{
        int r;

        if (wanted->engine < STATE_ENGINE_GRAPHICS || wanted->engine > STATE_ENGINES)
                return failure_parameter(failure, "engine", "",
                                         "engine must be 1 (graphics), 2 or 3 (encoders), not %u",
                                         wanted->engine);
        r = check_policy(wanted, limits, failure);
        if (r < 0 || (wanted->policy == STATE_POLICY_BEST_EFFORT && !wanted->is_ours))
                return r;
        if (wanted->arr == STATE_ARR_DISABLED || wanted->policy == STATE_POLICY_BEST_EFFORT)
                return check_range("time_slice", wanted->time_slice, limits->time_slice_min,
                                   limits->time_slice_max, failure);
        r = check_range("averaging_factor", wanted->averaging_factor, limits->averaging_min,
                        limits->averaging_max, failure);
        if (r == 0)
                r = check_range("frequency", wanted->frequency, limits->frequency_min,
                                limits->frequency_max, failure);
        return r;
}

void settings_fill_scheduler(struct state_scheduler *ret_scheduler,
                             const struct settings_scheduler *wanted, bool can_arr)
{
        uint32_t frequency = wanted->frequency ? wanted->frequency : SCHEDULER_FREQUENCY_FEW;
        bool has_arr =
                wanted->arr == STATE_ARR_ENABLED || (wanted->arr == STATE_ARR_DEFAULT && can_arr);

        *ret_scheduler = (struct state_scheduler){
                .policy = wanted->policy,
                .arr = STATE_ARR_DISABLED,
                .changed_ns = clock_now(CLOCK_REALTIME),
        };
        if (wanted->policy == STATE_POLICY_BEST_EFFORT) { /* parameters mean nothing to NVIDIA's */
                ret_scheduler->time_slice = wanted->is_ours ? wanted->time_slice : 0;
                return;
        }
        if (!has_arr) {
                ret_scheduler->time_slice =
                        wanted->time_slice ? wanted->time_slice : SCHEDULER_TIME_SLICE_FEW;
                return;
        }
        ret_scheduler->arr = STATE_ARR_ENABLED;
        ret_scheduler->averaging_factor =
                wanted->averaging_factor ? wanted->averaging_factor : SCHEDULER_AVERAGING_DEFAULT;
        ret_scheduler->frequency = frequency;
        ret_scheduler->time_slice = 1000000000u / frequency;
}

void settings_put_scheduler(struct manager *manager, const struct settings_site *site,
                            uint32_t engine, const struct state_scheduler *scheduler)
{
        state_write_scheduler(settings_get_state_page(manager),
                              state_slot_of_scheduler(site->site, engine), scheduler);
        if (engine == STATE_ENGINE_GRAPHICS && site->gpu_instance == STATE_NONE)
                schedule_configure(site->device, scheduler);
}

static const struct instance *find_running(const struct manager *manager,
                                           const struct device *device)
{
        const struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (instance_is_on(instance, device) && instance->state != STATE_SUSPENDED &&
                    guests_count(instance) > 0)
                        return instance;
        return NULL;
}

static int check_inactive(const struct manager *manager, const struct settings_site *site,
                          const struct settings_scheduler *wanted, struct failure *failure)
{
        const struct instance *running = find_running(manager, site->device);

        if (wanted->policy != STATE_POLICY_BEST_EFFORT &&
            schedule_check_no_several(site->device, failure) < 0)
                return -EOPNOTSUPP;
        if (wanted->is_ours && running)
                return failure_set(failure, -EBUSY, "InUse",
                                   "end or suspend what runs in its vGPUs first",
                                   "the policy of device %u cannot be changed while processes run "
                                   "in its vGPUs, as in %.63s",
                                   site->device->index, running->name);
        if (!wanted->is_ours && settings_is_active(manager, site)) /* NVML has no IN_USE here */
                return failure_set(failure, -EBUSY, "Unsupported",
                                   "remove or suspend its vGPUs first",
                                   "a scheduler cannot be set while vGPUs are active");
        return 0;
}

int settings_set_scheduler(struct manager *manager, const struct settings_site *site,
                           const struct settings_scheduler *wanted,
                           struct state_scheduler *ret_scheduler, struct failure *failure)
{
        char name[SETTING_NAME_MAX], value[SETTING_VALUE_MAX], where[SETTING_NAME_MAX / 2];
        struct state_device_detail detail;
        int r = settings_check_mig(manager, site, failure);

        if (r < 0)
                return r;
        if (!state_read_device_detail(settings_get_state_page(manager), site->device->index,
                                      &detail))
                return -EIO;
        r = check_scheduler(wanted, &detail.scheduler, failure);
        if (r < 0)
                return r;
        r = check_inactive(manager, site, wanted, failure);
        if (r < 0)
                return r;

        settings_fill_scheduler(ret_scheduler, wanted, detail.scheduler.can_arr);
        settings_format_site(where, site);
        snprintf(name, sizeof(name), "scheduler/%u/%s", wanted->engine, where);
        snprintf(value, sizeof(value), "%u %u %u %u %u", ret_scheduler->policy, ret_scheduler->arr,
                 ret_scheduler->averaging_factor, ret_scheduler->frequency,
                 ret_scheduler->time_slice);
        r = settings_remember(manager, name, 0, value, failure);
        if (r == 0)
                settings_put_scheduler(manager, site, wanted->engine, ret_scheduler);
        return r;
}
