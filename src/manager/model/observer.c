/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/observer.h"

#include <assert.h>
#include <stddef.h>

/* The end of the list, or where @observer is in it. */
static struct observer **find(struct observers *observers, const struct observer *observer)
{
        struct observer **place = &observers->first;

        while (*place && *place != observer)
                place = &(*place)->next;
        return place;
}

void observer_add(struct observers *observers, struct observer *observer, void *userdata)
{
        struct observer **place = find(observers, observer);

        assert(!*place);
        observer->next = NULL;
        observer->userdata = userdata;
        *place = observer;
}

void observer_remove(struct observers *observers, struct observer *observer)
{
        struct observer **place = find(observers, observer);

        if (*place)
                *place = observer->next;
}

#define for_each_observer(observer, observers)                               \
        for (const struct observer *observer = (observers)->first; observer; \
             observer = observer->next)

void observer_tell_changed(const struct observers *observers)
{
        for_each_observer(observer, observers)
                if (observer->changed)
                        observer->changed(observer->userdata);
}

void observer_tell_instance(const struct observers *observers, struct instance *instance,
                            enum instance_event event)
{
        for_each_observer(observer, observers)
                if (observer->of_instance)
                        observer->of_instance(instance, event, observer->userdata);
}

void observer_tell_guest(const struct observers *observers, struct guest *guest,
                         enum guest_event event)
{
        for_each_observer(observer, observers)
                if (observer->of_guest)
                        observer->of_guest(guest, event, observer->userdata);
}

void observer_tell_device(const struct observers *observers, struct device *device,
                          enum device_event event)
{
        for_each_observer(observer, observers)
                if (observer->of_device)
                        observer->of_device(device, event, observer->userdata);
}

void observer_tell_operation(const struct observers *observers, const struct operation *operation,
                             bool has_succeeded)
{
        for_each_observer(observer, observers)
                if (observer->of_operation)
                        observer->of_operation(operation, has_succeeded, observer->userdata);
}
