/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds children through /proc/PID/task/TID/children, breadth first: the group's own array is the queue.
 * A process whose parent has died is not a child any more, and not below.
 */

#include "checkpoint/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"

DEFINE_CLEANUP(DIR *, closedir);

static bool has(const struct job *job, int pid)
{
        for (uint32_t i = 0; i < job->answer.n_processes; i++)
                if (job->answer.process[i].pid == pid)
                        return true;
        return false;
}

/* Helpers use CUDA, too, but are nobody's work: neither we nor that of another user of the library. */
static bool is_helper(int pid)
{
        char path[32], other[PATHS_MAX], own[PATHS_MAX];
        ssize_t n, n_own = readlink("/proc/self/exe", own, sizeof(own));

        snprintf(path, sizeof(path), "/proc/%d/exe", pid);
        n = readlink(path, other, sizeof(other));
        return n > 0 && n == n_own && memcmp(own, other, (size_t)n) == 0;
}

/* -1: none. */
static int get_parent(int pid)
{
        char path[32], line[128];
        int parent = -1;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        file = fopen(path, "re");
        if (!file)
                return -1;
        while (parent < 0 && fgets(line, sizeof(line), file))
                (void)sscanf(line, "PPid: %d", &parent);
        fclose(file);
        return parent;
}

/*
 * The numbers of both may have been given to others since they were read. But the parent lives still, and
 * so does who is held by the pidfd: what is read of them now is of them.
 */
static bool is_child(const struct job *job, int parent, int pid)
{
        return get_parent(pid) == job->answer.process[parent].pid && !job_is_dead(job, parent, 0);
}

static int add(struct job *job, int parent, int pid)
{
        CLEANUP(fd_closep) int pidfd = -1;

        if (has(job, pid) || is_helper(pid))
                return 0;
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0)
                return errno == ESRCH ? 0 : /* it has ended already */
                               job_fail(job, -1, VGPU_CHECKPOINT_ERROR_FAILED, "", CUDA_SUCCESS, "",
                                        "process %d cannot be watched: %s", pid,
                                        strerrordesc_np(errno));
        if (!is_child(job, parent, pid))
                return 0;
        return job_add(job, pid, TAKE_FD(pidfd)) < 0 ? -1 : 1;
}

static int add_children_of_thread(struct job *job, int parent, const char *tid)
{
        char path[64];
        FILE *file;
        int child, r = 0, n = 0;

        snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children",
                 job->answer.process[parent].pid, tid);
        file = fopen(path, "re");
        if (!file)
                return 0; /* it has ended */
        while (r >= 0 && fscanf(file, "%d", &child) == 1) {
                r = add(job, parent, child);
                n += r > 0;
        }
        fclose(file);
        return r < 0 ? -1 : n;
}

static int add_children_of(struct job *job, int parent)
{
        CLEANUP(closedirp) DIR *directory = NULL;
        const struct dirent *entry;
        char path[64];
        int n = 0, r;

        snprintf(path, sizeof(path), "/proc/%d/task", job->answer.process[parent].pid);
        directory = opendir(path);
        while (directory && (entry = readdir(directory))) {
                if (entry->d_name[0] == '.')
                        continue;
                r = add_children_of_thread(job, parent, entry->d_name);
                if (r < 0)
                        return -1;
                n += r;
        }
        return n;
}

int tree_add_children(struct job *job)
{
        int n = 0, r;

        for (uint32_t i = 0; i < job->answer.n_processes; i++) {
                r = add_children_of(job, (int)i);
                if (r < 0)
                        return -1;
                n += r;
        }
        return n;
}
