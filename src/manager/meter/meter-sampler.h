/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METER_SAMPLER_H
#define MANAGER_METER_SAMPLER_H

/*
 * The sampler (wire/sampler.h) of real devices, as a child of the manager: it runs while processes
 * are in vGPUs. One that dies is started again after a while.
 */

#include <stddef.h>

struct manager;
struct meter_sampler;

int meter_sampler_new(struct meter_sampler **ret_sampler, struct manager *manager);
struct meter_sampler *meter_sampler_free(struct meter_sampler *sampler);

/* meter_sampler_tick() - @n_guests processes are metered: start or end it. */
void meter_sampler_tick(struct meter_sampler *sampler, size_t n_guests);

#endif
