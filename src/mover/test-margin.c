/* SPDX-License-Identifier: Apache-2.0 */
/* The margin is there while nobody needs it, and given back while anybody does. */
#include <errno.h>

#include "base/size.h"
#include "base/test.h"
#include "mover/driver.h"
#include "mover/margin.h"

static struct fixture {
        struct margin margin;
        uint64_t taken;
        bool is_full;
} fixture;

static CUresult create(CUmemGenericAllocationHandle *handle, size_t size,
                       const CUmemAllocationProp *prop, unsigned long long flags)
{
        assert_int_equal(prop->location.id, 3);
        assert_int_equal(flags, 0);
        if (fixture.is_full)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *handle = 1;
        fixture.taken += size;
        return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
        assert_int_equal(handle, 1);
        fixture.taken = 0;
        return CUDA_SUCCESS;
}

static int set_up(void **state)
{
        (void)state;
        fixture = (struct fixture){ 0 };
        driver.cuMemCreate = create;
        driver.cuMemRelease = release;
        margin_init(&fixture.margin);
        return 0;
}

static void take(void)
{
        static struct room room;
        struct room_taking taking;

        room_init(&room);
        assert_true(room_begin(&room, &taking));
        margin_take(&fixture.margin, &taking, 3);
        room_end(&taking);
        room_deinit(&room);
}

/* It is given back when it is lent, and not taken again where none is wanted. */
static void drop(void)
{
        margin_want(&fixture.margin, 0);
        margin_lend(&fixture.margin);
        margin_return(&fixture.margin);
}

static void test_it_is_there_once_it_is_wanted(void **state)
{
        (void)state;
        take();
        assert_int_equal(fixture.taken, 0);
        margin_want(&fixture.margin, 80 * GIB);
        assert_true(margin_is_lacking(&fixture.margin));
        take();
        take();
        assert_int_equal(fixture.taken, 64 * MIB);
        assert_false(margin_is_lacking(&fixture.margin));
        drop();
        assert_int_equal(fixture.taken, 0);
        take();
        assert_int_equal(fixture.taken, 0);
}

static void test_a_small_device_has_a_small_one(void **state)
{
        (void)state;
        margin_want(&fixture.margin, 256 * MIB);
        take();
        assert_int_equal(fixture.taken, 4 * MIB);
        drop();
        margin_want(&fixture.margin, 64 * MIB); /* less than the driver's granularity */
        take();
        assert_int_equal(fixture.taken, 0);
}

static void test_it_is_lent_until_the_last_returns_it(void **state)
{
        (void)state;
        margin_want(&fixture.margin, 80 * GIB);
        take();
        margin_lend(&fixture.margin);
        assert_int_equal(fixture.taken, 0);
        margin_lend(&fixture.margin);
        margin_return(&fixture.margin);
        take();
        assert_int_equal(fixture.taken, 0);
        assert_false(margin_is_lacking(&fixture.margin));
        margin_return(&fixture.margin);
        take();
        assert_int_equal(fixture.taken, 64 * MIB);
        drop();
}

static void test_what_others_have_taken_meanwhile_is_taken_later(void **state)
{
        (void)state;
        margin_want(&fixture.margin, 80 * GIB);
        fixture.is_full = true;
        take();
        assert_false(margin_is_lacking(&fixture.margin)); /* it has just been tried */
        margin_lend(&fixture.margin);                     /* there is nothing to give back */
        margin_return(&fixture.margin);
        fixture.is_full = false;
        take(); /* not at once: who asks all the time does not ask the driver each time */
        assert_int_equal(fixture.taken, 0);
        fixture.margin.not_before_ns = 0;
        take();
        assert_int_equal(fixture.taken, 64 * MIB);
        drop();
}

static CUresult get_info(size_t *ret_free, size_t *ret_total)
{
        *ret_free = 100 * MIB - fixture.taken;
        *ret_total = 80 * GIB;
        return CUDA_SUCCESS;
}

static void test_what_is_free_is_without_it(void **state)
{
        struct mover_done done = { 0 };
        uint64_t free_bytes;

        (void)state;
        driver.cuMemGetInfo_v2 = get_info;
        margin_want(&fixture.margin, 80 * GIB);
        for (int i = 0; i < 2; i++) { /* before it is taken, and then */
                assert_int_equal(margin_read_free(&fixture.margin, &free_bytes, &done), 0);
                assert_int_equal(free_bytes, 36 * MIB);
                take();
        }
        margin_lend(&fixture.margin);
        assert_int_equal(margin_read_free(&fixture.margin, &free_bytes, &done), 0);
        assert_int_equal(free_bytes, 36 * MIB);
        margin_return(&fixture.margin);
        drop();
}

/* The driver tells this from the second look on: first it has said nothing of memory that was given back just now. */
static _Atomic int n_looks;
static _Atomic uint64_t told;

static CUresult get_late_info(size_t *ret_free, size_t *ret_total)
{
        *ret_free = n_looks++ == 0 ? 0 : told;
        *ret_total = 80 * GIB;
        return CUDA_SUCCESS;
}

static void begin_to_tell(uint64_t bytes)
{
        n_looks = 1;
        told = bytes;
        driver.cuMemGetInfo_v2 = get_late_info;
        margin_want(&fixture.margin, 80 * GIB);
}

static int claim(enum margin_call call, uint64_t bytes, struct margin_claim *ret_claim)
{
        return margin_claim(&fixture.margin, call, bytes, true, ret_claim);
}

