/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/methods/methods-mig.h"

#include <errno.h>

#include "manager/model/device.h"
#include "manager/model/manager.h"
#include "manager/publish/virtual-mig.h"
#include "manager/publish/virtual.h"

static uint32_t get_number(const struct control_pending *pending, const char *name)
{
        return control_call_number(&pending->call, name, STATE_NONE);
}

static int find_device(const struct control_pending *pending, uint32_t *ret_index,
                       struct failure *failure)
{
        const struct device *device =
                device_find(pending->manager, control_call_text(&pending->call, "device"), failure);

        if (!device)
                return -ENODEV;
        *ret_index = device->index;
        return 0;
}

static int reply_id(struct control_pending *pending, int r, uint32_t id)
{
        if (r == 0)
                control_reply(pending, json_pack("{si}", "id", (int)id));
        return r;
}

static int create_gpu_instance(struct control_pending *pending, struct failure *failure)
{
        uint32_t device, id = 0;
        int r = find_device(pending, &device, failure);

        if (r == 0)
                r = virtual_create_gpu_instance(pending->manager->stage, device,
                                                get_number(pending, "profile"),
                                                get_number(pending, "start"), &id, failure);
        if (r == 0)
                virtual_play(pending->manager->stage); /* its vGPUs */
        return reply_id(pending, r, id);
}

static int destroy_gpu_instance(struct control_pending *pending, struct failure *failure)
{
        uint32_t device, id = get_number(pending, "gpu_instance");
        int r = find_device(pending, &device, failure);

        if (r == 0)
                r = virtual_destroy_gpu_instance(pending->manager->stage, device, id, failure);
        return reply_id(pending, r, id);
}

static int create_compute_instance(struct control_pending *pending, struct failure *failure)
{
        uint32_t device, id = 0;
        int r = find_device(pending, &device, failure);

        if (r == 0)
                r = virtual_create_compute_instance(
                        pending->manager->stage, device, get_number(pending, "gpu_instance"),
                        get_number(pending, "profile"), get_number(pending, "start"), &id, failure);
        return reply_id(pending, r, id);
}

static int destroy_compute_instance(struct control_pending *pending, struct failure *failure)
{
        uint32_t device, id = get_number(pending, "compute_instance");
        int r = find_device(pending, &device, failure);

        if (r == 0)
                r = virtual_destroy_compute_instance(pending->manager->stage, device,
                                                     get_number(pending, "gpu_instance"), id,
                                                     failure);
        return reply_id(pending, r, id);
}

static const struct control_parameter create_parameters[] = { { "device", CONTROL_TEXT, true },
                                                              { "profile", CONTROL_NUMBER, true },
                                                              { "start", CONTROL_NUMBER, false },
                                                              { 0 } };
static const struct control_parameter destroy_parameters[] = {
        { "device", CONTROL_TEXT, true },
        { "gpu_instance", CONTROL_NUMBER, true },
        { 0 },
};
static const struct control_parameter create_compute_parameters[] = {
        { "device", CONTROL_TEXT, true },
        { "gpu_instance", CONTROL_NUMBER, true },
        { "profile", CONTROL_NUMBER, true },
        { "start", CONTROL_NUMBER, false },
        { 0 },
};
static const struct control_parameter destroy_compute_parameters[] = {
        { "device", CONTROL_TEXT, true },
        { "gpu_instance", CONTROL_NUMBER, true },
        { "compute_instance", CONTROL_NUMBER, true },
        { 0 },
};

const struct control_method methods_mig[] = {
        { "CreateGpuInstance", CONTROL_OPERATOR, create_gpu_instance, create_parameters },
        { "DestroyGpuInstance", CONTROL_OPERATOR, destroy_gpu_instance, destroy_parameters },
        { "CreateComputeInstance", CONTROL_OPERATOR, create_compute_instance,
          create_compute_parameters },
        { "DestroyComputeInstance", CONTROL_OPERATOR, destroy_compute_instance,
          destroy_compute_parameters },
};

const size_t n_methods_mig = sizeof(methods_mig) / sizeof(methods_mig[0]);
