/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/driver-path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"

/* Debian and Ubuntu, Fedora and SUSE, NVIDIA's containers, NixOS, WSL. */
static const char *const directories[] = {
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib64/nvidia",
        "/usr/lib/nvidia/current",
        "/usr/local/nvidia/lib64",
        "/usr/local/nvidia/lib",
        "/run/opengl-driver/lib",
        "/usr/lib/wsl/lib",
        "/usr/lib",
};

static int try_directory(char *path, const char *directory, const char *library,
                         const char *not_below)
{
        char candidate[PATHS_MAX];
        CLEANUP(freep) char *real = NULL;

        if (*directory != '/' || paths_join(candidate, directory, library) < 0)
                return -ENOENT;
        real = realpath(candidate, NULL);
        if (!real || access(real, R_OK) < 0 || strncmp(real, not_below, strlen(not_below)) == 0)
                return -ENOENT;
        strcpy(path, candidate);
        return 0;
}

static int try_search_path(char *path, const char *library, const char *not_below)
{
        const char *variable = getenv("LD_LIBRARY_PATH");
        CLEANUP(freep) char *text = variable ? strdup(variable) : NULL;
        char *rest = text, *directory;

        while (text && (directory = strsep(&rest, ":")))
                if (try_directory(path, directory, library, not_below) == 0)
                        return 0;
        return -ENOENT;
}

int driver_path_find(char *path, const char *library, const char *not_below)
{
        if (try_search_path(path, library, not_below) == 0)
                return 0;
        for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
                if (try_directory(path, directories[i], library, not_below) == 0)
                        return 0;
        return -ENOENT;
}

void driver_path_get_version(char *version, int size)
{
        FILE *file = fopen("/sys/module/nvidia/version", "re");

        version[0] = '\0';
        if (!file)
                return;
        if (fgets(version, size, file))
                version[strcspn(version, "\n")] = '\0';
        fclose(file);
}

/*
 * A module that is loaded anew gets a new folder in sysfs, whose inode number is not used again. The
 * number of a simulated machine's folder may be; when it was made tells two apart.
 */
void driver_path_get_load(char *load, int size, const char *simulation)
{
        const char *path = *simulation ? simulation : "/sys/module/nvidia";
        struct statx status;
        char version[64];

        load[0] = '\0';
        if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &status) < 0)
                return;
        driver_path_get_version(version, sizeof(version));
        snprintf(load, (size_t)size, "%s/%llu/%lld.%09u", version,
                 (unsigned long long)status.stx_ino,
                 status.stx_mask & STATX_BTIME ? (long long)status.stx_btime.tv_sec : 0,
                 status.stx_mask & STATX_BTIME ? status.stx_btime.tv_nsec : 0);
}
