/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl() as the driver's library finds it, because the gate is loaded before libc. All other code
 * in the process finds it too: a call that is not for NVIDIA's kernel module is passed on
 * unchanged.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate/channel.h"
#include "gate/object.h"

typedef int (*ioctl_function)(int, unsigned long, ...);

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...);

static ioctl_function find_next(void)
{
        static _Atomic(ioctl_function) next;
        ioctl_function found = atomic_load_explicit(&next, memory_order_relaxed);
        void *symbol;

        if (found)
                return found;
        symbol = dlsym(RTLD_NEXT, "ioctl");
        memcpy(&found, &symbol, sizeof(found));
        atomic_store_explicit(&next, found, memory_order_relaxed);
        return found;
}

int ioctl(int fd, unsigned long request, ...)
{
        ioctl_function next = find_next();
        va_list arguments;
        void *argument;
        int r;

        va_start(arguments, request);
        argument = va_arg(arguments, void *);
        va_end(arguments);
        r = next ? next(fd, request, argument) : (int)syscall(SYS_ioctl, fd, request, argument);
        if (r == 0 && argument) {
                int saved_errno = errno;

                if (object_note(fd, request, argument))
                        channel_publish();
                errno = saved_errno;
        }
        return r;
}
