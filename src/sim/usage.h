/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_USAGE_H
#define SIM_USAGE_H

/*
 * What the processes of a simulated host have used of its devices, for whoever looks from outside
 * (a manager): the host's own count of when its engines ran, exact to the slice of about a
 * millisecond that runs just now.
 *
 * One thread at a time. A process says itself how busy it was: its numbers are bounded, not true.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct sim_usage;

/* sim_usage_open() - open the host in @directory. Errors: -EPROTO (no host). */
int sim_usage_open(struct sim_usage **ret_usage, const char *directory);
struct sim_usage *sim_usage_close(struct sim_usage *usage);
DEFINE_CLEANUP(struct sim_usage *, sim_usage_close);

#define SIM_USAGE_DEVICES 32

/* Of one device; nanoseconds since the process called cuInit(). */
struct sim_busy {
        uint64_t kernel_ns;
        uint64_t memory_ns;     /* reading and writing device memory */
        uint64_t context_bytes; /* what its contexts there take now */
};

/* sim_usage_list() - the processes that have called cuInit() and live, @room at most. Returns how many. */
size_t sim_usage_list(const struct sim_usage *usage, pid_t *ret_pids, size_t room);

/*
 * sim_usage_read() - of process @pid on each of the host's devices; false: it has not called cuInit(), or
 * has died and been forgotten. A process that has died can be read until another one begins.
 */
bool sim_usage_read(const struct sim_usage *usage, pid_t pid,
                    struct sim_busy ret_busy[SIM_USAGE_DEVICES]);

#endif
