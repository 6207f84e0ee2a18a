/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/gate-wait.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "manager/control/control.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/shared.h"

/* Between two looks whether all gates are back. */
#define LOOK_AGAIN_US 20000

struct gate_wait {
        struct instance *instance;
        struct control_pending *pending;
        gate_wait_find find;
        uint64_t deadline_ns; /* CLOCK_MONOTONIC */
        sd_event_source *timer;
};

static struct control_pending *end(struct gate_wait *wait)
{
        struct control_pending *pending = wait->pending;

        wait->instance->gate_wait = NULL;
        sd_event_source_disable_unref(wait->timer);
        free(wait);
        return pending;
}

static int look_later(struct gate_wait *wait);

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct gate_wait *wait = userdata;
        const struct guest *untold = wait->find(wait->instance);
        struct failure failure = { 0 };

        (void)source, (void)usec;
        wait->timer = sd_event_source_disable_unref(wait->timer);
        if (!untold) {
                control_call_again(end(wait));
                return 0;
        }
        if (clock_now(CLOCK_MONOTONIC) < wait->deadline_ns && look_later(wait) == 0)
                return 0;
        (void)shared_refuse_untold(untold, &failure);
        control_fail(end(wait), &failure);
        return 0;
}

static int look_later(struct gate_wait *wait)
{
        int r = sd_event_add_time_relative(wait->instance->manager->event, &wait->timer,
                                           CLOCK_MONOTONIC, LOOK_AGAIN_US, 1000, on_look, wait);

        return r < 0 ? r : 0;
}

int gate_wait_begin(struct instance *instance, gate_wait_find find, struct control_pending *pending,
                    uint32_t timeout_ms, struct failure *failure)
{
        struct gate_wait *wait;
        int r;

        if (instance->gate_wait)
                return shared_refuse_untold(find(instance), failure);
        wait = calloc(1, sizeof(*wait));
        if (!wait)
                return -ENOMEM;
        *wait = (struct gate_wait){
                .instance = instance,
                .pending = pending,
                .find = find,
                .deadline_ns = clock_now(CLOCK_MONOTONIC) + timeout_ms * (uint64_t)1000000,
        };
        r = look_later(wait);
        if (r < 0) {
                free(wait);
                return r;
        }
        instance->gate_wait = wait;
        return 0;
}

void gate_wait_end_removed(struct instance *instance)
{
        struct failure failure = { 0 };

        if (!instance->gate_wait)
                return;
        (void)failure_set(&failure, -ENOENT, "NoSuchVgpu", "vgpu ls shows those that there are",
                          "vGPU %s was removed meanwhile", instance->name);
        control_fail(end(instance->gate_wait), &failure);
}

void gate_wait_drop(struct instance *instance)
{
        const struct failure failure = { .name = "Failed", .message = "vgpud ends" };

        if (instance->gate_wait)
                control_fail(end(instance->gate_wait), &failure);
}
