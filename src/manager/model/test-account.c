/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "manager/model/account.h"

#define CAPACITY 1200

static struct account_cost descriptors(uint64_t n)
{
        return (struct account_cost){ { [ACCOUNT_DESCRIPTORS] = n } };
}

static struct accounts *make(void)
{
        const struct account_cost capacity = { { 0, CAPACITY, CAPACITY, CAPACITY, 0 } };
        struct accounts *accounts;

        assert_int_equal(accounts_new(&accounts, &capacity), 0);
        return accounts;
}

static uid_t other(uint32_t n)
{
        return geteuid() + 100 + n;
}

/* As many as @uid gets, one after another. */
static uint64_t take_all(struct accounts *accounts, struct account_charge *charge, uid_t uid)
{
        const struct account_cost one = descriptors(1);
        struct failure failure = { 0 };
        uint64_t n = 0;

        while (account_take(accounts, charge, uid, &one, &failure) == 0)
                n++;
        assert_string_equal(failure.name, "NoRoom");
        assert_true(failure.hint[0]);
        return n;
}

static void the_nth_user_gets_his_part_whatever_the_others_did(void **state)
{
        struct accounts *accounts = make();
        struct account_charge charge[20] = { 0 };

        (void)state;
        for (uint32_t n = 1; n <= 20; n++) {
                uint64_t got = take_all(accounts, &charge[n - 1], other(n));

                assert_true(got >= CAPACITY / (n * (n + 1)) - 1);
                assert_true(got <= CAPACITY / (n * (n + 1)) + 1);
        }
        for (uint32_t n = 0; n < 20; n++)
                account_end(&charge[n]);
        assert_int_equal(account_get(accounts, other(1), ACCOUNT_DESCRIPTORS), 0);
        assert_int_equal(take_all(accounts, &charge[0], other(1)), CAPACITY / 2);
        account_end(&charge[0]);
        accounts_free(accounts);
}

static void the_room_is_what_can_be_taken(void **state)
{
        (void)state;
        assert_int_equal(account_room(1200, 0, 0, 1), 600);
        assert_int_equal(account_room(1200, 100, 100, 1), 500);
        assert_int_equal(account_room(1200, 600, 600, 1), 0);
        assert_int_equal(account_room(1200, 600, 0, 2), 200);
        assert_int_equal(account_room(1200, 1300, 0, 1), 0);
        assert_int_equal(account_room(UINT64_MAX, 0, UINT64_MAX / 2, 3), 0);
}

static void operators_are_charged_and_not_refused(void **state)
{
        const struct account_cost most = descriptors(2 * CAPACITY), one = descriptors(1);
        struct account_charge charge = { 0 }, none = { 0 };
        struct accounts *accounts = make();
        struct failure failure = { 0 };

        (void)state;
        assert_int_equal(account_take(accounts, &charge, 0, &most, &failure), 0);
        assert_int_equal(account_take(accounts, &none, other(1), &one, &failure), -EDQUOT);
        assert_null(none.user);
        account_end(&charge);
        assert_int_equal(account_take(accounts, &none, other(1), &one, &failure), 0);
        account_end(&none);
        accounts_free(accounts);
}

static void all_is_charged_or_nothing(void **state)
{
        const struct account_cost both = { { [ACCOUNT_DESCRIPTORS] = 1, [ACCOUNT_BYTES] = 1 } };
        struct accounts *accounts = make();
        struct account_charge charge = { 0 };
        struct failure failure = { 0 };

        (void)state;
        assert_int_equal(account_take(accounts, &charge, other(1), &both, &failure), -EDQUOT);
        assert_non_null(strstr(failure.message, "bytes of messages"));
        assert_int_equal(account_get(accounts, other(1), ACCOUNT_DESCRIPTORS), 0);
        accounts_free(accounts);
}

static void a_refusal_names_the_user_and_what_he_has(void **state)
{
        const struct account_cost some = descriptors(600), more = descriptors(2);
        struct accounts *accounts = make();
        struct account_charge charge = { 0 };
        struct failure failure = { 0 };
        char user[32];

        (void)state;
        snprintf(user, sizeof(user), "user %u has 600 of", other(1));
        assert_int_equal(account_take(accounts, &charge, other(1), &some, &failure), 0);
        assert_int_equal(account_take(accounts, &charge, other(1), &more, &failure), -EDQUOT);
        assert_non_null(strstr(failure.message, user));
        account_give(&charge, ACCOUNT_DESCRIPTORS, 300);
        assert_int_equal(account_take(accounts, &charge, other(1), &more, &failure), 0);
        account_give(&charge, ACCOUNT_DESCRIPTORS, 100000); /* no more than there is */
        assert_null(charge.user);
        accounts_free(accounts);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_nth_user_gets_his_part_whatever_the_others_did),
                cmocka_unit_test(the_room_is_what_can_be_taken),
                cmocka_unit_test(operators_are_charged_and_not_refused),
                cmocka_unit_test(all_is_charged_or_nothing),
                cmocka_unit_test(a_refusal_names_the_user_and_what_he_has),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
