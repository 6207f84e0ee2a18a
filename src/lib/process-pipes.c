/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/process-pipes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* More than so many ends of pipes are not looked at. */
#define ENDS_MAX 4096

struct end {
        unsigned long pipe;
        pid_t pid;
        int fd;
        bool is_read;
};

struct ends {
        struct end end[ENDS_MAX];
        size_t n;
};

static void dir_closep(DIR **dir)
{
        if (*dir)
                closedir(*dir);
}

/* The link's own mode says how it was opened. False: it is no pipe without a name. */
static bool read_end(struct end *ret_end, pid_t pid, const char *fd)
{
        char path[320], text[64];
        struct stat status;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, fd);
        n = readlink(path, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = '\0';
        *ret_end = (struct end){ .pid = pid, .fd = (int)strtol(fd, NULL, 10) };
        if (sscanf(text, "pipe:[%lu]", &ret_end->pipe) != 1 || lstat(path, &status) < 0)
                return false;
        ret_end->is_read = status.st_mode & S_IRUSR;
        return true;
}

static void add_ends(struct ends *ends, pid_t pid)
{
        CLEANUP(dir_closep) DIR *dir = NULL;
        struct dirent *entry;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
        dir = opendir(path);
        while (dir && ends->n < ENDS_MAX && (entry = readdir(dir)))
                if (entry->d_name[0] != '.' && read_end(&ends->end[ends->n], pid, entry->d_name))
                        ends->n++;
}

/* Who reads @pipe; NULL: none of @ends. */
static const struct end *find_reader(const struct ends *ends, unsigned long pipe)
{
        for (size_t i = 0; i < ends->n; i++)
                if (ends->end[i].pipe == pipe && ends->end[i].is_read)
                        return &ends->end[i];
        return NULL;
}

/* A pipe of @ours that @pid reads, and none of us. */
static bool find_cut_by(const struct ends *ours, struct ends *theirs, pid_t pid,
                        struct process_pipe *ret_pipe)
{
        theirs->n = 0;
        add_ends(theirs, pid);
        for (size_t i = 0; i < ours->n; i++) {
                const struct end *end = &ours->end[i];

                if (!end->is_read && find_reader(theirs, end->pipe) &&
                    !find_reader(ours, end->pipe)) {
                        *ret_pipe = (struct process_pipe){ end->pid, end->fd, pid };
                        return true;
                }
        }
        return false;
}

bool process_pipes_find_cut(const struct process_tree *tree, struct process_pipe *ret_pipe)
{
        CLEANUP(freep) struct ends *ours = calloc(1, sizeof(*ours));
        CLEANUP(freep) struct ends *theirs = calloc(1, sizeof(*theirs));
        CLEANUP(dir_closep) DIR *dir = opendir("/proc");
        struct dirent *entry;

        if (!ours || !theirs)
                return false;
        for (size_t i = 0; i < tree->n; i++)
                add_ends(ours, tree->pids[i]);
        while (dir && ours->n > 0 && (entry = readdir(dir))) {
                pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

                if (pid > 0 && !process_tree_has(tree, pid) &&
                    find_cut_by(ours, theirs, pid, ret_pipe))
                        return true;
        }
        return false;
}
