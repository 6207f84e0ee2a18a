/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "daemon/crowd.h"

static void come(struct crowd *crowd, size_t n)
{
        while (n-- > 0)
                crowd_come(crowd);
}

/* Returns how often memory was given back. */
static size_t go(struct crowd *crowd, size_t n)
{
        size_t times = 0;

        while (n-- > 0)
                times += crowd_go(crowd);
        return times;
}

static void test_memory_is_given_back_when_most_have_gone(void **state)
{
        struct crowd crowd = { 0 };
        (void)state;

        come(&crowd, 1000);
        assert_int_equal(go(&crowd, 749), 0);
        assert_int_equal(go(&crowd, 1), 1);
        assert_int_equal(go(&crowd, 187), 0); /* of the 250 that are left */
        assert_int_equal(go(&crowd, 1), 1);
}

static void test_a_few_that_come_and_go_cost_nothing(void **state)
{
        struct crowd crowd = { 0 };
        (void)state;

        for (int i = 0; i < 1000; i++) {
                come(&crowd, 60);
                assert_int_equal(go(&crowd, 60), 0);
        }
}

static void test_one_that_comes_and_goes_beside_a_crowd_costs_nothing(void **state)
{
        struct crowd crowd = { 0 };
        (void)state;

        come(&crowd, 1000);
        for (int i = 0; i < 1000; i++) {
                crowd_come(&crowd);
                assert_false(crowd_go(&crowd));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_memory_is_given_back_when_most_have_gone),
                cmocka_unit_test(test_a_few_that_come_and_go_cost_nothing),
                cmocka_unit_test(test_one_that_comes_and_goes_beside_a_crowd_costs_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
