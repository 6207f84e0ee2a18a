/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_LIMIT_H
#define SIM_LIMIT_H

/*
 * Memory limits of control groups, as NVIDIA's driver has them from R615 on: what the processes of a group
 * hold of a device stays within the limit, whatever library they ask. A limit ends with its group.
 *
 * A process that cannot see its group from where it is (a container with a namespace for them) has no
 * limit here: there is nobody below the simulated driver who could see it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sim/host-view.h"

/*
 * sim_limit_set() - on each device of the host in @directory, @bytes for @group; UINT64_MAX: no limit
 * Errors: -EPROTO (no host), -ENAMETOOLONG, -ENOSPC (there are too many).
 */
int sim_limit_set(const char *directory, const char *group, uint64_t bytes);

/* The driver's part, with the lock of the holdings. */

/* limit_count() - how many limits there were ever */
uint32_t limit_count(const struct host *host);

/* limit_has_room() - may this process, which has @ours of @device, take @size more? @others: what the others have of it. */
bool limit_has_room(const struct host_view *view, const struct host_slots_copy *others,
                    uint64_t ours, int device, uint64_t size);

/* limit_of_us() - number of the limit that we are under, from 1 on; 0: none. */
uint32_t limit_of_us(const struct host *host);

#endif
