/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_WHEREABOUTS_H
#define CHECKPOINT_WHEREABOUTS_H

/* Says whether threads of a process are inside the CUDA driver. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WHEREABOUTS_RANGES_MAX 32

struct whereabouts {
        pid_t pid;
        int memory; /* /proc/PID/mem */
        size_t n_ranges;
        struct {
                uint64_t begin, end;
        } range[WHEREABOUTS_RANGES_MAX]; /* code of the driver */
};

#define WHEREABOUTS_NONE ((struct whereabouts){ .memory = -1 })

/* whereabouts_init() - find the driver in process @pid. Errors: -ESRCH, -EACCES. A second deinit() is harmless. */
int whereabouts_init(struct whereabouts *where, pid_t pid);
void whereabouts_deinit(struct whereabouts *where);

/* whereabouts_is_inside() - is this thread, which we stopped, inside the driver? If unsure: yes. */
bool whereabouts_is_inside(const struct whereabouts *where, pid_t thread);

/* whereabouts_is_asleep_inside() - does this thread sleep in a system call inside the driver? If unsure: no. */
bool whereabouts_is_asleep_inside(const struct whereabouts *where, pid_t thread);

/* whereabouts_has_driver() - has process @pid loaded the driver? */
bool whereabouts_has_driver(pid_t pid);

static inline void whereabouts_deinitp(struct whereabouts *where)
{
        whereabouts_deinit(where);
}

#endif
