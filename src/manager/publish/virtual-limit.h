/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_VIRTUAL_LIMIT_H
#define MANAGER_VIRTUAL_LIMIT_H

#include "daemon/failure.h"
#include "manager/publish/virtual.h"

/*
 * virtual_set_memory_limit() - of the control group at @path on a scenario's device; bytes, @hard 0: none.
 * Neither of them takes the limit away. It stands on the state page, and nobody is held to it. Unsupported: no
 * scenario; InvalidParameter; NoRoom: there are too many.
 */
int virtual_set_memory_limit(struct virtual_stage *stage, uint32_t device, const char *path,
                             uint64_t soft, uint64_t hard, struct failure *failure);

#endif
