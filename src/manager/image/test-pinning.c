/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "manager/image/pinning.h"

#define SECOND 1000000000ull

enum { USER = 4711, OTHER };

static struct pinning *new_pinning(void)
{
        struct pinning *pinning;

        assert_int_equal(pinning_new(&pinning), 0);
        return pinning;
}

static void test_little_work_waits_for_nothing(void **state)
{
        struct pinning *pinning = new_pinning();
        (void)state;

        for (uint64_t now = 0; now < 10 * SECOND; now += SECOND) {
                assert_int_equal(pinning_get_wait(pinning, USER, now), 0);
                assert_int_equal(pinning_begin(pinning, USER, now), 0);
                pinning_end(pinning, USER, now + SECOND / 2);
        }
        assert_null(pinning_free(pinning));
}

static void test_a_loop_has_half_of_the_time(void **state)
{
        struct pinning *pinning = new_pinning();
        uint64_t now = 0, busy = 0, wait;
        (void)state;

        while (now < 1000 * SECOND) {
                while ((wait = pinning_get_wait(pinning, USER, now)))
                        now += wait;
                assert_int_equal(pinning_begin(pinning, USER, now), 0);
                now += 3 * SECOND;
                busy += 3 * SECOND;
                pinning_end(pinning, USER, now);
        }
        assert_in_range(busy, now * 45 / 100, now * 51 / 100);
        assert_null(pinning_free(pinning));
}

/* One after another as soon as it is allowed: with none of them there is a pause that pays. */
static void test_several_at_once_pay_as_one(void **state)
{
        struct pinning *pinning = new_pinning();
        (void)state;

        assert_int_equal(pinning_begin(pinning, USER, 0), 0);
        assert_int_equal(pinning_begin(pinning, USER, 0), 0);
        pinning_end(pinning, USER, 3 * SECOND);
        assert_true(pinning_get_wait(pinning, USER, 4 * SECOND) >= 3 * SECOND);
        pinning_end(pinning, USER, 5 * SECOND);
        assert_int_equal(pinning_get_wait(pinning, USER, 5 * SECOND), 4 * SECOND);
        assert_int_equal(pinning_get_wait(pinning, USER, 9 * SECOND), 0);
        assert_null(pinning_free(pinning));
}

static void test_nobody_pays_for_others(void **state)
{
        struct pinning *pinning = new_pinning();
        (void)state;

        assert_int_equal(pinning_begin(pinning, USER, 0), 0);
        assert_int_equal(pinning_get_wait(pinning, OTHER, 9 * SECOND), 0);
        pinning_end(pinning, OTHER, 9 * SECOND);
        assert_true(pinning_get_wait(pinning, USER, 9 * SECOND) > 0);
        assert_null(pinning_free(pinning));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_little_work_waits_for_nothing),
                cmocka_unit_test(test_a_loop_has_half_of_the_time),
                cmocka_unit_test(test_several_at_once_pay_as_one),
                cmocka_unit_test(test_nobody_pays_for_others),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
