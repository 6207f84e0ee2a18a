/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of names, devices, owners and promises: a manager without sockets and processes. */
#include <errno.h>
#include <stdio.h>

#include "base/size.h"
#include "base/test.h"
#include "daemon/options.h"
#include "daemon/uuid.h"
#include "manager/model/backing.h"
#include "manager/model/device.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/place-text.h"
#include "manager/model/policy.h"
#include "manager/model/promise-room.h"
#include "manager/model/promise.h"
#include "manager/model/recovery-internal.h"
#include "manager/model/reserve.h"
#include "manager/model/residency-view.h"
#include "manager/model/spilling-internal.h"

static struct options settings;

static struct manager *make_manager(void)
{
        struct manager *manager = calloc(1, sizeof(*manager));

        manager->options = &settings;
        manager->device = calloc(3, sizeof(*manager->device));
        list_init(&manager->instances);
        list_init(&manager->spillings);
        for (uint32_t i = 0; i < 3; i++) {
                struct device *device = &manager->device[manager->n_devices++];

                device->manager = manager;
                device->index = i;
                device->memory_total = 10 * GIB;
                snprintf(device->uuid, sizeof(device->uuid), "GPU-%s-0000-4000-8000-00000000000%u",
                         i == 2 ? "abcd0000" : "abcdef00", i);
        }
        return manager;
}

static void free_manager(struct manager *manager)
{
        free(manager->device);
        free(manager);
}

/* Neither root nor whoever runs the test. */
static uid_t owner_uid(void)
{
        return geteuid() + 1;
}

static uid_t stranger_uid(void)
{
        return geteuid() + 2;
}

static struct instance add(struct manager *manager, uint32_t device, uint64_t size)
{
        return (struct instance){ .manager = manager,
                                  .part[0].device = &manager->device[device],
                                  .n_parts = 1,
                                  .frame_buffer = size,
                                  .name = "train",
                                  .uuid = "6368faf8-f65e-4293-bd82-d89b0913e237",
                                  .owner = owner_uid() };
}

static void link_in(struct manager *manager, struct instance *instance)
{
        list_init(&instance->guests);
        list_append(&manager->instances, &instance->link);
}

static void test_a_place_is_written_and_read(void **state)
{
        struct manager *manager = make_manager();
        char text[STORE_PLACE_MAX], numbers[PLACE_TEXT_MAX];
        struct failure failure = { 0 };
        struct place place, read;
        (void)state;

        assert_int_equal(
                place_find(manager, "2,GPU-abcdef00-0000-4000-8000-000000000000", &place, &failure),
                0);
        assert_int_equal(place_count(&place), 2);
        assert_string_equal(place_describe(&place, numbers), "2,0");
        assert_true(place_has(&place, &manager->device[2]));
        assert_false(place_has(&place, &manager->device[1]));
        place_format(&place, text);
        read = place_parse(manager, text);
        assert_true(place_is_equal(&place, &read));
        read = place_parse(manager, "");
        assert_true(place_is_nowhere(&read));
        strcat(text, ",GPU-gone");
        read = place_parse(manager, text);
        assert_true(place_is_nowhere(&read)); /* and not on the first two of it */
        assert_int_equal(place_find(manager, "0,1,0", &place, &failure), -EINVAL);
        assert_int_equal(place_find(manager, "0,7", &place, &failure), -ENODEV);
        free_manager(manager);
}

static void test_names_are_of_letters_digits_and_three_signs(void **state)
{
        static const char *const good[] = { "a", "9a", "Train-1", "a.b_c-d", "1.5" };
        static const char *const bad[] = { "",    "-a",   ".a",
                                           "_a",  "a b",  "a/b",
                                           "a\n", "../",  "a\xc3\xa4",
                                           "a\"", "a%s",  "a'",
                                           "9",   "4711", "6368faf8-f65e-4293-bd82-d89b0913e237" };
        char name[80];
        (void)state;

        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                assert_int_equal(instance_check_name(good[i], &(struct failure){ 0 }), 0);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(instance_check_name(bad[i], &(struct failure){ 0 }), -EINVAL);
        memset(name, 'a', sizeof(name));
        name[63] = '\0';
        assert_int_equal(instance_check_name(name, &(struct failure){ 0 }), 0);
        name[63] = 'a';
        name[64] = '\0';
        assert_int_equal(instance_check_name(name, &(struct failure){ 0 }), -EINVAL);
}

