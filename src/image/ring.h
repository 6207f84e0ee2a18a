/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_RING_H
#define IMAGE_RING_H

/*
 * io_uring, as much of it as we use: vectored reads and writes at a place, by the system calls
 * themselves. A library for it is not everywhere that our programs are, and this is short.
 *
 * Threads: one ring belongs to one thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring;

/*
 * ring_new() - for at most @depth requests at a time
 * Errors: -ENOSYS, -EPERM (the kernel is too old or does not allow it), -ENOMEM.
 */
int ring_new(struct ring **ret_ring, unsigned int depth);
struct ring *ring_free(struct ring *ring);

/* ring_submit() - @iov lives until ring_wait() has answered with @userdata. Errors: not begun. */
int ring_submit(struct ring *ring, bool is_write, int fd, const struct iovec *iov,
                unsigned int n_iov, uint64_t offset, void *userdata);

/* ring_wait() - for the end of one; @ret_result: bytes, or a negative errno. */
void ring_wait(struct ring *ring, void **ret_userdata, int *ret_result);

#endif
