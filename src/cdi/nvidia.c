/* SPDX-License-Identifier: Apache-2.0 */
#include "cdi/nvidia.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const lists[] = { "env", "deviceNodes", "mounts", "hooks", "additionalGids" };

/* The file is called by its version, and a hook of NVIDIA's makes the links. */
static const char *find_driver(const json_t *edits)
{
        const json_t *mounts = json_object_get(edits, "mounts"), *mount;
        size_t i;

        json_array_foreach(mounts, i, mount)
        {
                const char *path = json_string_value(json_object_get(mount, "containerPath"));
                const char *name = path ? strrchr(path, '/') : NULL;

                if (name && strncmp(name, "/libcuda.so.", 12) == 0 && strlen(path) < PATHS_MAX)
                        return path;
        }
        return NULL;
}

static int extend(json_t *edits, const json_t *more)
{
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
                json_t *given = json_object_get(more, lists[i]);
                json_t *array = json_object_get(edits, lists[i]);

                if (!json_is_array(given))
                        continue;
                if (!array && json_object_set_new(edits, lists[i], array = json_array()) < 0)
                        return -ENOMEM;
                if (json_array_extend(array, given) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* The device that means all others; its edits. */
static const json_t *find_all(const json_t *specification)
{
        const json_t *device;
        size_t i;

        json_array_foreach(json_object_get(specification, "devices"), i, device)
        {
                const char *name = json_string_value(json_object_get(device, "name"));

                if (name && strcmp(name, "all") == 0)
                        return json_object_get(device, "containerEdits");
        }
        return NULL;
}

int cdi_nvidia_add(json_t *edits, const char *run_directory, char ret_driver[PATHS_MAX],
                   char ret_version[16])
{
        CLEANUP(json_decrefp) json_t *specification = NULL;
        const json_t *common, *all;
        const char *version, *driver;
        char path[PATHS_MAX];
        int r = paths_join(path, run_directory, CDI_NVIDIA_FILE);

        if (r < 0)
                return r;
        specification = json_load_file(path, 0, NULL);
        common = json_object_get(specification, "containerEdits");
        all = find_all(specification);
        version = json_string_value(json_object_get(specification, "cdiVersion"));
        driver = find_driver(common);
        if (!driver || !all || !version || strlen(version) >= 16)
                return -ENOENT;
        strcpy(ret_driver, driver);
        strcpy(ret_version, version);
        r = extend(edits, common);
        return r < 0 ? r : extend(edits, all);
}
