/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/margin.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/size.h"
#include "mover/driver.h"

/*
 * Measured on an H200 (driver 580): a checkpoint succeeds with 6 MiB free and fails with 4; four streams as well. A
 * vGPU's processes are checkpointed side by side.
 */
#define MARGIN_UNIT (2 * MIB)

/* Each call has so much of the margin for itself, for as long as it takes. */
#define ROOM_PART 4

#define LOOK_NS 1000000u

/*
 * So long a call waits for those that are under way while none of them ends: a checkpoint takes a second at most, and
 * restores that follow one another no more each. In all it waits no longer than the second of these: programs stand still.
 */
#define CALLS_NS      3000000000u
#define CALLS_MOST_NS 15000000000u

/* Between two tries where there is no room. */
#define TAKE_AGAIN_NS 50000000u

void margin_init(struct margin *margin)
{
        *margin = (struct margin){ .lock = PTHREAD_MUTEX_INITIALIZER,
                                   .changed = PTHREAD_COND_INITIALIZER };
}

void margin_want(struct margin *margin, uint64_t total)
{
        uint64_t part = total / MOVER_MARGIN_PART;
        uint64_t bytes = part < MOVER_MARGIN ? part : MOVER_MARGIN;

        pthread_mutex_lock(&margin->lock);
        margin->wanted = bytes / MARGIN_UNIT * MARGIN_UNIT;
        pthread_mutex_unlock(&margin->lock);
}

/* A margin that cannot be given back is there still: nothing is worse. */
static void give_back_locked(struct margin *margin)
{
        struct mover_done ignored = { 0 };

        if (margin->memory.n_handles > 0 && mapping_release(&margin->memory, &ignored) == 0)
                mapping_deinit(&margin->memory);
}

static uint64_t get_lack_locked(const struct margin *margin)
{
        return margin->memory.n_handles > 0 ? 0 : margin->wanted;
}

static bool is_lacking_locked(const struct margin *margin)
{
        return margin->n_lent == 0 && get_lack_locked(margin) > 0 &&
               clock_now(CLOCK_MONOTONIC) >= margin->not_before_ns;
}

static void take_locked(struct margin *margin, const struct room_taking *taking, CUdevice id)
{
        struct mover_done ignored = { 0 };

        if (!is_lacking_locked(margin) ||
            mapping_create(&margin->memory, taking, id, margin->wanted, &ignored) == 0)
                return;
        mapping_deinit(&margin->memory);
        margin->not_before_ns = clock_now(CLOCK_MONOTONIC) + TAKE_AGAIN_NS;
}

void margin_take(struct margin *margin, const struct room_taking *taking, CUdevice id)
{
        pthread_mutex_lock(&margin->lock);
        take_locked(margin, taking, id);
        pthread_mutex_unlock(&margin->lock);
}

void margin_lend(struct margin *margin)
{
        pthread_mutex_lock(&margin->lock);
        if (margin->n_lent++ == 0)
                give_back_locked(margin);
        pthread_mutex_unlock(&margin->lock);
}

void margin_return(struct margin *margin)
{
        pthread_mutex_lock(&margin->lock);
        margin->n_lent--;
        pthread_mutex_unlock(&margin->lock);
}

bool margin_is_lacking(struct margin *margin)
{
        bool is_lacking;

        pthread_mutex_lock(&margin->lock);
        is_lacking = is_lacking_locked(margin);
        pthread_mutex_unlock(&margin->lock);
        return is_lacking;
}

static bool has_room_locked(uint64_t bytes)
{
        struct mover_done ignored = { 0 };
        size_t free_bytes = 0, total;

        return DRIVER_CALL(&ignored, cuMemGetInfo_v2, &free_bytes, &total) < 0 ||
               free_bytes >= bytes;
}

/* So much has to be free for it to begin. */
static uint64_t get_least_locked(const struct margin *margin, enum margin_call call, uint64_t bytes)
{
        switch (call) {
        case MARGIN_CHECKPOINT:
                return margin->claimed + bytes;
        case MARGIN_HOLD:
                return margin->claimed + bytes + margin->wanted;
        case MARGIN_RESTORE:
                break;
        }
        return 0;
}

static uint64_t get_patience_locked(const struct margin *margin, enum margin_call call)
{
        if (call != MARGIN_CHECKPOINT)
                return 0;
        return margin->claimed > 0 ? CALLS_NS : MARGIN_LATE_NS;
}

/* Until a call that is under way has ended, or the driver tells what has just been given back. */
static void wait_locked(struct margin *margin)
{
        uint64_t until_ns = clock_now(CLOCK_MONOTONIC) + LOOK_NS;
        const struct timespec until = clock_timespec(until_ns);

        (void)pthread_cond_clockwait(&margin->changed, &margin->lock, CLOCK_MONOTONIC, &until);
}

/* False: there is too little, and it was waited for. The end of another call is news, which the driver may be late to tell. */
static bool await_room_locked(struct margin *margin, enum margin_call call, uint64_t bytes)
{
        uint64_t began_ns = clock_now(CLOCK_MONOTONIC), since_ns = began_ns, now_ns = began_ns;
        unsigned int n_ended = margin->n_ended;

        while (!has_room_locked(get_least_locked(margin, call, bytes))) {
                if (now_ns - since_ns >= get_patience_locked(margin, call) ||
                    now_ns - began_ns >= CALLS_MOST_NS)
                        return false;
                wait_locked(margin);
                now_ns = clock_now(CLOCK_MONOTONIC);
                if (margin->n_ended != n_ended)
                        since_ns = now_ns;
                n_ended = margin->n_ended;
        }
        return true;
}

int margin_claim(struct margin *margin, enum margin_call call, uint64_t bytes, bool is_known,
                 struct margin_claim *ret_claim)
{
        bool has_room;

        pthread_mutex_lock(&margin->lock);
        if (call == MARGIN_CHECKPOINT)
                bytes = margin->wanted / ROOM_PART;
        has_room = !is_known || await_room_locked(margin, call, bytes);
        *ret_claim = (struct margin_claim){ .bytes = has_room ? bytes : 0 };
        margin->claimed += ret_claim->bytes;
        pthread_mutex_unlock(&margin->lock);
        return has_room ? 0 : -ENOSPC;
}

void margin_unclaim(struct margin *margin, struct margin_claim *claim)
{
        pthread_mutex_lock(&margin->lock);
        margin->claimed -= claim->bytes;
        margin->n_ended++;
        *claim = (struct margin_claim){ 0 };
        pthread_cond_broadcast(&margin->changed);
        pthread_mutex_unlock(&margin->lock);
}

int margin_read_free(struct margin *margin, uint64_t *ret_free, struct mover_done *done)
{
        size_t free_bytes = 0, total;
        uint64_t lack;
        int r;

        pthread_mutex_lock(&margin->lock);
        r = DRIVER_CALL(done, cuMemGetInfo_v2, &free_bytes, &total);
        lack = get_lack_locked(margin);
        pthread_mutex_unlock(&margin->lock);
        *ret_free = free_bytes > lack ? free_bytes - lack : 0;
        return r;
}
