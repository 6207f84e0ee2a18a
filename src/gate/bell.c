/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/bell.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gate/log.h"

/* All eventfds have one inode, so the last one that was made says which. */
static _Atomic uint64_t device, inode;

static bool fd_is_eventfd(int fd)
{
        struct stat status;

        return fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == atomic_load(&device) &&
               status.st_ino == atomic_load(&inode);
}

static int eventfd_new(void)
{
        CLEANUP(fd_closep) int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        struct stat status;

        if (fd < 0 || fstat(fd, &status) < 0)
                return -1;
        atomic_store(&device, status.st_dev);
        atomic_store(&inode, status.st_ino);
        return TAKE_FD(fd);
}

int bell_get_fd(const struct bell *bell)
{
        int fd = atomic_load(&bell->fd);

        return fd_is_eventfd(fd) ? fd : -1;
}

int bell_open(struct bell *bell)
{
        int before = atomic_load(&bell->fd), fd;

        if (fd_is_eventfd(before))
                return before;
        fd = eventfd_new();
        if (fd >= 0 && !atomic_compare_exchange_strong(&bell->fd, &before, fd))
                fd_close(fd); /* another thread was faster */
        return bell_get_fd(bell);
}

void bell_ring(const struct bell *bell)
{
        const uint64_t one = 1;
        int fd = bell_get_fd(bell);

        if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
                log_write("cannot ring a bell");
}

void bell_forget(struct bell *bell)
{
        int fd = atomic_exchange(&bell->fd, -1);

        if (fd_is_eventfd(fd))
                fd_close(fd);
}
