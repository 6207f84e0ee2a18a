/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PROCESS_STAT_H
#define BASE_PROCESS_STAT_H

#include <stdint.h>
#include <sys/types.h>

struct process_stat {
        char state; /* 'R', 'S', 'T' stopped by a signal, 't' by a tracer, 'Z', ... */
        uint64_t
                start; /* clock ticks after the machine's; with the number it names a process for ever */
};

/* process_stat_read() - of a process or of a thread, by its number. Errors: -ESRCH. */
int process_stat_read(struct process_stat *ret_stat, pid_t id);

#endif
