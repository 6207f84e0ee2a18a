/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

/*
 * The pool: host memory for evicted GPU memory, in slabs.
 *
 * The pool is pure bookkeeping, except that it makes the slabs' memfds. It asks its
 * worker for the work of movers (pin a slab for a device, zero it, release it), and
 * pool_work_done() reports the end. So the pool knows neither CUDA nor the event loop.
 *
 * A slab belongs to one owner (a vGPU) at a time:
 *
 *     clean ---reserve---> in use ---last extent released---> dirty, of its last owner
 *       ^                    ^---------- same owner -----------|
 *       '---------------------- zeroed ------------------------'
 *
 * The owner may be a group instead, the vGPUs of one user (pool_reserve_in()). Then reservations of the group
 * may hold the same block: pool-common.c, and slab.h says what must hold.
 *
 * It is "ready" on a device when that device's mover has it pinned. New slabs all
 * have the same size; an adopted one keeps its own. The pool never grows above its limit; it is
 * larger only while a lowered limit waits for slabs in use.
 *
 * After a restart the manager adopts the slabs that the keeper has, with the extents that its
 * database has, before anything else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "wire/mover.h"

#define POOL_SLAB_SIZE   (256 * MIB)
#define POOL_SLAB_ALIGN  (2 * MIB) /* of a slab's size: huge pages */
#define POOL_OWNER_MAX   64        /* a vGPU's UUID as text, with its NUL */
#define POOL_DEVICES_MAX 32

struct pool;
struct pool_reservation;

/* Where a block of a reservation is. */
struct pool_place {
        uint32_t slab; /* 0: no slab */
        uint64_t offset;
};

/* A piece of a slab. The order of a reservation's extents is the order of its bytes. */
struct pool_extent {
        uint32_t slab;
        uint64_t offset;
        uint64_t length;
};

/*
 * Whose memory an extent has, as its slab says (slab-stamp.h). The generation is that of a
 * reservation, a random number; 0: made by a release that had none.
 */
struct pool_mark {
        char owner[POOL_OWNER_MAX];
        uint64_t generation;
        uint64_t start_time; /* of the process */
        int64_t pid;
};

enum pool_action { POOL_ADD = 1, POOL_ZERO, POOL_REMOVE };

/* What the mover of @device shall do; the fields are those of SLAB_ADD and its kin. */
struct pool_work {
        enum pool_action action;
        uint32_t device; /* the caller's index, as in pool_prepare() */
        uint32_t slab;
        int fd; /* borrowed, for the call only */
        uint64_t size;
};

/*
 * The worker starts @work and answers 0; pool_work_done() then follows, once, later. Or it fails
 * at once (no such mover, ...), and pool_work_done() is not called.
 */
typedef int (*pool_worker_fn)(const struct pool_work *work, void *userdata);

/*
 * A slab leaves the pool, and a client of @user ((uid_t)-1: of somebody) may have kept it: its
 * memory is not free. Answers 0, and pool_gone() follows, once, later; or fails, and it is not
 * counted.
 */
typedef int (*pool_watch_fn)(int fd, uint64_t size, uid_t user, void *userdata);

struct pool_options {
        uint64_t limit;     /* bytes, rounded down to slabs; 0: a quarter of the machine's RAM */
        uint64_t slab_size; /* a multiple of POOL_SLAB_ALIGN; 0: POOL_SLAB_SIZE */
        pool_worker_fn worker;
        pool_watch_fn watch; /* NULL: nobody can */
        void *userdata;      /* of both */
};

/* pool_new() - an empty pool. Errors: -EINVAL (slab size). */
int pool_new(struct pool **ret_pool, const struct pool_options *options);

/* pool_free() - forget everything, reservations too; no callback is called. Returns NULL. */
struct pool *pool_free(struct pool *pool);
DEFINE_CLEANUP(struct pool *, pool_free);

struct pool_info {
        uint64_t limit;     /* bytes that the pool may take */
        uint64_t size;      /* of all slabs */
        uint64_t ready;     /* of the slabs that are pinned for at least one device */
        uint64_t used;      /* of all extents that are not spare */
        uint64_t saved;     /* what they would be more, if each had its own of what several hold */
        uint64_t spare;     /* of those that are */
        uint64_t held;      /* of slabs that have left it, and that clients have kept */
        uint64_t slab_size; /* bytes of one */
};

void pool_get_info(const struct pool *pool, struct pool_info *ret_info);

/*
 * pool_set_limit() - change the limit. Free slabs above it are let go, at once or after their
 * movers have; slabs in use go when they are released.
 */
void pool_set_limit(struct pool *pool, uint64_t limit);

/*
 * pool_available() - the greatest reservation that @owner can get now. It counts what can still be
 * created below the limit, slabs that will have to be zeroed first, and what is spare.
 */
uint64_t pool_available(const struct pool *pool, const char *owner);

