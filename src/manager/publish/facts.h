/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_FACTS_H
#define MANAGER_FACTS_H

/*
 * What NVML is told of live devices, vGPUs and guest processes: from the manager's own structs to
 * the records of the state page. Numbers that change by themselves (memory, utilization) included.
 */

#include "state/state-page.h"

struct device;
struct guest;
struct guest_shown;
struct instance;
struct instance_part;
struct manager;
struct session;

/* The version of what our vGPUs move. */
#define FACTS_VGPU_VERSION (1u << 16)

void facts_of_host(struct state_host *ret_record, const struct manager *manager);

/* What stays as it is while the manager lives. */
void facts_of_device(struct state_device *ret_record, const struct device *device);
void facts_of_device_detail(struct state_device_detail *ret_record, const struct device *device,
                            const struct state_device *record);
void facts_of_scheduler(struct state_scheduler *ret_record);

/* facts_of_usage() - what its engines did in the last period. */
void facts_of_usage(struct state_device *record, const struct device *device);
void facts_of_instance(struct state_instance *ret_record, const struct instance *instance,
                       const struct instance_part *part);
void facts_of_vm(struct state_vm *ret_record, const struct instance *instance,
                 const struct instance_part *part);
void facts_of_guest(struct state_process *ret_record, const struct guest *guest,
                    const struct instance_part *part);

/* facts_of_use() - of that, what changes while it runs. */
void facts_of_use(struct guest_shown *ret_shown, const struct guest *guest,
                  const struct instance_part *part);

/* facts_get_uses() - bits of enum state_use, likewise. */
uint64_t facts_get_uses(const struct instance *instance);

/* Of a session of @guest; the one that it is. */
void facts_of_encoder_session(struct state_encoder_session *ret_record, const struct guest *guest,
                              const struct session *session);
void facts_of_capture_session(struct state_capture_session *ret_record, const struct guest *guest,
                              const struct session *session);

#endif
