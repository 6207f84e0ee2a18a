/* SPDX-License-Identifier: Apache-2.0 */
/* While a window is open nothing is taken but what belongs to it, and no two wait for each other. */
#include <stdatomic.h>

#include "base/test.h"
#include "mover/room.h"

/* A deadline that passes, and one that never does. */
#define SHORT_MS 20
#define LONG_MS  60000

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

static bool has_waiting(enum room_window window)
{
        bool has;

        (void)pthread_mutex_lock(&room.lock);
        has = room.n_waiting[window] > 0;
        (void)pthread_mutex_unlock(&room.lock);
        return has;
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
        assert_true(room_try_within(&room, 0, &one));
        room_open(&room, ROOM_FREEING); /* another checkpoint waits for no hold */
        assert_true(room_try_within(&room, 0, &two));
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
        assert_true(room_try_within(&room, LONG_MS, &taking));
        threads.n_done++;
        room_end(&taking);
        return NULL;
}

static void *run_taker(void *unused)
{
        struct room_taking taking;

        (void)unused;
        threads.n_begun++;
        assert_true(room_begin(&room, &taking));
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
        struct room_taking taking;
        pthread_t thread;

        (void)state;
        assert_true(room_begin(&room, &taking));
        thread = start(run_opener);
        assert_int_equal(threads.n_done, 0);
        room_end(&taking);
        finish(thread);
}

/* Else takings that overlap one another would keep it waiting for ever. */
static void test_a_window_that_waits_lets_no_taking_begin(void **state)
{
        struct room_taking taking, other;
        pthread_t thread;

        (void)state;
        assert_true(room_begin(&room, &taking));
        thread = start(run_opener);
        while (!has_waiting(ROOM_RESTORING))
                sched_yield();
        assert_false(may_take());
        assert_false(room_try_within(&room, 0, &other));
        assert_int_equal(threads.n_done, 0);
        room_end(&taking);
        finish(thread);
        assert_true(may_take());
}

/* Windows that overlap one another, or one of a call that never returns, keep no thread of the mover for ever. */
static void test_a_taking_gives_up_where_there_is_always_a_window(void **state)
{
        struct room_taking taking;

        (void)state;
        room.wait_ms = SHORT_MS;
        room_open(&room, ROOM_FREEING);
        assert_false(room_begin(&room, &taking));
        room_close(&room, ROOM_FREEING);
        assert_true(room_begin(&room, &taking));
        room_end(&taking);
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

/* Two processes of two devices, in opposite order: each takes where the other has its window. */

static struct crossing {
        struct room rooms[2];
        pthread_barrier_t are_open;
        enum room_window window[2]; /* of each process */
        bool was_refused[2];
} crossing;

static bool take_crossed(struct room *where, enum room_window window)
{
        struct room_taking taking;
        bool may = window == ROOM_FREEING ? room_try_within(where, SHORT_MS, &taking)
                                          : room_try_for(where, SHORT_MS, &taking);

        if (may)
                room_end(&taking);
        return may;
}

static void *run_process(void *userdata)
{
        size_t i = *(const size_t *)userdata;
        enum room_window window = crossing.window[i];
        struct room *own = &crossing.rooms[i], *lent = &crossing.rooms[1 - i];

        room_open(lent, window);
        if (window == ROOM_FREEING) /* and its hold is of this one */
                room_open(own, window);
        (void)pthread_barrier_wait(&crossing.are_open);
        crossing.was_refused[i] = !take_crossed(own, window);
        if (window == ROOM_FREEING)
                room_close(own, window);
        room_close(lent, window);
        return NULL;
}

static void cross(enum room_window one, enum room_window other)
{
        static size_t numbers[2] = { 0, 1 };
        pthread_t thread[2];

        crossing = (struct crossing){ .window = { one, other } };
        assert_int_equal(pthread_barrier_init(&crossing.are_open, NULL, 2), 0);
        for (size_t i = 0; i < 2; i++)
                room_init(&crossing.rooms[i]);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, run_process, &numbers[i]), 0);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(pthread_join(thread[i], NULL), 0);
        for (size_t i = 0; i < 2; i++) {
                for (int window = 0; window < ROOM_WINDOWS; window++)
                        assert_int_equal(crossing.rooms[i].n_open[window], 0);
                room_deinit(&crossing.rooms[i]);
        }
        (void)pthread_barrier_destroy(&crossing.are_open);
        assert_true(crossing.was_refused[0] || crossing.was_refused[1]);
}

static void test_two_processes_of_two_movers_do_not_wait_for_ever(void **state)
{
        (void)state;
        cross(ROOM_RESTORING, ROOM_RESTORING);
        cross(ROOM_RESTORING, ROOM_FREEING);
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
                cmocka_unit_test_setup_teardown(test_a_window_that_waits_lets_no_taking_begin,
                                                set_up, tear_down),
                cmocka_unit_test(test_two_processes_of_two_movers_do_not_wait_for_ever),
                cmocka_unit_test_setup_teardown(
                        test_a_taking_gives_up_where_there_is_always_a_window, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_taking_waits_for_the_last_window, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_hold_waits_for_restores_and_no_restore_for_its_window, set_up,
                        tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
