/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

/* Facts about other processes, from /proc and the kernel. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* process_get_start_time() - field 22 of /proc/PID/stat. Errors: -ESRCH, also for a zombie. */
int process_get_start_time(pid_t pid, uint64_t *ret_start_time);

/* process_get_user() - whose rights it has, its effective user. Errors: -ESRCH. */
int process_get_user(pid_t pid, uid_t *ret_user);

/* process_is_stopped() - by a signal or a debugger; false also for one that is gone. */
bool process_is_stopped(pid_t pid);

#define PROCESS_NAME_MAX 96

/* process_get_name() - how it was called, without folders ("python3"); "?" when unknown. */
void process_get_name(pid_t pid, char name[PROCESS_NAME_MAX]);

/*
 * process_open() - a pidfd of the process @pid that started at @start_time. A number that was given
 * to another process since is not mistaken for it. Errors: -ESRCH.
 */
int process_open(pid_t pid, uint64_t start_time, int *ret_pidfd);

#endif
