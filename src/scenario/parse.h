/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_PARSE_H
#define SCENARIO_PARSE_H

/* The parts of a scenario, each a field_read_fn. For src/scenario only. */

#include "scenario/parts.h"

int parse_device(struct reader *reader, const json_t *value, void *scenario);
int parse_vgpu(struct reader *reader, const json_t *value, void *scenario);
int parse_processes(struct reader *reader, const json_t *value, void *vgpu);
int parse_encoder_session(struct reader *reader, const json_t *value, void *vgpu);
int parse_capture_session(struct reader *reader, const json_t *value, void *vgpu);
int parse_account(struct reader *reader, const json_t *value, void *vgpu);
int parse_utilization(struct reader *reader, const json_t *value, void *utilization);

/* parse_expiry() - "2026-11-23T05:02:12Z", "permanent", "not available", ... */
int parse_expiry(struct reader *reader, const json_t *value, void *expiry);

/*
 * scenario_check() - what the parts mean together: types and GPU instances that there are, room,
 * placements, names that are used once. Fills in what follows from others.
 */
int scenario_check(struct scenario *scenario, struct reader *reader);

#endif
