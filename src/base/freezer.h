/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FREEZER_H
#define BASE_FREEZER_H

/*
 * The kernel's freezer: a control group stops all of its processes, of which no signal tells (`docker pause`, Slurm).
 * Unlike a process that a signal has stopped, a frozen one looks as if it slept.
 */

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct freezer {
        const char *control,
                *thaw; /* the file of a group, and what thaws the group when it is written there */
};

/*
 * freezer_find() - find the control group that freezes @pid, its own or one above it, and put its folder into
 * @folder; NULL: the process is not frozen.
 */
const struct freezer *freezer_find(pid_t pid, char folder[PATH_MAX]);

/*
 * freezer_find_at() - the same of a process whose control groups the file @groups lists, as /proc/PID/cgroup does;
 * @first and @second: where the freezer of the first version and the groups of the second one are mounted.
 */
const struct freezer *freezer_find_at(const char *groups, const char *first, const char *second,
                                      char folder[PATH_MAX]);

#endif
