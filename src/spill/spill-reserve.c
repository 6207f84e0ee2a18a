/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call that asks the disk is made in a thread of its own, as it may never return. Who waits and the thread share
 * the request; the last of them frees it.
 */
#include "spill/spill-reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/size.h"
#include "spill/spill-file.h"
#include "spill/spill-internal.h"
#include "spill/spill.h"

#define WAIT_SECONDS 2

/* What is left to others of a disk. */
#define KEPT_PART      20
#define KEPT_LEAST     (1024 * MIB)
#define KEPT_PART_MOST 10

struct request {
        pthread_mutex_t lock;
        pthread_cond_t done;
        int directory, fd; /* its own */
        uint64_t size;
        int error;
        bool is_done, is_left; /* nobody waits for it */
        struct spill_stuck *stuck;
};

struct spill_stuck {
        atomic_uint n_users; /* the spill, and threads that have not returned */
};

int spill_stuck_new(struct spill_stuck **ret_stuck)
{
        *ret_stuck = calloc(1, sizeof(**ret_stuck));
        if (!*ret_stuck)
                return -ENOMEM;
        (*ret_stuck)->n_users = 1;
        return 0;
}

struct spill_stuck *spill_stuck_unref(struct spill_stuck *stuck)
{
        if (stuck && atomic_fetch_sub(&stuck->n_users, 1) == 1)
                free(stuck);
        return NULL;
}

bool spill_reserve_is_stuck(const struct spill *spill)
{
        return spill->stuck->n_users > 1;
}

static void request_free(struct request *request)
{
        fd_close(request->directory);
        fd_close(request->fd);
        (void)pthread_cond_destroy(&request->done);
        (void)pthread_mutex_destroy(&request->lock);
        free(request);
}

static int allocate(struct request *request)
{
        int r = 0;

        if (fault_point("spill.reserving"))
                return -ENOSPC;
        if (request->fd < 0)
                r = spill_file_new(&request->fd, request->directory);
        if (r == 0 && fallocate(request->fd, 0, 0, (off_t)request->size) < 0)
                r = -errno;
        return r;
}

static void *run(void *userdata)
{
        struct request *request = userdata;
        bool is_left;
        int r = allocate(request);

        (void)spill_stuck_unref(request->stuck);
        (void)pthread_mutex_lock(&request->lock);
        request->error = r;
        request->is_done = true;
        is_left = request->is_left;
        (void)pthread_cond_signal(&request->done);
        (void)pthread_mutex_unlock(&request->lock);
        if (is_left)
                request_free(request);
        return NULL;
}

static int request_new(struct request **ret_request, struct spill *spill, int fd, uint64_t size)
{
        struct request *request = calloc(1, sizeof(*request));
        pthread_condattr_t attributes;

        if (!request)
                return -ENOMEM;
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&request->done, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        (void)pthread_mutex_init(&request->lock, NULL);
        request->size = size;
        request->stuck = spill->stuck;
        request->directory = fcntl(spill->directory, F_DUPFD_CLOEXEC, 3);
        request->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (request->directory < 0 || (fd >= 0 && request->fd < 0)) {
                request_free(request);
                return -EMFILE;
        }
        *ret_request = request;
        return 0;
}

static int start(struct request *request)
{
        pthread_attr_t attributes;
        pthread_t thread;
        int r;

        (void)pthread_attr_init(&attributes);
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        atomic_fetch_add(&request->stuck->n_users, 1);
        r = -pthread_create(&thread, &attributes, run, request);
        (void)pthread_attr_destroy(&attributes);
        if (r < 0)
                (void)spill_stuck_unref(request->stuck);
        return r;
}

/* The file is the caller's. Errors: -ETIMEDOUT, and the request is the thread's. */
static int wait_for(struct request *request, int *fd)
{
        struct timespec end;
        int r = 0;

        (void)clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += WAIT_SECONDS;
        (void)pthread_mutex_lock(&request->lock);
        while (!request->is_done && r == 0)
                r = -pthread_cond_timedwait(&request->done, &request->lock, &end);
        if (!request->is_done) {
                request->is_left = true;
                (void)pthread_mutex_unlock(&request->lock);
                return -ETIMEDOUT;
        }
        (void)pthread_mutex_unlock(&request->lock);
        r = request->error;
        if (r == 0 && *fd < 0)
                *fd = TAKE_FD(request->fd);
        request_free(request);
        return r;
}

static int ask(struct spill *spill, int *fd, uint64_t size)
{
        struct request *request;
        int r;

        if (spill->directory < 0)
                return -ENOENT;
        if (spill_reserve_is_stuck(spill))
                return -ETIMEDOUT;
        r = request_new(&request, spill, *fd, size);
        if (r < 0)
                return r;
        r = start(request);
        if (r == 0)
                return wait_for(request, fd);
        request_free(request);
        return r;
}

int spill_reserve(struct spill *spill, const char *path, int *fd, uint64_t size,
                  struct failure *failure)
{
        char text[SIZE_TEXT_MAX];
        int r = ask(spill, fd, size);

        size_format(text, size);
        if (r == -ENOSPC)
                return failure_set(failure, r, "NoRoom",
                                   "make room there, ask for less, or start vgpud with another "
                                   "--spill or a larger --pool-limit",
                                   "the disk of %.200s has no room for %s more", path, text);
        if (r == -EOPNOTSUPP)
                return failure_set(failure, r, "NoRoom",
                                   "choose a directory on another file system (ext4, XFS), or a "
                                   "larger --pool-limit",
                                   "the file system of %.200s cannot hold room (fallocate)", path);
        if (r < 0)
                return failure_set(failure, r, "NoRoom", "the log of the kernel says more",
                                   "%s cannot be held on the disk of %.200s: %s", text, path,
                                   r == -ETIMEDOUT ? "it does not answer" : strerror(-r));
        return 0;
}

uint64_t spill_get_kept(uint64_t size)
{
        uint64_t part = size / KEPT_PART, most = size / KEPT_PART_MOST;

        if (part < KEPT_LEAST)
                part = KEPT_LEAST;
        return part < most ? part : most;
}

uint64_t spill_get_free(const struct spill *spill, uint64_t *ret_kept)
{
        struct statvfs status;
        uint64_t free, kept;

        if (ret_kept)
                *ret_kept = 0;
        if (spill->directory < 0 || spill_reserve_is_stuck(spill) ||
            fstatvfs(spill->directory, &status) < 0)
                return 0;
        free = (uint64_t)status.f_bavail * status.f_frsize;
        kept = spill_get_kept((uint64_t)status.f_blocks * status.f_frsize);
        if (kept > free)
                kept = free;
        if (ret_kept)
                *ret_kept = kept;
        return free - kept;
}
