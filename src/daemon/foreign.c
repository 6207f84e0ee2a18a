/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/list.h"

#ifndef SO_PASSRIGHTS /* since Linux 6.16 */
#define SO_PASSRIGHTS 83
#endif

/*
 * Closing. A thread may wait in it for ever: so many of a user do, the rest of his waits behind those, and
 * what others have is closed by other threads.
 */
#define THREADS_MAX      128
#define THREADS_USER_MAX 2

/*
 * With so many that wait to be closed, a user gets us no more; with so few, if he has no room for others.
 */
#define BEHIND_FDS         512
#define BEHIND_FDS_NO_ROOM 64

struct closer {
        struct list link;
        uid_t user;
        int *fds; /* to be closed */
        size_t n_fds, room;
        size_t n_threads; /* at work for him */
        size_t n_told;    /* to the loop */
};

static struct {
        pthread_mutex_t lock;
        pthread_cond_t more;
        struct list closers; /* of those who have anything to be closed */
        size_t n_threads;
        bool is_one_idle; /* others end when there is nothing to do */

        foreign_count_fn count; /* NULL: nobody is told */
        void *userdata;
        sd_event_source *source;
        int closed; /* eventfd: some were */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER,
          .more = PTHREAD_COND_INITIALIZER,
          .closers = { &all.closers, &all.closers },
          .closed = -1 };

static void *run_closer(void *data);

