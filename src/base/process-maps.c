/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process-maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

bool process_maps(pid_t pid, const char *name)
{
        CLEANUP(freep) char *line = NULL;
        char path[32];
        size_t room = 0;
        bool is_found = false;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
        file = fopen(path, "re");
        if (!file)
                return false;
        while (!is_found && getline(&line, &room, file) > 0) {
                const char *base = strrchr(line, '/');

                is_found = base && strncmp(base + 1, name, strlen(name)) == 0;
        }
        fclose(file);
        return is_found;
}
