/* SPDX-License-Identifier: Apache-2.0 */
/* What one user can write into the log. */
#include "base/test.h"
#include "daemon/log-limit.h"

#define SECOND_NS UINT64_C(1000000000)

static uint32_t left_out;

static void fill(struct log_limit *limit, uid_t user, uint64_t now_ns)
{
        for (int i = 0; i < LOG_LIMIT_LINES; i++)
                assert_int_equal(log_limit_take(limit, user, now_ns, &left_out), LOG_LIMIT_WRITE);
}

static void a_user_has_so_many_lines_and_others_have_theirs(void **state)
{
        struct log_limit limit = { 0 };

        (void)state;
        fill(&limit, 1, SECOND_NS);
        assert_int_equal(log_limit_take(&limit, 1, SECOND_NS, &left_out), LOG_LIMIT_FULL);
        assert_int_equal(log_limit_take(&limit, 1, SECOND_NS, &left_out), LOG_LIMIT_LEAVE_OUT);
        fill(&limit, 2, SECOND_NS);
}

static void the_next_interval_says_how_many_were_left_out(void **state)
{
        uint64_t next_ns = SECOND_NS * (1 + LOG_LIMIT_SECONDS);
        struct log_limit limit = { 0 };

        (void)state;
        fill(&limit, 1, SECOND_NS);
        for (int i = 0; i < 7; i++)
                (void)log_limit_take(&limit, 1, next_ns - 1, &left_out);
        assert_int_equal(left_out, 0);
        assert_int_equal(log_limit_take(&limit, 1, next_ns, &left_out), LOG_LIMIT_WRITE);
        assert_int_equal(left_out, 7);
        assert_int_equal(log_limit_take(&limit, 1, next_ns, &left_out), LOG_LIMIT_WRITE);
        assert_int_equal(left_out, 0);
}

static void with_too_many_users_the_oldest_is_forgotten(void **state)
{
        struct log_limit limit = { 0 };

        (void)state;
        for (uid_t user = 0; user < LOG_LIMIT_USERS; user++)
                fill(&limit, user, SECOND_NS + user);
        assert_int_equal(log_limit_take(&limit, 1000, 2 * SECOND_NS, &left_out), LOG_LIMIT_WRITE);
        assert_int_equal(log_limit_take(&limit, 1, 2 * SECOND_NS, &left_out), LOG_LIMIT_FULL);
        assert_int_equal(log_limit_take(&limit, 0, 2 * SECOND_NS, &left_out), LOG_LIMIT_WRITE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_user_has_so_many_lines_and_others_have_theirs),
                cmocka_unit_test(the_next_interval_says_how_many_were_left_out),
                cmocka_unit_test(with_too_many_users_the_oldest_is_forgotten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
