/* SPDX-License-Identifier: Apache-2.0 */
/* When the residency looks, what a process that has just joined has of its stay, and why a vGPU waits. */
#include <stdlib.h>
#include <string.h>
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
#include "manager/model/residency-view.h"
#include "manager/residency/residency-internal.h"
#include "manager/residency/residency.h"
#include "scheduler/stay.h"

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
        assert_int_equal(page_create(&instance->part[0].page, 10 * GIB), 0);
        assert_true(sd_event_new(&fixture->manager.event) >= 0);
        assert_int_equal(residency_new(&fixture->manager.residency, &fixture->manager), 0);
        fixture->manager.residency->look[0].device = &fixture->device;
        return 0;
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
        residency_look_in(residency, 60 * NS_PER_S); /* by what came to be served first */
        assert_true(sd_event_run(fixture->manager.event, US_PER_S) > 0);
        assert_true(residency->next_ns > 0 && residency->next_ns < now() + NS_PER_S);
}

static void test_an_earlier_look_comes_first(void **state)
{
        struct fixture *fixture = *state;
        struct residency *residency = fixture->manager.residency;

        residency_look_in(residency, 60 * NS_PER_S);
        residency_look_in(residency, 0);
        assert_true(sd_event_run(fixture->manager.event, US_PER_S) > 0);
}

static void join(struct fixture *fixture, struct guest *guest, uint32_t slot)
{
        guest->instance = &fixture->instance;
        guest->slot = slot;
        list_append(&fixture->instance.guests, &guest->link);
        observer_tell_guest(&fixture->manager.observers, guest, GUEST_JOINED);
}

static void test_the_stay_begins_with_the_first_process(void **state)
{
        struct fixture *fixture = *state;
        struct residency_instance *mine = &fixture->instance.residency;
        uint64_t before = now(), since;

        mine->since_ns = mine->last_work_ns = 1; /* when it was created */
        join(fixture, &fixture->guest[0], 0);
        since = mine->since_ns;
        assert_true(since >= before && mine->last_work_ns == since);
        join(fixture, &fixture->guest[1], 1);
        assert_true(mine->since_ns == since && mine->last_work_ns >= since);
}

/* It is not told to leave for the sake of a context that it has not made. */
static void test_who_has_no_context_yet_has_nothing_to_leave(void **state)
{
        struct fixture *fixture = *state;
        struct page *page = &fixture->instance.part[0].page;

        join(fixture, &fixture->guest[0], 0);
        assert_int_equal(residency_get_stay(&fixture->instance).part[0].bytes, 0);
        atomic_store(&page->map->slot[0].used[INSTANCE_PAGE_MOVABLE], MIB);
        assert_int_equal(residency_get_stay(&fixture->instance).part[0].bytes, MIB);
        atomic_store(&page->map->slot[0].beside, 768 * MIB);
        assert_true(residency_get_stay(&fixture->instance).part[0].bytes > 768 * MIB);
}

static void test_a_context_that_was_seen_is_something_to_leave(void **state)
{
        struct fixture *fixture = *state;

        join(fixture, &fixture->guest[0], 0);
        fixture->guest[0].meter.part[0].context_bytes = 600 * MIB;
        assert_true(residency_get_stay(&fixture->instance).part[0].bytes > 600 * MIB);
}

/* A look of the residency, by which it does not come in or leave: nobody can say what is free. */
static void look(struct fixture *fixture)
{
        struct residency *residency = fixture->manager.residency;

        fixture->manager.is_ready = true;
        fixture->device.meter.is_lost = true;
        residency->next_ns = 0;
        residency_look_in(residency, 0);
        assert_true(sd_event_run(fixture->manager.event, US_PER_S) > 0);
}

/* A process in slot 0, of which a thread waits for @wanted bytes. */
static struct instance_page_slot *join_waiting(struct fixture *fixture, uint64_t wanted)
{
        struct page *page = &fixture->instance.part[0].page;
        uint32_t slot;

        assert_int_equal(page_take_slot(page, &slot), 0);
        join(fixture, &fixture->guest[0], slot);
        fixture->guest[0].watch.told = GATE_WATCH_NOTHING;
        room_init(&fixture->device.room);
        atomic_store(&page->map->slot[slot].wanted, wanted);
        return &page->map->slot[slot];
}

static void test_who_waits_below_the_ceiling_is_seen_and_told_of(void **state)
{
        struct fixture *fixture = *state;
        struct residency_instance *mine = &fixture->instance.residency;
        struct instance_page_slot *slot = join_waiting(fixture, MIB);
        struct residency_view view;

        look(fixture);
        residency_view_get(&fixture->instance, &view);
        assert_string_equal(view.demand, "waiting for memory");
        assert_true(mine->waiting_ns > 0 && mine->told_ns == 0);
        mine->waiting_ns = now() - 61 * NS_PER_S;
        look(fixture);
        assert_true(mine->told_ns >= 61 * NS_PER_S);
        mine->told_ns = 1;
        mine->waiting_ns = now() - 59 * NS_PER_S;
        look(fixture);
        assert_true(mine->told_ns == 1);
        atomic_store(&slot->wanted, 0);
        look(fixture);
        assert_true(mine->waiting_ns == 0 && mine->told_ns == 0);
}

