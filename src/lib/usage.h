/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_USAGE_H
#define LIB_USAGE_H

/* The ledger's usage and the accounts of processes share this. */

#include <openvgpu/usage.h>

#include "lib/result.h"

/*
 * usage_collect() - repeat @call, each time with the number of rows so far as the offset, until the answer
 * has no "more"
 * @parameters:  do not have the offset
 * @record:      describes a struct that has one list
 * @ret_list:    points to a pointer that gets such a struct, for result_free()
 */
int usage_collect(struct vgpu_client *client, const struct call *call, json_t *parameters,
                  const struct record *record, void *ret_list);

#endif
