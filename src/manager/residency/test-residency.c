/* SPDX-License-Identifier: Apache-2.0 */
/* When the residency looks. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/test.h"
#include "daemon/options.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/residency/residency-internal.h"
#include "manager/residency/residency.h"
#include "scheduler/stay.h"

#define NS_PER_SECOND 1000000000ull
#define US_PER_SECOND 1000000ull

struct fixture {
        struct manager manager;
        struct options options;
        struct device device;
        struct instance instance;
        struct guest guest[2];
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct instance *instance = &fixture->instance;

        fixture->manager.options = &fixture->options;
        fixture->options.overcommit = 1;
        fixture->options.swap_percent = 10;
        list_init(&fixture->manager.instances);
        fixture->manager.device = &fixture->device;
        fixture->manager.n_devices = 1;
        fixture->device.manager = &fixture->manager;
        fixture->device.memory_total = 80 * GIB;
        instance->manager = &fixture->manager;
        instance->frame_buffer = 10 * GIB;
        instance->n_parts = 1;
        instance->part[0].device = &fixture->device;
        instance->state = STATE_RUNNING;
        list_init(&instance->guests);
        list_append(&fixture->manager.instances, &instance->link);
        *state = fixture;
        return page_create(&instance->part[0].page, 10 * GIB) < 0 ||
               sd_event_new(&fixture->manager.event) < 0 ||
               residency_new(&fixture->manager.residency, &fixture->manager) < 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        residency_free(fixture->manager.residency);
        sd_event_unref(fixture->manager.event);
        page_deinit(&fixture->instance.part[0].page);
        free(fixture);
        return 0;
}

static uint64_t now(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

/* A manager that is not ready looks again in a tenth of a second, and at nothing. */
static void test_a_look_that_is_due_is_not_put_off(void **state)
{
        struct fixture *fixture = *state;
        struct residency *residency = fixture->manager.residency;

        residency_look_in(residency, 0);
        while (residency->next_ns >= now())
                usleep(100);
        residency_look_in(residency, 60 * NS_PER_SECOND); /* by what came to be served first */
        assert_true(sd_event_run(fixture->manager.event, US_PER_SECOND) > 0);
        assert_true(residency->next_ns > 0 && residency->next_ns < now() + NS_PER_SECOND);
}

static void test_an_earlier_look_comes_first(void **state)
{
        struct fixture *fixture = *state;
        struct residency *residency = fixture->manager.residency;

        residency_look_in(residency, 60 * NS_PER_SECOND);
        residency_look_in(residency, 0);
        assert_true(sd_event_run(fixture->manager.event, US_PER_SECOND) > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_look_that_is_due_is_not_put_off, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_an_earlier_look_comes_first, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
