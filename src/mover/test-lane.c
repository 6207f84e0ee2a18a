/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of a lane run in their order, as many at once as it has threads, and a closed lane begins none. */
#include <stdbool.h>
#include <stddef.h>

#include "base/test.h"
#include "mover/lane.h"

#define TASKS 8

static struct fixture {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned int n_begun, n_ended, n_allowed; /* tasks; so many may end */
        unsigned int order[TASKS];
        struct numbered {
                struct task task;
                unsigned int number;
        } tasks[TASKS];
} fixture = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void run_task(struct task *task)
{
        const struct numbered *numbered = (const struct numbered *)(const void *)task;
        unsigned int turn;

        pthread_mutex_lock(&fixture.lock);
        turn = fixture.n_begun;
        fixture.order[fixture.n_begun++] = numbered->number;
        pthread_cond_broadcast(&fixture.changed);
        while (fixture.n_allowed <= turn)
                pthread_cond_wait(&fixture.changed, &fixture.lock);
        fixture.n_ended++;
        pthread_cond_broadcast(&fixture.changed);
        pthread_mutex_unlock(&fixture.lock);
}

static void allow(unsigned int n)
{
        pthread_mutex_lock(&fixture.lock);
        fixture.n_allowed = n;
        pthread_cond_broadcast(&fixture.changed);
        pthread_mutex_unlock(&fixture.lock);
}

static void wait_for(const unsigned int *count, unsigned int n)
{
        pthread_mutex_lock(&fixture.lock);
        while (*count < n)
                pthread_cond_wait(&fixture.changed, &fixture.lock);
        pthread_mutex_unlock(&fixture.lock);
}

static void add_tasks(struct lane *lane, unsigned int n)
{
        fixture.n_begun = fixture.n_ended = fixture.n_allowed = 0;
        for (unsigned int i = 0; i < n; i++) {
                fixture.tasks[i] = (struct numbered){ { .run = run_task }, i };
                assert_int_equal(lane_add(lane, &fixture.tasks[i].task), 0);
        }
}

static void test_one_thread_runs_them_one_after_another(void **state)
{
        static struct lane lane; /* its thread stays */
        (void)state;

        lane_init(&lane, 1);
        add_tasks(&lane, TASKS);
        for (unsigned int i = 0; i < TASKS; i++) {
                wait_for(&fixture.n_begun, i + 1);
                assert_int_equal(fixture.n_begun, i + 1);
                allow(i + 1);
        }
        wait_for(&fixture.n_ended, TASKS);
        for (unsigned int i = 0; i < TASKS; i++)
                assert_int_equal(fixture.order[i], i);
        assert_int_equal(lane.n_threads, 1);
}

static void test_two_threads_run_two_at_once(void **state)
{
        static struct lane lane;
        (void)state;

        lane_init(&lane, 2);
        add_tasks(&lane, 3);
        wait_for(&fixture.n_begun, 2); /* neither has ended */
        assert_int_equal(fixture.n_ended, 0);
        allow(TASKS);
        wait_for(&fixture.n_ended, 3);
        assert_int_equal(lane.n_threads, 2);
}

static void *close_lane(void *lane)
{
        lane_close(lane);
        return NULL;
}

static void test_a_closed_lane_waits_for_what_has_begun_and_begins_nothing(void **state)
{
        static struct lane lane;
        bool is_closed = false;
        pthread_t closer;
        (void)state;

        lane_init(&lane, 1);
        add_tasks(&lane, 3);
        wait_for(&fixture.n_begun, 1);
        assert_int_equal(pthread_create(&closer, NULL, close_lane, &lane), 0);
        while (!is_closed) {
                pthread_mutex_lock(&lane.lock);
                is_closed = lane.is_closed;
                pthread_mutex_unlock(&lane.lock);
        }
        allow(TASKS);
        assert_int_equal(pthread_join(closer, NULL), 0);
        assert_int_equal(fixture.n_ended, 1);
        assert_int_equal(fixture.n_begun, 1);
        assert_ptr_equal(lane.first, &fixture.tasks[1].task); /* the caller's again */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_thread_runs_them_one_after_another),
                cmocka_unit_test(test_two_threads_run_two_at_once),
                cmocka_unit_test(test_a_closed_lane_waits_for_what_has_begun_and_begins_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
