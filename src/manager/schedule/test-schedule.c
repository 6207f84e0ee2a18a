/* SPDX-License-Identifier: Apache-2.0 */
/* A vGPU that was moved is in the schedules of two devices until its processes are let on where they were. */
#include "base/cleanup.h"
#include "base/test.h"
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/schedule/schedule-internal.h"
#include "manager/schedule/schedule.h"

struct fixture {
        struct options options;
        struct manager manager;
        struct device device[2];
        struct instance_page page;
        struct instance instance;
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct manager *manager = &fixture->manager;

        fixture->options.has_gate_turns = true;
        manager->options = &fixture->options;
        manager->device = fixture->device;
        manager->n_devices = 2;
        list_init(&manager->instances);
        for (uint32_t i = 0; i < 2; i++) {
                manager->device[i].manager = manager;
                manager->device[i].index = i;
                manager->device[i].memory_total = 2;
                assert_int_equal(schedule_new(&manager->device[i].schedule, &manager->device[i]),
                                 0);
        }
        fixture->instance = (struct instance){ .manager = manager,
                                               .part[0].device = &manager->device[0],
                                               .n_parts = 1,
                                               .id = 1,
                                               .frame_buffer = 1,
                                               .state = STATE_RUNNING,
                                               .part[0].page.map = &fixture->page };
        list_init(&fixture->instance.turns);
        list_init(&fixture->instance.guests);
        list_append(&manager->instances, &fixture->instance.link);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < 2; i++)
                assert_null(schedule_free(fixture->manager.device[i].schedule));
        assert_true(list_is_empty(&fixture->instance.turns));
        free(fixture);
        return 0;
}

/* As if it had a process that is still to be let on where it was. */
static void be_in_both(struct fixture *fixture)
{
        struct manager *manager = &fixture->manager;

        schedule_settle(&manager->device[0]);
        list_entry(fixture->instance.turns.next, struct schedule_vgpu, of_instance)->n_guests = 1;
        fixture->instance.part[0].device = &manager->device[1];
        schedule_settle(&manager->device[1]);
        assert_int_equal(list_count(&fixture->instance.turns), 2);
}

static void test_the_schedule_of_a_vgpu_is_that_of_its_device(void **state)
{
        struct fixture *fixture = *state;
        struct schedule_vgpu *vgpu;

        be_in_both(fixture);
        assert_ptr_equal(schedule_find(&fixture->instance, &vgpu),
                         fixture->manager.device[1].schedule);
        schedule_hold(&fixture->instance);
        assert_true(vgpu->is_held);
        assert_ptr_equal(vgpu->schedule, fixture->manager.device[1].schedule);
}

static void test_who_is_removed_is_in_no_schedule(void **state)
{
        struct fixture *fixture = *state;

        be_in_both(fixture);
        schedule_subscribe(&fixture->manager);
        observer_tell_instance(&fixture->manager.observers, &fixture->instance, INSTANCE_UNLOADED);
        assert_true(list_is_empty(&fixture->instance.turns));
        list_remove(&fixture->instance.link);
        for (size_t i = 0; i < 2; i++)
                assert_true(list_is_empty(&fixture->manager.device[i].schedule->vgpus));
}

static void test_a_schedule_that_ends_is_that_of_nobody(void **state)
{
        struct fixture *fixture = *state;
        struct schedule_vgpu *vgpu;

        be_in_both(fixture);
        fixture->manager.device[1].schedule = schedule_free(fixture->manager.device[1].schedule);
        assert_ptr_equal(schedule_find(&fixture->instance, &vgpu),
                         fixture->manager.device[0].schedule);
}

static uint32_t get_entitled(struct fixture *fixture)
{
        struct schedule_share share = { 0 };

        schedule_settle(&fixture->manager.device[0]);
        return schedule_get_share(&fixture->instance, &share) ? share.entitled : 0;
}

/* It is off the device or comes to it, runs while the operation tidies up, and is taken off again. */
static void test_who_runs_is_in_the_schedule_before_its_operation_is_over(void **state)
{
        struct fixture *fixture = *state;
        struct instance *instance = &fixture->instance;

        assert_int_equal(get_entitled(fixture), SCHEDULER_WHOLE);
        instance->operation = (struct operation *)instance; /* nobody here looks at it */
        instance->state = STATE_SUSPENDING;
        assert_int_equal(get_entitled(fixture), 0);
        instance->state = STATE_RESUMING;
        assert_int_equal(get_entitled(fixture), 0);
        instance->state = STATE_RUNNING;
        assert_int_equal(get_entitled(fixture), SCHEDULER_WHOLE);
        instance->course.is_undoing = true;
        assert_int_equal(get_entitled(fixture), 0);
        instance->state = STATE_SUSPENDED;
        instance->course.is_undoing = false;
        instance->operation = NULL;
        assert_int_equal(get_entitled(fixture), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_the_schedule_of_a_vgpu_is_that_of_its_device,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_who_is_removed_is_in_no_schedule, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_schedule_that_ends_is_that_of_nobody, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_who_runs_is_in_the_schedule_before_its_operation_is_over, set_up,
                        tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