static void end(struct margin_claim *claim)
{
        margin_unclaim(&fixture.margin, claim);
}

static void test_what_was_just_given_back_is_waited_for(void **state)
{
        struct margin_claim call;

        (void)state;
        begin_to_tell(64 * MIB);
        n_looks = 0;
        assert_int_equal(claim(MARGIN_CHECKPOINT, 0, &call), 0);
        assert_int_equal(n_looks, 2);
        end(&call);
        told = 15 * MIB;
        assert_int_equal(claim(MARGIN_CHECKPOINT, 0, &call), -ENOSPC);
        assert_int_equal(fixture.margin.claimed, 0);
        assert_int_equal(margin_claim(&fixture.margin, MARGIN_CHECKPOINT, 0, false, &call), 0);
        end(&call); /* nothing was known */
}

static void *run_call(void *unused)
{
        struct margin_claim call;

        (void)unused;
        assert_int_equal(claim(MARGIN_CHECKPOINT, 0, &call), 0);
        end(&call);
        return NULL;
}

/* It looks again and again until @other, which has what it needs, has ended. */
static void check_it_waits_for(struct margin_claim *other)
{
        pthread_t waiting;
        int before = n_looks;

        assert_int_equal(pthread_create(&waiting, NULL, run_call, NULL), 0);
        while (n_looks < before + 2)
                sched_yield();
        end(other);
        assert_int_equal(pthread_join(waiting, NULL), 0);
}

/* 64 MiB are enough for four. */
static void test_each_call_has_a_part_of_its_own(void **state)
{
        struct margin_claim call[4];

        (void)state;
        begin_to_tell(64 * MIB);
        for (int i = 0; i < 4; i++)
                assert_int_equal(claim(MARGIN_CHECKPOINT, 0, &call[i]), 0);
        check_it_waits_for(&call[0]);
        for (int i = 1; i < 4; i++)
                end(&call[i]);
        assert_int_equal(fixture.margin.claimed, 0);
}

/* It is free until the driver takes it, and no room for any other call. */
static void test_the_room_of_a_restore_is_no_room_for_a_checkpoint(void **state)
{
        struct margin_claim restore;

        (void)state;
        begin_to_tell(500 * MIB);
        assert_int_equal(claim(MARGIN_RESTORE, 500 * MIB, &restore), 0);
        check_it_waits_for(&restore);
}

/* The driver is late to tell what the last one has given back, however long that was waited for. */
static CUresult get_info_late_behind_the_last(size_t *ret_free, size_t *ret_total)
{
        static int n_behind; /* with the margin's lock */

        n_looks++;
        *ret_free = fixture.margin.claimed == 0 && n_behind++ == 0 ? 0 : told;
        *ret_total = 80 * GIB;
        return CUDA_SUCCESS;
}

static void test_the_end_of_the_last_call_is_waited_for_as_any(void **state)
{
        struct margin_claim restore;
        pthread_t waiting;

        (void)state;
        begin_to_tell(500 * MIB);
        driver.cuMemGetInfo_v2 = get_info_late_behind_the_last;
        assert_int_equal(claim(MARGIN_RESTORE, 500 * MIB, &restore), 0);
        assert_int_equal(pthread_create(&waiting, NULL, run_call, NULL), 0);
        while (n_looks < 40) /* between two of which it waits a millisecond */
                sched_yield();
        end(&restore);
        assert_int_equal(pthread_join(waiting, NULL), 0);
}

/* A hold is as large as the way back may be, which is more than a checkpoint has made free. */
static void test_a_hold_leaves_the_margin_and_the_calls_beside_it_alone(void **state)
{
        struct margin_claim call, hold;

        (void)state;
        begin_to_tell(164 * MIB);
        assert_int_equal(claim(MARGIN_HOLD, 102 * MIB, &hold), -ENOSPC);
        assert_int_equal(claim(MARGIN_HOLD, 100 * MIB, &hold), 0);
        assert_int_equal(n_looks, 3); /* it does not wait for what may never come */
        end(&hold);
        assert_int_equal(claim(MARGIN_CHECKPOINT, 0, &call), 0);
        assert_int_equal(claim(MARGIN_HOLD, 86 * MIB, &hold), -ENOSPC);
        assert_int_equal(claim(MARGIN_HOLD, 84 * MIB, &hold), 0);
        end(&hold);
        end(&call);
        assert_int_equal(fixture.margin.claimed, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_it_is_there_once_it_is_wanted, set_up),
                cmocka_unit_test_setup(test_a_small_device_has_a_small_one, set_up),
                cmocka_unit_test_setup(test_it_is_lent_until_the_last_returns_it, set_up),
                cmocka_unit_test_setup(test_what_is_free_is_without_it, set_up),
                cmocka_unit_test_setup(test_what_was_just_given_back_is_waited_for, set_up),
                cmocka_unit_test_setup(test_each_call_has_a_part_of_its_own, set_up),
                cmocka_unit_test_setup(test_the_room_of_a_restore_is_no_room_for_a_checkpoint,
                                       set_up),
                cmocka_unit_test_setup(test_the_end_of_the_last_call_is_waited_for_as_any, set_up),
                cmocka_unit_test_setup(test_a_hold_leaves_the_margin_and_the_calls_beside_it_alone,
                                       set_up),
                cmocka_unit_test_setup(test_what_others_have_taken_meanwhile_is_taken_later,
                                       set_up),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
