/* SPDX-License-Identifier: Apache-2.0 */
/* Each end is of the process and the call that it names, and of nothing else. */
#include "base/test.h"
#include "mover/lending.h"

static void end(struct lendings *lendings, pid_t pid, enum mover_call call)
{
        struct lending *lending = lending_end(lendings, pid, call);

        assert_non_null(lending);
        lending_free(lending);
}

static void test_an_end_is_of_its_process_and_its_call(void **state)
{
        struct lendings lendings = { .lock = PTHREAD_MUTEX_INITIALIZER };

        (void)state;
        lending_begin(&lendings, lending_new(1, MOVER_CALL_CHECKPOINT));
        lending_begin(&lendings, lending_new(2, MOVER_CALL_RESTORE));
        assert_null(lending_end(&lendings, 1, MOVER_CALL_RESTORE));
        assert_null(lending_end(&lendings, 2, MOVER_CALL_CHECKPOINT));
        assert_null(lending_end(&lendings, 3, MOVER_CALL_RESTORE)); /* of a mover before this one */
        end(&lendings, 1, MOVER_CALL_CHECKPOINT);
        assert_null(lending_end(&lendings, 1, MOVER_CALL_CHECKPOINT));
        end(&lendings, 2, MOVER_CALL_RESTORE);
        assert_null(lendings.first);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_end_is_of_its_process_and_its_call),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
