/* SPDX-License-Identifier: Apache-2.0 */
/* A process ends while its copy follows it: it is buried once, whatever is awaited of its gate. */
#include "base/size.h"
#include "base/test.h"
#include "fuzz/world.h"
#include "manager/methods/instance-create.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "manager/operation/refresh.h"

static struct instance *find(void)
{
        struct failure failure = { 0 };

        return instance_find(world.manager, "a", &failure);
}

static struct guest *get_guest(void)
{
        return list_entry(find()->guests.next, struct guest, link);
}

static bool is_empty(void)
{
        return list_is_empty(&find()->guests);
}

static bool is_settled(void)
{
        return !find()->operation;
}

static void operate(const struct operation_kind *kind)
{
        const struct operation_request request = { .timeout_ms = 10000 };
        struct failure failure = { 0 };

        assert_int_equal(operation_start(find(), kind, &request, &failure), 0);
        world_wait(is_settled);
}

/* It has been off its device, so the pool has a copy of it, which is about to follow it. */
static int set_up(void **state)
{
        struct instance_request request = { .name = "a", .frame_buffer = 32 * MIB, .n_devices = 1 };
        struct failure failure = { 0 };
        struct instance *instance;

        (void)state;
        request.device[0] = &world.manager->device[0];
        assert_int_equal(instance_create(world.manager, &request, &instance, &failure), 0);
        world_join(&world.guest[0], "a");
        operate(&operation_suspend);
        operate(&operation_resume);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        world_reset();
        world_clear();
        return 0;
}

/* Its gate answers nothing from now on. */
static void begin(void)
{
        world.are_guests_silent = true;
        assert_true(refresh_start(get_guest()));
        assert_int_equal(get_guest()->request.message, GATE_CLOSE);
}

static bool is_copied(void)
{
        return !get_guest()->request.done && get_guest()->n_memory > 0;
}

static bool is_to_open(void)
{
        return get_guest()->request.message == GATE_OPEN;
}

/* It has been copied: its gate is asked to open, and does not answer that. */
static void go_on_to_the_end(void)
{
        world.are_movers_silent = true;
        world.are_guests_silent = false;
        world_wait(is_copied);
        world.are_guests_silent = true;
        world.are_movers_silent = false;
        world_wait(is_to_open);
}

static void test_a_process_ends_whose_gate_is_to_close(void **state)
{
        (void)state;
        begin();
        world_kill(&world.guest[0]);
        world_wait(is_empty);
        assert_int_equal(find()->state, STATE_IDLE);
}

static void test_a_process_ends_whose_gate_is_to_open(void **state)
{
        (void)state;
        begin();
        go_on_to_the_end();
        world_kill(&world.guest[0]);
        world_wait(is_empty);
        assert_int_equal(find()->state, STATE_IDLE);
}

/* Its process lives on, and is in the vGPU. */
static void test_a_gate_hangs_up_while_it_is_to_close(void **state)
{
        (void)state;
        begin();
        world_leave(&world.guest[0]);
        world_run();
        assert_false(guest_is_dead(get_guest()));
        world.are_guests_silent = false;
        world_join(&world.guest[0], "a");
        assert_null(get_guest()->refresh);
}

/* The loop has not come to the end of the process: the end of the manager does. */
static void test_the_manager_ends_behind_a_process(void **state)
{
        (void)state;
        begin();
        world_kill(&world.guest[0]);
        world_restart();
        world_wait(is_empty);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_a_process_ends_whose_gate_is_to_close),
                TEST(test_a_process_ends_whose_gate_is_to_open),
                TEST(test_a_gate_hangs_up_while_it_is_to_close),
                TEST(test_the_manager_ends_behind_a_process),
        };

        world_set_up();
        world.options.refresh_rate = GIB;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
