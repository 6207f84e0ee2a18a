/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METER_SAMPLER_H
#define MANAGER_METER_SAMPLER_H

/*
 * The sampler (wire/sampler.h) of real devices, as a child of the manager: it runs while there
 * are vGPUs. One that dies is started again after a while.
 */

struct manager;
struct meter_sampler;

int meter_sampler_new(struct meter_sampler **ret_sampler, struct manager *manager);
struct meter_sampler *meter_sampler_free(struct meter_sampler *sampler);

/* meter_sampler_tick() - there are vGPUs: start it, if it does not run. meter_sampler_stop() - there are none. */
void meter_sampler_tick(struct meter_sampler *sampler);
void meter_sampler_stop(struct meter_sampler *sampler);

#endif
