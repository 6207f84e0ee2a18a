/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/example.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SUFFIX ".json"

/* PREFIX/share/openvgpu/scenarios, from PREFIX/bin. */
static int find_directory(char *path)
{
        char self[PATHS_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (n < 0)
                return -errno;
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
        return paths_join(path, self, "../share/openvgpu/scenarios");
}

static int make_path(char *path, const char *name)
{
        char directory[PATHS_MAX], file[NAME_MAX + 1];
        int r = find_directory(directory);

        if (snprintf(file, sizeof(file), "%s" SUFFIX, name) >= (int)sizeof(file))
                return -ENAMETOOLONG;
        return r == 0 ? paths_join(path, directory, file) : r;
}

int example_find(char *path, const char *name)
{
        int r;

        if (strchr(name, '/') || access(name, F_OK) == 0)
                return snprintf(path, PATHS_MAX, "%s", name) >= PATHS_MAX ? -ENAMETOOLONG
                       : access(path, F_OK) < 0                           ? -errno
                                                                          : 0;
        r = make_path(path, name);
        return r == 0 && access(path, F_OK) < 0 ? -errno : r;
}

static int is_scenario(const struct dirent *entry)
{
        size_t length = strlen(entry->d_name);

        return length > strlen(SUFFIX) &&
               strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) == 0;
}

/* One that is no scenario has no description: vgpud will say what is wrong with it. */
static json_t *describe(const char *file)
{
        char name[NAME_MAX + 1], path[PATHS_MAX];
        const char *description = NULL;
        json_t *document, *entry;

        snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(SUFFIX)), file);
        document = make_path(path, name) == 0 ? json_load_file(path, 0, NULL) : NULL;
        description = json_string_value(json_object_get(document, "description"));
        entry = json_pack("{ss, ss}", "name", name, "description", description ? description : "");
        json_decref(document);
        return entry;
}

json_t *example_list(void)
{
        char directory[PATHS_MAX];
        json_t *list = json_array();
        struct dirent **entries;
        int n = find_directory(directory) == 0
                        ? scandir(directory, &entries, is_scenario, alphasort)
                        : 0;

        for (int i = 0; i < n; i++) {
                json_array_append_new(list, describe(entries[i]->d_name));
                free(entries[i]);
        }
        if (n >= 0)
                free(n > 0 ? entries : NULL);
        return list;
}
