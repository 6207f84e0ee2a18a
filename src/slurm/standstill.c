/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/standstill.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/freezer.h"
#include "base/process-stat.h"

static void directory_closep(DIR **directory)
{
        if (*directory)
                (void)closedir(*directory);
}

static void file_closep(FILE **file)
{
        if (*file)
                (void)fclose(*file);
}

/* Processes. */

static void send(int pidfd, int number)
{
        (void)syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

static bool is_of_user(pid_t pid, uid_t user)
{
        struct stat status;
        char path[32];

        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
        return stat(path, &status) == 0 && status.st_uid == user;
}

static bool has_room(struct standstill *standstill)
{
        size_t n = standstill->n_allocated ? standstill->n_allocated * 2 : 16;
        bool *is_free;
        int *pidfds;

        if (standstill->n < standstill->n_allocated)
                return true;
        pidfds = realloc(standstill->pidfds, n * sizeof(*pidfds));
        if (pidfds)
                standstill->pidfds = pidfds;
        is_free = realloc(standstill->is_free, n * sizeof(*is_free));
        if (is_free)
                standstill->is_free = is_free;
        if (pidfds && is_free)
                standstill->n_allocated = n;
        return pidfds && is_free;
}

/* One process is noted once for each time that it is continued or stopped: only its last note counts, and all agree. */
static void send_and_note(struct standstill *standstill, pid_t pid, int number)
{
        CLEANUP(fd_closep) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

        if (pidfd < 0 || !is_of_user(pid, standstill->user) || !has_room(standstill))
                return;
        send(pidfd, number);
        standstill->is_free[standstill->n] = number == SIGCONT;
        standstill->pidfds[standstill->n++] = TAKE_FD(pidfd);
}

/* Control groups. */

static bool is_of_job(const char *folder, uint32_t job)
{
        char part[32];

        snprintf(part, sizeof(part), "/job_%u/", job);
        return strstr(folder, part);
}

static void stop_all_of(struct standstill *standstill, const char *folder, pid_t but)
{
        char path[PATH_MAX + 32];
        CLEANUP(file_closep) FILE *file = NULL;
        int pid;

        snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
        file = fopen(path, "re");
        while (file && fscanf(file, "%d", &pid) == 1)
                if (pid != but && pid != standstill->sentry)
                        send_and_note(standstill, pid, SIGSTOP);
}

/* How far below the group of a step those of its tasks are, at most. */
#define DEPTH_MAX 4

static void stop_all_below(struct standstill *standstill, const char *folder, pid_t but, int depth)
{
        CLEANUP(directory_closep) DIR *directory = opendir(folder);
        const struct dirent *entry;
        char path[PATH_MAX + 32];

        stop_all_of(standstill, folder, but);
        while (directory && depth < DEPTH_MAX && (entry = readdir(directory)))
                if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
                    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) < PATH_MAX)
                        stop_all_below(standstill, path, but, depth + 1);
}

/* All but @pid are to be stopped before any of them runs. */
static void thaw(struct standstill *standstill, const struct freezer *freezer, const char *folder,
                 pid_t pid)
{
        char path[PATH_MAX + 32];
        CLEANUP(file_closep) FILE *file = NULL;

        stop_all_below(standstill, folder, pid, 0);
        snprintf(path, sizeof(path), "%s/%s", folder, freezer->control);
        file = fopen(path, "we");
        if (file)
                (void)fputs(freezer->thaw, file);
        send_and_note(standstill, pid, SIGCONT); /* from now on it is stopped at the end */
}

/* What others see. */

static bool is_stopped(pid_t pid)
{
        struct process_stat stat;

        return process_stat_read(&stat, pid) == 0 && stat.state == 'T';
}

bool standstill_has_begun(pid_t pid)
{
        char folder[PATH_MAX];

        return is_stopped(pid) || freezer_find(pid, folder);
}

void standstill_lift(struct standstill *standstill, pid_t pid)
{
        char folder[PATH_MAX];
        const struct freezer *freezer = freezer_find(pid, folder);

        if (freezer && is_of_job(folder, standstill->job))
                thaw(standstill, freezer, folder, pid);
        else if (is_stopped(pid))
                send_and_note(standstill, pid, SIGCONT);
}

void standstill_restore(struct standstill *standstill)
{
        for (size_t i = 0; i < standstill->n; i++) {
                if (standstill->is_free[i])
                        send(standstill->pidfds[i], SIGSTOP);
                standstill->is_free[i] = false;
        }
}

void standstill_end(struct standstill *standstill)
{
        for (size_t i = 0; i < standstill->n; i++) {
                send(standstill->pidfds[i], SIGCONT);
                (void)close(standstill->pidfds[i]);
        }
        free(standstill->pidfds);
        free(standstill->is_free);
        standstill->pidfds = NULL;
        standstill->is_free = NULL;
        standstill->n = standstill->n_allocated = 0;
}
