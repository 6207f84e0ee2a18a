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
        margin_take(&fixture.margin, 3);
}

static void test_it_is_there_once_it_is_wanted(void **state)
{
        (void)state;
        take();
        assert_int_equal(fixture.taken, 0);
        margin_want(&fixture.margin, 80 * GIB);
        assert_int_equal(margin_get_lack(&fixture.margin), 64 * MIB);
        take();
        take();
        assert_int_equal(fixture.taken, 64 * MIB);
        assert_int_equal(margin_get_lack(&fixture.margin), 0);
        margin_drop(&fixture.margin);
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
        margin_drop(&fixture.margin);
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
        assert_int_equal(margin_get_lack(&fixture.margin), 64 * MIB);
        margin_return(&fixture.margin);
        take();
        assert_int_equal(fixture.taken, 64 * MIB);
        margin_drop(&fixture.margin);
}

static void test_what_others_have_taken_meanwhile_is_taken_later(void **state)
{
        (void)state;
        margin_want(&fixture.margin, 80 * GIB);
        fixture.is_full = true;
        take();
        assert_int_equal(margin_get_lack(&fixture.margin), 64 * MIB);
        margin_lend(&fixture.margin); /* there is nothing to give back */
        margin_return(&fixture.margin);
        fixture.is_full = false;
        take();
        assert_int_equal(fixture.taken, 64 * MIB);
        margin_drop(&fixture.margin);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_it_is_there_once_it_is_wanted, set_up),
                cmocka_unit_test_setup(test_a_small_device_has_a_small_one, set_up),
                cmocka_unit_test_setup(test_it_is_lent_until_the_last_returns_it, set_up),
                cmocka_unit_test_setup(test_what_others_have_taken_meanwhile_is_taken_later,
                                       set_up),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
