/* SPDX-License-Identifier: Apache-2.0 */
/* A share of a device's time goes with its vGPU, and no device promises more than it has. */
#include <stdio.h>

#include "base/size.h"
#include "base/test.h"
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/schedule/schedule.h"

struct fixture {
        struct manager manager;
        struct device devices[2];
};

static struct manager *make_manager(void)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct manager *manager = &fixture->manager;

        list_init(&manager->instances);
        manager->device = fixture->devices;
        for (uint32_t i = 0; i < 2; i++) {
                manager->device[i].manager = manager;
                manager->device[i].index = i;
                manager->device[i].memory_total = 10 * GIB;
                manager->n_devices++;
        }
        return manager;
}

static struct instance add(struct manager *manager, uint32_t device)
{
        return (struct instance){ .manager = manager,
                                  .part[0].device = &manager->device[device],
                                  .n_parts = 1,
                                  .frame_buffer = GIB,
                                  .name = "train" };
}

static void link_in(struct manager *manager, struct instance *instance)
{
        list_init(&instance->guests);
        list_append(&manager->instances, &instance->link);
}

static void test_a_share_on_its_way_is_promised_at_both_ends(void **state)
{
        struct manager *manager = make_manager();
        struct instance moving = add(manager, 0), other = add(manager, 1);
        struct failure failure = { 0 };
        (void)state;

        moving.share = 60;
        other.share = 20;
        link_in(manager, &moving);
        link_in(manager, &other);
        assert_int_equal(schedule_check_move(&moving, &manager->device[1], &failure), 0);
        moving.course.target.device[0] = &manager->device[1];
        assert_int_equal(schedule_check_share(&manager->device[1], &other, 40, &failure), 0);
        assert_int_equal(schedule_check_share(&manager->device[1], &other, 41, &failure), -ENOSPC);
        assert_int_equal(schedule_check_share(&manager->device[0], NULL, 41, &failure), -ENOSPC);
        free(manager);
}

/* They may, on a host that has lost a device: its vGPUs are on another one then. */
static void test_where_shares_are_too_many_each_can_stay_or_become_less(void **state)
{
        struct manager *manager = make_manager();
        struct instance one = add(manager, 0), two = add(manager, 0);
        struct device *device = &manager->device[0];
        struct failure failure = { 0 };
        (void)state;

        one.share = two.share = 70;
        link_in(manager, &one);
        link_in(manager, &two);
        assert_int_equal(schedule_check_share(device, &two, 70, &failure), 0);
        assert_int_equal(schedule_check_share(device, &two, 69, &failure), 0);
        assert_int_equal(schedule_check_move(&two, device, &failure), 0);
        assert_int_equal(schedule_check_share(device, &two, 71, &failure), -ENOSPC);
        assert_non_null(strstr(failure.message, "30 % are left"));
        free(manager);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_share_on_its_way_is_promised_at_both_ends),
                cmocka_unit_test(test_where_shares_are_too_many_each_can_stay_or_become_less),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
