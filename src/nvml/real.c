/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our library is called libnvidia-ml.so.1 too and is probably the first one on the search
 * path, so the name alone would find ourselves. Only full paths are therefore tried. The
 * file that we were loaded from is not opened; device and inode tell, since a path can be
 * written in many ways.
 *
 * NVIDIA's library reaches some of its own functions by name, nvmlInit_v2() among them.
 * In a program that is linked with us, our names stand before its own, and it would call us from
 * inside of its initialisation. RTLD_DEEPBIND lets it find its own names first.
 */
#include "nvml/real.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "base/trust.h"

#define SONAME "libnvidia-ml.so.1"

/* Containers, Debian, Debian's alternatives, Fedora, SUSE, WSL. */
static const char *const directories[] = {
        "/usr/local/nvidia/lib64",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu/nvidia/current",
        "/usr/lib64",
        "/usr/lib64/nvidia",
        "/usr/lib",
        "/usr/lib/nvidia",
        "/usr/lib/wsl/lib",
};

/* Every sanitizer's runtime has this function, and refuses RTLD_DEEPBIND by ending the program. */
extern void __sanitizer_print_stack_trace(void) __attribute__((weak));

static bool is_ourselves(const char *path)
{
        struct stat theirs, ours;
        Dl_info info;

        return dladdr((const void *)(uintptr_t)real_load, &info) != 0 &&
               stat(info.dli_fname, &ours) == 0 && stat(path, &theirs) == 0 &&
               ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

static void *load(const char *path)
{
        int own_names_first = __sanitizer_print_stack_trace ? 0 : RTLD_DEEPBIND;

        if (access(path, R_OK) != 0 || is_ourselves(path))
                return NULL;
        return dlopen(path, RTLD_LAZY | RTLD_LOCAL | own_names_first);
}

static void *load_from(const char *directory)
{
        char path[PATHS_MAX];

        return *directory && paths_join(path, directory, SONAME) == 0 ? load(path) : NULL;
}

static void *load_from_search_path(void)
{
        const char *variable = getenv("LD_LIBRARY_PATH");
        CLEANUP(freep) char *text = variable ? strdup(variable) : NULL;
        char *rest = text;
        void *library = NULL;

        for (char *one = text ? strsep(&rest, ":") : NULL; one && !library;
             one = strsep(&rest, ":"))
                library = load_from(one);
        return library;
}

/* @path is what a manager says: then nobody but root and our user may be able to change what is there. */
static void *load_trusted(const char *path)
{
        CLEANUP(fd_closep) int fd = trust_open(path, false);

        return fd >= 0 ? load(path) : NULL;
}

void *real_load(const char *path)
{
        void *library;

        if (*path)
                return load_trusted(path);
        if (access("/proc/driver/nvidia", F_OK) != 0)
                return NULL;

        library = load_from_search_path();
        for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]) && !library; i++)
                library = load_from(directories[i]);
        return library;
}
