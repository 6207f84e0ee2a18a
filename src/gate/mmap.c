/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mmap() as the driver's library finds it, as in ioctl.c: the call that maps what an ioctl has named. The next one of
 * that name is not looked for, because dlsym() may allocate, and the first call of an allocator comes here.
 *
 * sys/mman.h is not included: with offsets of 64 bits it gives one of the two names to the other.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "gate/object.h"

__attribute__((visibility("default"))) void *mmap(void *address, size_t length, int protection,
                                                  int flags, int fd, off_t offset);
__attribute__((visibility("default"), alias("mmap"))) void *
mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset);

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
        long mapped = syscall(SYS_mmap, address, length, protection, flags, fd, offset);

        if (mapped != -1) {
                int saved_errno = errno;

                object_note_map(fd, (const void *)mapped);
                errno = saved_errno;
        }
        return (void *)mapped;
}
