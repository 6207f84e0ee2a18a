/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/host-view.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static bool is_text(const char *text, size_t size)
{
        return memchr(text, '\0', size);
}

static bool is_whole(const struct host *host)
{
        if (host->magic != HOST_MAGIC || host->version != HOST_VERSION)
                return false;
        if (host->n_devices > HOST_DEVICES_MAX || !is_text(host->memory, sizeof(host->memory)))
                return false;
        for (uint32_t i = 0; i < host->n_devices; i++)
                if (!is_text(host->device[i].name, sizeof(host->device[i].name)) ||
                    !is_text(host->device[i].kind, sizeof(host->device[i].kind)))
                        return false;
        return true;
}

/* A user who can write it could also truncate it, which ends each process that has it mapped. */
static int map_host(const struct host **ret_host, int directory)
{
        CLEANUP(fd_closep)
        int fd = openat(directory, "host", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat status;
        struct host *host;

        if (fd < 0)
                return errno == ENOENT ? -EPROTO : -errno;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode) || (status.st_mode & 022) != 0 ||
            status.st_size != (off_t)sizeof(*host))
                return -EPROTO;
        host = mmap(NULL, sizeof(*host), PROT_READ, MAP_SHARED, fd, 0);
        if (host == MAP_FAILED)
                return -errno;
        if (!is_whole(host)) {
                (void)munmap(host, sizeof(*host));
                return -EPROTO;
        }
        *ret_host = host;
        return 0;
}

static int open_slots(int *ret_slots, int directory)
{
        CLEANUP(fd_closep)
        int fd = openat(directory, "slots", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat status;

        if (fd < 0 || fstat(fd, &status) < 0)
                return errno == ENOENT ? -EPROTO : -errno;
        if (!S_ISREG(status.st_mode))
                return -EPROTO;
        *ret_slots = TAKE_FD(fd);
        return 0;
}

int host_view_open(struct host_view *view, int directory)
{
        struct stat status;
        int r;

        *view = HOST_VIEW_NONE;
        r = map_host(&view->host, directory);
        if (r == 0)
                r = open_slots(&view->slots, directory);
        if (r < 0)
                host_view_close(view);
        else if (stat("/proc/self/ns/pid", &status) == 0)
                view->pid_namespace = (uint32_t)status.st_ino;
        return r;
}

int host_view_open_path(struct host_view *view, const char *directory)
{
        CLEANUP(fd_closep) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        *view = HOST_VIEW_NONE;
        if (fd < 0)
                return errno == ENOENT ? -EPROTO : -errno;
        return host_view_open(view, fd);
}

void host_view_close(struct host_view *view)
{
        if (view->host)
                (void)munmap((void *)(uintptr_t)view->host, sizeof(*view->host));
        fd_close(view->slots);
        *view = HOST_VIEW_NONE;
}

void host_view_read(const struct host_view *view, void *to, size_t size, size_t offset)
{
        char *bytes = to;

        while (size > 0) {
                ssize_t n = pread(view->slots, bytes, size, (off_t)offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                bytes += n;
                offset += (size_t)n;
                size -= (size_t)n;
        }
        memset(bytes, 0, size);
}

/* On a file system that is full it is not written: others then read what was there before. */
void host_view_write(const struct host_view *view, const void *from, size_t size, size_t offset)
{
        while (pwrite(view->slots, from, size, (off_t)offset) < 0 && errno == EINTR)
                continue;
}

static void bound(struct host_slots_copy *copy, uint64_t memory)
{
        for (uint32_t i = 0; i < copy->n; i++) {
                if (copy->slot[i].pid < 0)
                        copy->slot[i].pid = 0;
                if (copy->slot[i].pid == 0)
                        copy->used[i] = 0;
                if (copy->used[i] > memory)
                        copy->used[i] = memory;
        }
}

struct host_slots_copy *host_view_copy(const struct host_view *view, int device)
{
        struct host_slots_copy *copy = malloc(sizeof(*copy));

        if (!copy)
                return NULL;
        host_view_read(view, &copy->n, sizeof(copy->n), HOST_SLOTS_AT(n));
        if (copy->n > HOST_SLOTS)
                copy->n = HOST_SLOTS;
        host_view_read(view, copy->slot, copy->n * sizeof(copy->slot[0]), HOST_SLOTS_AT(slot));
        if (device < 0) {
                memset(copy->used, 0, copy->n * sizeof(copy->used[0]));
                bound(copy, 0);
        } else {
                host_view_read(view, copy->used, copy->n * sizeof(copy->used[0]),
                               HOST_SLOTS_AT(used[device]));
                bound(copy, view->host->device[device].memory);
        }
        return copy;
}

/* The process that has the slot, as we number it: 0, none; -1, one that has no number here. */
static pid_t get_holder(const struct host_view *view, uint32_t number)
{
        struct flock record = {
                .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1
        };

        if (fcntl(view->slots, F_GETLK, &record) < 0 || record.l_type == F_UNLCK)
                return 0;
        return record.l_pid > 0 ? record.l_pid : -1;
}

bool host_view_is_alive(const struct host_view *view, uint32_t number)
{
        return get_holder(view, number) != 0;
}

/* A process in a container knows its number only as its namespace has it. */
static bool may_be_of(const struct host_view *view, const struct host_slot *slot, pid_t pid)
{
        if (slot->pid_namespace == view->pid_namespace || slot->pid_namespace == 0)
                return slot->pid == pid;
        return slot->pid != 0;
}

int host_view_find(const struct host_view *view, pid_t pid)
{
        CLEANUP(freep) struct host_slots_copy *copy = pid > 0 ? host_view_copy(view, -1) : NULL;

        for (uint32_t i = 0; copy && i < copy->n; i++)
                if (may_be_of(view, &copy->slot[i], pid) && get_holder(view, i) == pid)
                        return (int)i;
        return -ESRCH;
}

size_t host_view_list(const struct host_view *view, pid_t *ret_pids, size_t room)
{
        CLEANUP(freep) struct host_slots_copy *copy = host_view_copy(view, -1);
        size_t n = 0;

        for (uint32_t i = 0; copy && i < copy->n && n < room; i++) {
                pid_t pid = copy->slot[i].pid != 0 ? get_holder(view, i) : 0;

                if (pid > 0)
                        ret_pids[n++] = pid;
        }
        return n;
}

int host_view_find_last(const struct host_view *view, pid_t pid)
{
        CLEANUP(freep) struct host_slots_copy *copy = pid > 0 ? host_view_copy(view, -1) : NULL;

        for (uint32_t i = 0; copy && i < copy->n; i++)
                if (copy->slot[i].pid == 0 ? copy->slot[i].last_pid == pid
                                           : copy->slot[i].pid == pid && get_holder(view, i) == 0)
                        return (int)i;
        return -ESRCH;
}
