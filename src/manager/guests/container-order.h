/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CONTAINER_ORDER_H
#define MANAGER_CONTAINER_ORDER_H

/*
 * vGPUs that containers have made for them (wire/gate.h, ORDER). A container is a process namespace: whoever is in
 * it belongs to the same container, whatever it says, and no program can leave it. A container has one such vGPU,
 * which goes with the namespace's first process. Where the namespace is ours (--pid=host) none is made.
 */

#include <stdint.h>
#include <sys/types.h>

#include "container/space.h"
#include "daemon/failure.h"

struct gate_made;
struct gate_order;
struct instance;
struct manager;

struct container_request {
        uint64_t frame_buffer;
        uint32_t share;   /* percent; 0: none */
        const char *name; /* of the container; NULL: not known */
        struct container_space space;
        pid_t first; /* it lives as long as this process */
};

/* Makes vGPUs; the manager has one. */
struct container_maker {
        int (*make)(struct manager *manager, const struct container_request *request,
                    struct instance **ret_instance, struct failure *failure);
};

/* container_order_answer() - the container of @pid has ordered. Errors: PermissionDenied, and those of creating. */
int container_order_answer(struct manager *manager, pid_t pid, const struct gate_order *order,
                           struct gate_made *ret_made, struct failure *failure);

/* container_order_check() - is @instance the vGPU of the container of @pid? Errors: -EPERM. */
int container_order_check(const struct instance *instance, pid_t pid);

#endif
