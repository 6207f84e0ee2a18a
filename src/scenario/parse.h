/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_PARSE_H
#define SCENARIO_PARSE_H

/* The parts of a scenario, each a field_read_fn. For src/scenario only. */

#include "scenario/scenario.h"

int parse_device(struct reader *reader, const json_t *value, void *scenario);
int parse_vgpu(struct reader *reader, const json_t *value, void *scenario);
int parse_processes(struct reader *reader, const json_t *value, void *vgpu);
int parse_encoder_session(struct reader *reader, const json_t *value, void *vgpu);
int parse_capture_session(struct reader *reader, const json_t *value, void *vgpu);
int parse_account(struct reader *reader, const json_t *value, void *vgpu);
int parse_utilization(struct reader *reader, const json_t *value, void *utilization);
int parse_scheduler(struct reader *reader, const json_t *value, struct scenario_scheduler **list,
                    size_t *n);
int parse_type(struct reader *reader, const json_t *value, void *device);
int parse_feature(struct reader *reader, const json_t *value, void *device);
int parse_sensors(struct reader *reader, const json_t *value, void *sensors);

/* parse_expiry() - "2026-11-23T05:02:12Z", "permanent", "not available", ... */
int parse_expiry(struct reader *reader, const json_t *value, void *expiry);

extern const struct choice parse_licence_states[], parse_policies[];

/*
 * scenario_check() - what the parts mean together: types and GPU instances that there are, room,
 * placements, names that are used once. Fills in what follows from others.
 */
int scenario_check(struct scenario *scenario, struct reader *reader);

#endif