static void test_a_device_is_found_by_index_uuid_and_unique_beginning(void **state)
{
        static const struct {
                const char *text;
                int index; /* -1: none */
        } cases[] = {
                { "0", 0 },
                { "2", 2 },
                { "3", -1 },
                { "", -1 },
                { "GPU-", -1 },
                { "abcd", -1 },
                { "abcd0", 2 },
                { "GPU-ABCD0", 2 },
                { "abcdef00-", -1 },
                { "GPU-abcdef00-0000-4000-8000-000000000001", 1 },
                { "-1", -1 },
                { "1x", -1 },
                { "abcdef00-0000-4000-8000-0000000000010", -1 },
        };
        struct manager *manager = make_manager();
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct failure failure = { 0 };
                struct device *device = device_find(manager, cases[i].text, &failure);

                if (cases[i].index < 0) {
                        assert_null(device);
                        assert_string_equal(failure.name, "NoSuchDevice");
                } else {
                        assert_ptr_equal(device, &manager->device[cases[i].index]);
                }
        }
        free_manager(manager);
}

static void test_promises_are_of_those_on_the_device(void **state)
{
        struct manager *manager = make_manager();
        struct instance one = add(manager, 0, 4 * GIB), two = add(manager, 0, 5 * GIB);
        struct device *device = &manager->device[0];
        const struct place place = { { device } };
        struct failure failure = { 0 };
        (void)state;

        link_in(manager, &one);
        link_in(manager, &two);
        assert_int_equal(promise_get_sum(device, NULL), 9 * GIB);
        assert_int_equal(promise_get_sum(device, &two), 4 * GIB);
        assert_int_equal(promise_get_sum(&manager->device[1], NULL), 0);
        assert_int_equal(promise_check_room(&place, GIB, NULL, &failure), 0);
        assert_int_equal(promise_check_room(&place, GIB + 1, NULL, &failure), -ENOSPC);
        assert_non_null(strstr(failure.message, "1 GiB left"));
        two.state = STATE_SUSPENDED;
        assert_int_equal(promise_get_sum(device, NULL), 4 * GIB);
        free_manager(manager);
}

static void test_a_move_promises_at_its_target_as_well(void **state)
{
        struct manager *manager = make_manager();
        struct instance one = add(manager, 0, 4 * GIB);
        (void)state;

        link_in(manager, &one);
        one.state = STATE_MIGRATING;
        one.course.target.device[0] = &manager->device[1];
        assert_int_equal(promise_get_sum(&manager->device[0], NULL), 4 * GIB);
        assert_int_equal(promise_get_sum(&manager->device[1], NULL), 4 * GIB);
        free_manager(manager);
}

/* Device 0 as far as the pool could take all at once, beside what others have of it; device 1 as ever. */
static void test_an_overcommitted_device_promises_what_the_pool_can_hold(void **state)
{
        static const struct pool_options pool = { .limit = 24 * GIB, .slab_size = GIB };
        struct manager *manager = make_manager();
        struct instance one = add(manager, 0, 9 * GIB), two = add(manager, 0, 8 * GIB);
        struct device *device = &manager->device[0];
        const struct place place = { { device } };
        struct failure failure = { 0 };
        (void)state;

        settings.overcommit = 1;
        assert_int_equal(pool_new(&manager->pool, &pool), 0);
        link_in(manager, &one);
        assert_int_equal(backing_get_held(manager, NULL), 0); /* it fits */
        assert_false(backing_is_needed(&one));
        assert_int_equal(promise_get_left(device), 15 * GIB);
        link_in(manager, &two);
        assert_int_equal(promise_get_sum(device, NULL), 17 * GIB);
        assert_int_equal(backing_get_held(manager, NULL), 17 * GIB);
        assert_true(backing_is_needed(&one));
        two.state = STATE_SUSPENDED;
        assert_int_equal(promise_get_sum(device, NULL), 17 * GIB);
        assert_int_equal(promise_check_room(&place, 7 * GIB, NULL, &failure), 0);
        assert_int_equal(promise_check_room(&place, 7 * GIB + 1, NULL, &failure), -ENOSPC);
        assert_non_null(strstr(failure.message, "7 GiB left"));
        assert_int_equal(promise_check_room(&place, 15 * GIB, &two, &failure), 0);
        assert_int_equal(promise_get_left(&manager->device[1]), 10 * GIB);
        /* A second one needs as much of the same pool. */
        settings.overcommit = 3;
        assert_int_equal(promise_get_left(&manager->device[1]), 10 * GIB);
        one.part[0].device = &manager->device[1];
        assert_int_equal(backing_get_held(manager, NULL), 0);
        settings.overcommit = 0;
        assert_int_equal(promise_get_left(&manager->device[1]), GIB);
        pool_free(manager->pool);
        free_manager(manager);
}

/* Also if it is the first file of its user. */
static void test_a_share_of_the_disk_counts_what_is_being_written(void **state)
{
        struct manager *manager = make_manager();
        struct spilling spilling = { .owner = owner_uid(), .bytes = GIB };
        struct reserve_users users;
        (void)state;

        list_append(&manager->spillings, &spilling.link);
        users = reserve_count_users(manager);
        assert_int_equal(users.n, 0);
        assert_int_equal(reserve_get_share(manager, &users, owner_uid(), 7 * GIB), 3 * GIB);
        assert_int_equal(reserve_get_share(manager, &users, 0, 7 * GIB), 7 * GIB);
        free_manager(manager);
}

