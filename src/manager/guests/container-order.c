/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/guests/container-order.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "container/container.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "wire/gate.h"

static int parse(struct container_request *request, const struct gate_order *order,
                 struct failure *failure)
{
        char *end;

        if (!order->frame_buffer[0])
                return failure_parameter(failure, "OPENVGPU_FB",
                                         "start it with --env OPENVGPU_FB=20G",
                                         "nobody has said how large the container's vGPU shall be");
        if (size_parse(&request->frame_buffer, order->frame_buffer) < 0)
                return failure_parameter(failure, "OPENVGPU_FB", "sizes have a unit: 40G, 512M",
                                         "OPENVGPU_FB is no size");
        if (!order->share[0])
                return 0;
        request->share = (uint32_t)strtoul(order->share, &end, 10);
        if (order->share[0] < '0' || order->share[0] > '9' || *end || request->share < 1 ||
            request->share > 100)
                return failure_parameter(failure, "OPENVGPU_SHARE", "1 to 100",
                                         "OPENVGPU_SHARE is no percentage");
        return 0;
}

static int find_container(struct container_request *request, pid_t pid, struct failure *failure)
{
        int r = container_space_find(&request->space, &request->first, pid);

        if (r == -ENOENT)
                return failure_set(failure, -EPERM, "PermissionDenied",
                                   "start it without --pid=host, or create a vGPU and give it that",
                                   "a container that has the processes of the host gets no vGPU "
                                   "of its own");
        return r < 0 ? failure_set(failure, r, "Failed", "", "the container cannot be found: %s",
                                   strerror(-r))
                     : 0;
}

/*
 * Once its last process has ended, another container can have the same namespace. Processes that have ended are in the
 * list as long as an operation or an image needs them.
 */
static bool is_there(const struct instance *instance)
{
        const struct guest *guest;

        if (!instance->is_creator_gone)
                return true;
        list_for_each(guest, &instance->guests, link)
                if (!guest_is_dead(guest))
                        return true;
        return false;
}

static struct instance *find(struct manager *manager, const struct container_space *space)
{
        struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (container_space_is_equal(&instance->space, space) && is_there(instance))
                        return instance;
        return NULL;
}

int container_order_answer(struct manager *manager, pid_t pid, const struct gate_order *order,
                           struct gate_made *ret_made, struct failure *failure)
{
        struct container_request request = { 0 };
        struct instance *instance;
        struct container container;
        int r = find_container(&request, pid, failure);

        if (r < 0)
                return r;
        instance = find(manager, &request.space);
        if (!instance) {
                r = parse(&request, order, failure);
                if (r == 0 && container_find(&container, pid) && container.is_known)
                        request.name = container.name;
                if (r == 0)
                        r = manager->container_maker->make(manager, &request, &instance, failure);
        }
        if (r < 0)
                return r;
        *ret_made =
                (struct gate_made){ .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_MADE } };
        snprintf(ret_made->vgpu, sizeof(ret_made->vgpu), "%s", instance->uuid);
        return 0;
}

int container_order_check(const struct instance *instance, pid_t pid)
{
        struct container_space space;
        pid_t first;

        return container_space_find(&space, &first, pid) == 0 && space.inode != 0 &&
                               container_space_is_equal(&space, &instance->space) &&
                               is_there(instance)
                       ? 0
                       : -EPERM;
}
