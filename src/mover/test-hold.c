/* SPDX-License-Identifier: Apache-2.0 */
/* What is held for a process is held once, whoever asks for it and how often. */
#include <errno.h>
#include <pthread.h>

#include "base/size.h"
#include "base/test.h"
#include "mover/hold.h"
#include "mover/mapping.h"

#define PID 4711

static struct fixture {
        struct holds holds;
        struct device device;
        pthread_barrier_t
                takers; /* who has seen that something is lacking waits here for the others */
        uint64_t taken;
        size_t n_takings;
} fixture;

bool __real_device_try_taking(struct device *device, uint32_t ms, struct room_taking *ret_taking);
bool __wrap_device_try_taking(struct device *device, uint32_t ms, struct room_taking *ret_taking);
bool __wrap_device_try_taking(struct device *device, uint32_t ms, struct room_taking *ret_taking)
{
        (void)pthread_barrier_wait(&fixture.takers);
        return __real_device_try_taking(device, ms, ret_taking);
}

int __wrap_mapping_create(struct mapping *mapping, const struct room_taking *taking,
                          CUdevice device, uint64_t size, struct mover_done *done);
int __wrap_mapping_create(struct mapping *mapping, const struct room_taking *taking,
                          CUdevice device, uint64_t size, struct mover_done *done)
{
        (void)device, (void)done;
        assert_true(taking->room == &fixture.device.room && fixture.device.room.n_takings > 0);
        mapping->size = size;
        fixture.taken += size;
        fixture.n_takings++;
        return 0;
}

int __wrap_mapping_release(struct mapping *mapping, struct mover_done *done);
int __wrap_mapping_release(struct mapping *mapping, struct mover_done *done)
{
        (void)done;
        fixture.taken -= mapping->size;
        mapping->size = 0;
        return 0;
}

static void set_up(unsigned int n_takers)
{
        fixture = (struct fixture){
                .holds = { .lock = PTHREAD_MUTEX_INITIALIZER },
        };
        room_init(&fixture.device.room);
        assert_int_equal(pthread_barrier_init(&fixture.takers, NULL, n_takers), 0);
}

static int take(uint64_t bytes, uint32_t request)
{
        struct mover_done done = { 0 };

        return hold_take(&fixture.holds, &fixture.device, PID, bytes, request, 0, &done);
}

static int take_within(uint64_t bytes, uint32_t request)
{
        struct mover_done done = { 0 };

        return hold_take_within(&fixture.holds, &fixture.device, PID, bytes, request, 0, &done);
}

static void drop(uint32_t request)
{
        struct mover_done done = { 0 };

        assert_int_equal(hold_drop(&fixture.holds, PID, request, &done), 0);
}

static void tear_down(uint32_t request)
{
        drop(request);
        assert_true(holds_are_empty(&fixture.holds));
        assert_int_equal(fixture.taken, 0);
        (void)pthread_barrier_destroy(&fixture.takers);
}

static void test_only_what_is_lacking_is_taken(void **state)
{
        (void)state;
        set_up(1);
        assert_int_equal(take(4 * MIB, 1), 0);
        assert_int_equal(take(10 * MIB, 2), 0);
        assert_int_equal(fixture.taken, 10 * MIB);
        assert_int_equal(take(6 * MIB, 3), 0);
        assert_int_equal(fixture.n_takings, 2);
        drop(2); /* all is the third's */
        assert_int_equal(fixture.taken, 10 * MIB);
        tear_down(3);
}

static void *run_holder(void *userdata)
{
        assert_int_equal(take(10 * MIB, *(const uint32_t *)userdata), 0);
        return NULL;
}

/* As when a restore is under way: both find all of it lacking, and wait. */
static void test_two_who_ask_at_once_take_it_once(void **state)
{
        uint32_t requests[] = { 1, 2 };
        pthread_t threads[2];
        (void)state;

        set_up(2);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, run_holder, &requests[i]), 0);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(fixture.taken, 10 * MIB);
        drop(1); /* it is the second's */
        assert_int_equal(fixture.taken, 10 * MIB);
        tear_down(2);
}

/* Where nobody else takes anything. */
static void test_what_a_checkpoint_leaves_is_held_within_its_window(void **state)
{
        struct room_taking other;
        (void)state;

        set_up(1);
        device_open_window(&fixture.device, ROOM_FREEING);
        assert_int_equal(take_within(3 * MIB, 1), 0);
        assert_int_equal(fixture.taken, 4 * MIB);
        assert_int_equal(take(4 * MIB, 2), 0); /* it is there: no window is waited for */
        assert_false(room_try(&fixture.device.room, &other));
        device_close_window(&fixture.device, ROOM_FREEING);
        tear_down(2);
}

/* A process of several devices may have windows of its own open elsewhere: what is held already stays. */
static void test_windows_of_others_are_waited_for_to_a_deadline(void **state)
{
        (void)state;

        set_up(1);
        assert_int_equal(take(4 * MIB, 1), 0);
        device_open_window(&fixture.device, ROOM_FREEING);
        assert_int_equal(take(6 * MIB, 2), -ENOMEM);
        device_open_window(&fixture.device, ROOM_RESTORING);
        assert_int_equal(take(6 * MIB, 3), -ENOMEM);
        assert_int_equal(take_within(6 * MIB, 4), -ENOMEM);
        assert_int_equal(fixture.taken, 4 * MIB);
        device_close_window(&fixture.device, ROOM_RESTORING);
        assert_int_equal(take_within(6 * MIB, 5), 0);
        device_close_window(&fixture.device, ROOM_FREEING);
        tear_down(5);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_what_is_lacking_is_taken),
                cmocka_unit_test(test_two_who_ask_at_once_take_it_once),
                cmocka_unit_test(test_what_a_checkpoint_leaves_is_held_within_its_window),
                cmocka_unit_test(test_windows_of_others_are_waited_for_to_a_deadline),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
