/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "sim/limit.h"

/* That of @group, or one that is free: no group, or one that is gone. */
static struct host_limit *find(struct host *host, const char *group)
{
        struct host_limit *found = NULL;

        for (uint32_t i = 0; i < HOST_LIMITS && i < host->n_limits; i++) {
                struct host_limit *limit = &host->limit[i];

                if (strcmp(limit->path, group) == 0)
                        return limit;
                if (!found && (!limit->path[0] || access(limit->path, F_OK) < 0))
                        found = limit;
        }
        if (!found && host->n_limits < HOST_LIMITS)
                found = &host->limit[host->n_limits];
        return found;
}

/* What its predecessor had shared is not the new one's. */
static int clear_shared(const char *directory, uint32_t number)
{
        CLEANUP(host_view_closep) struct host_view view = HOST_VIEW_NONE;
        const uint64_t none[HOST_DEVICES_MAX] = { 0 };
        int r = host_view_open_path(&view, directory);

        if (r == 0)
                host_view_write(&view, none, sizeof(none), HOST_SLOTS_AT(limit_shared[number]));
        return r;
}

static int set(const char *directory, struct host *host, const char *group, uint64_t bytes)
{
        struct host_limit *limit = find(host, group);
        int r;

        if (!limit)
                return bytes == UINT64_MAX ? 0 : -ENOSPC;
        if (strcmp(limit->path, group) != 0) {
                r = clear_shared(directory, (uint32_t)(limit - host->limit));
                if (r < 0)
                        return r;
                memset(limit, 0, sizeof(*limit));
                limit->bytes = bytes;
                strcpy(limit->path, group);
        }
        limit->bytes = bytes;
        if (bytes == UINT64_MAX)
                limit->path[0] = '\0';
        if (limit == &host->limit[host->n_limits])
                host->n_limits++;
        return 0;
}

static int map_host(struct host **ret_host, const char *directory)
{
        CLEANUP(fd_closep) int fd = -1;
        char path[PATHS_MAX];
        struct stat status;
        void *map;
        int r = paths_join(path, directory, "host");

        if (r < 0)
                return r;
        fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) < 0 || status.st_size != (off_t)sizeof(struct host))
                return -EPROTO;
        map = mmap(NULL, sizeof(struct host), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return -errno;
        *ret_host = map;
        return 0;
}

int sim_limit_set(const char *directory, const char *group, uint64_t bytes)
{
        CLEANUP(fd_closep) int lock = -1;
        char path[PATHS_MAX];
        struct host *host = NULL;
        int r = paths_join(path, directory, "lock");

        if (r < 0 || strlen(group) >= sizeof(host->limit[0].path))
                return -ENAMETOOLONG;
        r = map_host(&host, directory);
        if (r < 0)
                return r;
        lock = open(path, O_RDWR | O_CLOEXEC);
        if (lock < 0 || flock(lock, LOCK_EX) < 0)
                r = -errno;
        else
                r = host->magic == HOST_MAGIC && host->version == HOST_VERSION
                            ? set(directory, host, group, bytes)
                            : -EPROTO;
        (void)munmap(host, sizeof(*host));
        return r;
}