/*
 * pool_reserve() - take @bytes for @owner, all or none
 *
 * On a slab that is ready on @device if there is one. The extents are known at once; data may go
 * there after pool_prepare(). Errors: -ENOSPC (pool_available() is less), -EINVAL (0 bytes),
 * -ENAMETOOLONG; others: memfd_create().
 */
int pool_reserve(struct pool *pool, struct pool_reservation **ret_reservation, const char *owner,
                 uint32_t device, uint64_t bytes);

/*
 * pool_reserve_in() - the same in slabs of the group @owner, for @vgpu of that group
 * What is free in a slab that a client has had is given to nobody of it.
 */
int pool_reserve_in(struct pool *pool, struct pool_reservation **ret_reservation, const char *owner,
                    const char *vgpu, uint32_t device, uint64_t bytes);

/*
 * pool_prepare() - make all slabs of @reservation ready on @device: zeroed if they had another
 * owner, and pinned
 *
 * @ret_ready: true: that is so already, and @done is not called. False: @done follows once, from
 * pool_work_done() or pool_device_lost(), unless the reservation is released before. One
 * preparation of a reservation at a time. Errors: -EBUSY; that of the worker.
 */
typedef void (*pool_prepared_fn)(struct pool_reservation *reservation, int error, void *userdata);
int pool_prepare(struct pool *pool, struct pool_reservation *reservation, uint32_t device,
                 pool_prepared_fn done, void *userdata, bool *ret_ready);

/*
 * pool_prepare_soon() - the same, but a slab that is being pinned will do: what is asked of the mover after that
 * waits for it, slab by slab, and fails as the pinning fails.
 */
int pool_prepare_soon(struct pool *pool, struct pool_reservation *reservation, uint32_t device,
                      pool_prepared_fn done, void *userdata, bool *ret_ready);

/* pool_begin() - begin to pin on @device what is not pinned there: a preparation comes. Nothing is waited for. */
void pool_begin(struct pool *pool, const struct pool_reservation *reservation, uint32_t device);

/* pool_release() - give everything back, prepared, spare or not; NULL is fine. Returns NULL. */
struct pool_reservation *pool_release(struct pool *pool, struct pool_reservation *reservation);

/*
 * pool_spare() - what is in @reservation is of use, but nobody needs it
 *
 * It stays as it is, and its slabs its owner's, until the pool wants the room: for a reservation, or below
 * a lowered limit. Then @given_up is called and the reservation is no more. The @user of whom most is spare
 * gives first, the oldest first: nobody pushes out what others have. Its stamps are removed: it is nobody's
 * memory. Errors: -EBUSY (a client may have written to it, or the slab is leaving), -ENOMEM.
 */
typedef void (*pool_given_up_fn)(void *userdata);
int pool_spare(struct pool *pool, struct pool_reservation *reservation, uid_t user,
               pool_given_up_fn given_up, void *userdata);

/* pool_need() - it is needed again, with a new generation. Errors: getrandom(), and it is still spare. */
int pool_need(struct pool *pool, struct pool_reservation *reservation);

/* Borrowed, and never changed as long as the reservation lives: what the database stores. */
const struct pool_extent *pool_get_extents(const struct pool_reservation *reservation,
                                           size_t *ret_n);

/* pool_get_generation() - what tells it from all others that there were and will be. */
uint64_t pool_get_generation(const struct pool_reservation *reservation);

/*
 * pool_stamp() - the memory of the process @pid that started at @start_time is in @reservation now:
 * its slabs say so. Errors: -ENOSPC.
 */
int pool_stamp(struct pool *pool, const struct pool_reservation *reservation, pid_t pid,
               uint64_t start_time);

/*
 * pool_check() - do its slabs say that it is the memory of that process? To be asked before
 * anything is copied to a device. Errors: -ESTALE, with the slab that says something else.
 */
int pool_check(const struct pool *pool, const struct pool_reservation *reservation, pid_t pid,
               uint64_t start_time, uint32_t *ret_slab);

/* pool_get_owned() - bytes of the slabs that @owner needs something of: nobody else gets those; and what is free there. */
uint64_t pool_get_owned(const struct pool *pool, const char *owner, uint64_t *ret_room);

/* pool_get_length() - bytes of all extents; of NULL none. */
uint64_t pool_get_length(const struct pool_reservation *reservation);

const char *pool_get_owner(const struct pool_reservation *reservation);

/* pool_is_in_use() - does a reservation that is not spare have an extent in that slab? */
bool pool_is_in_use(const struct pool *pool, uint32_t slab);

/* pool_get_slab() - the memfd of a slab, borrowed: for the keeper. -1: no such slab. */
int pool_get_slab(const struct pool *pool, uint32_t slab);

/*
 * pool_share() - the same, to be given to a client of @user: it is let go when it has nobody's
 * memory in it any more. Errors: -ENOENT; fchmod().
 */
int pool_share(struct pool *pool, uint32_t slab, uid_t user);

/* pool_gone() - @size bytes that were watched are free. */
void pool_gone(struct pool *pool, uint64_t size);

