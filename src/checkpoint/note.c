/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/note.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "base/process-stat.h"

#define NOTE_NAME_MAX 48

DEFINE_CLEANUP(DIR *, closedir);

/* The PID namespace in which our numbers mean something. 0: nobody knows. */
static unsigned int get_namespace(void)
{
        struct stat status;

        return stat("/proc/self/ns/pid", &status) == 0 ? (unsigned int)status.st_ino : 0;
}

static int write_name(char *name, int pid)
{
        struct process_stat stat;

        if (process_stat_read(&stat, pid) < 0)
                return -ESRCH;
        snprintf(name, NOTE_NAME_MAX, "%d-%" PRIu64 "-%u", pid, stat.start, get_namespace());
        return 0;
}

static int find_folder(char *folder, bool can_make)
{
        char run[PATHS_MAX];
        struct stat status;

        if (paths_run(run) < 0 || paths_join(folder, run, "checkpoint") < 0)
                return -ENOENT;
        if (can_make) {
                (void)mkdir(run, 0755);
                (void)mkdir(folder, 0700);
        }
        if (lstat(folder, &status) < 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
            (status.st_mode & 022))
                return -ENOENT;
        return 0;
}

int note_path(char *path, int pid, bool can_make)
{
        char folder[PATHS_MAX], name[NOTE_NAME_MAX];

        if (find_folder(folder, can_make) < 0 || write_name(name, pid) < 0)
                return -ENOENT;
        return paths_join(path, folder, name);
}

/* Has the process ended that the note @name is on? Of another namespace, we cannot see that. */
static bool is_over(const char *name)
{
        unsigned int namespace, ours = get_namespace();
        char now[NOTE_NAME_MAX];
        int pid;

        if (sscanf(name, "%d-%*u-%u", &pid, &namespace) != 2 || pid <= 0 || ours == 0 ||
            namespace != ours)
                return false;
        return write_name(now, pid) < 0 || strcmp(name, now) != 0;
}

void note_sweep(void)
{
        CLEANUP(closedirp) DIR *directory = NULL;
        const struct dirent *entry;
        char folder[PATHS_MAX];

        if (find_folder(folder, false) == 0)
                directory = opendir(folder);
        while (directory && (entry = readdir(directory)))
                if (is_over(entry->d_name))
                        (void)unlinkat(dirfd(directory), entry->d_name, 0);
}
