/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CHILD_H
#define DAEMON_CHILD_H

/*
 * Starting our helper programs, and reaping them from the event loop.
 *
 * A pidfd shows the end of a child. SIGCHLD is not used, because a process has only
 * one handler for it. A child runs in a session of its own, because the manager
 * handles interrupts at the terminal.
 */

#include <sys/types.h>
#include <systemd/sd-event.h>

/*
 * child_spawn() - start arguments[0] with our environment and @driver_path as its OPENVGPU_DRIVER
 * @driver_path:  NULL: the child gets the one of our environment
 * @fd:           becomes the child's descriptor @child_fd; besides, the child has only the standard ones
 */
int child_spawn(pid_t *ret_pid, const char *const *arguments, const char *driver_path, int fd,
                int child_fd);

/* child_watch() - call @ended once, when @pid has ended and is reaped, unless child_forget() came first. */
struct child;
typedef void (*child_ended_fn)(void *userdata);
int child_watch(struct child **ret_child, sd_event *event, pid_t pid, child_ended_fn ended,
                void *userdata);

/* child_forget() - do not call @ended any more. The event loop still reaps the child. */
void child_forget(struct child *child);

#endif
