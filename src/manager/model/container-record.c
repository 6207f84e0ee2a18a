/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/container-record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "manager/model/instance.h"
#include "manager/model/manager.h"

/* A setting of an instance. It means nothing once the machine has started anew: neither does the vGPU. */
#define CONTAINER "container"

int container_record_set(struct instance *instance, const struct container_space *space)
{
        char value[64];

        snprintf(value, sizeof(value), "%" PRIu64 " %" PRIu64, space->device, space->inode);
        instance->space = *space;
        return store_put_setting(instance->manager->store, CONTAINER, instance->id, value);
}

void container_record_restore(struct instance *instance, const char *name, const char *value)
{
        struct container_space space;

        if (strcmp(name, CONTAINER) == 0 &&
            sscanf(value, "%" SCNu64 " %" SCNu64, &space.device, &space.inode) == 2)
                instance->space = space;
}
