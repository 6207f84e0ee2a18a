/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POOL_SLAB_STAMP_H
#define POOL_SLAB_STAMP_H

/*
 * Stamps: a slab itself says whose memory it contains.
 *
 * The database says where in the slabs a process' memory is. If the database were wrong, one vGPU
 * would get the memory of another. Each extent is therefore stamped when the copy to it has ended.
 * A stamp stands behind the data in the same file, and has the owner, the process and a number that
 * no other reservation ever had. Taking a range removes its stamps, and who gives it back removes his own.
 * Nothing is copied from an extent to a device without the right stamp. What several hold (slab.h) has the
 * stamps of all of them.
 */

#include <stdbool.h>
#include <stdint.h>

struct slab_stamps;
struct pool_mark;

/* Bytes of the file behind the data; whole huge pages. */
#define SLAB_TAIL ((uint64_t)2 << 20)

struct slab_range {
        uint64_t offset;
        uint64_t length;
        uint32_t n_holders; /* slab.h: extents of reservations; and of them, those that are spare */
        uint32_t n_spare;
};

/* slab_stamps_make() - none yet, behind the first @size bytes of the new file @fd. */
int slab_stamps_make(struct slab_stamps **ret_stamps, int fd, uint64_t size);

/*
 * slab_stamps_find() - those of a former manager; NULL: the file was made by a release that had
 * none.
 * @ret_size: of the data.
 */
int slab_stamps_find(struct slab_stamps **ret_stamps, int fd, uint64_t file_size,
                     uint64_t *ret_size);

struct slab_stamps *slab_stamps_free(struct slab_stamps *stamps);

enum slab_finding {
        SLAB_FOUND_NOTHING, /* no stamp is on any of it */
        SLAB_FOUND_MARK,    /* exactly this one is on exactly this range, perhaps beside others */
        SLAB_FOUND_OTHER,   /* only others */
};

enum slab_finding slab_stamps_look(const struct slab_stamps *stamps, const struct slab_range *range,
                                   const struct pool_mark *mark);

/*
 * slab_stamps_put() - beside those of other reservations, and instead of that of its own on the same range.
 * Errors: -ENOSPC (too many in this slab).
 */
int slab_stamps_put(struct slab_stamps *stamps, const struct slab_range *range,
                    const struct pool_mark *mark);

/* slab_stamps_are_of() - are there none but of @vgpu? */
bool slab_stamps_are_of(const struct slab_stamps *stamps, const char *vgpu);

/* slab_stamps_get_room() - how many more can be put. */
uint32_t slab_stamps_get_room(const struct slab_stamps *stamps);

/* slab_stamps_clear() - those on any of @range: of the reservation with @generation, or all. */
#define SLAB_ALL_STAMPS UINT64_MAX
void slab_stamps_clear(struct slab_stamps *stamps, const struct slab_range *range,
                       uint64_t generation);

#endif
