/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a device is divided by what its driver says, against a driver that takes its time. */
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "helper/mover.h"
#include "manager/model/ceiling.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

static struct {
        mover_info_fn done;
        void *userdata;
        int n;
} asked;

int __wrap_mover_info(struct mover *mover, mover_info_fn done, void *userdata);
bool __wrap_mover_is_lost(const struct mover *mover);

int __wrap_mover_info(struct mover *mover, mover_info_fn done, void *userdata)
{
        (void)mover;
        asked.done = done;
        asked.userdata = userdata;
        asked.n++;
        return 0;
}

bool __wrap_mover_is_lost(const struct mover *mover)
{
        (void)mover;
        return false;
}

static void answer(struct device *device)
{
        const struct mover_info info = { .memory_free = 10 * GIB };

        asked.done(device->mover, 0, &info, asked.userdata);
}

static void set_up(struct device *device, struct manager *manager)
{
        list_init(&manager->instances);
        room_init(&device->room);
        device->manager = manager;
        device->mover = (void *)manager; /* nobody looks into it */
        device->has_context = true;
        device->memory_total = 80 * GIB;
        asked.n = 0;
}

static uint64_t get_ceiling(const struct instance *instance)
{
        return atomic_load(&instance->part[0].page.map->ceiling);
}

static void test_an_answer_goes_with_the_mark_from_before_it_was_asked_for(void **state)
{
        struct room_promise promise = { 0 };
        struct manager manager = { 0 };
        struct device storage = { 0 }, *device = &storage;
        (void)state;

        assert_true(sd_event_new(&manager.event) >= 0);
        set_up(device, &manager);
        room_promise(&device->room, &promise, 6 * GIB);

        ceiling_look(device);
        assert_int_equal(asked.n, 1);
        room_turn(&promise);
        ceiling_look(device); /* the timer, before the answer */
        assert_int_equal(asked.n, 1);
        assert_int_equal(device->ceiling.look.mark, room_mark(&device->room) - 6 * GIB);
        answer(device);
        ceiling_look(device);
        assert_int_equal(asked.n, 2);
        assert_int_equal(device->ceiling.look.mark, room_mark(&device->room));
        room_forget(&promise);
        answer(device);
        assert_false(ceiling_is_on(device));
        sd_event_unref(manager.event);
}

/* Between two looks nobody is created who could take what was promised to somebody else. */
static void test_a_vgpu_that_is_new_is_under_the_ceilings_at_once(void **state)
{
        struct room_promise promise = { 0 };
        struct manager manager = { 0 };
        struct device storage = { 0 }, *device = &storage;
        struct instance instance = { .manager = &manager,
                                     .part = { { .device = device, .page = { .fd = -1 } } },
                                     .n_parts = 1 };
        (void)state;

        assert_true(sd_event_new(&manager.event) >= 0);
        set_up(device, &manager);
        assert_int_equal(page_create(&instance.part[0].page, GIB), 0);

        list_append(&manager.instances, &instance.link);
        ceiling_cover(&instance); /* nothing is promised */
        assert_false(ceiling_is_on(device));
        assert_int_equal(get_ceiling(&instance), 0);
        list_remove(&instance.link);

        room_promise(&device->room, &promise, 6 * GIB);
        ceiling_look(device);
        answer(device);
        list_append(&manager.instances, &instance.link);
        ceiling_cover(&instance);
        assert_int_equal(get_ceiling(&instance), 1); /* nothing, until the driver has answered */
        answer(device);
        assert_true(get_ceiling(&instance) > 1);
        room_forget(&promise);
        ceiling_look(device);
        assert_int_equal(get_ceiling(&instance), 0);
        page_deinit(&instance.part[0].page);
        sd_event_unref(manager.event);
}

/* A vGPU of 1 GiB that is there, in a world of its own. */
static struct {
        struct manager manager;
        struct device device;
        struct instance instance;
        struct room_promise promise;
} world;

static int set_up_world(void **state)
{
        (void)state;
        memset(&world, 0, sizeof(world));
        world.instance =
                (struct instance){ .manager = &world.manager,
                                   .frame_buffer = 64 * GIB,
                                   .part = { { .device = &world.device, .page = { .fd = -1 } } },
                                   .n_parts = 1 };
        assert_true(sd_event_new(&world.manager.event) >= 0);
        set_up(&world.device, &world.manager);
        list_init(&world.instance.guests);
        assert_int_equal(page_create(&world.instance.part[0].page, 64 * GIB), 0);
        world.instance.part[0].page.taken[0] = 1;
        list_append(&world.manager.instances, &world.instance.link);
        room_promise(&world.device.room, &world.promise, 2 * GIB);
        return 0;
}

static int tear_down_world(void **state)
{
        (void)state;
        room_forget(&world.promise);
        ceiling_deinit(&world.device);
        page_deinit(&world.instance.part[0].page);
        sd_event_unref(world.manager.event);
        return 0;
}

static void use(uint64_t bytes)
{
        atomic_store(&world.instance.part[0].page.map->slot[0].used[0], bytes);
}

