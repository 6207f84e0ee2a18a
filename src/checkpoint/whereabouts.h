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

/* whereabouts_init() - Errors: -ESRCH, -EACCES. whereabouts_deinit() - may be called twice. */
int whereabouts_init(struct whereabouts *where, pid_t pid);
void whereabouts_deinit(struct whereabouts *where);

/* whereabouts_is_inside() - of a thread that is stopped by us. When it can't be told: yes. */
bool whereabouts_is_inside(const struct whereabouts *where, pid_t thread);

/* whereabouts_is_asleep_inside() - of a thread that sleeps in a system call. If unsure: no. */
bool whereabouts_is_asleep_inside(const struct whereabouts *where, pid_t thread);

/* whereabouts_has_driver() - has process @pid loaded it? */
bool whereabouts_has_driver(pid_t pid);

static inline void whereabouts_deinitp(struct whereabouts *where)
{
        whereabouts_deinit(where);
}

#endif
