/* SPDX-License-Identifier: Apache-2.0 */
/* Of many processes that end together a part is buried at a time, and others have their turn. */
#include "base/cleanup.h"
#include "base/test.h"
#include "manager/model/burial.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"

#define MANY 500

/* For what is due at once. */
#define WAIT_US 100000

static size_t n_buried, n_buried_at_call;

static void bury(struct guest *guest)
{
        assert_false(guest_is_dead(guest));
        guest->life = GUEST_DEAD;
        n_buried++;
}

struct fixture {
        sd_event *event;
        struct burial *burial;
        struct instance instance[2];
        struct guest guest[MANY];
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_true(sd_event_new(&fixture->event) >= 0);
        assert_int_equal(burial_new(&fixture->burial, fixture->event, bury), 0);
        for (size_t i = 0; i < MANY; i++) {
                fixture->guest[i].instance = &fixture->instance[i % 2];
                list_init(&fixture->guest[i].burial);
        }
        for (size_t i = 0; i < 2; i++)
                list_init(&fixture->instance[i].guests);
        n_buried = n_buried_at_call = 0;
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < MANY; i++)
                list_remove(&fixture->guest[i].burial);
        assert_null(burial_free(fixture->burial));
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static void end_all(struct fixture *fixture)
{
        for (size_t i = 0; i < MANY; i++)
                burial_add(fixture->burial, &fixture->guest[i]);
}

/* Returns in how many turns of the loop. */
static size_t run_burials(struct fixture *fixture)
{
        size_t n = 0;

        for (; sd_event_run(fixture->event, WAIT_US) > 0; n++)
                ;
        return n;
}

static void test_one_is_buried_at_once(void **state)
{
        struct fixture *fixture = *state;

        burial_add(fixture->burial, &fixture->guest[0]);
        assert_int_equal(n_buried, 1);
}

static void test_of_many_a_part_is_buried_at_a_time(void **state)
{
        struct fixture *fixture = *state;

        end_all(fixture);
        assert_in_range(n_buried, 1, MANY / 4);
        assert_true(run_burials(fixture) >= 4);
        assert_int_equal(n_buried, MANY);
}

static int on_call(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void)source, (void)usec, (void)userdata;
        n_buried_at_call = n_buried;
        return 0;
}

static void test_who_calls_meanwhile_is_answered_before_all_are_buried(void **state)
{
        struct fixture *fixture = *state;

        end_all(fixture);
        assert_true(sd_event_run(fixture->event, WAIT_US) > 0);
        assert_true(sd_event_add_time_relative(fixture->event, NULL, CLOCK_MONOTONIC, 0, 1, on_call,
                                               NULL) >= 0);
        (void)run_burials(fixture);
        assert_int_equal(n_buried, MANY);
        assert_in_range(n_buried_at_call, 1, MANY / 2);
}

static void test_those_of_one_vgpu_can_be_buried_now(void **state)
{
        struct fixture *fixture = *state;

        end_all(fixture);
        burial_finish(fixture->burial, &fixture->instance[1]);
        for (size_t i = 1; i < MANY; i += 2)
                assert_true(guest_is_dead(&fixture->guest[i]));
        assert_true(n_buried < MANY);
        (void)run_burials(fixture);
        assert_int_equal(n_buried, MANY);
}

static void test_who_is_gone_otherwise_is_not_buried(void **state)
{
        struct fixture *fixture = *state;

        end_all(fixture);
        list_remove(&fixture->guest[MANY - 1].burial);
        (void)run_burials(fixture);
        assert_int_equal(n_buried, MANY - 1);
        assert_false(guest_is_dead(&fixture->guest[MANY - 1]));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_one_is_buried_at_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_of_many_a_part_is_buried_at_a_time, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_who_calls_meanwhile_is_answered_before_all_are_buried, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_those_of_one_vgpu_can_be_buried_now, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_who_is_gone_otherwise_is_not_buried, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
