/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/slab.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "mover/driver.h"

/* A new page costs the kernel far more than the bus needs for it: share that among threads. */
#define THREADS_MAX  16
#define BYTES_THREAD (16 * MIB) /* below that a thread costs more than it saves */

#define HUGE_PAGE (2 * MIB)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum slab_state {
        SLAB_COMING, /* not registered yet */
        SLAB_READY,
        SLAB_FAILED, /* for jobs that come too late to be told; until the next one begins */
};

struct slab {
        struct slab *next;
        uint32_t id;
        enum slab_state state;
        unsigned int n_users;
        char *address;
        uint64_t size;
        int error;
        struct mover_done failure;
};

static void slab_unmap(struct slab *slab)
{
        if (!slab)
                return;
        if (slab->address)
                munmap(slab->address, slab->size);
        free(slab);
}

DEFINE_CLEANUP(struct slab *, slab_unmap);

/* With the lock held. */
static struct slab **find(struct slabs *slabs, uint32_t id)
{
        struct slab **slab = &slabs->first;

        while (*slab && (*slab)->id != id)
                slab = &(*slab)->next;
        return slab;
}

void slabs_init(struct slabs *slabs)
{
        *slabs = (struct slabs){ .lock = PTHREAD_MUTEX_INITIALIZER,
                                 .changed = PTHREAD_COND_INITIALIZER };
}

/* Work on pieces of a slab by several threads. */

struct piece {
        pthread_t thread;
        bool has_thread;
        char *address;
        uint64_t size;
};

/* One read and write of what is there. */
static void touch_byte(char *address)
{
        atomic_fetch_or((_Atomic char *)address, 0);
}

static void touch_by_hand(const struct piece *piece)
{
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

        for (uint64_t i = 0; i < piece->size; i += page)
                touch_byte(piece->address + i);
}

/*
 * Two thirds of the time for new pages, and half of that for registering them, are spent page by page. The kernel makes
 * huge pages of those of a file where it is told to (Linux 6.1), also where the host's setting for shared memory is not to
 * make them by itself; it wants one page of each to be there. False: not here, or no more of them.
 */
static bool make_huge(const struct piece *piece)
{
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

        for (uint64_t i = 0; i + HUGE_PAGE <= piece->size; i += HUGE_PAGE) {
                if (madvise(piece->address + i, page, MADV_POPULATE_WRITE) < 0 ||
                    madvise(piece->address + i, HUGE_PAGE, MADV_COLLAPSE) < 0)
                        return false;
        }
        return piece->size % HUGE_PAGE == 0;
}

static void *touch(void *data)
{
        const struct piece *piece = data;

        if (make_huge(piece))
                return NULL;
        if (madvise(piece->address, piece->size, MADV_POPULATE_WRITE) < 0 && errno == EINVAL)
                touch_by_hand(piece); /* before Linux 5.14 */
        return NULL;
}

static void *zero(void *data)
{
        const struct piece *piece = data;

        memset(piece->address, 0, piece->size);
        return NULL;
}

static size_t count_pieces(uint64_t size)
{
        long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
        uint64_t n = size / BYTES_THREAD;

        if (n > (uint64_t)n_processors)
                n = (uint64_t)n_processors;
        if (n > THREADS_MAX)
                n = THREADS_MAX;
        return n > 0 ? n : 1;
}

static void for_all_pieces(struct slab *slab, void *(*function)(void *data))
{
        struct piece pieces[THREADS_MAX];
        size_t n = count_pieces(slab->size);
        uint64_t size = slab->size / n / (2 * MIB) * (2 * MIB);

        for (size_t i = 0; i < n; i++) {
                struct piece *piece = &pieces[i];

                piece->address = slab->address + i * size;
                piece->size = i == n - 1 ? slab->size - i * size : size;
                piece->has_thread =
                        n > 1 && pthread_create(&piece->thread, NULL, function, piece) == 0;
                if (!piece->has_thread)
                        function(piece);
        }
        for (size_t i = 0; i < n; i++)
                if (pieces[i].has_thread)
                        pthread_join(pieces[i].thread, NULL);
}

