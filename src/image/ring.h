/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_RING_H
#define IMAGE_RING_H

/*
 * The part of io_uring that we use: vectored reads and writes at given places. It makes the system calls
 * itself, because that is short, and not every machine has a library for it.
 *
 * Threads: one ring belongs to one thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring;

/*
 * ring_new() - make a ring for at most @depth requests at a time
 * Errors: -ENOSYS, -EPERM (the kernel is too old or does not allow it), -ENOMEM.
 */
int ring_new(struct ring **ret_ring, unsigned int depth);
struct ring *ring_free(struct ring *ring);

/* ring_submit() - begin a request. @iov must live until ring_wait() returns @userdata. Errors: not begun. */
int ring_submit(struct ring *ring, bool is_write, int fd, const struct iovec *iov,
                unsigned int n_iov, uint64_t offset, void *userdata);

/* ring_wait() - wait until a request has ended. @ret_result: its bytes, or a negative errno. */
void ring_wait(struct ring *ring, void **ret_userdata, int *ret_result);

#endif
