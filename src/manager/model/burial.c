/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/burial.h"

#include <errno.h>
#include <stdlib.h>

#include "manager/model/guest.h"
#include "manager/model/instance.h"

/* In one turn of the loop: a few milliseconds. */
#define PART 32

struct burial {
        burial_fn bury;
        struct list waiting;
        sd_event_source *timer; /* of the next turn */
        size_t n;               /* in this one */
};

/* A timer, for the loop takes those that are due in order: a deferred source would always be the first. */
static void arm(struct burial *burial)
{
        (void)sd_event_source_set_time_relative(burial->timer, 0);
        (void)sd_event_source_set_enabled(burial->timer, SD_EVENT_ONESHOT);
}

static void bury_one(struct burial *burial, struct guest *guest)
{
        list_remove(&guest->burial);
        burial->bury(guest);
}

static int on_turn(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct burial *burial = userdata;

        (void)source, (void)usec;
        for (burial->n = 0; burial->n < PART && !list_is_empty(&burial->waiting); burial->n++)
                bury_one(burial, list_entry(burial->waiting.next, struct guest, burial));
        if (burial->n > 0)
                arm(burial);
        return 0;
}

void burial_add(struct burial *burial, struct guest *guest)
{
        if (!list_is_empty(&guest->burial))
                return;
        if (burial->n >= PART) {
                list_append(&burial->waiting, &guest->burial);
                return;
        }
        if (burial->n++ == 0)
                arm(burial);
        bury_one(burial, guest);
}

/* Those too whose end the loop has not come to: who asks may have seen it. */
void burial_finish(struct burial *burial, struct instance *instance)
{
        struct guest *guest, *after;

        list_for_each(guest, &instance->guests, link)
                if (!guest_is_dead(guest) && list_is_empty(&guest->burial) &&
                    guest_has_ended(guest))
                        list_append(&burial->waiting, &guest->burial);

        list_for_each_safe(guest, after, &burial->waiting, burial)
                if (guest->instance == instance)
                        bury_one(burial, guest);
}

int burial_new(struct burial **ret_burial, sd_event *event, burial_fn bury)
{
        struct burial *burial = calloc(1, sizeof(*burial));
        int r;

        if (!burial)
                return -ENOMEM;
        burial->bury = bury;
        list_init(&burial->waiting);
        r = sd_event_add_time_relative(event, &burial->timer, CLOCK_MONOTONIC, 0, 1, on_turn,
                                       burial);
        if (r < 0) {
                free(burial);
                return r;
        }
        *ret_burial = burial;
        return 0;
}

struct burial *burial_free(struct burial *burial)
{
        if (!burial)
                return NULL;
        sd_event_source_disable_unref(burial->timer);
        free(burial);
        return NULL;
}
