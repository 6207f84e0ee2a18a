/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/log.h"
#include "manager/fence/fence-internal.h"
#include "manager/model/manager.h"

#define HINT "docs/security.md says what --kernel-limits needs"

static int join(char path[CONTROL_GROUP_MAX], const char *folder, const char *name)
{
        return snprintf(path, CONTROL_GROUP_MAX, "%s/%s", folder, name) < CONTROL_GROUP_MAX
                       ? 0
                       : -ENAMETOOLONG;
}

static bool is_group(const char *path)
{
        char file[CONTROL_GROUP_MAX + 16];

        (void)snprintf(file, sizeof(file), "%s/cgroup.procs", path);
        return access(file, F_OK) == 0;
}

static int off(struct fence *fence, const char *why)
{
        struct manager *manager = fence->manager;

        (void)snprintf(manager->kernel_limits, sizeof(manager->kernel_limits), "off: %s", why);
        log_event(LOG_LEVEL_WARNING, "the kernel limits no memory of vGPUs", "reason=\"%s\"", why);
        return 0;
}

/* Several managers may be on one machine: each has a folder, named like its run directory. */
static int name_folder(struct fence *fence)
{
        char name[CONTROL_GROUP_MAX];

        if (snprintf(name, sizeof(name), "openvgpu%s", fence->manager->options->run_directory) >=
            (int)sizeof(name))
                return -ENAMETOOLONG;
        for (char *slash = strchr(name, '/'); slash; slash = strchr(slash, '/'))
                *slash = '-';
        return join(fence->folder, fence->parent, name);
}

int fence_group_make_folder(struct fence *fence, struct failure *failure)
{
        const char *wanted = fence->manager->options->kernel_limits;
        char why[96];

        if (strcmp(wanted, "on") != 0) {
                if (strlen(wanted) >= sizeof(fence->parent) || !is_group(wanted))
                        return failure_set(failure, -EINVAL, "InvalidParameter", HINT,
                                           "%.200s is no control group of the second version",
                                           wanted);
                strcpy(fence->parent, wanted);
        } else if (!control_group_find(fence->parent, 0) || !is_group(fence->parent)) {
                return off(fence, "this kernel shows no control groups of the second version");
        }
        if (name_folder(fence) < 0)
                return off(fence, "the name of the control group is too long");
        if (mkdir(fence->folder, 0755) < 0 && errno != EEXIST) {
                (void)snprintf(why, sizeof(why), "no control group can be made: %s",
                               strerror(errno));
                return off(fence, why);
        }
        return 1;
}

/* Programs that went around the gate, or that one of the vGPU has left behind. */
static void empty(const struct fence *fence, const char *path)
{
        char file[CONTROL_GROUP_MAX + 16], line[32];
        FILE *list;

        (void)snprintf(file, sizeof(file), "%s/cgroup.procs", path);
        list = fopen(file, "re");
        while (list && fgets(line, sizeof(line), list))
                (void)control_group_move(fence->parent, (pid_t)strtol(line, NULL, 10));
        if (list)
                fclose(list);
}

void fence_group_remove(const struct fence *fence, const char *path)
{
        char file[CONTROL_GROUP_MAX + 16];

        empty(fence, path);
        /* In a real group the file goes with it, and cannot be removed alone. */
        (void)snprintf(file, sizeof(file), "%s/cgroup.procs", path);
        (void)unlink(file);
        if (rmdir(path) < 0 && errno != ENOENT)
                log_event(LOG_LEVEL_WARNING, "a control group cannot be removed",
                          "path=%s error=\"%s\"", path, strerror(errno));
}
