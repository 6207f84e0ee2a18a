/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No call of the gate is a cancellation point. A thread of the program that is cancelled (pthread_cancel) in the middle of
 * the gate would never unlock what it has locked there: the next call of every other thread would wait for ever. The
 * driver's allocations are no cancellation points either, so no program relies on one.
 *
 * The linker puts these functions in the place of the C library's (--wrap), for all code in the gate and in programs that
 * link its objects. A cancelled thread ends at its next cancellation point outside of the gate.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int forbid(void)
{
        int before;

        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        return before;
}

static void permit(int before)
{
        int now;

        (void)pthread_setcancelstate(before, &now);
}

/* @result name@parameters, without being a cancellation point. */
#define UNCANCELLED(result, name, parameters, arguments) \
        result __real_##name parameters;                 \
        result __wrap_##name parameters;                 \
        result __wrap_##name parameters                  \
        {                                                \
                int before = forbid();                   \
                result r = __real_##name arguments;      \
                                                         \
                permit(before);                          \
                return r;                                \
        }

UNCANCELLED(int, close, (int fd), (fd))
UNCANCELLED(int, connect, (int fd, const struct sockaddr *address, socklen_t size),
            (fd, address, size))
UNCANCELLED(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))
UNCANCELLED(int, poll, (struct pollfd * fds, nfds_t n, int timeout_ms), (fds, n, timeout_ms))
UNCANCELLED(ssize_t, pread64, (int fd, void *bytes, size_t n, off64_t at), (fd, bytes, n, at))
UNCANCELLED(ssize_t, pwrite64, (int fd, const void *bytes, size_t n, off64_t at),
            (fd, bytes, n, at))
UNCANCELLED(int, pthread_cond_timedwait,
            (pthread_cond_t * condition, pthread_mutex_t *mutex, const struct timespec *until),
            (condition, mutex, until))
UNCANCELLED(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *mutex),
            (condition, mutex))
UNCANCELLED(ssize_t, read, (int fd, void *bytes, size_t n), (fd, bytes, n))
UNCANCELLED(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
UNCANCELLED(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
            (fd, message, flags))
UNCANCELLED(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n))

/* These take the permissions of a new file behind @flags, if they make one. */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

int __wrap_open64(const char *path, int flags, ...)
{
        int before = forbid(), fd;
        va_list more;

        va_start(more, flags);
        fd = __real_open64(path, flags, flags & O_CREAT ? va_arg(more, mode_t) : 0);
        va_end(more);
        permit(before);
        return fd;
}

int __real_openat64(int folder, const char *path, int flags, ...);
int __wrap_openat64(int folder, const char *path, int flags, ...);

int __wrap_openat64(int folder, const char *path, int flags, ...)
{
        int before = forbid(), fd;
        va_list more;

        va_start(more, flags);
        fd = __real_openat64(folder, path, flags, flags & O_CREAT ? va_arg(more, mode_t) : 0);
        va_end(more);
        permit(before);
        return fd;
}
