/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/library-path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"

bool library_path_make(char *value, const char *directory)
{
        const char *old = getenv("LD_LIBRARY_PATH");
        size_t length = strlen(directory);
        int n;

        if (!old || *old == '\0')
                n = snprintf(value, LIBRARY_PATH_MAX, "%s", directory);
        else if (strncmp(old, directory, length) == 0 && strchr(":", old[length]))
                n = snprintf(value, LIBRARY_PATH_MAX, "%s", old);
        else
                n = snprintf(value, LIBRARY_PATH_MAX, "%s:%s", directory, old);
        return n < LIBRARY_PATH_MAX;
}

bool library_path_has_nvml(const char *directory)
{
        char library[PATHS_MAX];

        return paths_join(library, directory, "libnvidia-ml.so.1") == 0 &&
               access(library, R_OK) == 0;
}
