/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_MONITOR_H
#define MANAGER_MONITOR_H

/*
 * What monitoring reads on the state page (state/monitor.h): the same as clients get who ask for it, but
 * nobody asks. Called in each round of the publisher; a record that is as it was is not written.
 */

#include <stdint.h>

struct device;
struct guest;
struct instance;
struct manager;
struct state_page;

/* monitor_write_manager() - nothing before it serves clients; what its operations took and moved too */
void monitor_write_manager(struct state_page *state_page, const struct manager *manager);
void monitor_write_device(struct state_page *state_page, const struct device *device);

/* monitor_write_vgpu() - once its first part has a slot */
void monitor_write_vgpu(struct state_page *state_page, const struct instance *instance);

/* monitor_write_process() - once it and its vGPU have slots */
void monitor_write_process(struct state_page *state_page, const struct guest *guest);

#endif
