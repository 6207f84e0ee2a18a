/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/device-root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"

#if defined(__aarch64__)
#define LIBRARIES "usr/lib/aarch64-linux-gnu"
#else
#define LIBRARIES "usr/lib/x86_64-linux-gnu"
#endif

static int make_folders(const char *root)
{
        static const char *const folders[] = { "", "dev", "usr", "usr/lib", LIBRARIES };
        char path[PATHS_MAX];
        int r = 0;

        for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && r == 0; i++) {
                r = paths_join(path, root, folders[i]);
                if (r == 0 && mkdir(path, 0755) < 0)
                        r = -errno;
        }
        return r;
}

static int make_node(const char *root, const char *name)
{
        char path[PATHS_MAX];
        int r = paths_join(path, root, name);

        if (r < 0)
                return r;
        return mknod(path, S_IFCHR | 0666, 0) < 0 && errno != EPERM ? -errno : 0;
}

static int make_nodes(const char *root, uint32_t n_devices)
{
        static const char *const others[] = { "dev/nvidiactl", "dev/nvidia-uvm",
                                              "dev/nvidia-uvm-tools" };
        char name[32];
        int r = 0;

        for (uint32_t i = 0; i < n_devices && r == 0; i++) {
                snprintf(name, sizeof(name), "dev/nvidia%u", i);
                r = make_node(root, name);
        }
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && r == 0; i++)
                r = make_node(root, others[i]);
        return r;
}

static int copy(const char *from_path, const char *to_path)
{
        CLEANUP(fd_closep) int from = open(from_path, O_RDONLY | O_CLOEXEC);
        CLEANUP(fd_closep) int to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
        char buffer[65536];
        ssize_t n;

        if (from < 0 || to < 0)
                return -errno;
        while ((n = read(from, buffer, sizeof(buffer))) > 0)
                if (write(to, buffer, (size_t)n) != n)
                        return errno ? -errno : -EIO;
        return n < 0 ? -errno : 0;
}

static int put_library(const char *root, const char *name, const char *version, const char *source)
{
        char target[128], file[PATHS_MAX], link[PATHS_MAX];

        snprintf(target, sizeof(target), "%s.so.%s", name, version);
        if (snprintf(file, sizeof(file), "%s/" LIBRARIES "/%s", root, target) >= PATHS_MAX ||
            snprintf(link, sizeof(link), "%s/" LIBRARIES "/%s.so.1", root, name) >= PATHS_MAX)
                return -ENAMETOOLONG;
        if (symlink(target, link) < 0)
                return -errno;
        return copy(source, file);
}

int device_root_make(const char *root, const char *version, const char *nvml, const char *cuda,
                     uint32_t n_devices)
{
        int r = make_folders(root);

        if (r == 0)
                r = make_nodes(root, n_devices);
        if (r == 0)
                r = put_library(root, "libnvidia-ml", version, nvml);
        return r == 0 ? put_library(root, "libcuda", version, cuda) : r;
}