static void test_users_of_the_disk_are_counted_once(void **state)
{
        struct manager *manager = make_manager();
        struct reserve held = { .size = GIB };
        struct instance vgpus[] = { add(manager, 0, GIB), add(manager, 0, GIB),
                                    add(manager, 1, GIB), add(manager, 1, GIB) };
        static const uid_t owners[] = { 7, 5, 7, 6 };
        struct reserve_users users;
        (void)state;

        for (size_t i = 0; i < 4; i++) {
                vgpus[i].owner = owners[i];
                vgpus[i].reserve = i < 3 ? &held : NULL;
                link_in(manager, &vgpus[i]);
        }
        users = reserve_count_users(manager);
        assert_int_equal(users.n, 2);
        assert_int_equal(users.all, 3 * GIB);
        free_manager(manager);
}

/* Of one on two devices the pool has to hold both parts, wherever the quotas are too much. */
static void test_the_pool_can_hold_all_parts(void **state)
{
        static const struct pool_options pool = { .limit = 24 * GIB, .slab_size = GIB };
        struct manager *manager = make_manager();
        struct instance job = add(manager, 0, 8 * GIB), one = add(manager, 1, 6 * GIB);
        const struct place both = { { &manager->device[0], &manager->device[1] } };
        const struct place mixed = { { &manager->device[0], &manager->device[2] } };
        struct failure failure = { 0 };
        (void)state;

        settings.overcommit = 3;
        assert_int_equal(pool_new(&manager->pool, &pool), 0);
        job.n_parts = 2;
        job.part[1].device = &manager->device[1];
        link_in(manager, &job);
        assert_int_equal(backing_get_held(manager, NULL), 0); /* it fits */
        link_in(manager, &one);
        assert_true(backing_is_needed(&job));
        assert_int_equal(backing_get_held(manager, NULL), 22 * GIB);
        assert_int_equal(promise_check_room(&both, GIB, NULL, &failure), 0);
        assert_int_equal(promise_check_room(&both, GIB + 1, NULL, &failure), -ENOSPC);
        assert_non_null(strstr(failure.message, "devices 0,1 are overcommitted"));
        assert_non_null(strstr(failure.message, "each has 1 GiB left"));
        assert_int_equal(promise_get_left(&manager->device[1]), 2 * GIB);
        assert_int_equal(promise_check_place(&both, &failure), 0);
        assert_int_equal(promise_check_place(&mixed, &failure), -EOPNOTSUPP);
        job.n_parts = 1;
        settings.overcommit = 0;
        pool_free(manager->pool);
        free_manager(manager);
}

/* Once it is on its way, how far it is; not while the device is full. */
static void test_one_that_comes_in_says_how_far_it_is(void **state)
{
        struct manager *manager = make_manager();
        struct instance one = add(manager, 0, GIB);
        struct residency_view view;
        uint32_t slot;
        (void)state;

        one.state = STATE_RESUMING;
        one.operation = (struct operation *)&one; /* any */
        one.residency.is_coming = one.residency.waits_for_room = true;
        strcpy(one.residency.reason, "it is full");
        residency_view_get(&one, &view);
        assert_string_equal(view.demand, "waiting for memory");
        assert_string_equal(view.reason, "it is full");
        one.residency.waits_for_room = false;
        one.residency.moved_percent = 40;
        residency_view_get(&one, &view);
        assert_string_equal(view.demand, "coming in");
        assert_string_equal(view.reason, "");
        assert_int_equal(view.percent, 40);
        one.operation = NULL;
        one.residency.is_coming = false;
        one.state = STATE_RUNNING;
        residency_view_get(&one, &view);
        assert_string_equal(view.demand, "");
        assert_int_equal(view.percent, 0);
        one.part[0].residency.asks_ns = 1;
        residency_view_get(&one, &view);
        assert_string_equal(view.demand, "waiting for memory");
        one.part[0].residency.asks_ns = 0;
        assert_int_equal(page_create(&one.part[0].page, GIB), 0);
        assert_int_equal(page_take_slot(&one.part[0].page, &slot), 0);
        one.part[0].page.map->slot[slot].wanted = MIB; /* below the ceiling */
        residency_view_get(&one, &view);
        assert_string_equal(view.demand, "waiting for memory");
        assert_true(view.idle < 0);
        one.state = STATE_SUSPENDED; /* by hand: it waits for nothing that comes by itself */
        residency_view_get(&one, &view);
        assert_string_equal(view.demand, "");
        page_deinit(&one.part[0].page);
        free_manager(manager);
}

