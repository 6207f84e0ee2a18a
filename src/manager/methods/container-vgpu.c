/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/methods/container-vgpu.h"

#include <unistd.h>

#include "manager/guests/container-order.h"
#include "manager/methods/instance-create.h"
#include "manager/model/account.h"
#include "manager/model/manager.h"
#include "manager/model/policy.h"

/* That of the container, where it can be one. Whoever starts containers as root chose it, but not for us. */
static const char *choose_name(struct manager *manager, const char *name)
{
        struct failure failure = { 0 };

        return name && policy_check_name(ACCOUNT_CONTAINERS, name, &failure) == 0 &&
                               instance_may_have_name(manager, name)
                       ? name
                       : NULL;
}

static int make(struct manager *manager, const struct container_request *wanted,
                struct instance **ret_instance, struct failure *failure)
{
        const struct instance_request request = { .name = choose_name(manager, wanted->name),
                                                  .n_devices = 1,
                                                  .frame_buffer = wanted->frame_buffer,
                                                  .is_transient = true,
                                                  .owner = geteuid(),
                                                  .creator = wanted->first,
                                                  .share = wanted->share,
                                                  .space = &wanted->space };

        return instance_create(manager, &request, ret_instance, failure);
}

void container_vgpu_set_up(struct manager *manager)
{
        static const struct container_maker maker = { .make = make };

        manager->container_maker = &maker;
}
