/* SPDX-License-Identifier: Apache-2.0 */
#include "base/size.h"
#include "base/test.h"
#include "manager/model/room.h"

static void test_what_one_was_promised_is_not_there_for_the_next(void **state)
{
        struct room_promise first = { 0 }, second = { 0 };
        struct room room;
        (void)state;

        room_init(&room);
        room_promise(&room, &first, 6 * GIB);
        assert_int_equal(room_balance(&room, 10 * GIB, room_mark(&room)), 4 * GIB);
        room_promise(&room, &second, 6 * GIB);
        assert_true(room_balance(&room, 10 * GIB, room_mark(&room)) < 0);
        room_forget(&first);
        assert_int_equal(room_balance(&room, 10 * GIB, room_mark(&room)), 4 * GIB);
        room_forget(&second);
        assert_int_equal(room_owed(&room), 0);
}

static void test_memory_is_not_free_any_more_and_owed_no_longer(void **state)
{
        struct room_promise promise = { 0 };
        struct room room;
        (void)state;

        room_init(&room);
        room_promise(&room, &promise, 6 * GIB);
        room_turn(&promise);
        room_turn(&promise); /* once */
        assert_int_equal(room_balance(&room, 4 * GIB, room_mark(&room)), 4 * GIB);
        room_return(&promise);
        assert_int_equal(room_balance(&room, 10 * GIB, room_mark(&room)), 4 * GIB);
        room_forget(&promise);
}

static void test_an_answer_from_before_it_became_memory_is_not_believed(void **state)
{
        struct room_promise promise = { 0 };
        struct room room;
        uint64_t mark;
        (void)state;

        room_init(&room);
        room_promise(&room, &promise, 6 * GIB);
        mark = room_mark(&room); /* the driver is asked, and says 10 GiB */
        room_turn(&promise);
        assert_int_equal(room_balance(&room, 10 * GIB, mark), 4 * GIB);
        room_forget(&promise);
        assert_int_equal(room_balance(&room, 10 * GIB, mark), 4 * GIB);
        assert_int_equal(room_balance(&room, 4 * GIB, room_mark(&room)), 4 * GIB);
}

/* It is not free before the driver has checkpointed the process, and it is then. */
static void test_what_is_leaving_is_not_owed_and_memory_when_it_is_held(void **state)
{
        struct room_promise promise = { 0 };
        struct room room;
        uint64_t mark;
        (void)state;

        room_init(&room);
        room_leave(&promise); /* nothing was promised */
        assert_int_equal(promise.state, ROOM_OWED);
        room_promise(&room, &promise, 6 * GIB);
        room_leave(&promise);
        assert_int_equal(room_owed(&room), 0);
        assert_int_equal(room_leaving(&room), 6 * GIB);
        mark = room_mark(&room);
        room_turn(&promise);
        assert_int_equal(room_leaving(&room), 0);
        assert_int_equal(room_balance(&room, 10 * GIB, mark), 4 * GIB);
        assert_true(room_is_valid(&room));
        room_forget(&promise);
}

static void test_a_promise_is_made_anew_elsewhere(void **state)
{
        struct room_promise promise = { 0 };
        struct room here, there;
        (void)state;

        room_init(&here);
        room_init(&there);
        room_promise(&here, &promise, GIB);
        room_turn(&promise);
        room_promise(&there, &promise, 2 * GIB);
        assert_true(room_is_to(&promise, &there));
        assert_int_equal(room_owed(&here), 0);
        assert_int_equal(room_owed(&there), 2 * GIB);
        room_forget(&promise);
        room_forget(&promise);
        assert_true(list_is_empty(&there.promises));
}

static void test_a_promise_becomes_memory_in_parts(void **state)
{
        struct room_promise promise = { 0 };
        struct room room;
        uint64_t mark;
        (void)state;

        room_init(&room);
        room_turn_part(&promise, GIB); /* nothing is promised */
        room_promise(&room, &promise, 6 * GIB);
        mark = room_mark(&room); /* the driver is asked, and says 10 GiB */
        room_turn_part(&promise, 2 * GIB);
        assert_int_equal(room_owed(&room), 4 * GIB);
        assert_int_equal(room_balance(&room, 10 * GIB, mark), 4 * GIB);
        assert_int_equal(room_balance(&room, 8 * GIB, room_mark(&room)), 4 * GIB);
        room_turn_part(&promise, 7 * GIB); /* no more than there is */
        assert_int_equal(room_owed(&room), 0);
        assert_int_equal(room_balance(&room, 10 * GIB, mark), 4 * GIB);
        room_forget(&promise);
}

static void test_what_a_dead_mover_held_is_owed_again(void **state)
{
        struct room_promise held = { 0 }, owed = { 0 };
        struct room room;
        (void)state;

        room_init(&room);
        room_promise(&room, &held, GIB);
        room_promise(&room, &owed, GIB);
        room_turn(&held);
        room_lose(&room);
        assert_int_equal(room_owed(&room), 2 * GIB);
        room_forget(&held);
        room_forget(&owed);
}

static void test_no_claim_is_so_large_that_it_counts_as_small(void **state)
{
        struct room_promise promises[4] = { 0 };
        struct room room;
        (void)state;

        room_init(&room);
        for (int i = 0; i < 4; i++)
                room_promise(&room, &promises[i], UINT64_MAX);
        assert_true(room_balance(&room, GIB, room_mark(&room)) < 0);
        assert_true(room_balance(&room, UINT64_MAX, room_mark(&room)) <= 0);
        for (int i = 0; i < 4; i++)
                room_forget(&promises[i]);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_one_was_promised_is_not_there_for_the_next),
                cmocka_unit_test(test_memory_is_not_free_any_more_and_owed_no_longer),
                cmocka_unit_test(test_an_answer_from_before_it_became_memory_is_not_believed),
                cmocka_unit_test(test_what_is_leaving_is_not_owed_and_memory_when_it_is_held),
                cmocka_unit_test(test_a_promise_is_made_anew_elsewhere),
                cmocka_unit_test(test_a_promise_becomes_memory_in_parts),
                cmocka_unit_test(test_what_a_dead_mover_held_is_owed_again),
                cmocka_unit_test(test_no_claim_is_so_large_that_it_counts_as_small),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
