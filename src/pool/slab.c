/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/slab.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"

DEFINE_CLEANUP(struct slab *, slab_free);

/* Nobody can cut off what the driver has pinned, or what we think is there. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/*
 * Of the file, once a client has had it: nobody but us can open it anew for writing, and the next
 * manager sees what it is.
 */
#define SHARED_MODE 0600

static int memfd_new(int *ret_fd, uint64_t size)
{
        CLEANUP(fd_closep)
        int fd = memfd_create("openvgpu-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0 || ftruncate(fd, (off_t)(size + SLAB_TAIL)) < 0 ||
            fcntl(fd, F_ADD_SEALS, SEALS) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int slab_new(struct slab **ret_slab, uint32_t id, uint64_t size)
{
        CLEANUP(slab_freep) struct slab *slab = calloc(1, sizeof(*slab));
        int r;

        if (!slab)
                return -ENOMEM;

        slab->id = id;
        slab->fd = -1;
        slab->shared_with = SLAB_NOBODY;
        slab->size = size;
        r = memfd_new(&slab->fd, size);
        if (r == 0)
                r = slab_stamps_make(&slab->stamps, slab->fd, size);
        if (r < 0)
                return r;

        *ret_slab = TAKE(slab);
        return 0;
}

int slab_adopt(struct slab **ret_slab, uint32_t id, int fd)
{
        CLEANUP(slab_freep) struct slab *slab = NULL;
        struct stat status;
        int r;

        if (fcntl(fd, F_GET_SEALS) != SEALS || fstat(fd, &status) < 0 || status.st_size <= 0)
                return -EINVAL;

        slab = calloc(1, sizeof(*slab));
        if (!slab)
                return -ENOMEM;

        slab->id = id;
        slab->fd = -1;
        r = slab_stamps_find(&slab->stamps, fd, (uint64_t)status.st_size, &slab->size);
        if (r < 0)
                return r;
        slab->fd = fd;
        slab->is_dirty = true;
        slab->shared_with = SLAB_NOBODY;
        slab->is_shared = (status.st_mode & 0777) == SHARED_MODE;
        *ret_slab = TAKE(slab);
        return 0;
}

struct slab *slab_free(struct slab *slab)
{
        if (!slab)
                return NULL;

        slab_stamps_free(slab->stamps);
        fd_close(slab->fd);
        free(slab->ranges);
        free(slab);
        return NULL;
}

/* Nobody else's, as far as we know. */
static bool is_his(const struct slab *slab, const char *owner)
{
        return !slab->is_leaving && (slab_is_free(slab) || strcmp(slab->owner, owner) == 0);
}

bool slab_is_usable(const struct slab *slab, const char *owner)
{
        if (slab->is_leaving || !slab->stamps || (slab->is_shared && slab->is_common))
                return false;
        return (slab_is_free(slab) && !slab->is_shared) || strcmp(slab->owner, owner) == 0;
}

/* Ranges. A gap is before the range @index, or, for the last, behind all. */

static uint64_t align(uint64_t offset)
{
        return (offset + SLAB_EXTENT_ALIGN - 1) / SLAB_EXTENT_ALIGN * SLAB_EXTENT_ALIGN;
}

static struct slab_range gap(const struct slab *slab, size_t index)
{
        const struct slab_range *before = index > 0 ? &slab->ranges[index - 1] : NULL;
        uint64_t begin = before ? align(before->offset + before->length) : 0;
        uint64_t end = index < slab->n_ranges ? slab->ranges[index].offset : slab->size;

        return (struct slab_range){ .offset = begin, .length = end > begin ? end - begin : 0 };
}

uint64_t slab_room(const struct slab *slab)
{
        uint64_t room = 0;

        for (size_t i = 0; i <= slab->n_ranges; i++)
                room += gap(slab, i).length;
        return room;
}

uint64_t slab_room_without_spare(const struct slab *slab, const char *owner)
{
        if (slab->is_leaving || !slab->stamps)
                return 0;
        if (!slab_is_needed(slab) && !slab->is_shared)
                return slab->size;
        if (slab->is_shared && slab->is_common)
                return 0;
        return strcmp(slab->owner, owner) == 0 ? slab_room(slab) + slab->spare_bytes : 0;
}

/* Holders. */

static uint64_t end_of(const struct slab_range *range)
{
        return range->offset + range->length;
}

static void count_needed(struct slab *slab)
{
        slab->n_needed = 0;
        slab->spare_bytes = 0;
        for (size_t i = 0; i < slab->n_ranges; i++) {
                if (slab->ranges[i].n_holders > slab->ranges[i].n_spare)
                        slab->n_needed++;
                else
                        slab->spare_bytes += slab->ranges[i].length;
        }
}

/* The first that ends behind @offset; n_ranges: none does. */
static size_t find_range(const struct slab *slab, uint64_t offset)
{
        size_t first = 0, end = slab->n_ranges;

        while (first < end) {
                size_t middle = first + (end - first) / 2;

                if (end_of(&slab->ranges[middle]) <= offset)
                        first = middle + 1;
                else
                        end = middle;
        }
        return first;
}

void slab_set_spare(struct slab *slab, const struct slab_range *range, bool is_spare)
{
        for (size_t i = find_range(slab, range->offset);
             i < slab->n_ranges && slab->ranges[i].offset < end_of(range); i++) {
                if (is_spare)
                        slab->ranges[i].n_spare++;
                else
                        slab->ranges[i].n_spare--;
        }
        count_needed(slab);
}

uint32_t slab_get_holders(const struct slab *slab, const struct slab_range *range)
{
        uint64_t offset = range->offset;
        uint32_t n = 0;

        for (size_t i = find_range(slab, offset); offset < end_of(range); i++) {
                if (i == slab->n_ranges || slab->ranges[i].offset > offset)
                        return 0;
                if (slab->ranges[i].n_holders > n)
                        n = slab->ranges[i].n_holders;
                offset = end_of(&slab->ranges[i]);
        }
        return n;
}

void slab_hold_range(struct slab *slab, const struct slab_range *range)
{
        for (size_t i = find_range(slab, range->offset);
             i < slab->n_ranges && slab->ranges[i].offset < end_of(range); i++)
                slab->ranges[i].n_holders++;
        count_needed(slab);
}

static int insert(struct slab *slab, size_t index, const struct slab_range *range)
{
        if (slab->n_ranges == slab->n_ranges_max) {
                size_t n = slab->n_ranges_max > 0 ? 2 * slab->n_ranges_max : 4;
                struct slab_range *ranges = reallocarray(slab->ranges, n, sizeof(*ranges));

                if (!ranges)
                        return -ENOMEM;
                slab->ranges = ranges;
                slab->n_ranges_max = n;
        }
        memmove(slab->ranges + index + 1, slab->ranges + index,
                (slab->n_ranges - index) * sizeof(*slab->ranges));
        slab->ranges[index] = *range;
        slab->n_ranges++;
        return 0;
}

static int split_at(struct slab *slab, uint64_t offset)
{
        size_t i = find_range(slab, offset);
        struct slab_range rest;
        int r;

        if (i == slab->n_ranges || slab->ranges[i].offset >= offset)
                return 0;
        rest = slab->ranges[i];
        rest.length = end_of(&rest) - offset;
        rest.offset = offset;
        r = insert(slab, i + 1, &rest);
        if (r == 0)
                slab->ranges[i].length -= rest.length;
        count_needed(slab);
        return r;
}

int slab_split(struct slab *slab, const struct slab_range *range)
{
        int r = split_at(slab, range->offset);

        return r < 0 ? r : split_at(slab, end_of(range));
}

/* The first range decides whose slab it is, and whether that one may see what is in it. */
static void set_owner(struct slab *slab, const char *owner)
{
        bool is_same = strcmp(slab->owner, owner) == 0;

        if (slab->n_ranges > 1)
                return;
        slab->needs_zero = slab->is_dirty && !is_same;
        if (!is_same)
                memcpy(slab->owner, owner, strlen(owner) + 1);
}

int slab_take(struct slab *slab, const char *owner, uint64_t wanted, struct slab_range *ret_range)
{
        for (size_t i = 0; i <= slab->n_ranges; i++) {
                struct slab_range range = gap(slab, i);
                int r;

                if (range.length == 0)
                        continue;
                if (range.length > wanted)
                        range.length = wanted;
                range.n_holders = 1;
                r = insert(slab, i, &range);
                if (r < 0)
                        return r;
                count_needed(slab);
                set_owner(slab, owner);
                slab_stamps_clear(slab->stamps, &range, SLAB_ALL_STAMPS);
                *ret_range = range;
                return 0;
        }
        return -ENOSPC;
}

/* What nobody has of @range is a range of its own, and all of it has one holder more. */
static int adopt(struct slab *slab, const struct slab_range *range)
{
        uint64_t offset = range->offset;
        int r = slab_split(slab, range);

        for (size_t i = find_range(slab, offset); offset < end_of(range) && r == 0; i++) {
                const struct slab_range *next = i < slab->n_ranges ? &slab->ranges[i] : NULL;
                struct slab_range missing = { .offset = offset, .length = end_of(range) - offset };

                if (next && next->offset < end_of(range))
                        missing.length = next->offset - offset;
                if (missing.length > 0)
                        r = insert(slab, i, &missing);
                offset = r == 0 ? end_of(&slab->ranges[i]) : offset;
        }
        if (r == 0)
                slab_hold_range(slab, range);
        return r;
}

int slab_adopt_range(struct slab *slab, const char *owner, const struct slab_range *range,
                     bool may_share)
{
        uint64_t end;
        size_t i;
        int r;

        if (!is_his(slab, owner) || range->length == 0 ||
            __builtin_add_overflow(range->offset, range->length, &end) || end > slab->size)
                return -EINVAL;

        i = find_range(slab, range->offset);
        if (!may_share && i < slab->n_ranges && slab->ranges[i].offset < end)
                return -EINVAL;

        r = adopt(slab, range);
        if (r < 0)
                return r;
        set_owner(slab, owner);
        slab->needs_zero = false; /* what is in it is his */
        return 0;
}

/* The range @i has no holder any more. */
static void remove_range(struct slab *slab, size_t i)
{
        if (slab->stamps)
                slab_stamps_clear(slab->stamps, &slab->ranges[i], SLAB_ALL_STAMPS);
        memmove(slab->ranges + i, slab->ranges + i + 1,
                (slab->n_ranges - i - 1) * sizeof(*slab->ranges));
        slab->n_ranges--;
}

void slab_give_back(struct slab *slab, const struct slab_range *range, uint64_t generation)
{
        size_t i = find_range(slab, range->offset);

        if (slab->stamps)
                slab_stamps_clear(slab->stamps, range, generation);
        while (i < slab->n_ranges && slab->ranges[i].offset < end_of(range)) {
                if (--slab->ranges[i].n_holders == 0)
                        remove_range(slab, i);
                else
                        i++;
        }
        count_needed(slab);
        if (slab->n_ranges > 0)
                return;

        if (slab->needs_zero) /* not come to that: it may have data of two owners */
                slab->owner[0] = '\0';
        slab->needs_zero = false;
        slab->is_dirty = true;
}

/* Of the owner and root, it is the owner who has limits. */
int slab_share(struct slab *slab, uid_t user)
{
        if (!slab->is_shared && fchmod(slab->fd, SHARED_MODE) < 0)
                return -errno;
        slab->is_shared = true;
        if (slab->shared_with == SLAB_NOBODY || user != 0)
                slab->shared_with = user;
        return 0;
}

void slab_set_clean(struct slab *slab)
{
        slab->needs_zero = false;
        slab->is_dirty = false;
        if (slab_is_free(slab))
                slab->owner[0] = '\0';
}
