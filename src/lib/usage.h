/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_USAGE_H
#define LIB_USAGE_H

/* Shared by the ledger's usage and the accounts of processes. */

#include <openvgpu/usage.h>

#include "lib/result.h"

/*
 * usage_collect() - make @call again and again, each time with the offset of what there is, until
 * the answer has no "more"
 * @parameters:  without the offset
 * @record:      of a struct that is one list
 * @ret_list:    pointer to a pointer to such a struct, for result_free()
 */
int usage_collect(struct vgpu_client *client, const struct call *call, json_t *parameters,
                  const struct record *record, void *ret_list);

#endif
