/* SPDX-License-Identifier: Apache-2.0 */
/* Who shares memory with whom: each pair once, a few by name, however many there are. */
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "manager/model/guest.h"
#include "manager/model/sharing.h"
#include "manager/operation/participant.h"
#include "manager/operation/rest-pairs.h"

#define MANY 200 /* each has memory of all others */

static struct guest guest[MANY];
static struct participant participant[MANY];
static struct guest *all[MANY];

static int set_up(void **state)
{
        (void)state;
        for (int i = 0; i < MANY; i++) {
                guest[i] = (struct guest){ .pid = i + 1, .participant = &participant[i] };
                list_init(&guest[i].sharing.makers);
                list_init(&guest[i].sharing.users);
                all[i] = &guest[i];
        }
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        for (int i = 0; i < MANY; i++)
                sharing_end(&guest[i]);
        return 0;
}

static void check(size_t n, const char *expected)
{
        char text[REST_PAIRS_TEXT];

        rest_list_pairs(all, n, text);
        assert_string_equal(text, expected);
}

static void test_nobody_shares(void **state)
{
        (void)state;
        check(3, "");
        check(0, "");
}

static void test_each_pair_once(void **state)
{
        (void)state;
        assert_int_equal(sharing_add(&guest[0], &guest[2]), 0);
        assert_int_equal(sharing_add(&guest[2], &guest[0]), 0);
        assert_int_equal(sharing_add(&guest[1], &guest[0]), 0);
        check(3, "; memory is shared: 1 with 3, 1 with 2");
        check(3,
              "; memory is shared: 1 with 3, 1 with 2"); /* and nothing is left of the first time */
}

static void test_only_among_those_that_are_asked_for(void **state)
{
        (void)state;
        assert_int_equal(sharing_add(&guest[0], &guest[1]), 0);
        assert_int_equal(sharing_add(&guest[1], &guest[5]), 0);
        check(3, "; memory is shared: 1 with 2");
}

static void test_many(void **state)
{
        char expected[REST_PAIRS_TEXT];
        size_t at;

        (void)state;
        for (int i = 0; i < MANY; i++)
                for (int k = 0; k < MANY; k++)
                        if (i != k)
                                assert_int_equal(sharing_add(&guest[i], &guest[k]), 0);
        at = (size_t)snprintf(expected, sizeof(expected), "; memory is shared: 1 with 2");
        for (int i = 3; i < 3 + REST_PAIRS_MAX - 1; i++)
                at += (size_t)snprintf(expected + at, sizeof(expected) - at, ", 1 with %d", i);
        (void)snprintf(expected + at, sizeof(expected) - at, " and %d more",
                       MANY * (MANY - 1) / 2 - REST_PAIRS_MAX);
        check(MANY, expected);
}

/* The longest numbers that processes have. */
static void test_there_is_room(void **state)
{
        char text[REST_PAIRS_TEXT];

        (void)state;
        for (int i = 0; i < 30; i++)
                guest[i].pid = 4194304 + i;
        for (int i = 1; i < 30; i++)
                assert_int_equal(sharing_add(&guest[i], &guest[0]), 0);
        rest_list_pairs(all, 30, text);
        assert_non_null(strstr(text, " and 23 more"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_nobody_shares, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_each_pair_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_only_among_those_that_are_asked_for, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_there_is_room, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
