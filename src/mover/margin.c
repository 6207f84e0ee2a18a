/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/margin.h"

#include "base/clock.h"
#include "base/size.h"
#include "mover/driver.h"

/*
 * Measured on an H200 (driver 580): a checkpoint succeeds with 6 MiB free and fails with 4; four streams likewise. A
 * vGPU's processes are checkpointed side by side.
 */
#define MARGIN      (64 * MIB)
#define MARGIN_PART 64 /* of small devices */
#define MARGIN_UNIT (2 * MIB)

/* Of the margin; several may need it at once. */
#define ROOM_PART 4

/* Between two tries where there is no room. */
#define TAKE_AGAIN_NS 50000000u

void margin_init(struct margin *margin)
{
        *margin = (struct margin){ .lock = PTHREAD_MUTEX_INITIALIZER };
}

void margin_want(struct margin *margin, uint64_t total)
{
        uint64_t bytes = total / MARGIN_PART < MARGIN ? total / MARGIN_PART : MARGIN;

        pthread_mutex_lock(&margin->lock);
        margin->wanted = bytes / MARGIN_UNIT * MARGIN_UNIT;
        pthread_mutex_unlock(&margin->lock);
}

/* What cannot be given back is there still: nobody is worse off. */
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

static void take_locked(struct margin *margin, CUdevice id)
{
        struct mover_done ignored = { 0 };

        if (!is_lacking_locked(margin) ||
            mapping_create(&margin->memory, id, margin->wanted, &ignored) == 0)
                return;
        mapping_deinit(&margin->memory);
        margin->not_before_ns = clock_now(CLOCK_MONOTONIC) + TAKE_AGAIN_NS;
}

void margin_take(struct margin *margin, CUdevice id)
{
        pthread_mutex_lock(&margin->lock);
        take_locked(margin, id);
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

void margin_drop(struct margin *margin)
{
        pthread_mutex_lock(&margin->lock);
        margin->wanted = 0;
        give_back_locked(margin);
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

uint64_t margin_get_room(struct margin *margin)
{
        uint64_t room;

        pthread_mutex_lock(&margin->lock);
        room = margin->wanted / ROOM_PART;
        pthread_mutex_unlock(&margin->lock);
        return room;
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
