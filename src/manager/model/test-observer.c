/* SPDX-License-Identifier: Apache-2.0 */
/* As many as subscribe are told, in their order; who has left is not. */
#include "base/test.h"
#include "manager/model/observer.h"

#define MANY 100

static int order[MANY], n_told;

static void note(void *userdata)
{
        order[n_told++] = *(int *)userdata;
}

static void test_all_are_told_in_their_order(void **state)
{
        static struct observer observer[MANY];
        struct observers observers = { 0 };
        int number[MANY];
        (void)state;

        for (int i = 0; i < MANY; i++) {
                number[i] = i;
                observer[i].changed = i % 3 == 2 ? NULL : note;
                observer_add(&observers, &observer[i], &number[i]);
        }
        observer_remove(&observers, &observer[0]);
        observer_remove(&observers, &observer[0]); /* it is not there any more */
        observer_remove(&observers, &observer[MANY - 1]);
        n_told = 0;
        observer_tell_changed(&observers);
        assert_int_equal(n_told, MANY - MANY / 3 - 2);
        for (int i = 1; i < n_told; i++)
                assert_true(order[i - 1] < order[i]);
        observer_add(&observers, &observer[0], &number[0]);
        n_told = 0;
        observer_tell_changed(&observers);
        assert_int_equal(order[n_told - 1], 0);
}

static void test_nobody_is_told_of_nothing(void **state)
{
        struct observers observers = { 0 };
        struct observer observer = { 0 };
        (void)state;

        observer_remove(&observers, &observer);
        observer_tell_changed(&observers);
        observer_add(&observers, &observer, NULL);
        observer_tell_changed(&observers);
        observer_tell_instance(&observers, NULL, INSTANCE_ADDED);
        observer_tell_guest(&observers, NULL, GUEST_JOINED);
        observer_tell_device(&observers, NULL, DEVICE_MOVER_LOST);
        observer_tell_operation(&observers, NULL, true);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_are_told_in_their_order),
                cmocka_unit_test(test_nobody_is_told_of_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
