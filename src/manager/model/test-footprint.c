/* SPDX-License-Identifier: Apache-2.0 */
/* What a restore is promised of each device of a vGPU, from what gates and the meter have seen. */
#include <stdatomic.h>

#include "base/size.h"
#include "base/test.h"
#include "manager/model/device.h"
#include "manager/model/footprint.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

#define MARGIN (64 * MIB)

struct fixture {
        struct manager manager;
        struct device device[2];
        struct instance instance;
        struct guest guest;
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        fixture->instance.manager = &fixture->manager;
        fixture->instance.frame_buffer = 10 * GIB;
        fixture->instance.n_parts = 2;
        for (size_t i = 0; i < 2; i++) {
                fixture->device[i].memory_total = 80 * GIB;
                fixture->instance.part[i].device = &fixture->device[i];
                assert_int_equal(page_create(&fixture->instance.part[i].page, 10 * GIB), 0);
        }
        fixture->guest.instance = &fixture->instance;
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < 2; i++)
                page_deinit(&fixture->instance.part[i].page);
        free(fixture);
        return 0;
}

static struct instance_page_slot *slot_of(struct fixture *fixture, size_t part)
{
        return &fixture->instance.part[part].page.map->slot[fixture->guest.slot];
}

static uint64_t get(const struct fixture *fixture, size_t part)
{
        return footprint_get(&fixture->guest, part, &fixture->device[part]);
}

static void see(struct fixture *fixture, size_t part, uint64_t bytes)
{
        fixture->guest.meter.part[part].context_bytes = bytes;
        fixture->guest.meter.part[part].is_steady = true;
}

static void test_where_a_process_has_no_context_none_is_promised(void **state)
{
        struct fixture *fixture = *state;

        atomic_store(&slot_of(fixture, 1)->beside, 768 * MIB);
        assert_int_equal(get(fixture, 0), MARGIN);
        assert_int_equal(get(fixture, 1), footprint_get_unknown(&fixture->device[1]) + MARGIN);
        atomic_store(&slot_of(fixture, 0)->used[INSTANCE_PAGE_FIXED], 3 * MIB);
        assert_int_equal(get(fixture, 0), MARGIN + 3 * MIB);
}

/* The rank of a job whose home has no context of it. */
static void test_what_is_seen_on_any_device_is_promised_where_there_is_a_context(void **state)
{
        struct fixture *fixture = *state;

        atomic_store(&slot_of(fixture, 1)->beside, 768 * MIB);
        see(fixture, 1, 2 * GIB);
        assert_int_equal(get(fixture, 0), MARGIN);
        assert_int_equal(get(fixture, 1), 2 * GIB + MARGIN);
        footprint_measure(&fixture->guest,
                          40 * MIB); /* that became free at home is not its context */
        assert_int_equal(get(fixture, 1), 2 * GIB + MARGIN);
}

static void test_a_context_that_only_the_meter_has_seen_counts(void **state)
{
        struct fixture *fixture = *state;

        see(fixture, 0, 600 * MIB);
        assert_int_equal(get(fixture, 0), 600 * MIB + MARGIN);
        assert_int_equal(get(fixture, 1), MARGIN);
}

/* It had 200 MiB when it was seen, and has loaded its libraries since. */
static void test_a_context_that_grows_is_promised_what_most_take(void **state)
{
        struct fixture *fixture = *state;
        uint64_t most = footprint_get_unknown(&fixture->device[0]);

        see(fixture, 0, 200 * MIB);
        fixture->guest.meter.part[0].is_steady = false;
        assert_int_equal(get(fixture, 0), most + MARGIN);
        see(fixture, 0, 2 * most); /* it has more than most already */
        fixture->guest.meter.part[0].is_steady = false;
        assert_int_equal(get(fixture, 0), 3 * most + MARGIN);
        footprint_note(&fixture->guest); /* a guess is no knowledge */
        assert_int_equal(fixture->guest.context.bytes, 0);
        see(fixture, 0, 200 * MIB);
        assert_int_equal(get(fixture, 0), 200 * MIB + MARGIN);
        fixture->guest.context.bytes = 400 * MIB; /* measured, as it left */
        fixture->guest.meter.part[0].is_steady = false;
        assert_int_equal(get(fixture, 0), 400 * MIB + MARGIN);
}

static void test_of_one_device_a_context_is_always_promised(void **state)
{
        struct fixture *fixture = *state;

        fixture->instance.n_parts = 1;
        assert_int_equal(get(fixture, 0), footprint_get_unknown(&fixture->device[0]) + MARGIN);
}

static void test_of_who_has_no_slot_yet_all_is_assumed(void **state)
{
        struct fixture *fixture = *state;

        fixture->guest.slot = UINT32_MAX;
        for (size_t part = 0; part < 2; part++)
                assert_int_equal(get(fixture, part),
                                 footprint_get_unknown(&fixture->device[part]) + MARGIN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_where_a_process_has_no_context_none_is_promised),
                TEST(test_what_is_seen_on_any_device_is_promised_where_there_is_a_context),
                TEST(test_a_context_that_only_the_meter_has_seen_counts),
                TEST(test_a_context_that_grows_is_promised_what_most_take),
                TEST(test_of_one_device_a_context_is_always_promised),
                TEST(test_of_who_has_no_slot_yet_all_is_assumed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
