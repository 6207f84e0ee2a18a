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

struct slab {
        struct slab *next;
        uint32_t id;
        unsigned int n_users;
        char *address;
        uint64_t size;
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

/* Work on pieces of a slab by several threads. */

struct piece {
        pthread_t thread;
        bool has_thread;
        char *address;
        uint64_t size;
};

/* One read and write of what is there. */
static void touch_by_hand(const struct piece *piece)
{
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

        for (uint64_t i = 0; i < piece->size; i += page)
                atomic_fetch_or((_Atomic char *)(piece->address + i), 0);
}

static void *touch(void *data)
{
        const struct piece *piece = data;

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

        address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (address == MAP_FAILED)
                return -errno;

        slab->address = address;
        slab->size = size;
        slab->id = id;
        madvise(address, size, MADV_HUGEPAGE); /* refused for hugetlb, which needs it not */
        for_all_pieces(slab, touch);
        *ret_slab = TAKE(slab);
        return 0;
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

/* The process that gets a slab will be copied to it, and shall not wait for the driver to compile the kernel then. */
static void load_hasher_ahead(struct device *device)
{
        struct mover_done ignored = { 0 };

        (void)device_load_hasher(device, &ignored); /* the job tries again, and says why */
}

int slab_add(struct slabs *slabs, struct device *device, uint32_t id, int fd, uint64_t size,
             struct mover_done *done)
{
        CLEANUP(slab_unmapp) struct slab *slab = NULL;
        bool exists;
        int r;

        pthread_mutex_lock(&slabs->lock);
        exists = *find(slabs, id) != NULL;
        pthread_mutex_unlock(&slabs->lock);
        if (exists)
                return -EEXIST;

        r = slab_map(&slab, id, fd, size);
        if (r < 0)
                return r;
        r = slab_register(slab, device, done);
        if (r < 0)
                return r;

        pthread_mutex_lock(&slabs->lock);
        slab->next = slabs->first;
        slabs->first = TAKE(slab);
        pthread_mutex_unlock(&slabs->lock);
        load_hasher_ahead(device);
        return 0;
}

int slab_zero(struct slabs *slabs, uint32_t id)
{
        struct slab *slab;
        bool is_used;

        pthread_mutex_lock(&slabs->lock);
        slab = *find(slabs, id);
        is_used = slab && slab->n_users > 0;
        pthread_mutex_unlock(&slabs->lock);
        if (!slab || is_used)
                return slab ? -EBUSY : -ENOENT;

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
        r = !*place ? -ENOENT : (*place)->n_users > 0 ? -EBUSY : 0;
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
              char **ret_address)
{
        struct slab *slab;
        int r = 0;

        pthread_mutex_lock(&slabs->lock);
        slab = *find(slabs, id);
        if (!slab)
                r = -ENOENT;
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
        pthread_mutex_lock(&slabs->lock);
        (*find(slabs, id))->n_users--;
        pthread_mutex_unlock(&slabs->lock);
}

bool slabs_are_empty(struct slabs *slabs)
{
        bool is_empty;

        pthread_mutex_lock(&slabs->lock);
        is_empty = slabs->first == NULL;
        pthread_mutex_unlock(&slabs->lock);
        return is_empty;
}
