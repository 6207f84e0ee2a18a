/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_LISTENER_H
#define MANAGER_LISTENER_H

/* A listening socket in the run directory; who connected is from the kernel. */

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct manager;

/* Takes @fd, also when it fails. */
typedef int (*listener_fn)(int fd, const struct ucred *peer, void *userdata);

struct listener {
        int fd;
        sd_event_source *source;
        listener_fn accepted;
        void *userdata;
};

/*
 * listener_init() - listen at @name in the run directory; a socket that a former manager left there
 * is replaced. It begins disabled: who connects waits. With @group only its members may connect,
 * besides root and ourselves; NULL: everybody.
 */
int listener_init(struct listener *listener, struct manager *manager, const char *name, int type,
                  const gid_t *group, listener_fn accepted, void *userdata);
void listener_deinit(struct listener *listener);
void listener_set_enabled(struct listener *listener, bool is_enabled);

#endif