/* 10 GiB are free, of which 2 are promised and an eightieth of the device is left alone. */
#define SPARE (8 * GIB - 128 * MIB)

static void test_what_is_given_back_during_a_look_counts_once(void **state)
{
        (void)state;
        use(6 * GIB);
        ceiling_look(&world.device);
        use(4 * GIB); /* so the driver's answer has these two */
        answer(&world.device);
        assert_int_equal(get_ceiling(&world.instance), 4 * GIB + SPARE + 1);
}

/* In the meantime they may have taken and given back whatever they were let have. */
static void test_an_answer_from_before_others_were_let_on_is_of_no_use(void **state)
{
        struct ceiling_look look;

        (void)state;
        ceiling_freeze(&world.device, &look); /* who asks the driver himself */
        ceiling_look(&world.device);
        answer(&world.device);
        assert_int_equal(get_ceiling(&world.instance), SPARE + 1);
        ceiling_settle(&world.device, 10 * GIB, 0, &look);
        assert_int_equal(get_ceiling(&world.instance), 1); /* it is looked at again */
        assert_int_equal(asked.n, 2);
        answer(&world.device);
        assert_int_equal(get_ceiling(&world.instance), SPARE + 1);
}

static void test_what_is_leaving_is_not_for_the_gates(void **state)
{
        (void)state;
        room_leave(&world.promise);
        assert_int_equal(room_owed(&world.device.room), 0);
        ceiling_look(&world.device);
        answer(&world.device);
        assert_int_equal(get_ceiling(&world.instance), SPARE + 1);
}

static void test_nothing_opens_what_is_closed(void **state)
{
        struct ceiling_look look;

        (void)state;
        ceiling_look(&world.device);
        ceiling_close(&world.device); /* before the answer */
        answer(&world.device);
        assert_int_equal(get_ceiling(&world.instance), 1);
        ceiling_freeze(&world.device, &look);
        ceiling_settle(&world.device, 10 * GIB, 0, &look);
        assert_int_equal(get_ceiling(&world.instance), 1);
        ceiling_close(&world.device); /* of another process */
        room_forget(&world.promise);
        ceiling_look(&world.device); /* nothing is promised, and all the same */
        assert_int_equal(get_ceiling(&world.instance), 1);
        ceiling_open(&world.device);
        assert_int_equal(get_ceiling(&world.instance), 1);
        ceiling_open(&world.device);
        assert_int_equal(get_ceiling(&world.instance), 0);
}

/* Else one restore after the other could keep the gates waiting for ever. */
static void test_after_a_second_the_gates_come_first(void **state)
{
        (void)state;
        ceiling_close(&world.device);
        assert_true(ceiling_may_close(&world.device));
        world.device.ceiling.closed_ns -= 1000000000u;
        assert_false(ceiling_may_close(&world.device));
        ceiling_open(&world.device);
        assert_false(ceiling_may_close(&world.device)); /* they have not been let on yet */
        answer(&world.device);
        assert_int_equal(get_ceiling(&world.instance), SPARE + 1);
        assert_false(ceiling_may_close(&world.device));
        world.device.ceiling.turn_until_ns = 0;
        assert_true(ceiling_may_close(&world.device));
}

/* What others are leaving for it is not there yet, and may be theirs again. */
static void test_what_is_promised_is_under_the_ceiling_when_it_is_answered(void **state)
{
        struct residency_part *mine = &world.instance.part[0].residency;
        uint64_t before;

        (void)state;
        mine->asks_ns = 1;
        room_promise(&world.device.room, &mine->promise, 6 * GIB);
        ceiling_look(&world.device);
        answer(&world.device);
        before = get_ceiling(&world.instance);
        mine->asks_ns = 0;
        ceiling_look(&world.device);
        answer(&world.device);
        assert_int_equal(get_ceiling(&world.instance), before + 6 * GIB);
        room_forget(&mine->promise);
}

/* Else it would take what others were promised, and what the mover lends the driver. */
static void test_what_is_answered_is_granted_once_it_is_there(void **state)
{
        struct residency_part *mine = &world.instance.part[0].residency;

        (void)state;
        room_promise(&world.device.room, &mine->promise, 9 * GIB);
        ceiling_look(&world.device);
        answer(&world.device); /* 10 GiB are free, and 2 are owed to another */
        assert_int_equal(get_ceiling(&world.instance), 1);
        room_leave(&world.promise); /* it may be these that are free */
        ceiling_look(&world.device);
        answer(&world.device);
        assert_int_equal(get_ceiling(&world.instance), 1);
        room_turn(&world.promise);
        ceiling_look(&world.device);
        answer(&world.device);
        assert_int_equal(get_ceiling(&world.instance), 9 * GIB + GIB - 128 * MIB + 1);
        room_forget(&mine->promise);
}

