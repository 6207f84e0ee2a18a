/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

/* Facts about other processes, from /proc and the kernel. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* process_get_start_time() - get field 22 of /proc/PID/stat. Errors: -ESRCH, also for a zombie. */
int process_get_start_time(pid_t pid, uint64_t *ret_start_time);

/* process_get_user() - get the effective user, whose rights the process has. Errors: -ESRCH. */
int process_get_user(pid_t pid, uid_t *ret_user);

/* process_is_beside() - are both in one user and one PID namespace? False if one of them is gone. */
bool process_is_beside(pid_t pid, pid_t other);

/*
 * process_is_stopped() - has a signal or a debugger stopped all of its threads? A process that is gone is not stopped. Of one
 * with very many threads some are looked at.
 */
bool process_is_stopped(pid_t pid);

#define PROCESS_NAME_MAX 96

/* process_get_name() - get the name it was started by, without folders ("python3"); "?" if unknown. */
void process_get_name(pid_t pid, char name[PROCESS_NAME_MAX]);

/*
 * process_open() - open a pidfd of the process @pid that started at @start_time. A later process of the
 * same number is not mistaken for it. Errors: -ESRCH.
 */
int process_open(pid_t pid, uint64_t start_time, int *ret_pidfd);

#endif
