/* SPDX-License-Identifier: Apache-2.0 */
/* What a device can still promise: shares that add up, and a policy that its vGPUs know. */
#include <errno.h>

#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/schedule/schedule-internal.h"
#include "manager/schedule/schedule.h"

/* A share goes with its vGPU: where one is on its way to, it is promised already. */
static uint32_t sum_shares(const struct device *device, const struct instance *except)
{
        const struct instance *instance;
        uint32_t sum = 0;

        list_for_each(instance, &device->manager->instances, link)
                if (instance != except &&
                    (instance_is_on(instance, device) || instance_is_bound_for(instance, device)))
                        sum += instance->share;
        return sum;
}

/* One of several devices, of which @device is one; NULL: none. */
static const struct instance *find_several(const struct device *device)
{
        const struct instance *instance;

        list_for_each(instance, &device->manager->instances, link)
                if (instance->n_parts > 1 && instance_is_on(instance, device))
                        return instance;
        return NULL;
}

int schedule_check_no_several(const struct device *device, struct failure *failure)
{
        const struct instance *several = find_several(device);

        if (!several)
                return 0;
        return failure_set(failure, -EOPNOTSUPP, "Unsupported",
                           "give the vGPUs shares instead (vgpu share), or remove that vGPU first",
                           "device %u has a part of vGPU %s, which has several devices: the policy "
                           "there is best effort",
                           device->index, several->name);
}

int schedule_check_several(const struct device *device, struct failure *failure)
{
        struct schedule *schedule = device->schedule;
        bool has_policy = false;

        if (schedule) {
                pthread_mutex_lock(&schedule->lock);
                has_policy = schedule->scheduler.settings.policy != SCHEDULER_BEST_EFFORT;
                pthread_mutex_unlock(&schedule->lock);
        }
        if (!has_policy)
                return 0;
        return failure_set(failure, -EOPNOTSUPP, "Unsupported",
                           "choose other devices (vgpu scheduler show), or best effort there (vgpu "
                           "scheduler set), which knows shares as well",
                           "the policy of device %u is not best effort, the only one for vGPUs of "
                           "several devices",
                           device->index);
}

static uint32_t get_left(uint32_t sum)
{
        return sum < 100 ? 100 - sum : 0;
}

int schedule_check_share(const struct device *device, const struct instance *instance,
                         uint32_t share, struct failure *failure)
{
        uint32_t sum = sum_shares(device, instance);

        if (share > 100)
                return failure_parameter(failure, "share", "0 means no share",
                                         "a share is a percentage of the device: 1 to 100, not %u",
                                         share);
        if (sum + share <= 100 || share == 0 || (instance && share <= instance->share))
                return 0; /* less is right even where there is too much */
        return failure_set(failure, -ENOSPC, "NoRoom", "vgpu scheduler show lists the shares",
                           "the shares of device %u would add up to %u %%: %u %% are left",
                           device->index, sum + share, get_left(sum));
}

int schedule_check_move(const struct instance *instance, const struct device *target,
                        struct failure *failure)
{
        uint32_t sum = sum_shares(target, instance);

        if (instance_is_on(instance, target) || instance->share == 0 ||
            sum + instance->share <= 100)
                return 0;
        return failure_set(
                failure, -ENOSPC, "NoRoom",
                "choose another device, or have root make a share smaller (vgpu share)",
                "device %u has %u %% of its time left to promise, and vGPU %s has a share "
                "of %u %%",
                target->index, get_left(sum), instance->name, instance->share);
}
