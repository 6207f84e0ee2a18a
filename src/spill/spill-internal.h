/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPILL_SPILL_INTERNAL_H
#define SPILL_SPILL_INTERNAL_H

/* What spill.c, which copies, and spill-reserve.c, which holds room, have in common. */

#include <pthread.h>
#include <systemd/sd-event.h>

#include "base/list.h"

struct spill_stuck;

struct spill {
        int directory, finished;
        sd_event_source *source;
        pthread_mutex_t lock; /* of both lists */
        struct list running, ended;
        struct spill_stuck *stuck; /* which threads outlive */
};

int spill_stuck_new(struct spill_stuck **ret_stuck);

/* spill_stuck_unref() - NULL is fine. Returns NULL. */
struct spill_stuck *spill_stuck_unref(struct spill_stuck *stuck);

#endif
