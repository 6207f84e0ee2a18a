/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/clean-copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "hash/hash.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/parting.h"
#include "pool/pool.h"

struct clean_copy {
        struct pool_reservation *reservation; /* spare; NULL: it is the guest's */
        uint64_t generation;                  /* of the reservation that the hashes belong to */
        bool has_arrived;               /* they are those of what the guest had at the last copy */
        bool is_compared;               /* of some at least: those of the others are unknown */
        bool is_true;                   /* and they are those of its contents */
        struct gate_allocation *memory; /* what is in it, in this order */
        size_t n_memory;
        struct hash_value *hashes;
        size_t n_hashes;

        struct pool_reservation
                *others;           /* the blocks that it was parted from; or NULL, and no more: */
        struct pool_place *places; /* of these, for each block */
        struct hash_value *former; /* their hashes */
        bool is_asked;             /* the mover was told those */
};

#define KEY_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

int clean_copy_make_key(int *ret_fd)
{
        CLEANUP(fd_closep)
        int fd = memfd_create("openvgpu-hash-key", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        struct hash_key key;
        ssize_t n;
        int r;

        if (fd < 0)
                return -errno;
        r = hash_key_make(&key);
        if (r < 0)
                return r;
        n = write(fd, &key, sizeof(key));
        explicit_bzero(&key, sizeof(key));
        if (n != sizeof(key) || fcntl(fd, F_ADD_SEALS, KEY_SEALS) < 0)
                return n < 0 || n == sizeof(key) ? -errno : -EIO;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

static struct clean_copy *clean_copy_free(struct clean_copy *copy)
{
        if (copy) {
                free(copy->memory);
                free(copy->hashes);
                free(copy->places);
                free(copy->former);
        }
        free(copy);
        return NULL;
}

DEFINE_CLEANUP(struct clean_copy *, clean_copy_free);

void clean_copy_forget(struct guest *guest)
{
        guest->clean_copy = clean_copy_free(guest->clean_copy);
}

/* Nobody asks any more what it was parted from. */
static void forget_others(struct guest *guest)
{
        struct clean_copy *copy = guest->clean_copy;

        copy->others = pool_release(guest->instance->manager->pool, copy->others);
        free(TAKE(copy->places));
        free(TAKE(copy->former));
        copy->is_asked = false;
}

/* The pool has taken the room for something that is needed. */
static void on_given_up(void *userdata)
{
        clean_copy_forget(userdata);
}

uint64_t clean_copy_get_length(const struct guest *guest)
{
        return guest->clean_copy ? pool_get_length(guest->clean_copy->reservation) : 0;
}

void clean_copy_drop(struct guest *guest)
{
        if (!guest->clean_copy)
                return;
        forget_others(guest);
        pool_release(guest->instance->manager->pool, guest->clean_copy->reservation);
        guest->clean_copy = clean_copy_free(guest->clean_copy);
}

/* Its reservation is lone from now on: what stands in for others' blocks has nothing in it. */
static int part(struct guest *guest)
{
        struct clean_copy *copy = guest->clean_copy;
        struct failure failure = { 0 }; /* then all is copied, or that fails and says why */
        int r;

        copy->places = calloc(copy->n_hashes, sizeof(*copy->places));
        copy->former = calloc(copy->n_hashes, sizeof(*copy->former));
        if (!copy->places || !copy->former)
                return -ENOMEM;
        r = parting_part(guest, instance_home(guest->instance)->index, false, copy->places,
                         &copy->others, &failure);
        for (size_t i = 0; i < copy->n_hashes && r == 0; i++) {
                copy->former[i] = copy->hashes[i];
                if (copy->places[i].slab)
                        copy->hashes[i] = HASH_UNKNOWN;
        }
        if (!copy->others)
                forget_others(guest);
        return r;
}

bool clean_copy_take(struct guest *guest, uint64_t bytes)
{
        struct pool *pool = guest->instance->manager->pool;
        struct clean_copy *copy = guest->clean_copy;

        if (!copy || !copy->reservation)
                return false;
        if (guest->reservation || pool_get_length(copy->reservation) != bytes ||
            pool_need(pool, copy->reservation) < 0) {
                clean_copy_drop(guest);
                return false;
        }
        guest->reservation = TAKE(copy->reservation);
        copy->generation = pool_get_generation(guest->reservation);
        copy->has_arrived = false; /* what it holds is about to change: nobody may join it */
        if (part(guest) == 0)
                return true;
        clean_copy_drop(guest);
        guest->reservation = pool_release(pool, guest->reservation);
        return false;
}

/* What stands in for others' blocks takes room. */
bool clean_copy_can_be_taken(const struct guest *guest)
{
        const struct pool *pool = guest->instance->manager->pool;
        const struct clean_copy *copy = guest->clean_copy;
        CLEANUP(freep) struct pool_place *places = NULL;
        struct pool_info info;
        uint64_t common;

        if (!copy || !copy->reservation || !copy->is_true)
                return false;
        places = calloc(copy->n_hashes, sizeof(*places));
        if (!places)
                return false;
        common = HASH_BLOCK *
                 pool_get_common(pool, copy->reservation, HASH_BLOCK, copy->n_hashes, places);
        pool_get_info(pool, &info);
        return common == 0 || info.used + info.spare + info.held + common <= info.limit;
}

/* Hashes. */

/* Is what the guest has now, in this order, what the hashes are of? */
static bool is_of(const struct clean_copy *copy, const struct guest *guest)
{
        if (!copy->is_true || copy->generation != pool_get_generation(guest->reservation) ||
            copy->n_memory != guest->n_memory)
                return false;
        for (size_t i = 0; i < copy->n_memory; i++)
                if (copy->memory[i].address != guest->memory[i].address ||
                    copy->memory[i].size != guest->memory[i].size)
                        return false;
        return true;
}

static bool is_made_of_blocks(const struct guest *guest)
{
        for (size_t i = 0; i < guest->n_memory; i++)
                if (guest->memory[i].size % HASH_BLOCK != 0)
                        return false;
        return guest->n_memory > 0;
}

/* One that knows nothing yet. NULL: no memory. */
static struct clean_copy *clean_copy_new(const struct guest *guest)
{
        CLEANUP(clean_copy_freep) struct clean_copy *copy = calloc(1, sizeof(*copy));

        if (!copy)
                return NULL;
        copy->n_memory = guest->n_memory;
        copy->n_hashes = guest->memory_bytes / HASH_BLOCK;
        copy->memory = calloc(copy->n_memory, sizeof(*copy->memory));
        copy->hashes = calloc(copy->n_hashes, sizeof(*copy->hashes));
        if (!copy->memory || !copy->hashes)
                return NULL;
        for (size_t i = 0; i < copy->n_memory; i++)
                copy->memory[i] =
                        (struct gate_allocation){ guest->memory[i].address, guest->memory[i].size };
        for (size_t i = 0; i < copy->n_hashes; i++)
                copy->hashes[i] = HASH_UNKNOWN;
        copy->generation = pool_get_generation(guest->reservation);
        return TAKE(copy);
}

/* What has not changed of these is copied nowhere, so nothing would be compared. */
static void ask_for_others(struct clean_copy *copy)
{
        for (size_t i = 0; i < copy->n_hashes; i++)
                if (copy->places[i].slab)
                        copy->hashes[i] = copy->former[i];
        copy->is_asked = true;
}

struct hash_value *clean_copy_begin(struct guest *guest, bool must_verify, size_t *ret_n)
{
        struct clean_copy *copy;

        if (guest->clean_copy && !is_of(guest->clean_copy, guest))
                clean_copy_drop(guest);
        if (!guest->clean_copy && is_made_of_blocks(guest))
                guest->clean_copy = clean_copy_new(guest);
        copy = guest->clean_copy;
        if (!copy)
                return NULL;
        copy->is_true = copy->has_arrived = copy->is_compared = false;
        if (copy->others && must_verify)
                forget_others(guest);
        else if (copy->others)
                ask_for_others(copy);
        *ret_n = copy->n_hashes;
        return copy->hashes;
}

void clean_copy_end(struct guest *guest, bool is_compared, bool is_true)
{
        if (!guest->clean_copy)
                return;
        guest->clean_copy->is_compared = is_compared;
        guest->clean_copy->has_arrived = is_true;
}

/* What has no hashes was copied. */
static int hold_others(struct guest *guest, bool *ret_has_moved)
{
        struct clean_copy *copy = guest->clean_copy;

        *ret_has_moved = copy->is_asked && copy->is_compared;
        if (!*ret_has_moved)
                return 0;
        for (size_t i = 0; i < copy->n_hashes; i++)
                if (!hash_is_equal(&copy->hashes[i], &copy->former[i]))
                        copy->places[i].slab = 0;
        return pool_join(guest->instance->manager->pool, guest->reservation, HASH_BLOCK,
                         copy->places, copy->n_hashes);
}

int clean_copy_complete(struct guest *guest, bool *ret_has_moved)
{
        struct clean_copy *copy = guest->clean_copy;
        int r;

        *ret_has_moved = false;
        if (!copy)
                return 0;
        r = hold_others(guest, ret_has_moved);
        copy->is_true = r == 0 && copy->has_arrived;
        forget_others(guest);
        return r;
}

const struct hash_value *clean_copy_get_hashes(const struct guest *guest, size_t *ret_n)
{
        const struct clean_copy *copy = guest->clean_copy;

        if (!copy || !copy->is_true || !copy->has_arrived || copy->reservation || copy->others ||
            !guest->reservation || copy->generation != pool_get_generation(guest->reservation))
                return NULL;
        *ret_n = copy->n_hashes;
        return copy->hashes;
}

bool clean_copy_is_whole(const struct guest *guest)
{
        return !guest->clean_copy || !guest->clean_copy->others;
}

void clean_copy_spoil(struct guest *guest)
{
        if (!guest->clean_copy || guest->clean_copy->reservation)
                return;
        guest->clean_copy->is_true = guest->clean_copy->has_arrived = false;
        forget_others(guest);
}

void clean_copy_follow(struct guest *guest, uint64_t former)
{
        if (guest->clean_copy && guest->clean_copy->generation == former)
                guest->clean_copy->generation = pool_get_generation(guest->reservation);
}

void clean_copy_put_back(struct guest *guest)
{
        struct pool *pool = guest->instance->manager->pool;
        struct clean_copy *copy = guest->clean_copy;
        struct pool_reservation *reservation = TAKE(guest->reservation);

        if (!reservation)
                return;
        if (copy)
                forget_others(guest);
        if (copy && copy->is_true && !copy->reservation &&
            copy->generation == pool_get_generation(reservation) &&
            pool_spare(pool, reservation, guest->instance->owner, on_given_up, guest) == 0) {
                copy->reservation = reservation;
                return;
        }
        clean_copy_drop(guest);
        pool_release(pool, reservation);
}

void clean_copy_put_back_unlisted(struct guest *guest)
{
        if (!guest->is_remembered)
                clean_copy_put_back(guest);
}
