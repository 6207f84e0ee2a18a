/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/slab-stamp.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "pool/pool.h"

/*
 * A client that reads or loads an image of its vGPU sees this, and one that loads can write here, as into
 * the data: that harms that vGPU and no other, for such slabs are given to nobody else. But every
 * number is bounded.
 */
struct stamp {
        uint64_t offset;
        _Atomic uint64_t length; /* 0: unused; set last, so that half a stamp is none */
        struct pool_mark mark;
};

static const char magic[16] = "OpenVGPU stamps";

struct slab_stamps {
        char magic[sizeof(magic)];
        uint64_t size;      /* of the data */
        _Atomic uint32_t n; /* used or not, those behind never were */
        uint32_t reserved;
        struct stamp stamp[];
};

#define STAMPS_MAX ((uint32_t)((SLAB_TAIL - sizeof(struct slab_stamps)) / sizeof(struct stamp)))

static int map(struct slab_stamps **ret_stamps, int fd, uint64_t size)
{
        void *address = mmap(NULL, SLAB_TAIL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)size);

        if (address == MAP_FAILED)
                return -errno;
        *ret_stamps = address;
        return 0;
}

int slab_stamps_make(struct slab_stamps **ret_stamps, int fd, uint64_t size)
{
        int r = map(ret_stamps, fd, size);

        if (r < 0)
                return r;
        (*ret_stamps)->size = size;
        memcpy((*ret_stamps)->magic, magic, sizeof(magic));
        return 0;
}

/* Data that looks like this can only be that of a guest which wants its own vGPU to fail. */
int slab_stamps_find(struct slab_stamps **ret_stamps, int fd, uint64_t file_size,
                     uint64_t *ret_size)
{
        struct slab_stamps *stamps = NULL;
        int r;

        *ret_stamps = NULL;
        *ret_size = file_size;
        if (file_size <= SLAB_TAIL || file_size % SLAB_TAIL != 0)
                return 0;
        r = map(&stamps, fd, file_size - SLAB_TAIL);
        if (r < 0)
                return r;
        if (memcmp(stamps->magic, magic, sizeof(magic)) != 0 ||
            stamps->size != file_size - SLAB_TAIL) {
                slab_stamps_free(stamps);
                return 0;
        }
        *ret_stamps = stamps;
        *ret_size = file_size - SLAB_TAIL;
        return 0;
}

struct slab_stamps *slab_stamps_free(struct slab_stamps *stamps)
{
        if (stamps)
                munmap(stamps, SLAB_TAIL);
        return NULL;
}

/* Read once: a client may change it meanwhile. */
static uint32_t count(const struct slab_stamps *stamps)
{
        uint32_t n = atomic_load_explicit(&stamps->n, memory_order_relaxed);

        return n < STAMPS_MAX ? n : STAMPS_MAX;
}

static bool is_on(const struct stamp *stamp, const struct slab_range *range)
{
        return stamp->length > 0 && stamp->offset < range->offset + range->length &&
               range->offset < stamp->offset + stamp->length;
}

static bool is_exactly_on(const struct stamp *stamp, const struct slab_range *range)
{
        return stamp->offset == range->offset && stamp->length == range->length;
}

enum slab_finding slab_stamps_look(const struct slab_stamps *stamps, const struct slab_range *range,
                                   const struct pool_mark *mark)
{
        enum slab_finding found = SLAB_FOUND_NOTHING;

        for (uint32_t i = 0; i < count(stamps); i++) {
                const struct stamp *stamp = &stamps->stamp[i];

                if (!is_on(stamp, range))
                        continue;
                if (is_exactly_on(stamp, range) && memcmp(&stamp->mark, mark, sizeof(*mark)) == 0)
                        return SLAB_FOUND_MARK;
                found = SLAB_FOUND_OTHER;
        }
        return found;
}

bool slab_stamps_are_of(const struct slab_stamps *stamps, const char *vgpu)
{
        for (uint32_t i = 0; i < count(stamps); i++)
                if (stamps->stamp[i].length > 0 &&
                    strncmp(stamps->stamp[i].mark.owner, vgpu, POOL_OWNER_MAX) != 0)
                        return false;
        return true;
}

uint32_t slab_stamps_get_room(const struct slab_stamps *stamps)
{
        uint32_t n_used = 0;

        for (uint32_t i = 0; i < count(stamps); i++)
                n_used += stamps->stamp[i].length > 0;
        return STAMPS_MAX - n_used;
}

/* Where the stamp of @generation on @range is, or could be. NULL: nowhere. */
static struct stamp *find_place(struct slab_stamps *stamps, const struct slab_range *range,
                                uint64_t generation)
{
        struct stamp *unused = NULL;
        uint32_t n = count(stamps);

        for (uint32_t i = 0; i < n; i++) {
                struct stamp *stamp = &stamps->stamp[i];

                if (is_exactly_on(stamp, range) && stamp->mark.generation == generation)
                        return stamp;
                if (!unused && stamp->length == 0)
                        unused = stamp;
        }
        if (unused || n == STAMPS_MAX)
                return unused;
        stamps->n = n + 1;
        return &stamps->stamp[n];
}

int slab_stamps_put(struct slab_stamps *stamps, const struct slab_range *range,
                    const struct pool_mark *mark)
{
        struct stamp *stamp = find_place(stamps, range, mark->generation);

        if (!stamp)
                return -ENOSPC;
        atomic_store(&stamp->length, 0);
        stamp->offset = range->offset;
        stamp->mark = *mark;
        atomic_store(&stamp->length, range->length);
        return 0;
}

void slab_stamps_clear(struct slab_stamps *stamps, const struct slab_range *range,
                       uint64_t generation)
{
        for (uint32_t i = 0; i < count(stamps); i++) {
                struct stamp *stamp = &stamps->stamp[i];

                if (!is_on(stamp, range) ||
                    (generation != SLAB_ALL_STAMPS && stamp->mark.generation != generation))
                        continue;
                atomic_store(&stamp->length, 0);
                stamp->offset = 0;
                stamp->mark = (struct pool_mark){ 0 }; /* the next owner may see it */
        }
}
