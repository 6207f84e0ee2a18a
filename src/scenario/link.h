/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_LINK_H
#define SCENARIO_LINK_H

/* NVLinks of a scenario's device. */

#include "scenario/parts.h"

/* link_parse() - a field_read_fn, into a struct scenario_links. */
int link_parse(struct reader *reader, const json_t *value, void *links);

/* link_parse_fabric() - a field_read_fn, into a struct scenario_fabric. */
int link_parse_fabric(struct reader *reader, const json_t *value, void *fabric);

/* link_check() - the links that the board has; devices that are there and lead back. */
int link_check(struct scenario *scenario, size_t index, struct reader *reader);

/* link_describe() - what stays: how many there are, and where they lead. */
void link_describe(const struct scenario_device *device, size_t index,
                   struct state_links *ret_links);

void link_deinit(struct scenario_links *links);

#endif
