/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/margin.h"

#include "base/size.h"
#include "mover/driver.h"

/*
 * Measured on an H200 (driver 580): a checkpoint succeeds with 6 MiB free and fails with 4; four streams likewise. A
 * vGPU's processes are checkpointed side by side.
 */
#define MARGIN      (64 * MIB)
#define MARGIN_PART 64 /* of small devices */
#define MARGIN_UNIT (2 * MIB)

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

void margin_take(struct margin *margin, CUdevice id)
{
        struct mover_done ignored = { 0 };

        pthread_mutex_lock(&margin->lock);
        if (margin->wanted > 0 && margin->n_lent == 0 && margin->memory.n_handles == 0 &&
            mapping_create(&margin->memory, id, margin->wanted, &ignored) < 0)
                mapping_deinit(&margin->memory);
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

uint64_t margin_get_lack(struct margin *margin)
{
        uint64_t lack;

        pthread_mutex_lock(&margin->lock);
        lack = margin->memory.n_handles > 0 ? 0 : margin->wanted;
        pthread_mutex_unlock(&margin->lock);
        return lack;
}