/* So that the pages of the mapping are those of the file, huge ones too. */
static char *map_aligned(int fd, uint64_t size)
{
        char *room = mmap(NULL, size + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *address;
        uint64_t before;

        if (room == MAP_FAILED)
                return MAP_FAILED;
        before = -(uintptr_t)room % HUGE_PAGE;
        address = mmap(room + before, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
        if (address == MAP_FAILED) {
                munmap(room, size + HUGE_PAGE);
                return MAP_FAILED;
        }
        if (before > 0)
                munmap(room, before);
        munmap(address + size, HUGE_PAGE - before);
        return address;
}

static int slab_map(struct slab **ret_slab, uint32_t id, int fd, uint64_t size)
{
        CLEANUP(slab_unmapp) struct slab *slab = calloc(1, sizeof(*slab));
        struct stat status;
        void *address;

        if (!slab)
                return -ENOMEM;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (size == 0 || (uint64_t)status.st_size < size)
                return -EINVAL; /* to touch what is not there would end us */

        address = map_aligned(fd, size);
        if (address == MAP_FAILED)
                return -errno;

        slab->address = address;
        slab->size = size;
        slab->id = id;
        madvise(address, size, MADV_HUGEPAGE);
        *ret_slab = TAKE(slab);
        return 0;
}

/* With the lock held. */
static void forget_failed(struct slabs *slabs)
{
        struct slab **place = &slabs->first;

        while (*place) {
                struct slab *slab = *place;

                if (slab->state == SLAB_FAILED && slab->n_users == 0) {
                        *place = slab->next;
                        slab_unmap(slab);
                } else {
                        place = &slab->next;
                }
        }
}

int slab_begin(struct slabs *slabs, uint32_t id, int fd, uint64_t size)
{
        CLEANUP(slab_unmapp) struct slab *slab = NULL;
        int r = slab_map(&slab, id, fd, size);

        if (r < 0)
                return r;
        pthread_mutex_lock(&slabs->lock);
        forget_failed(slabs);
        if (*find(slabs, id)) {
                r = -EEXIST;
        } else {
                slab->next = slabs->first;
                slabs->first = TAKE(slab);
        }
        pthread_mutex_unlock(&slabs->lock);
        return r;
}

/* It stays: what is coming is not removed. */
static struct slab *find_coming(struct slabs *slabs, uint32_t id)
{
        struct slab *slab;

        pthread_mutex_lock(&slabs->lock);
        slab = *find(slabs, id);
        pthread_mutex_unlock(&slabs->lock);
        return slab;
}

void slab_fill(struct slabs *slabs, uint32_t id)
{
        for_all_pieces(find_coming(slabs, id), touch);
}

static int slab_register(struct slab *slab, struct device *device, struct mover_done *done)
{
        int r;

        r = device_enter(device, done);
        if (r == 0)
                r = DRIVER_CALL(done, cuMemHostRegister_v2, slab->address, slab->size,
                                CU_MEMHOSTREGISTER_PORTABLE);
        if (r < 0)
                return r;

        r = driver_fault_point(done, "mover.slab-registered");
        if (r < 0)
                driver.cuMemHostUnregister(slab->address);
        return r;
}

/* With the lock held. Its memory goes at once, unless a copy is looking at it. */
static void empty_if_unused(struct slab *slab)
{
        if (slab->state != SLAB_FAILED || slab->n_users > 0 || !slab->address)
                return;
        munmap(slab->address, slab->size);
        slab->address = NULL;
}

int slab_add(struct slabs *slabs, struct device *device, uint32_t id, struct mover_done *done)
{
        struct slab *slab = find_coming(slabs, id);
        int r = slab_register(slab, device, done);

        pthread_mutex_lock(&slabs->lock);
        slab->state = r == 0 ? SLAB_READY : SLAB_FAILED;
        slab->error = r;
        slab->failure = *done;
        empty_if_unused(slab);
        pthread_cond_broadcast(&slabs->changed);
        pthread_mutex_unlock(&slabs->lock);
        return r;
}

static int fail_as(const struct slab *slab, struct mover_done *done)
{
        *done = slab->failure;
        return slab->error;
}

int slab_wait(struct slabs *slabs, uint32_t id, const atomic_bool *stop, struct mover_done *done)
{
        const struct slab *slab;
        int r;

        pthread_mutex_lock(&slabs->lock);
        slab = *find(slabs, id);
        while (slab->state == SLAB_COMING && !*stop)
                pthread_cond_wait(&slabs->changed, &slabs->lock);
        r = slab->state == SLAB_FAILED ? fail_as(slab, done) : 0;
        pthread_mutex_unlock(&slabs->lock);
        return r;
}

void slabs_wake(struct slabs *slabs)
{
        pthread_mutex_lock(&slabs->lock);
        pthread_cond_broadcast(&slabs->changed);
        pthread_mutex_unlock(&slabs->lock);
}

/* With the lock held. */
static int can_change(const struct slab *slab)
{
        if (!slab || slab->state == SLAB_FAILED)
                return -ENOENT;
        return slab->n_users > 0 || slab->state == SLAB_COMING ? -EBUSY : 0;
}

int slab_zero(struct slabs *slabs, uint32_t id)
{
        struct slab *slab;
        int r;

        pthread_mutex_lock(&slabs->lock);
        slab = *find(slabs, id);
        r = can_change(slab);
        pthread_mutex_unlock(&slabs->lock);
        if (r < 0)
                return r;

        for_all_pieces(slab, zero); /* it stays: only this lane removes slabs */
        return 0;
}

int slab_remove(struct slabs *slabs, struct device *device, uint32_t id, struct mover_done *done)
{
        CLEANUP(slab_unmapp) struct slab *slab = NULL;
        struct slab **place;
        int r;

        r = device_enter(device, done);
        if (r < 0)
                return r;

        pthread_mutex_lock(&slabs->lock);
        place = find(slabs, id);
        r = can_change(*place);
        if (r == 0)
                r = DRIVER_CALL(done, cuMemHostUnregister, (*place)->address);
        if (r == 0) {
                slab = *place;
                *place = slab->next;
        }
        pthread_mutex_unlock(&slabs->lock);
        return r;
}

int slab_hold(struct slabs *slabs, uint32_t id, uint64_t offset, uint64_t length,
              char **ret_address, struct mover_done *done)
{
        struct slab *slab;
        int r = 0;

        pthread_mutex_lock(&slabs->lock);
        slab = *find(slabs, id);
        if (!slab)
                r = -ENOENT;
        else if (slab->state == SLAB_FAILED)
                r = fail_as(slab, done);
        else if (offset > slab->size || length > slab->size - offset)
                r = -ERANGE;
        if (r == 0) {
                slab->n_users++;
                *ret_address = slab->address + offset;
        }
        pthread_mutex_unlock(&slabs->lock);
        return r;
}

void slab_release(struct slabs *slabs, uint32_t id)
{
        struct slab *slab;

        pthread_mutex_lock(&slabs->lock);
        slab = *find(slabs, id);
        slab->n_users--;
        empty_if_unused(slab);
        pthread_mutex_unlock(&slabs->lock);
}

bool slabs_are_empty(struct slabs *slabs)
{
        bool is_empty = true;

        pthread_mutex_lock(&slabs->lock);
        for (const struct slab *slab = slabs->first; slab; slab = slab->next)
                is_empty &= slab->state == SLAB_FAILED;
        pthread_mutex_unlock(&slabs->lock);
        return is_empty;
}
