/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/silence.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/failure.h"
#include "daemon/log.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"

void silence_begin(struct guest *guest, struct device *device, const char *call)
{
        struct silence *silence = &guest->silence;

        if (silence->state == SILENCE_LASTS)
                return;
        silence->state = SILENCE_LASTS;
        silence->device = device;
        (void)snprintf(silence->call, sizeof(silence->call), "%.47s", call);
        log_event_of(guest->payer, LOG_LEVEL_ERROR, "the driver does not answer for a process",
                     "vgpu=%s pid=%d device=%u call=%.47s", guest->instance->name, (int)guest->pid,
                     device->index, call);
}

bool silence_lasts(const struct guest *guest)
{
        return guest->silence.state == SILENCE_LASTS;
}

int silence_refuse(const struct guest *guest, struct failure *failure)
{
        return failure_set(failure, -ETIMEDOUT, "GuestLost",
                           "end it; if the call returns, vgpud goes on by itself",
                           "the driver does not answer for process %d (%.40s): %s has not returned",
                           (int)guest->pid, guest->name, guest->silence.call);
}

void silence_end(struct guest *guest)
{
        guest->silence.state = SILENCE_NONE;
}

static void answer(struct guest *guest)
{
        struct manager *manager = guest->instance->manager;

        guest->silence.state = SILENCE_OVER;
        log_event_of(guest->payer, LOG_LEVEL_NOTICE, "the driver answers for a process again",
                     "vgpu=%s pid=%d call=%s", guest->instance->name, (int)guest->pid,
                     guest->silence.call);
        observer_tell_guest(&manager->observers, guest, GUEST_ANSWERS);
}

/* NULL: any. One at a time: whoever is told may change the lists. */
static struct guest *find(const struct device *device, const pid_t *pid)
{
        struct instance *instance;
        struct guest *guest;

        list_for_each(instance, &device->manager->instances, link)
                list_for_each(guest, &instance->guests, link)
                        if (silence_lasts(guest) && guest->silence.device == device &&
                            (!pid || *pid == guest->pid))
                                return guest;
        return NULL;
}

void silence_returned(struct device *device, pid_t pid)
{
        struct guest *guest = find(device, &pid);

        if (guest)
                answer(guest);
}

void silence_lost(struct device *device)
{
        struct guest *guest;

        while ((guest = find(device, NULL)))
                answer(guest);
}

bool silence_needs(const struct device *device)
{
        return find(device, NULL) != NULL;
}
