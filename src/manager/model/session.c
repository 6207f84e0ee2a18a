/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/session.h"

#include <stdlib.h>

#include "base/clock.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

static struct session *find(struct guest *guest, const struct device *device, bool is_capture,
                            uint32_t id)
{
        struct session *session;

        list_for_each(session, &guest->sessions, link)
                if (session->device == device && session->is_capture == is_capture &&
                    session->told.id == id)
                        return session;
        return NULL;
}

static struct session *add(struct guest *guest, const struct device *device, bool is_capture)
{
        struct session *session = calloc(1, sizeof(*session));

        if (!session)
                return NULL; /* it is told again */
        session->device = device;
        session->is_capture = is_capture;
        session->start_us = clock_now(CLOCK_REALTIME) / 1000;
        session->state_slot = UINT32_MAX;
        list_append(&guest->sessions, &session->link);
        return session;
}

static void end(struct session *session)
{
        list_remove(&session->link);
        free(session);
}

void session_tell(struct guest *guest, const struct device *device, bool is_capture,
                  const struct sampler_session *told)
{
        struct session *session = find(guest, device, is_capture, told->id);

        if (!session)
                session = add(guest, device, is_capture);
        if (!session)
                return;
        session->is_there = true;
        session->told = *told;
}

static void settle(struct guest *guest, const struct device *device)
{
        struct session *session, *after;

        list_for_each_safe(session, after, &guest->sessions, link) {
                if (session->device != device && instance_is_on(guest->instance, session->device))
                        continue;
                if (!session->is_there)
                        end(session);
                else
                        session->is_there = false;
        }
}

void session_settle(struct device *device)
{
        struct instance *instance;
        struct guest *guest;

        list_for_each(instance, &device->manager->instances, link) {
                if (!instance_is_on(instance, device))
                        continue;
                list_for_each(guest, &instance->guests, link)
                        settle(guest, device);
        }
}

void session_drop(struct guest *guest)
{
        struct session *session, *after;

        list_for_each_safe(session, after, &guest->sessions, link)
                end(session);
}

void session_drop_all(struct manager *manager)
{
        struct instance *instance;
        struct guest *guest;

        list_for_each(instance, &manager->instances, link)
                list_for_each(guest, &instance->guests, link)
                        session_drop(guest);
}
