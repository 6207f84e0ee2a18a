/* SPDX-License-Identifier: Apache-2.0 */
/* What a refusal says of the room of a device adds up. */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/test.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/lack.h"
#include "manager/operation/operation.h"

static void check_asked(uint64_t free, uint64_t owed, uint64_t asked, uint64_t needed,
                        const char *expected)
{
        const struct lack lack = { .free = free, .owed = owed, .asked = asked, .needed = needed };
        char text[LACK_TEXT_MAX];

        lack_describe(&lack, 1, text);
        assert_string_equal(text, expected);
}

static void check(uint64_t free, uint64_t owed, uint64_t needed, const char *expected)
{
        check_asked(free, owed, 0, needed, expected);
}

static void test_nothing_is_promised(void **state)
{
        (void)state;
        check(3 * GIB, 0, 4 * GIB, "device 1 has 3 GiB free, 4 GiB are needed");
        check(0, 0, 4 * GIB, "device 1 has 0 B free, 4 GiB are needed");
}

static void test_it_says_what_is_left(void **state)
{
        (void)state;
        check(3 * GIB, 2 * GIB, 4 * GIB,
              "device 1 has 3 GiB free, of which 2 GiB are promised to others and 1 GiB are left, "
              "4 GiB are needed");
}

static void test_it_says_whom_room_is_promised_to(void **state)
{
        const struct lack lack = {
                .free = 3 * GIB, .owed = 2 * GIB, .needed = 4 * GIB, .to = "vGPUs one and two"
        };
        char text[LACK_TEXT_MAX];

        (void)state;
        lack_describe(&lack, 1, text);
        assert_string_equal(text,
                            "device 1 has 3 GiB free, of which 2 GiB are promised to vGPUs one "
                            "and two and 1 GiB are left, 4 GiB are needed");
}

/* Of what was seen a moment ago, and of what the driver says and does not give. */
static void test_what_is_enough_is_no_reason(void **state)
{
        struct lack lack = { .free = 236 * MIB, .needed = 146 * MIB };
        char text[LACK_TEXT_MAX];

        (void)state;
        lack_describe(&lack, 0, text);
        assert_string_equal(text, "others got the room of device 0 first: 146 MiB are needed, and "
                                  "236 MiB were free");
        lack.is_refused = true;
        lack_describe(&lack, 0, text);
        assert_string_equal(text, "the driver of device 0 says that 236 MiB are free, and does not "
                                  "give the 146 MiB that are needed");
}

/* What others were promised may not be free yet. */
static void test_no_more_of_it_is_promised_than_there_is(void **state)
{
        (void)state;
        check(40 * MIB, 900 * MIB, 60 * MIB,
              "device 1 has 40 MiB free, 900 MiB are promised to others, so nothing is left, 60 MiB "
              "are needed");
        check(40 * MIB, 40 * MIB, 60 * MIB,
              "device 1 has 40 MiB free, 40 MiB are promised to others, so nothing is left, 60 MiB "
              "are needed");
}

/* As the driver may have given it already, it may be as much as what is free. */
static void test_what_is_being_allocated_is_not_left(void **state)
{
        (void)state;
        check_asked(
                240 * MIB, 0, 200 * MIB, 98 * MIB,
                "device 1 has 240 MiB free, of which 200 MiB are being allocated and 40 MiB are "
                "left, 98 MiB are needed");
        check_asked(
                240 * MIB, 100 * MIB, 50 * MIB, 98 * MIB,
                "device 1 has 240 MiB free, of which 100 MiB are promised to others, 50 MiB are "
                "being allocated and 90 MiB are left, 98 MiB are needed");
        check_asked(240 * MIB, 200 * MIB, 50 * MIB, 98 * MIB,
                    "device 1 has 240 MiB free, 200 MiB are promised to others, 50 MiB are being "
                    "allocated, so nothing is left, 98 MiB are needed");
}

/* The longest numbers there are. */
static void test_there_is_room(void **state)
{
        const struct lack lack = { .free = UINT64_MAX,
                                   .owed = UINT64_MAX - 2047 * GIB,
                                   .asked = 1023 * GIB,
                                   .needed = UINT64_MAX,
                                   .to = "vGPUs 0123456789012345678901234567890123456789, "
                                         "0123456789012345678901234567890123456789, "
                                         "0123456789012345678901234567890123456789 and others" };
        char text[LACK_TEXT_MAX];

        (void)state;
        lack_describe(&lack, UINT32_MAX, text);
        assert_string_equal(text + strlen(text) - strlen("are needed"), "are needed");
}

static void set_up_instance(struct instance *instance, struct manager *manager, const char *name,
                            struct operation *operation)
{
        static struct guest guest[2];

        *instance = (struct instance){ .manager = manager,
                                       .operation = operation,
                                       .part = { { .device = &manager->device[0] } },
                                       .n_parts = 1 };
        snprintf(instance->name, sizeof(instance->name), "%s", name);
        list_init(&instance->guests);
        list_append(&instance->guests, &guest[strcmp(name, "other") == 0].link);
        list_append(&manager->instances, &instance->link);
        operation->instance = instance;
        operation->target = instance_place(instance);
}

/* One that has waited for one of its devices, or long ago, has the room by now. */
static void test_it_says_which_are_there_and_not_which_wait(void **state)
{
        static struct device device;
        static struct manager manager = { .device = &device };
        static struct operation mine, others;
        static struct instance instance, other;

        (void)state;
        device.manager = &manager;
        list_init(&manager.instances);
        set_up_instance(&instance, &manager, "mine", &mine);
        set_up_instance(&other, &manager, "other", &others);
        others.admission.waiting_since_ns = 1;
        lack_fail_turn(&mine, 0, 2 * GIB, 3000000000u);
        assert_string_equal(mine.failure.message,
                            "vGPU mine waited 3.0 s in vain for 2 GiB of device 0");
        others.admission.waiting_since_ns = 0;
        mine.failure = (struct failure){ 0 };
        lack_fail_turn(&mine, 0, 2 * GIB, 3000000000u);
        assert_string_equal(
                mine.failure.message,
                "vGPU mine waited 3.0 s in vain for 2 GiB of device 0, where vGPU other is");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_is_promised),
                cmocka_unit_test(test_it_says_what_is_left),
                cmocka_unit_test(test_it_says_whom_room_is_promised_to),
                cmocka_unit_test(test_what_is_enough_is_no_reason),
                cmocka_unit_test(test_no_more_of_it_is_promised_than_there_is),
                cmocka_unit_test(test_what_is_being_allocated_is_not_left),
                cmocka_unit_test(test_there_is_room),
                cmocka_unit_test(test_it_says_which_are_there_and_not_which_wait),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
