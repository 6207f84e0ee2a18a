/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_PROMISE_H
#define MANAGER_PROMISE_H

/*
 * What devices have promised to their vGPUs: quotas.
 *
 * A device promises no more than it has, and what is off it does not count. Unless it is overcommitted (vgpud
 * --overcommit): then its vGPUs take turns (residency.h), and each may have to leave at any time. So a vGPU
 * gets a place there only if pool and disk could take all of them at once: backing.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"

struct device;
struct instance;
struct place;

bool promise_is_overcommitted(const struct device *device);

/* promise_is_any_overcommitted() - is any of the devices of @instance? */
bool promise_is_any_overcommitted(const struct instance *instance);

/* promise_is_left_out() - does it promise nothing? See vgpud --leave-out. */
bool promise_is_left_out(const struct device *device);

/*
 * promise_get_sum() - the sum of the quotas of the vGPUs that are on @device, without @except's; of an
 * overcommitted one also of those that are off: they come back by themselves.
 */
uint64_t promise_get_sum(const struct device *device, const struct instance *except);

/* promise_get_swapped() - what the vGPUs of @device that are off it have in the pool. */
uint64_t promise_get_swapped(const struct device *device);

/*
 * promise_check_place() - can a vGPU be there? Unsupported: it would have turns on some of the devices, and keep its
 * place on the others.
 */
int promise_check_place(const struct place *place, struct failure *failure);

#endif
