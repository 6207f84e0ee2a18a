/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

/*
 * Scope-bound ownership.
 *
 * The declaration of a local variable says that the variable owns something:
 *
 *     CLEANUP(freep) char *text = NULL;
 *     CLEANUP(fd_closep) int fd = -1;
 *
 * TAKE() or TAKE_FD() empties the variable at the one place where ownership leaves
 * the scope. Every handler keeps errno.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLEANUP(func) __attribute__((cleanup(func)))

/* Defines func##p() for CLEANUP(); func() takes the value and accepts an empty one. */
#define DEFINE_CLEANUP(type, func)                                  \
        __attribute__((unused)) static inline void func##p(type *p) \
        {                                                           \
                int saved_errno = errno;                            \
                func(*p);                                           \
                errno = saved_errno;                                \
        }                                                           \
        struct cleanup_needs_semicolon_##func

/* Moves the pointer out of its variable, which is left NULL. */
#define TAKE(ptr)                                \
        __extension__({                          \
                __typeof__(ptr) *from_ = &(ptr); \
                __typeof__(ptr) value_ = *from_; \
                *from_ = NULL;                   \
                value_;                          \
        })

/* Moves the descriptor out of its variable, which is left -1. */
#define TAKE_FD(fd)                  \
        __extension__({              \
                int *from_ = &(fd);  \
                int value_ = *from_; \
                *from_ = -1;         \
                value_;              \
        })

/* For any pointer that free() accepts. */
static inline void freep(void *pointer)
{
        int saved_errno = errno;
        void *value;

        memcpy(&value, pointer, sizeof(value));
        free(value);
        errno = saved_errno;
}

/* fd_close() - close @fd unless it is negative; returns -1 for `fd = fd_close(fd)`. */
static inline int fd_close(int fd)
{
        int saved_errno = errno;

        if (fd >= 0)
                (void)close(fd); /* never retried: on Linux the number is free even after EINTR */
        errno = saved_errno;
        return -1;
}

DEFINE_CLEANUP(int, fd_close);

#endif
