/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/observer.h"

#include <assert.h>

void observer_add(struct observers *observers, const struct observer *observer, void *userdata)
{
        assert(observers->n < OBSERVERS_MAX);
        observers->list[observers->n].observer = observer;
        observers->list[observers->n++].userdata = userdata;
}

void observer_remove(struct observers *observers, const struct observer *observer)
{
        unsigned int n = 0;

        for (unsigned int i = 0; i < observers->n; i++)
                if (observers->list[i].observer != observer)
                        observers->list[n++] = observers->list[i];
        observers->n = n;
}

void observer_tell_changed(const struct observers *observers)
{
        for (unsigned int i = 0; i < observers->n; i++)
                if (observers->list[i].observer->changed)
                        observers->list[i].observer->changed(observers->list[i].userdata);
}

void observer_tell_instance(const struct observers *observers, struct instance *instance,
                            enum instance_event event)
{
        for (unsigned int i = 0; i < observers->n; i++)
                if (observers->list[i].observer->of_instance)
                        observers->list[i].observer->of_instance(instance, event,
                                                                 observers->list[i].userdata);
}

void observer_tell_guest(const struct observers *observers, struct guest *guest,
                         enum guest_event event)
{
        for (unsigned int i = 0; i < observers->n; i++)
                if (observers->list[i].observer->of_guest)
                        observers->list[i].observer->of_guest(guest, event,
                                                              observers->list[i].userdata);
}

void observer_tell_device(const struct observers *observers, struct device *device,
                          enum device_event event)
{
        for (unsigned int i = 0; i < observers->n; i++)
                if (observers->list[i].observer->of_device)
                        observers->list[i].observer->of_device(device, event,
                                                               observers->list[i].userdata);
}

void observer_tell_operation(const struct observers *observers, const struct operation *operation,
                             bool has_succeeded)
{
        for (unsigned int i = 0; i < observers->n; i++)
                if (observers->list[i].observer->of_operation)
                        observers->list[i].observer->of_operation(operation, has_succeeded,
                                                                  observers->list[i].userdata);
}
