/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>

#include "base/test.h"
#include "manager/guest.h"
#include "manager/instance.h"
#include "manager/manager.h"
#include "manager/operation.h"

#define USER 4711

/* Whose descriptors have all been given out meanwhile: he cannot be left with his memory away. */
static void test_an_undo_is_refused_no_descriptor(void **state)
{
        const struct account_cost none = { 0 };
        struct manager manager = { 0 };
        struct operation operation = { 0 };
        struct instance instance = { .manager = &manager, .operation = &operation };
        struct guest guest = { .instance = &instance, .uid = USER };
        struct guest_memory memory = { .source = -1 };
        struct failure failure = { 0 };
        (void)state;

        assert_int_equal(accounts_new(&manager.accounts, &none), 0);
        assert_int_equal(guest_charge_target(&guest, &failure), -EDQUOT);
        operation.is_undoing = true;
        assert_int_equal(guest_charge_source(&guest, &failure), -EDQUOT);
        assert_int_equal(guest_charge_target(&guest, &failure), 0);
        assert_int_equal(account_get(manager.accounts, USER, ACCOUNT_DESCRIPTORS), 1);

        memory.target = open("/dev/null", O_RDONLY | O_CLOEXEC);
        guest_close_target(&guest, &memory);
        assert_int_equal(account_get(manager.accounts, USER, ACCOUNT_DESCRIPTORS), 0);
        accounts_free(manager.accounts);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_undo_is_refused_no_descriptor),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