static void test_the_owner_root_and_ourselves_may_change_it(void **state)
{
        struct manager *manager = make_manager();
        struct instance one = add(manager, 0, GIB);
        struct failure failure = { 0 };
        (void)state;

        assert_int_equal(instance_check_owner(&one, owner_uid(), &failure), 0);
        assert_int_equal(instance_check_owner(&one, 0, &failure), 0);
        assert_int_equal(instance_check_owner(&one, geteuid(), &failure), 0);
        assert_int_equal(instance_check_owner(&one, stranger_uid(), &failure), -EPERM);
        assert_string_equal(failure.name, "PermissionDenied");
        free_manager(manager);
}

static void test_suspended_vgpus_count_for_their_user(void **state)
{
        const struct options options = { .user_frame_buffer = 4 * GIB, .user_vgpus = 2 };
        struct manager *manager = make_manager();
        struct instance one = add(manager, 0, 3 * GIB);
        struct failure failure = { 0 }, more = { 0 };
        (void)state;

        manager->options = &options;
        one.state = STATE_SUSPENDED;
        link_in(manager, &one);
        assert_int_equal(policy_check_limits(manager, owner_uid(), GIB, &failure), 0);
        assert_int_equal(policy_check_limits(manager, owner_uid(), GIB + 1, &failure), -EDQUOT);
        assert_string_equal(failure.name, "NoRoom");
        assert_int_equal(policy_check_limits(manager, owner_uid(), UINT64_MAX, &more), -EDQUOT);
        assert_int_equal(policy_check_limits(manager, stranger_uid(), 4 * GIB, &failure), 0);
        assert_int_equal(policy_check_limits(manager, 0, 40 * GIB, &failure), 0);
        free_manager(manager);
}

static void test_uuids_are_made_and_read(void **state)
{
        static const char *const bad[] = { "",
                                           "GPU-",
                                           "6368faf8f65e4293bd82d89b0913e237",
                                           "6368faf8-f65e-4293-bd82-d89b0913e23",
                                           "6368faf8-f65e-4293-bd82-d89b0913e2377",
                                           "6368faf8-f65e-4293-bd82-d89b0913e2-7",
                                           "6368faf8-f65e-4293-bd82-d89b0913e2+7" };
        char text[UUID_TEXT_MAX];
        uint8_t bytes[16];
        (void)state;

        assert_int_equal(uuid_make(text), 0);
        assert_int_equal(uuid_parse(bytes, text), 0);
        assert_int_equal(text[14], '4');
        assert_int_equal(uuid_parse(bytes, "GPU-6368faf8-f65e-4293-bd82-d89b0913e237"), 0);
        assert_int_equal(bytes[0], 0x63);
        assert_int_equal(bytes[15], 0x37);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(uuid_parse(bytes, bad[i]), -EINVAL);
}

/* The keeper has the page of the part in the middle, whose device is gone: it is nobody else's. */
static void test_a_page_is_found_by_the_id_of_its_part(void **state)
{
        struct instance instance = { .uuid = "u", .id = 7, .n_parts = 3 };
        char label[KEEPER_LABEL_MAX];
        (void)state;

        for (uint32_t i = 0; i < 3; i++)
                instance.part[i].id = 7 + i;
        recovery_page_label(label, &instance, &instance.part[0]);
        assert_string_equal(label, "page/u");
        recovery_page_label(label, &instance, &instance.part[2]);
        assert_string_equal(label, "page/u/9");
        instance.part[1] = instance.part[2];
        instance.n_parts = 2;
        recovery_page_label(label, &instance, &instance.part[1]);
        assert_string_equal(label, "page/u/9");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_place_is_written_and_read),
                cmocka_unit_test(test_a_page_is_found_by_the_id_of_its_part),
                cmocka_unit_test(test_names_are_of_letters_digits_and_three_signs),
                cmocka_unit_test(test_a_device_is_found_by_index_uuid_and_unique_beginning),
                cmocka_unit_test(test_promises_are_of_those_on_the_device),
                cmocka_unit_test(test_a_move_promises_at_its_target_as_well),
                cmocka_unit_test(test_an_overcommitted_device_promises_what_the_pool_can_hold),
                cmocka_unit_test(test_a_share_of_the_disk_counts_what_is_being_written),
                cmocka_unit_test(test_users_of_the_disk_are_counted_once),
                cmocka_unit_test(test_the_pool_can_hold_all_parts),
                cmocka_unit_test(test_one_that_comes_in_says_how_far_it_is),
                cmocka_unit_test(test_the_owner_root_and_ourselves_may_change_it),
                cmocka_unit_test(test_suspended_vgpus_count_for_their_user),
                cmocka_unit_test(test_uuids_are_made_and_read),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
