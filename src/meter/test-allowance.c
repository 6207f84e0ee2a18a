/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "meter/allowance.h"

enum { USER = 4711, OTHER };

static unsigned int take_all(struct allowance *allowance, uid_t user, uint64_t now_ms)
{
        unsigned int n = 0;

        while (allowance_take(allowance, user, now_ms))
                n++;
        return n;
}

static void test_a_burst_and_then_one_at_a_time(void **state)
{
        struct allowance allowance;
        (void)state;

        allowance_init(&allowance);
        assert_int_equal(take_all(&allowance, USER, 0), ALLOWANCE_BURST);
        assert_int_equal(take_all(&allowance, USER, ALLOWANCE_INTERVAL_MS - 1), 0);
        assert_int_equal(take_all(&allowance, USER, ALLOWANCE_INTERVAL_MS), 1);
        assert_int_equal(take_all(&allowance, USER, 8 * ALLOWANCE_INTERVAL_MS), 7);
        assert_int_equal(take_all(&allowance, OTHER, 0), ALLOWANCE_BURST);
        allowance_deinit(&allowance);
}

static void test_who_has_all_of_it_is_not_remembered(void **state)
{
        struct allowance allowance;
        uint64_t later = 2ull * ALLOWANCE_BURST * ALLOWANCE_INTERVAL_MS;
        (void)state;

        allowance_init(&allowance);
        for (uid_t user = 0; user < 100; user++)
                assert_true(allowance_take(&allowance, user, 0));
        assert_true(allowance_take(&allowance, OTHER, later));
        assert_int_equal(list_count(&allowance.users), 1);
        assert_int_equal(take_all(&allowance, USER, later), ALLOWANCE_BURST);
        allowance_deinit(&allowance);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_burst_and_then_one_at_a_time),
                cmocka_unit_test(test_who_has_all_of_it_is_not_remembered),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
