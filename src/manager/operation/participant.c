/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/participant.h"

#include <errno.h>
#include <stdlib.h>

#include "manager/model/instance.h"

static void participant_free(struct participant *participant)
{
        if (!participant)
                return;
        sd_event_source_disable_unref(participant->context.timer);
        sd_event_source_disable_unref(participant->context.closed_timer);
        sd_event_source_disable_unref(participant->arrival.timer);
        for (size_t i = 0; i < GATE_DEVICES_MAX; i++)
                free(participant->job[i].hashes);
        free(participant);
}

static struct participant *participant_new(struct guest *guest)
{
        struct participant *participant = calloc(1, sizeof(*participant));

        for (size_t i = 0; participant && i < GATE_DEVICES_MAX; i++) {
                participant->job[i].guest = guest;
                participant->job[i].part = i;
        }
        return participant;
}

int participants_new(struct instance *instance)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link) {
                if (guest->presence == GUEST_JOINING)
                        continue; /* it may be buried at any time */
                guest->participant = participant_new(guest);
                if (!guest->participant)
                        return -ENOMEM;
        }
        return 0;
}

void participants_free(struct instance *instance)
{
        struct guest *guest;

        list_for_each(guest, &instance->guests, link) {
                participant_free(guest->participant);
                guest->participant = NULL;
        }
}
