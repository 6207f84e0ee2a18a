/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

/* Facts about other processes, from /proc and the kernel. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* process_get_start_time() - get field 22 of /proc/PID/stat. Errors: -ESRCH, also for a zombie. */
int process_get_start_time(pid_t pid, uint64_t *ret_start_time);

/*
 * process_get_program() - get a mark of the program image that the process runs. exec() gives a process another image, and so
 * another mark: the kernel lays out code, heap and stack anew. The mark is never 0. Errors: -ESRCH, and -EACCES where the
 * kernel does not tell us the layout.
 */
int process_get_program(pid_t pid, uint64_t *ret_mark);

/* process_get_user() - get the effective user, whose rights the process has. Errors: -ESRCH. */
int process_get_user(pid_t pid, uid_t *ret_user);

/* process_is_beside() - are both in one user and one PID namespace? False if one of them is gone. */
bool process_is_beside(pid_t pid, pid_t other);

/* What keeps a process from running. */
enum process_halt {
        PROCESS_RUNS = 0, /* nothing; also one that is gone */
        PROCESS_STOPPED,  /* a signal or a debugger has stopped all of its threads */
        PROCESS_FROZEN,   /* so has a control group: base/freezer.h */
};

/* process_get_halt() - of one with very many threads some are looked at. */
enum process_halt process_get_halt(pid_t pid);

/* process_is_stopped() - does anything keep it from running? */
static inline bool process_is_stopped(pid_t pid)
{
        return process_get_halt(pid) != PROCESS_RUNS;
}

/* process_describe_halt() - "is stopped", "is frozen (its container is paused)", ... */
const char *process_describe_halt(enum process_halt halt);

/* process_advise_halt() - what to do about it: "continue it (kill -CONT), or end it, and try again", ... */
const char *process_advise_halt(enum process_halt halt);

#define PROCESS_NAME_MAX 96

/*
 * process_get_name() - get the name it was started by, without folders ("python3"), in UTF-8; "?" if unknown, and in the place
 * of what is no character.
 */
void process_get_name(pid_t pid, char name[PROCESS_NAME_MAX]);

/*
 * process_open() - open a pidfd of the process @pid that started at @start_time. A later process of the
 * same number is not mistaken for it. Errors: -ESRCH.
 */
int process_open(pid_t pid, uint64_t start_time, int *ret_pidfd);

#endif
