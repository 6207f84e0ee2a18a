/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/process-tree.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* What the kernel does to end a process takes longer for one with much memory, but not this long. */
#define END_MS 10000

static void dir_closep(DIR **dir)
{
        if (*dir)
                closedir(*dir);
}

static void file_closep(FILE **file)
{
        if (*file)
                fclose(*file);
}

static int add(struct process_tree *tree, pid_t pid)
{
        if (tree->n == PROCESS_TREE_MAX)
                return -E2BIG;
        tree->pids[tree->n++] = pid;
        return 0;
}

/* The children of one thread. */
static int add_children_of(struct process_tree *tree, pid_t pid, const char *thread)
{
        CLEANUP(file_closep) FILE *file = NULL;
        char path[320];
        int child, r = 0;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, thread);
        file = fopen(path, "re");
        while (file && r == 0 && fscanf(file, "%d", &child) == 1)
                r = add(tree, child);
        return r;
}

static int add_children(struct process_tree *tree, pid_t pid)
{
        CLEANUP(dir_closep) DIR *dir = NULL;
        struct dirent *entry;
        char path[64];
        int r = 0;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        dir = opendir(path);
        while (dir && r == 0 && (entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        r = add_children_of(tree, pid, entry->d_name);
        return r;
}

static pid_t get_tracer(pid_t pid, const char *thread)
{
        CLEANUP(file_closep) FILE *file = NULL;
        char path[320], line[128];
        int tracer = 0;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, thread);
        file = fopen(path, "re");
        while (file && fgets(line, sizeof(line), file))
                if (sscanf(line, "TracerPid: %d", &tracer) == 1)
                        break;
        return tracer;
}

static pid_t find_tracer_of(pid_t pid)
{
        CLEANUP(dir_closep) DIR *dir = NULL;
        struct dirent *entry;
        char path[64];
        pid_t tracer = 0;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        dir = opendir(path);
        while (dir && tracer == 0 && (entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        tracer = get_tracer(pid, entry->d_name);
        return tracer;
}

pid_t process_tree_find_tracer(const struct process_tree *tree, pid_t *ret_pid)
{
        pid_t tracer = 0;

        for (size_t i = 0; i < tree->n && tracer == 0; i++) {
                tracer = find_tracer_of(tree->pids[i]);
                *ret_pid = tree->pids[i];
        }
        return tracer;
}

int process_tree_read(struct process_tree *ret_tree, pid_t root)
{
        int r = 0;

        ret_tree->n = 0;
        if (root <= 0 || (kill(root, 0) < 0 && errno == ESRCH))
                return -ESRCH;
        r = add(ret_tree, root);
        for (size_t i = 0; i < ret_tree->n && r == 0; i++)
                r = add_children(ret_tree, ret_tree->pids[i]);
        return r;
}

bool process_tree_has(const struct process_tree *tree, pid_t pid)
{
        for (size_t i = 0; i < tree->n; i++)
                if (tree->pids[i] == pid)
                        return true;
        return false;
}

void process_tree_signal(const struct process_tree *tree, int number)
{
        for (size_t i = tree->n; i-- > 0;)
                (void)kill(tree->pids[i], number);
}

void process_tree_kill(const struct process_tree *tree)
{
        for (size_t i = tree->n; i-- > 0;) {
                struct pollfd process = { .events = POLLIN };

                process.fd = (int)syscall(SYS_pidfd_open, tree->pids[i], 0);
                (void)kill(tree->pids[i], SIGKILL);
                if (process.fd < 0)
                        continue;
                while (poll(&process, 1, END_MS) < 0 && errno == EINTR)
                        ;
                fd_close(process.fd);
        }
}
