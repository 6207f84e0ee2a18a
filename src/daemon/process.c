/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/freezer.h"
#include "base/process-stat.h"
#include "base/text.h"

static int read_file(pid_t pid, const char *file, char *text, size_t size)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[64];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -ESRCH;
        n = read(fd, text, size - 1);
        if (n <= 0)
                return -ESRCH;
        text[n] = '\0';
        return 0;
}

static bool has_same(pid_t pid, pid_t other, const char *file)
{
        struct stat one, two;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
        if (stat(path, &one) < 0)
                return false;
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)other, file);
        return stat(path, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

bool process_is_beside(pid_t pid, pid_t other)
{
        return has_same(pid, other, "ns/user") && has_same(pid, other, "ns/pid");
}

/* A signal stops them all: one that runs shows soon, and who has very many keeps nobody busy. */
#define THREADS_LOOKED_AT 64

static bool is_one_of(char state, const char *states)
{
        return state && strchr(states, state);
}

/* Its state, '\0' for one that is gone. */
static char get_thread_state(pid_t thread)
{
        struct process_stat stat;

        return process_stat_read(&stat, thread) == 0 ? stat.state : '\0';
}

static void dir_closep(DIR **dir)
{
        if (*dir)
                (void)closedir(*dir);
}

static DIR *open_threads(pid_t pid)
{
        char path[32];

        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        return opendir(path);
}

/* The first thread may have ended before the others. Most processes run, which shows in the first. */
static bool is_stopped(pid_t pid)
{
        char state = get_thread_state(pid);
        CLEANUP(dir_closep) DIR *threads = is_one_of(state, "TtZ") ? open_threads(pid) : NULL;
        const struct dirent *entry;
        size_t n = 0, n_stopped = 0;

        while (threads && n < THREADS_LOOKED_AT && (entry = readdir(threads))) {
                state = entry->d_name[0] == '.' ? '\0' : get_thread_state(atoi(entry->d_name));
                if (is_one_of(state, "Tt"))
                        n_stopped++;
                else if (state && !is_one_of(state, "ZXx"))
                        return false;
                n++;
        }
        return n_stopped > 0;
}

/* One that was killed while it was frozen may be a zombie in a frozen group. */
static bool is_frozen(pid_t pid)
{
        char folder[PATH_MAX];

        return freezer_find(pid, folder) && !is_one_of(get_thread_state(pid), "XxZ");
}

enum process_halt process_get_halt(pid_t pid)
{
        if (pid <= 0)
                return PROCESS_RUNS;
        if (is_stopped(pid))
                return PROCESS_STOPPED;
        return is_frozen(pid) ? PROCESS_FROZEN : PROCESS_RUNS;
}

static const struct {
        const char *what, *advice;
} halts[] = {
        [PROCESS_RUNS] = { "does not answer", "end it if it hangs, and try again" },
        [PROCESS_STOPPED] = { "is stopped", "continue it (kill -CONT), or end it, and try again" },
        [PROCESS_FROZEN] = { "is frozen (its container is paused)",
                             "thaw it (docker unpause, podman unpause), or end it, and try again" },
};

const char *process_describe_halt(enum process_halt halt)
{
        return halts[halt].what;
}

const char *process_advise_halt(enum process_halt halt)
{
        return halts[halt].advice;
}

int process_get_start_time(pid_t pid, uint64_t *ret_start_time)
{
        char text[1024], state;
        const char *after;

        if (pid <= 0 || read_file(pid, "stat", text, sizeof(text)) < 0)
                return -ESRCH;
        after = strrchr(text, ')'); /* the name before it may hold anything */
        if (!after || sscanf(after,
                             ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                             " %*s %*s %*s %" SCNu64,
                             &state, ret_start_time) != 2)
                return -ESRCH;
        return state == 'Z' || state == 'X' ? -ESRCH : 0;
}

/* @after is where field 2, the name, ends. Returns 0 if there are not so many. */
static uint64_t read_field(const char *after, int number)
{
        for (int field = 2; after && field < number; field++)
                after = strchr(after + 1, ' ');
        return after ? strtoull(after, NULL, 10) : 0;
}

/* Where the kernel put the code, the stack and the heap. 1 for the code: it does not tell us. */
enum { STAT_CODE = 26, STAT_STACK = 28, STAT_HEAP = 47 };

int process_get_program(pid_t pid, uint64_t *ret_mark)
{
        static const int fields[] = { STAT_CODE, STAT_STACK, STAT_HEAP };
        uint64_t mark = 14695981039346656037u; /* FNV-1a */
        char text[1024];
        const char *after;

        if (pid <= 0 || read_file(pid, "stat", text, sizeof(text)) < 0)
                return -ESRCH;
        after = strrchr(text, ')');
        if (!after)
                return -ESRCH;
        if (read_field(after, STAT_CODE) <= 1 || read_field(after, STAT_STACK) == 0)
                return -EACCES; /* or it ends, or is about to begin */
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
                mark = (mark ^ read_field(after, fields[i])) * 1099511628211u;
        *ret_mark = mark ? mark : 1;
        return 0;
}

int process_get_user(pid_t pid, uid_t *ret_user)
{
        char text[4096];
        const char *line;

        if (pid <= 0 || read_file(pid, "status", text, sizeof(text)) < 0)
                return -ESRCH;
        line = strstr(text, "\nUid:");
        return line && sscanf(line, "\nUid: %*u %u", ret_user) == 1 ? 0 : -ESRCH;
}

void process_get_name(pid_t pid, char name[PROCESS_NAME_MAX])
{
        char text[PATH_MAX];
        const char *base;

        if (read_file(pid, "cmdline", text, sizeof(text)) < 0 &&
            read_file(pid, "comm", text, sizeof(text)) < 0) {
                strcpy(name, "?");
                return;
        }
        text[strcspn(text, "\n")] = '\0';
        base = strrchr(text, '/');
        snprintf(name, PROCESS_NAME_MAX, "%.*s", PROCESS_NAME_MAX - 1, base ? base + 1 : text);
        text_mend(name);
}

int process_open(pid_t pid, uint64_t start_time, int *ret_pidfd)
{
        CLEANUP(fd_closep) int pidfd = -1;
        uint64_t now;
        int r;

        if (pid <= 0)
                return -ESRCH;
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (pidfd < 0)
                return -errno;
        r = process_get_start_time(pid, &now); /* of the one that the pidfd holds */
        if (r < 0 || now != start_time)
                return -ESRCH;
        *ret_pidfd = TAKE_FD(pidfd);
        return 0;
}
