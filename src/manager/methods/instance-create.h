/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_INSTANCE_CREATE_H
#define MANAGER_INSTANCE_CREATE_H

/* A new vGPU, or a new name for one, that somebody asks for: may there be one? */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/failure.h"
#include "manager/model/instance.h"

struct container_space;
struct device;
struct manager;

struct instance_request {
        const char *name; /* NULL: make one up */
        const char *uuid; /* NULL: make one up */
        uint64_t frame_buffer;
        struct device *device[INSTANCE_PARTS_MAX]; /* NULL: where most is left */
        size_t n_devices;                          /* at least 1 */
        bool is_transient;
        uid_t owner;
        pid_t creator;
        uint32_t share;         /* percent of the device's time; 0: none */
        const char *class;      /* NULL: batch */
        const char *pool_group; /* pool-group.h; NULL: its owner's */
        uint64_t idle_after_ms; /* residency.h; 0: it never leaves by itself */
        bool idle_keeps_context;
        const struct container_space *space; /* of the container that it is for; NULL: none */
};

/* instance_check_new() - may there be such a vGPU, as things are? Errors as of instance_create(). */
int instance_check_new(struct manager *manager, const struct instance_request *wanted,
                       struct failure *failure);

/* instance_create() - check, remember and add. The caller borrows it. */
int instance_create(struct manager *manager, const struct instance_request *request,
                    struct instance **ret_instance, struct failure *failure);

/* instance_may_have_name() - is @name one, and free? */
bool instance_may_have_name(struct manager *manager, const char *name);

/* instance_check_size() - can a vGPU of @device have it at all? Errors: InvalidParameter, NoRoom. */
int instance_check_size(const struct device *device, uint64_t frame_buffer,
                        struct failure *failure);

/*
 * instance_rename() - it is called @name from now on, also in the ledger. Its programs do not notice: they
 * know its UUID. Errors: InvalidParameter, VgpuExists, Busy.
 */
int instance_rename(struct instance *instance, const char *name, struct failure *failure);

#endif
