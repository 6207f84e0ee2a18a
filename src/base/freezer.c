/* SPDX-License-Identifier: Apache-2.0 */
#include "base/freezer.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/control-group.h"

/*
 * A group above may freeze the process, and that a group is being frozen is said before the last process of it
 * stands still: so each group is asked whether it was told to freeze, and not what has become of that.
 */
static const struct version {
        const char *line;  /* of /proc/PID/cgroup */
        const char *state; /* the file that begins with "1" while its very group is to be frozen */
        struct freezer freezer;
} versions[] = {
        { ":freezer:", "freezer.self_freezing", { "freezer.state", "THAWED" } },
        { "0::", "cgroup.freeze", { "cgroup.freeze", "0" } },
};

static void file_closep(FILE **file)
{
        if (*file)
                (void)fclose(*file);
}

static bool is_freezing(const char *folder, const char *state)
{
        char path[PATH_MAX + 32];
        CLEANUP(file_closep) FILE *file = NULL;

        (void)snprintf(path, sizeof(path), "%s/%s", folder, state);
        file = fopen(path, "re");
        return file && fgetc(file) == '1';
}

/* From the group @name up. */
static bool find_freezing(const struct version *version, const char *mount, const char *name,
                          char folder[PATH_MAX])
{
        if (snprintf(folder, PATH_MAX, "%s%s", mount, name) >= PATH_MAX)
                return false;
        for (; strlen(folder) > strlen(mount); *strrchr(folder, '/') = '\0')
                if (is_freezing(folder, version->state))
                        return true;
        return false;
}

static const struct version *find_version(const char *line)
{
        const char *colon = strchr(line, ':');

        for (size_t i = 0; colon && i < sizeof(versions) / sizeof(versions[0]); i++)
                if (strncmp(line, versions[i].line, strlen(versions[i].line)) == 0 ||
                    strncmp(colon, versions[i].line, strlen(versions[i].line)) == 0)
                        return &versions[i];
        return NULL;
}

const struct freezer *freezer_find_at(const char *groups, const char *first, const char *second,
                                      char folder[PATH_MAX])
{
        CLEANUP(file_closep) FILE *file = fopen(groups, "re");
        char line[PATH_MAX + 64];

        while (file && fgets(line, sizeof(line), file)) {
                const struct version *version = find_version(line);
                const char *name = strchr(line, '/');

                line[strcspn(line, "\n")] = '\0';
                if (version && name &&
                    find_freezing(version, version == &versions[0] ? first : second, name, folder))
                        return &version->freezer;
        }
        return NULL;
}

const struct freezer *freezer_find(pid_t pid, char folder[PATH_MAX])
{
        char groups[32];

        (void)snprintf(groups, sizeof(groups), "/proc/%d/cgroup", (int)pid);
        return freezer_find_at(groups, "/sys/fs/cgroup/freezer", control_group_mount(), folder);
}
