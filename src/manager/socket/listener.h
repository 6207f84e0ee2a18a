/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_LISTENER_H
#define MANAGER_LISTENER_H

/* A listening socket in the run directory; who connected is from the kernel. */

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct failure;
struct manager;
struct options;

/* Takes @fd, also when it fails. */
typedef int (*listener_fn)(int fd, const struct ucred *peer, void *userdata);

struct listener {
        int fd;
        bool is_given; /* it is whoever's started us, who goes on listening when we end */
        sd_event_source *source;
        listener_fn accepted;
        void *userdata;
};

/*
 * listener_take_given() - the sockets that whoever started us gave us (sd_listen_fds(3)) are ours: before
 * any other program is started. Fails when one is not where we would listen ourselves.
 */
int listener_take_given(const struct options *options, struct failure *failure);

/*
 * listener_init() - listen at @name in the run directory, on the socket that was given to us; without one,
 * on a new one, which replaces what a former manager left there. It begins disabled: who connects waits. With --group only members of that group may
 * connect, besides root and ourselves. Nobody who connects may send descriptors (foreign_allow_fds()).
 */
int listener_init(struct listener *listener, struct manager *manager, const char *name, int type,
                  listener_fn accepted, void *userdata);

/* listener_init_for_all() - likewise on a new socket at @path, where everybody may connect who gets there. */
int listener_init_for_all(struct listener *listener, struct manager *manager, const char *path,
                          int type, listener_fn accepted, void *userdata);
void listener_deinit(struct listener *listener);
void listener_set_enabled(struct listener *listener, bool is_enabled);

#endif