static void start_thread(void)
{
        sigset_t signals, before;
        pthread_t thread;

        if (all.n_threads == THREADS_MAX)
                return;
        sigfillset(&signals);
        pthread_sigmask(SIG_BLOCK, &signals, &before);
        if (pthread_create(&thread, NULL, run_closer, NULL) == 0) {
                (void)pthread_detach(thread);
                all.n_threads++;
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static struct closer *find(uid_t user)
{
        struct closer *closer;

        list_for_each(closer, &all.closers, link)
                if (closer->user == user)
                        return closer;
        return NULL;
}

/* Who has work that nobody may do later. */
static struct closer *find_work(void)
{
        struct closer *closer;

        list_for_each(closer, &all.closers, link)
                if (closer->n_fds > 0 && closer->n_threads < THREADS_USER_MAX)
                        return closer;
        return NULL;
}

static void forget_if_idle(struct closer *closer)
{
        if (closer->n_fds > 0 || closer->n_threads > 0 || closer->n_told > 0)
                return;
        list_remove(&closer->link);
        free(closer->fds);
        free(closer);
}

/* A socket that lingers would keep its thread for as long as its maker likes. */
static void close_one(int fd)
{
        const struct linger none = { 0 };

        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
        fd_close(fd);
}

static void close_next(struct closer *closer)
{
        int fd = closer->fds[--closer->n_fds];

        closer->n_threads++;
        if (find_work() && !all.is_one_idle)
                start_thread(); /* this one may wait for ever */
        pthread_mutex_unlock(&all.lock);
        (void)fault_point("foreign.close");
        close_one(fd);
        pthread_mutex_lock(&all.lock);
        closer->n_threads--;
        if (all.closed >= 0)
                (void)eventfd_write(all.closed, 1);
        forget_if_idle(closer);
}

static void *run_closer(void *data)
{
        struct closer *closer;

        (void)data;
        pthread_mutex_lock(&all.lock);
        while ((closer = find_work()) || !all.is_one_idle) {
                if (closer) {
                        close_next(closer);
                        continue;
                }
                all.is_one_idle = true;
                pthread_cond_wait(&all.more, &all.lock);
                all.is_one_idle = false;
        }
        all.n_threads--;
        pthread_mutex_unlock(&all.lock);
        return NULL;
}

static struct closer *find_or_add(uid_t user)
{
        struct closer *closer = find(user);

        if (closer)
                return closer;
        closer = calloc(1, sizeof(*closer));
        if (!closer)
                return NULL;
        closer->user = user;
        list_append(&all.closers, &closer->link);
        return closer;
}

static int make_room(struct closer *closer, size_t n)
{
        size_t room = closer->room > 0 ? closer->room : 256;
        int *fds;

        while (room < closer->n_fds + n)
                room *= 2;
        if (room == closer->room)
                return 0;
        fds = reallocarray(closer->fds, room, sizeof(*fds));
        if (!fds)
                return -ENOMEM;
        closer->fds = fds;
        closer->room = room;
        return 0;
}

/* In the loop. */
static void tell(struct closer *closer)
{
        size_t n = all.count ? closer->n_fds + closer->n_threads : 0;

        if (all.count && n != closer->n_told)
                all.count(closer->user, n, all.userdata);
        closer->n_told = n;
        forget_if_idle(closer);
}

static int hand_over(int *fds, size_t n, uid_t user)
{
        struct closer *closer = find_or_add(user);
        int r = closer ? make_room(closer, n) : -ENOMEM;

        if (r == 0 && !all.is_one_idle)
                start_thread();
        if (r == 0 && all.n_threads == 0)
                r = -EAGAIN;
        for (size_t i = 0; r == 0 && i < n; i++)
                if (fds[i] >= 0)
                        closer->fds[closer->n_fds++] = TAKE_FD(fds[i]);
        if (closer)
                tell(closer); /* perhaps nothing came */
        pthread_cond_signal(&all.more);
        return r;
}

void foreign_close(int *fds, size_t n, uid_t user)
{
        int r;

        if (n == 0)
                return;
        pthread_mutex_lock(&all.lock);
        r = hand_over(fds, n, user);
        pthread_mutex_unlock(&all.lock);
        for (size_t i = 0; i < n && r < 0; i++) /* there is nobody else to do it */
                close_one(TAKE_FD(fds[i]));
}

static void tell_all(void)
{
        struct closer *closer, *after;

        list_for_each_safe(closer, after, &all.closers, link)
                tell(closer);
}

static int on_closed(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        eventfd_t n;

        (void)source, (void)events, (void)userdata;
        (void)eventfd_read(fd, &n);
        pthread_mutex_lock(&all.lock);
        tell_all();
        pthread_mutex_unlock(&all.lock);
        return 0;
}

int foreign_begin(sd_event *event, foreign_count_fn count, void *userdata)
{
        CLEANUP(fd_closep) int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        int r = fd < 0 ? -errno : sd_event_add_io(event, &all.source, fd, EPOLLIN, on_closed, NULL);

        if (r < 0)
                return r;
        pthread_mutex_lock(&all.lock);
        all.count = count;
        all.userdata = userdata;
        all.closed = TAKE_FD(fd);
        pthread_mutex_unlock(&all.lock);
        return 0;
}

void foreign_end(void)
{
        struct closer *closer;

        all.source = sd_event_source_disable_unref(all.source);
        pthread_mutex_lock(&all.lock);
        list_for_each(closer, &all.closers, link)
                if (all.count && closer->n_told > 0)
                        all.count(closer->user, 0, all.userdata);
        all.count = NULL;
        tell_all();
        all.closed = fd_close(all.closed);
        pthread_mutex_unlock(&all.lock);
}

bool foreign_is_behind(uid_t user, bool has_room)
{
        const struct closer *closer;
        bool is_behind;

        pthread_mutex_lock(&all.lock);
        closer = find(user);
        is_behind = closer && closer->n_fds >= (has_room ? BEHIND_FDS : BEHIND_FDS_NO_ROOM);
        pthread_mutex_unlock(&all.lock);
        return is_behind;
}

/* Then its end waits for nothing: no descriptors that were sent are in it. */
static bool takes_no_fds(int socket)
{
        socklen_t size = sizeof(int);
        int value = 1;

        return getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, &size) == 0 && value == 0;
}

int foreign_hang_up(int fd, uid_t user)
{
        if (fd < 0)
                return -1;
        (void)shutdown(fd, SHUT_RDWR);
        if (takes_no_fds(fd))
                return fd_close(fd);
        foreign_close(&fd, 1, user);
        return -1;
}

/* What it is. */

/* Those of NVIDIA's driver: nvidiactl, nvidia-uvm, nvidia-caps and others, some with numbers of the day. */
static bool is_nvidia(unsigned int number)
{
        FILE *file = fopen("/proc/devices", "re");
        char line[128], name[64];
        bool found = false;
        unsigned int one;

        while (file && !found && fgets(line, sizeof(line), file) && strncmp(line, "Block", 5) != 0)
                found = sscanf(line, "%u %63s", &one, name) == 2 && one == number &&
                        strncmp(name, "nvidia", 6) == 0;
        if (file)
                (void)fclose(file);
        return found;
}

/* A file that was opened with O_PATH is not open: its type is what its file system says. */
static bool is_path(int fd)
{
        int flags = fcntl(fd, F_GETFL);

        return flags < 0 || (flags & O_PATH);
}

bool foreign_is_memory(int fd)
{
        struct statx status;

        if (is_path(fd))
                return false;
        if (fcntl(fd, F_GET_SEALS) >= 0) /* only files in memory have any, or none */
                return true;
        return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) == 0 &&
               S_ISCHR(status.stx_mode) && is_nvidia(status.stx_rdev_major);
}

void foreign_allow_fds(int socket, bool is_allowed)
{
        int value = is_allowed;

        if (!is_allowed && fault_point("manager.old-kernel"))
                return;
        (void)setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value));
}
