/* SPDX-License-Identifier: Apache-2.0 */
/* While a window is open nothing is taken but what belongs to it, and no two wait for each other. */
#include <stdatomic.h>

#include "base/test.h"
#include "mover/room.h"

static struct room room;

static int set_up(void **state)
{
        (void)state;
        room_init(&room);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        assert_true(room_is_valid(&room));
        room_deinit(&room);
        return 0;
}

static bool may_take(void)
{
        struct room_taking taking;
        bool may = room_try(&room, &taking);

        if (may)
                room_end(&taking);
        return may;
}

static void test_nothing_is_taken_while_a_window_is_open(void **state)
{
        (void)state;
        assert_true(may_take());
        for (int window = 0; window < ROOM_WINDOWS; window++) {
                room_open(&room, window);
                room_open(&room, window); /* of two processes */
                assert_false(may_take());
                room_close(&room, window);
                assert_false(may_take());
                room_close(&room, window);
                assert_true(may_take());
        }
}

static void test_a_freeing_window_takes_its_hold(void **state)
{
        struct room_taking one, two;

        (void)state;
        room_open(&room, ROOM_FREEING);
        one = room_begin_within(&room);
        room_open(&room, ROOM_FREEING); /* another checkpoint waits for no hold */
        two = room_begin_within(&room);
        assert_false(may_take());
        room_end(&one);
        room_end(&two);
        room_close(&room, ROOM_FREEING);
        room_close(&room, ROOM_FREEING);
        assert_true(may_take());
}

/* Threads that wait: each is known to wait before the test goes on, by what it must have done first. */

static struct {
        atomic_int n_begun, n_done;
} threads;

static void *run_opener(void *unused)
{
        (void)unused;
        threads.n_begun++;
        room_open(&room, ROOM_RESTORING);
        threads.n_done++;
        room_close(&room, ROOM_RESTORING);
        return NULL;
}

static void *run_holder(void *unused)
{
        struct room_taking taking;

        (void)unused;
        threads.n_begun++;
        taking = room_begin_within(&room);
        threads.n_done++;
        room_end(&taking);
        return NULL;
}

static void *run_taker(void *unused)
{
        struct room_taking taking;

        (void)unused;
        threads.n_begun++;
        taking = room_begin(&room);
        threads.n_done++;
        room_end(&taking);
        return NULL;
}

static pthread_t start(void *(*run)(void *unused))
{
        pthread_t thread;

        threads.n_begun = threads.n_done = 0;
        assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
        while (threads.n_begun == 0)
                sched_yield();
        return thread;
}

static void finish(pthread_t thread)
{
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(threads.n_done, 1);
}

static void test_a_window_waits_for_the_takings_that_have_begun(void **state)
{
        struct room_taking taking = room_begin(&room);
        pthread_t thread = start(run_opener);

        (void)state;
        assert_int_equal(threads.n_done, 0);
        room_end(&taking);
        finish(thread);
}

static void test_a_taking_waits_for_the_last_window(void **state)
{
        pthread_t thread;

        (void)state;
        room_open(&room, ROOM_FREEING);
        room_open(&room, ROOM_RESTORING);
        thread = start(run_taker);
        room_close(&room, ROOM_RESTORING);
        assert_int_equal(threads.n_done, 0);
        room_close(&room, ROOM_FREEING);
        finish(thread);
}

/* What a restore was let go is as free as what the checkpoint has just made free: the hold could take both. */
static void test_a_hold_waits_for_restores_and_no_restore_for_its_window(void **state)
{
        pthread_t thread;

        (void)state;
        room_open(&room, ROOM_FREEING);
        room_open(&room, ROOM_RESTORING);
        thread = start(run_holder);
        assert_int_equal(threads.n_done, 0);
        room_close(&room, ROOM_RESTORING);
        finish(thread);
        room_close(&room, ROOM_FREEING);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_nothing_is_taken_while_a_window_is_open,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_freeing_window_takes_its_hold, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_window_waits_for_the_takings_that_have_begun,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_taking_waits_for_the_last_window, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_hold_waits_for_restores_and_no_restore_for_its_window, set_up,
                        tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
