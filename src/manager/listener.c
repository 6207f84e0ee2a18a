/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/listener.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "manager/manager.h"

#define BACKLOG 512

/* Also when no descriptor is left, or somebody connects in a loop, the others have their turn. */
#define RATE_INTERVAL_US 100000
#define RATE_BURST       200

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct listener *listener = userdata;
        CLEANUP(fd_closep) int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct ucred peer;
        socklen_t size = sizeof(peer);

        (void)source, (void)events;
        if (accepted < 0 || getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return 0; /* gone again, or no descriptor is left: the next wake-up tries anew */
        (void)listener->accepted(TAKE_FD(accepted), &peer, listener->userdata);
        return 0;
}

static int give_to(const char *path, gid_t group)
{
        return chown(path, (uid_t)-1, group) < 0 || chmod(path, 0660) < 0 ? -errno : 0;
}

static int bind_socket(int fd, const char *path, const gid_t *group)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        mode_t mask;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);
        (void)unlink(path); /* we hold the lock of the directory: nobody listens there */
        /* 0666: who may do what is decided by user, request for request */
        mask = umask(group ? 0177 : 0111);
        r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
        umask(mask);
        return r == 0 && group ? give_to(path, *group) : r;
}

int listener_init(struct listener *listener, struct manager *manager, const char *name, int type,
                  const gid_t *group, listener_fn accepted, void *userdata)
{
        CLEANUP(fd_closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        char path[PATHS_MAX];
        int r;

        if (fd < 0)
                return -errno;
        r = paths_join(path, manager->options->run_directory, name);
        if (r == 0)
                r = bind_socket(fd, path, group);
        if (r < 0)
                return r;
        if (listen(fd, BACKLOG) < 0)
                return -errno;

        r = sd_event_add_io(manager->event, &listener->source, fd, EPOLLIN, on_connection,
                            listener);
        if (r < 0)
                return r;
        (void)sd_event_source_set_ratelimit(listener->source, RATE_INTERVAL_US, RATE_BURST);
        sd_event_source_set_enabled(listener->source, SD_EVENT_OFF);
        listener->fd = TAKE_FD(fd);
        listener->accepted = accepted;
        listener->userdata = userdata;
        return 0;
}

void listener_deinit(struct listener *listener)
{
        listener->source = sd_event_source_disable_unref(listener->source);
        listener->fd = fd_close(listener->fd);
}

void listener_set_enabled(struct listener *listener, bool is_enabled)
{
        if (listener->source)
                sd_event_source_set_enabled(listener->source,
                                            is_enabled ? SD_EVENT_ON : SD_EVENT_OFF);
}