static void test_who_was_suspended_by_hand_does_not_wait_for_room(void **state)
{
        struct fixture *fixture = *state;
        struct residency_instance *mine = &fixture->instance.residency;

        join_waiting(fixture, MIB);
        fixture->instance.part[0].residency.asks_ns = now();
        fixture->instance.state = STATE_EVICTED;
        look(fixture);
        assert_true(mine->waiting_ns == 0);
        mine->has_left = true;
        look(fixture);
        assert_true(mine->waiting_ns > 0);
}

/* Or the ceiling that it makes would stay for ever, over the one that it was promised to as well. */
static void test_a_promise_that_is_not_taken_is_over_after_a_while(void **state)
{
        struct fixture *fixture = *state;
        struct residency_part *mine = &fixture->instance.part[0].residency;

        join_waiting(fixture, 256 * MIB);
        room_promise(&fixture->device.room, &mine->promise, 32 * MIB);
        mine->answered_ns = now();
        look(fixture);
        assert_int_equal(mine->promise.bytes, 32 * MIB);
        mine->answered_ns = now() - 11 * NS_PER_S;
        look(fixture);
        assert_null(mine->promise.room);
}

static void check_reason(struct fixture *fixture, const char *expected)
{
        assert_string_equal(fixture->instance.residency.reason, expected);
}

/* What is so at one look may be over at the next. */
static void test_a_reason_is_shown_when_it_has_held(void **state)
{
        struct fixture *fixture = *state;
        struct instance *instance = &fixture->instance;

        residency_note_later(instance, 0);
        check_reason(fixture, "");
        residency_note_later(instance, 0);
        check_reason(fixture, "others have the memory of its device for now");
        for (int i = 0; i < 3; i++) {
                residency_note_stuck(instance, 0, 0);
                residency_note_later(instance, 0);
                check_reason(fixture, "others have the memory of its device for now");
        }
        residency_note_stuck(instance, 0, 0);
        residency_note_no_reason(instance, 0); /* it could come, and did not */
        residency_note_stuck(instance, 0, 0);
        check_reason(fixture, "others have the memory of its device for now");
        residency_note_stuck(instance, 0, 0);
        check_reason(fixture, "its device has not enough memory that others could give up");
}

/* Sums of what is known are not exact: 44 MiB of a device that only vGPUs use are no program. */
static void test_what_is_not_known_exactly_is_no_program_outside(void **state)
{
        struct fixture *fixture = *state;
        struct residency_look *look = &fixture->manager.residency->look[0];

        fixture->device.memory_total = 512 * MIB;
        look->memory_free = 512 * MIB - 30 * MIB;
        for (int i = 0; i < 2; i++)
                residency_note_stuck(&fixture->instance, 0, 20 * MIB);
        check_reason(fixture, "its device has not enough memory that others could give up");
        fixture->device.has_context = true; /* the mover's, and what it keeps */
        look->memory_free = 512 * MIB - 70 * MIB;
        for (int i = 0; i < 2; i++)
                residency_note_stuck(&fixture->instance, 0, 20 * MIB);
        check_reason(fixture, "its device has not enough memory that others could give up");
}

/* The same programs have a little more each time. */
static void test_a_reason_with_another_size_is_the_same(void **state)
{
        struct fixture *fixture = *state;
        struct residency_look *look = &fixture->manager.residency->look[0];
        char before[sizeof(fixture->instance.residency.reason)];

        look->memory_free = 4 * GIB;
        residency_note_stuck(&fixture->instance, 0, GIB);
        look->memory_free = 3 * GIB;
        residency_note_stuck(&fixture->instance, 0, GIB);
        assert_non_null(strstr(fixture->instance.residency.reason, "outside of all vGPUs"));
        strcpy(before, fixture->instance.residency.reason);
        look->memory_free = 2 * GIB;
        residency_note_stuck(&fixture->instance, 0, GIB);
        assert_string_not_equal(fixture->instance.residency.reason, before);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_look_that_is_due_is_not_put_off, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_an_earlier_look_comes_first, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_the_stay_begins_with_the_first_process, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_who_has_no_context_yet_has_nothing_to_leave,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_context_that_was_seen_is_something_to_leave,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_who_waits_below_the_ceiling_is_seen_and_told_of, set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_who_was_suspended_by_hand_does_not_wait_for_room, set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_promise_that_is_not_taken_is_over_after_a_while, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_reason_is_shown_when_it_has_held, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_what_is_not_known_exactly_is_no_program_outside, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_reason_with_another_size_is_the_same, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
