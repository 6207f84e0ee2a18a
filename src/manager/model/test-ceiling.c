/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a device is divided by what its driver says, against a driver that takes its time. */
#include "base/size.h"
#include "base/test.h"
#include "helper/mover.h"
#include "manager/model/ceiling.h"
#include "manager/model/device.h"
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
        assert_int_equal(device->ceiling.mark, room_mark(&device->room) - 6 * GIB);
        answer(device);
        ceiling_look(device);
        assert_int_equal(asked.n, 2);
        assert_int_equal(device->ceiling.mark, room_mark(&device->room));
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_vgpu_that_is_new_is_under_the_ceilings_at_once),
                cmocka_unit_test(test_an_answer_goes_with_the_mark_from_before_it_was_asked_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