/* Others leave for all of them, one after another: the first is not kept waiting for what the last one lacks. */
static void test_what_others_wait_for_is_not_kept_from_one_that_is_answered(void **state)
{
        struct instance other = { .part = { { .device = &world.device, .page = { .fd = -1 } } },
                                  .n_parts = 1 };
        struct residency_part *mine = &world.instance.part[0].residency;
        struct residency_part *others = &other.part[0].residency;

        (void)state;
        assert_int_equal(page_create(&other.part[0].page, 64 * GIB), 0);
        list_init(&other.guests);
        list_append(&world.manager.instances, &other.link);
        others->asks_ns = 1;
        room_promise(&world.device.room, &others->promise, 40 * GIB);
        room_promise(&world.device.room, &mine->promise, 6 * GIB);
        ceiling_look(&world.device);
        answer(&world.device);
        assert_int_equal(get_ceiling(&other), 1);
        assert_int_equal(get_ceiling(&world.instance), 6 * GIB + 1);
        others->asks_ns = 0; /* too early */
        ceiling_look(&world.device);
        answer(&world.device);
        assert_int_equal(get_ceiling(&other), 1);
        room_forget(&others->promise);
        room_forget(&mine->promise);
        list_remove(&other.link);
        page_deinit(&other.part[0].page);
}

/* It passed the ceiling before that was there, and the driver gives it whatever is free. */
static void test_who_asks_the_driver_for_more_than_is_free_is_waited_for(void **state)
{
        struct guest guest = { .pid = getpid(), .slot = 0 };

        (void)state;
        list_append(&world.instance.guests, &guest.link);
        atomic_store(&world.instance.part[0].page.map->slot[0].pending, 11 * GIB);
        ceiling_look(&world.device);
        assert_false(ceiling_is_known(&world.device));
        answer(&world.device);
        assert_false(ceiling_is_known(&world.device)); /* and it is looked at again */
        assert_int_equal(asked.n, 2);
        atomic_store(&world.instance.part[0].page.map->slot[0].pending, 9 * GIB);
        answer(&world.device);
        assert_false(ceiling_is_known(&world.device)); /* as it was when the look began */
        answer(&world.device);
        assert_true(ceiling_is_known(&world.device));
        list_remove(&guest.link);
}

/* All of its processes have ended, and the next one begins. */
static void test_what_is_lifted_is_lifted_for_one_that_is_off_too(void **state)
{
        (void)state;
        ceiling_look(&world.device);
        answer(&world.device);
        assert_true(get_ceiling(&world.instance) > 0);
        world.instance.state = STATE_SUSPENDED;
        room_forget(&world.promise);
        ceiling_look(&world.device);
        assert_int_equal(get_ceiling(&world.instance), 0);
        world.instance.state = STATE_IDLE;
}

/* It is no room for what gates ask the driver for. */
static void test_what_a_mover_holds_is_not_free(void **state)
{
        struct guest guest = { .pid = getpid(), .slot = 0 };
        struct ceiling_look look;

        (void)state;
        list_append(&world.instance.guests, &guest.link);
        atomic_store(&world.instance.part[0].page.map->slot[0].pending, 9 * GIB);
        ceiling_freeze(&world.device, &look);
        ceiling_settle(&world.device, 2 * GIB, 8 * GIB, &look);
        assert_false(ceiling_is_known(&world.device));
        list_remove(&guest.link);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_what_is_given_back_during_a_look_counts_once,
                                                set_up_world, tear_down_world),
                cmocka_unit_test_setup_teardown(
                        test_an_answer_from_before_others_were_let_on_is_of_no_use, set_up_world,
                        tear_down_world),
                cmocka_unit_test_setup_teardown(test_what_is_leaving_is_not_for_the_gates,
                                                set_up_world, tear_down_world),
                cmocka_unit_test_setup_teardown(test_nothing_opens_what_is_closed, set_up_world,
                                                tear_down_world),
                cmocka_unit_test_setup_teardown(test_after_a_second_the_gates_come_first,
                                                set_up_world, tear_down_world),
                cmocka_unit_test(test_a_vgpu_that_is_new_is_under_the_ceilings_at_once),
                cmocka_unit_test_setup_teardown(
                        test_what_is_promised_is_under_the_ceiling_when_it_is_answered,
                        set_up_world, tear_down_world),
                cmocka_unit_test_setup_teardown(test_what_is_answered_is_granted_once_it_is_there,
                                                set_up_world, tear_down_world),
                cmocka_unit_test_setup_teardown(
                        test_what_others_wait_for_is_not_kept_from_one_that_is_answered,
                        set_up_world, tear_down_world),
                cmocka_unit_test_setup_teardown(
                        test_who_asks_the_driver_for_more_than_is_free_is_waited_for, set_up_world,
                        tear_down_world),
                cmocka_unit_test_setup_teardown(
                        test_what_is_lifted_is_lifted_for_one_that_is_off_too, set_up_world,
                        tear_down_world),
                cmocka_unit_test_setup_teardown(test_what_a_mover_holds_is_not_free, set_up_world,
                                                tear_down_world),
                cmocka_unit_test(test_an_answer_goes_with_the_mark_from_before_it_was_asked_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
