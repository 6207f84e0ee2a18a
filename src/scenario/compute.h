/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_COMPUTE_H
#define SCENARIO_COMPUTE_H

/* Compute instances of a scenario's GPU instances. */

#include "scenario/parts.h"

/* compute_parse() - a field_read_fn: one more of a struct scenario_gpu_instance. */
int compute_parse(struct reader *reader, const json_t *value, void *gpu_instance);

/* compute_check() - profiles that there are, room, ids that are used once. Fills in the records. */
int compute_check(struct scenario_gpu_instance *gpu_instance, const struct state_profile *profile,
                  struct reader *reader, const char *place);

#endif
