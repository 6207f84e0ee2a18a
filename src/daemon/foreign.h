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

/* @n descriptors of @user wait to be closed. */
typedef void (*foreign_count_fn)(uid_t user, size_t n, void *userdata);

/*
 * foreign_begin() - from now on tell @count when that changes: they are open in this process. In
 * the event loop, which alone calls all of these functions. Until foreign_end(), with 0 for all.
 */
int foreign_begin(sd_event *event, foreign_count_fn count, void *userdata);
void foreign_end(void);

/* foreign_close() - some time soon; @n descriptors that @user has sent, each is set to -1. */
void foreign_close(int *fds, size_t n, uid_t user);

/*
 * foreign_is_behind() - so many of @user's cannot be closed that he must not send us more; with
 * fewer, if he has no room for others.
 */
bool foreign_is_behind(uid_t user, bool has_room);

/* foreign_hang_up() - the peer of the connection @fd, a process of @user, notices at once. Returns -1. */
int foreign_hang_up(int fd, uid_t user);

/* foreign_is_memory() - can @fd be device memory: of NVIDIA's driver, or of a file in memory? Never waits. */
bool foreign_is_memory(int fd);

/*
 * foreign_allow_fds() - may whoever connects to @socket, or is connected to it, send descriptors?
 * Where the kernel (before 6.16) cannot forbid it, they come all the same.
 */
void foreign_allow_fds(int socket, bool is_allowed);

#endif
