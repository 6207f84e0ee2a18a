/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/socket/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/foreign.h"
#include "manager/model/manager.h"

#define BACKLOG 512

/*
 * Who connects stands behind all who did before, whoever they are: so the queue is emptied quickly, and
 * who is in it is served in turn with other users (fair-queue.h), or turned away when his has no more room
 * (account.h). One wake-up takes so many, then those who are in have their turn.
 */
#define ACCEPTS_A_TURN 32

/* Also when no descriptor is left, or somebody connects in a loop, the others have their turn. */
#define RATE_INTERVAL_US 100000
#define RATE_BURST       100

static bool accept_one(const struct listener *listener)
{
        CLEANUP(fd_closep)
        int accepted = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (accepted < 0)
                return false; /* no more, or no descriptor is left: the next wake-up tries anew */
        if (getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
                (void)listener->accepted(TAKE_FD(accepted), &peer, listener->userdata);
        return true;
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        const struct listener *listener = userdata;

        (void)source, (void)fd, (void)events;
        for (int i = 0; i < ACCEPTS_A_TURN && accept_one(listener); i++)
                ;
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

/* Sockets that were given to us. */

static bool is_at(int fd, const char *directory, const char *name, int type)
{
        char path[PATHS_MAX];

        return paths_join(path, directory, name) == 0 &&
               sd_is_socket_unix(fd, type, 1, path, 0) > 0;
}

/* -1: none. */
static int find_given(const char *directory, const char *name, int type)
{
        int n = sd_listen_fds(false);

        for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + n; fd++)
                if (is_at(fd, directory, name, type))
                        return fd;
        return -1;
}

int listener_take_given(const struct options *options, struct failure *failure)
{
        const char *directory = options->run_directory;
        int n = sd_listen_fds(false); /* and no program that we start gets them */

        for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + n; fd++)
                if (!is_at(fd, directory, PATHS_CONTROL_SOCKET, SOCK_STREAM) &&
                    !is_at(fd, directory, PATHS_GATE_SOCKET, SOCK_SEQPACKET))
                        return failure_set(failure, -EINVAL, "Failed",
                                           "give --run-dir and the sockets (vgpud.socket) the same "
                                           "directory",
                                           "descriptor %d, given to vgpud at its start, does not "
                                           "listen at %.150s/" PATHS_CONTROL_SOCKET
                                           " or " PATHS_GATE_SOCKET,
                                           fd, directory);
        return 0;
}

static int socket_new(int *ret_fd, const char *path, int type, const gid_t *group)
{
        CLEANUP(fd_closep) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int r = fd < 0 ? -errno : bind_socket(fd, path, group);

        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

static int socket_take(int fd, const char *path, const gid_t *group)
{
        if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        return group ? give_to(path, *group) : 0;
}

static int open_socket(struct listener *listener, const struct options *options, const char *name,
                       int type, int *ret_fd)
{
        const gid_t *group = options->has_group ? &options->group : NULL;
        int given = find_given(options->run_directory, name, type);
        char path[PATHS_MAX];
        int r = paths_join(path, options->run_directory, name);

        listener->is_given = given >= 0;
        if (r == 0 && given < 0)
                return socket_new(ret_fd, path, type, group);
        if (r == 0)
                r = socket_take(given, path, group);
        if (r == 0)
                *ret_fd = given;
        return r;
}

/* Takes @fd, also when it fails. */
static int start(struct listener *listener, struct manager *manager, int fd_taken,
                 listener_fn accepted, void *userdata)
{
        CLEANUP(fd_closep) int fd = fd_taken;
        int r;

        foreign_allow_fds(fd, false); /* before anybody connects, who inherits it */
        if (listen(fd, BACKLOG) < 0)  /* one that was given, too: so that peers see who we are */
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

int listener_init(struct listener *listener, struct manager *manager, const char *name, int type,
                  listener_fn accepted, void *userdata)
{
        int fd, r = open_socket(listener, manager->options, name, type, &fd);

        return r < 0 ? r : start(listener, manager, fd, accepted, userdata);
}

int listener_init_for_all(struct listener *listener, struct manager *manager, const char *path,
                          int type, listener_fn accepted, void *userdata)
{
        int fd, r = socket_new(&fd, path, type, NULL);

        return r < 0 ? r : start(listener, manager, fd, accepted, userdata);
}

void listener_deinit(struct listener *listener)
{
        listener->source = sd_event_source_disable_unref(listener->source);
        if (listener->is_given) /* who connected waits for the next manager */
                listener->fd = fd_close(listener->fd);
        listener->fd = foreign_hang_up(listener->fd, 0); /* with those that were never accepted */
}

void listener_set_enabled(struct listener *listener, bool is_enabled)
{
        if (listener->source)
                sd_event_source_set_enabled(listener->source,
                                            is_enabled ? SD_EVENT_ON : SD_EVENT_OFF);
}