/*
 * pool_want() - keep @bytes ready on @device for new reservations, ahead of demand
 *
 * The pool creates, zeroes and pins slabs one after another, below its limit. Call it when the
 * amount changes and when a mover (again) works. After a failure it rests until the next call.
 */
void pool_want(struct pool *pool, uint32_t device, uint64_t bytes);

/*
 * pool_want_all() - pin on @device, ahead of demand, also what other devices have pinned and what is in use
 *
 * A vGPU that comes to @device from another one then finds its slabs ready. What pool_want() asks comes
 * first. Until pool_rest() or pool_device_lost().
 */
void pool_want_all(struct pool *pool, uint32_t device, bool is_wanted);

/* pool_rest() - start nothing more ahead of demand on @device, until the next pool_want(). */
void pool_rest(struct pool *pool, uint32_t device);

/*
 * pool_pause() - start nothing ahead of demand, on any device, until pool_unpause() was called as
 * often: the driver's own steps wait for each slab that it pins.
 */
void pool_pause(struct pool *pool);
void pool_unpause(struct pool *pool);

/* pool_work_done() - the worker's answer: @error is 0 or a negative errno. */
void pool_work_done(struct pool *pool, enum pool_action action, uint32_t device, uint32_t slab,
                    int error);

/*
 * pool_device_lost() - the mover of @device is gone and has nothing pinned any more. What it was
 * working on has failed; a late pool_work_done() for it is ignored.
 */
void pool_device_lost(struct pool *pool, uint32_t device);

/*
 * pool_adopt() - take the slab @slab with its data from a former manager; @fd is taken on success
 * What pool_adopt_reservation() does not claim is free, and zeroed before anyone gets it.
 * Errors: -EEXIST; -EINVAL (not a memfd of ours).
 */
int pool_adopt(struct pool *pool, uint32_t slab, int fd);

/*
 * pool_adopt_reservation() - take a reservation of a former manager, for slabs that are adopted
 * @owner: that of the mark, or its group. Several may hold the same; then it has the stamp of each.
 * Errors: -ENOENT (a slab is missing: that memory is lost), -EINVAL (outside of the slab, overlaps,
 * or two owners in one slab), -ESTALE (the slab says that it is another's); nothing is changed
 * then.
 */
int pool_adopt_reservation(struct pool *pool, struct pool_reservation **ret_reservation,
                           const char *owner, const struct pool_mark *mark,
                           const struct pool_extent *extents, size_t n_extents);

/* pool_has_none_but() - do adopted slabs say that nobody's memory is in them but @vgpu's? */
bool pool_has_none_but(const struct pool *pool, const struct pool_extent *extents, size_t n_extents,
                       const char *vgpu);

/* Blocks that several reservations hold: @block bytes each, the first at the reservation's first byte. */

/* pool_get_places() - where the first @n blocks are; nowhere, if one is in two pieces. */
void pool_get_places(const struct pool_reservation *reservation, uint64_t block,
                     struct pool_place *places, size_t n);

/* pool_is_lone() - does nobody else hold any of it? Only then may it be written to. */
bool pool_is_lone(const struct pool *pool, const struct pool_reservation *reservation);

/* pool_get_common() - how many of its @n blocks have other holders, and where they are; the others nowhere. */
size_t pool_get_common(const struct pool *pool, const struct pool_reservation *reservation,
                       uint64_t block, size_t n, struct pool_place *ret_places);

/*
 * pool_part() - make it lone: each of its @n blocks that has another holder is another one, with nothing in it
 *
 * @ret_others has the former ones; NULL: there were none. @ret_places says of each block where in there it is
 * (nowhere: it is where it was). Its stamps are removed. Errors: -EBUSY (it is spare, or being prepared), -ENOSPC, -ENOMEM, and
 * nothing has changed.
 */
int pool_part(struct pool *pool, struct pool_reservation *reservation, uint32_t device,
              uint64_t block, size_t n, struct pool_place *ret_places,
              struct pool_reservation **ret_others);

/*
 * pool_join() - for each of its @n blocks that has a place in @places: hold what is there instead
 *
 * The caller knows that the contents are the same. To be done before pool_stamp(). Errors: -EBUSY (it is spare,
 * or being prepared), -EINVAL (a place of another owner, or that nobody holds), -ENOSPC (pool_stamp() would fail),
 * -ENOMEM, and nothing has changed.
 */
int pool_join(struct pool *pool, struct pool_reservation *reservation, uint64_t block,
              const struct pool_place *places, size_t n);

/*
 * pool_make_segments() - lay memories of @sizes one after another into @extents
 *
 * For mover_job: which bytes of which memory go where. Both directions use the same segments.
 * @ret_segments is the caller's to free(). Errors: -ENOSPC (the extents are too short).
 */
int pool_make_segments(struct mover_segment **ret_segments, size_t *ret_n, const uint64_t *sizes,
                       size_t n_sizes, const struct pool_extent *extents, size_t n_extents);

#endif
