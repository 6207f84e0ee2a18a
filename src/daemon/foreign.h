/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_FOREIGN_H
#define DAEMON_FOREIGN_H

/*
 * Descriptors that another process has sent.
 *
 * A descriptor can refer to anything, and close() may wait: for the peer of a TCP socket with
 * SO_LINGER, for the server of a FUSE file, for the line of a terminal. fstat() and fstatfs() ask a
 * FUSE server too. The event loop therefore closes no such descriptor itself: threads do. They also
 * close a connection that may contain sent descriptors that were not received, because the kernel
 * closes these with the connection. A process that sends such descriptors makes only itself wait.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

/* Tells that @n descriptors of @user wait to be closed. */
typedef void (*foreign_count_fn)(uid_t user, size_t n, void *userdata);

/*
 * foreign_begin() - call @count whenever the number of a user's waiting descriptors changes, because they
 * are open in this process. Only the event loop calls @count and the functions of this header.
 * foreign_end() - stop, after a last call with 0 for each user.
 */
int foreign_begin(sd_event *event, foreign_count_fn count, void *userdata);
void foreign_end(void);

/* foreign_close() - have a thread close the @n descriptors that @user sent. Each is set to -1 at once. */
void foreign_close(int *fds, size_t n, uid_t user);

/*
 * foreign_is_behind() - do so many descriptors of @user wait to be closed that the user must not send
 * more? Without room for other descriptors (@has_room), fewer are enough.
 */
bool foreign_is_behind(uid_t user, bool has_room);

/* foreign_hang_up() - end the connection @fd to a process of @user, which notices at once. Returns -1. */
int foreign_hang_up(int fd, uid_t user);

/* foreign_is_memory() - can @fd be device memory, that is, of NVIDIA's driver or of a file in memory? Never waits. */
bool foreign_is_memory(int fd);

/*
 * foreign_allow_fds() - allow or forbid peers of @socket, and of connections to it, to send descriptors
 *
 * Kernels before 6.16 cannot forbid it: there, descriptors still arrive.
 */
void foreign_allow_fds(int socket, bool is_allowed);

#endif
