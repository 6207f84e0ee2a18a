/* SPDX-License-Identifier: Apache-2.0 */
/* The room of a restore is its process's from before the driver is asked until it has told a state, whoever asks. */
#include "base/size.h"
#include "base/test.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/restore-room.h"

#define PARTS 2

struct fixture {
        struct manager manager;
        struct device device[2 * PARTS];
        struct instance instance;
        struct guest guest;
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        list_init(&fixture->manager.instances);
        fixture->instance.manager = &fixture->manager;
        fixture->instance.n_parts = PARTS;
        list_init(&fixture->instance.guests);
        list_append(&fixture->manager.instances, &fixture->instance.link);
        for (size_t i = 0; i < 2 * PARTS; i++) {
                fixture->device[i] =
                        (struct device){ .manager = &fixture->manager, .memory_total = 80 * GIB };
                room_init(&fixture->device[i].room);
        }
        for (size_t i = 0; i < PARTS; i++)
                fixture->instance.part[i].device = &fixture->device[i];
        fixture->guest = (struct guest){ .instance = &fixture->instance,
                                         .slot = UINT32_MAX,
                                         .context.bytes = 3 * GIB };
        list_append(&fixture->instance.guests, &fixture->guest.link);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        restore_room_forget(&fixture->guest);
        for (size_t i = 0; i < 2 * PARTS; i++)
                assert_int_equal(room_owed(&fixture->device[i].room), 0);
        free(fixture);
        return 0;
}

/* To the devices from number @first on. */
static void resume(struct fixture *fixture, size_t first)
{
        struct guest *guest = &fixture->guest;

        for (size_t i = 0; i < PARTS; i++) {
                guest->context.target.device[i] = &fixture->device[first + i];
                (void)restore_room_promise(guest, i, &fixture->device[first + i]);
        }
        guest->context.state = GUEST_CONTEXT_RESUMING;
        assert_true(restore_room_is_valid(guest));
}

static void end_operation(struct fixture *fixture)
{
        for (size_t i = 0; i < PARTS; i++) {
                restore_room_end(&fixture->guest, i, &fixture->guest.room[i].coming);
                restore_room_end(&fixture->guest, i, &fixture->guest.room[i].returning);
        }
        assert_true(restore_room_is_valid(&fixture->guest));
}

static void settle(struct fixture *fixture, enum guest_context context)
{
        fixture->guest.context.state = context;
        fixture->guest.context.target = place_nowhere;
        restore_room_forget(&fixture->guest);
}

static void expect(struct fixture *fixture, size_t device, uint64_t bytes)
{
        assert_int_equal(room_owed(&fixture->device[device].room), bytes);
        assert_int_equal(restore_room_is_kept(&fixture->device[device]), bytes > 0);
}

static uint64_t get_footprint(const struct fixture *fixture, size_t part)
{
        return footprint_get(&fixture->guest, part, fixture->instance.part[part].device);
}

static void test_it_outlives_the_operation_until_the_driver_tells_a_state(void **state)
{
        static const enum guest_context told[] = { GUEST_CONTEXT_RUNNING, GUEST_CONTEXT_SUSPENDED,
                                                   GUEST_CONTEXT_LOST };
        struct fixture *fixture = *state;

        for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
                resume(fixture, 0);
                end_operation(fixture);
                for (size_t part = 0; part < PARTS; part++)
                        expect(fixture, part, get_footprint(fixture, part));
                settle(fixture, told[i]);
                for (size_t part = 0; part < PARTS; part++)
                        expect(fixture, part, 0);
        }
}

static void test_of_what_the_driver_was_not_asked_for_nothing_is_kept(void **state)
{
        struct fixture *fixture = *state;

        (void)restore_room_promise(&fixture->guest, 0, &fixture->device[0]);
        fixture->guest.context.state = GUEST_CONTEXT_SUSPENDED;
        end_operation(fixture);
        expect(fixture, 0, 0);
}

static void test_room_that_is_kept_for_no_restore_is_found(void **state)
{
        struct fixture *fixture = *state;

        resume(fixture, 0);
        end_operation(fixture);
        fixture->guest.context.state =
                GUEST_CONTEXT_SUSPENDED; /* as if it had never been asked for */
        assert_false(restore_room_is_valid(&fixture->guest));
        restore_room_forget(&fixture->guest);
        assert_true(restore_room_is_valid(&fixture->guest));
}

static void test_the_next_operation_takes_it_over(void **state)
{
        struct fixture *fixture = *state;
        uint64_t bytes = get_footprint(fixture, 0);

        resume(fixture, 0);
        end_operation(fixture);
        fixture->guest.context.bytes =
                0; /* the call takes what it was promised, whatever is believed now */
        assert_int_equal(restore_room_promise(&fixture->guest, 0, &fixture->device[0])->bytes,
                         bytes);
        assert_int_equal(room_owed(&fixture->device[0].room), bytes);
        assert_false(restore_room_is_kept(&fixture->device[0]));
        end_operation(fixture);
        expect(fixture, 0, bytes);
}

/* A migrate that is undone: its process has to arrive before it can go back. */
static void test_the_way_back_stays_when_it_has_to_arrive_first(void **state)
{
        struct fixture *fixture = *state;

        resume(fixture, PARTS);
        end_operation(fixture);
        for (size_t i = 0; i < PARTS; i++)
                restore_room_expect(&fixture->guest, i, &fixture->device[i]);
        resume(fixture, PARTS);
        for (size_t i = 0; i < 2 * PARTS; i++)
                assert_true(room_owed(&fixture->device[i].room) > 0);
        settle(fixture, GUEST_CONTEXT_RUNNING);
        for (size_t i = 0; i < PARTS; i++) {
                assert_true(room_owed(&fixture->device[i].room) > 0);
                assert_int_equal(room_owed(&fixture->device[PARTS + i].room), 0);
        }
        end_operation(fixture);
}

static void test_the_next_manager_promises_it_at_once(void **state)
{
        struct fixture *fixture = *state;

        fixture->guest.context.state = GUEST_CONTEXT_RESUMING;
        for (size_t i = 0; i < PARTS; i++)
                fixture->guest.context.target.device[i] = &fixture->device[i];
        assert_false(restore_room_is_valid(&fixture->guest));
        restore_room_load(&fixture->guest);
        assert_true(restore_room_is_valid(&fixture->guest));
        for (size_t i = 0; i < PARTS; i++)
                expect(fixture, i, get_footprint(fixture, i));
}

static void test_on_a_device_that_is_gone_there_is_none(void **state)
{
        struct fixture *fixture = *state;

        fixture->guest.context.state = GUEST_CONTEXT_RESUMING;
        restore_room_load(&fixture->guest);
        assert_true(restore_room_is_valid(&fixture->guest));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_it_outlives_the_operation_until_the_driver_tells_a_state),
                TEST(test_of_what_the_driver_was_not_asked_for_nothing_is_kept),
                TEST(test_room_that_is_kept_for_no_restore_is_found),
                TEST(test_the_next_operation_takes_it_over),
                TEST(test_the_way_back_stays_when_it_has_to_arrive_first),
                TEST(test_the_next_manager_promises_it_at_once),
                TEST(test_on_a_device_that_is_gone_there_is_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
