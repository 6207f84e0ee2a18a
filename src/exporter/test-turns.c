/* SPDX-License-Identifier: Apache-2.0 */
/* What a second gave to whom is exact, also where turns were missed, and a log that is old counts for nothing. */
#include <string.h>

#include "base/test.h"
#include "exporter/turns.h"

#define NOW 1764000000000ull /* ms */
#define MS  1000000ull

static struct vgpu_usage_percents percents[2];
static struct vgpu_usage_instance train = { .id = 1,
                                            .state = VGPU_INSTANCE_RUNNING,
                                            .percents = &percents[0] };
static struct vgpu_usage_instance serve = { .id = 2,
                                            .state = VGPU_INSTANCE_RUNNING,
                                            .percents = &percents[1] };
static const struct vgpu_usage_instance *const instances[] = { &train, &serve };
static const struct vgpu_usage_device device = { .index = 0, .uuid = "GPU-0" };
static const struct vgpu_usage_device other = { .index = 1, .uuid = "GPU-1" };
static const struct vgpu_usage_device *const devices[] = { &device, &other };
static const struct vgpu_usage_snapshot snapshot = {
        .n_devices = 2,
        .devices = devices,
        .n_instances = 2,
        .instances = instances,
};

static struct turns *turns;

static int set_up(void **state)
{
        (void)state;
        train.state = serve.state = VGPU_INSTANCE_RUNNING;
        train.device = serve.device = 0;
        memset(percents, 0, sizeof(percents));
        return turns_new(&turns);
}

static int tear_down(void **state)
{
        (void)state;
        turns = turns_free(turns);
        return 0;
}

static void add(const struct vgpu_time_sharing_entry *const *entries, size_t n, uint64_t next,
                uint64_t at_ms)
{
        struct vgpu_time_sharing_log log = { .next = next, .n_entries = n, .entries = entries };
        struct vgpu_time_sharing_log *const logs[] = { &log, NULL };

        turns_add(turns, &snapshot, logs, at_ms);
}

static const struct turns_slice *get_last(const char *uuid)
{
        const struct turns_device *found = turns_find(turns, uuid);

        assert_non_null(found);
        assert_true(found->n_slices > 0);
        return &found->slices[found->n_slices - 1];
}

static uint32_t get_part(const struct turns_slice *slice, uint32_t id)
{
        for (size_t i = 0; i < slice->n_parts; i++)
                if (slice->parts[i].id == id)
                        return slice->parts[i].permille;
        return 0;
}

static void test_missed_turns_count(void **state)
{
        const struct vgpu_time_sharing_entry old = { .timestamp_ns = (NOW - 3600000) * MS,
                                                     .id = 2,
                                                     .run_ns = 5 * MS,
                                                     .run_total_ns = 5 * MS };
        const struct vgpu_time_sharing_entry first[] = {
                { .timestamp_ns = (NOW - 20) * MS,
                  .id = 1,
                  .run_ns = 15 * MS,
                  .run_total_ns = 900 * MS },
                { .timestamp_ns = (NOW - 10) * MS,
                  .id = 2,
                  .run_ns = 10 * MS,
                  .run_total_ns = 300 * MS },
        };
        const struct vgpu_time_sharing_entry later[] = {
                { .timestamp_ns = (NOW + 995) * MS,
                  .id = 1,
                  .run_ns = 15 * MS,
                  .run_total_ns = 1650 * MS },
                { .timestamp_ns = (NOW + 1000) * MS,
                  .id = 2,
                  .run_ns = 5 * MS,
                  .run_total_ns = 550 * MS },
        };
        (void)state;

        assert_true(turns_is_due(turns, NOW));
        assert_int_equal(turns_get_next(turns, "GPU-0"), 0);
        add((const struct vgpu_time_sharing_entry *const[]){ &old, &first[0], &first[1] }, 3, 400,
            NOW);
        assert_int_equal(turns_get_next(turns, "GPU-0"), 400);
        assert_int_equal(get_part(get_last("GPU-0"), 1), 15); /* what the log has, of a second */
        assert_int_equal(get_part(get_last("GPU-0"), 2), 10);
        assert_false(turns_is_due(turns, NOW + 100));
        assert_true(turns_is_due(turns, NOW + 1000));

        add((const struct vgpu_time_sharing_entry *const[]){ &later[0], &later[1] }, 2, 900,
            NOW + 1000);
        assert_true(get_last("GPU-0")->is_of_turns);
        assert_int_equal(get_part(get_last("GPU-0"), 1), 750);
        assert_int_equal(get_part(get_last("GPU-0"), 2), 250);
        assert_int_equal(turns_find(turns, "GPU-0")->n_slices, 2);
        assert_int_equal(turns_find(turns, "GPU-0")->n_last, 2);
        assert_int_equal(turns_find(turns, "GPU-0")->last[0].start_us, 20000);
        assert_int_equal(turns_find(turns, "GPU-0")->last[1].run_us, 5000);
}

/* Whichever of them had the first turn, or stands first in the list. */
static void test_parts_have_one_order(void **state)
{
        const struct vgpu_time_sharing_entry entries[] = {
                { .timestamp_ns = (NOW - 20) * MS,
                  .id = 2,
                  .run_ns = 15 * MS,
                  .run_total_ns = 900 * MS },
                { .timestamp_ns = (NOW - 10) * MS,
                  .id = 1,
                  .run_ns = 10 * MS,
                  .run_total_ns = 300 * MS },
        };
        const struct vgpu_usage_instance *const backwards[] = { &serve, &train };
        struct vgpu_usage_snapshot turned = snapshot;
        (void)state;

        add((const struct vgpu_time_sharing_entry *const[]){ &entries[0], &entries[1] }, 2, 400,
            NOW);
        assert_int_equal(get_last("GPU-0")->n_parts, 2);
        assert_int_equal(get_last("GPU-0")->parts[0].id, 1);
        assert_int_equal(get_last("GPU-0")->parts[1].id, 2);

        turned.instances = backwards;
        percents[0].gpu = percents[1].gpu = 40;
        turns_add(turns, &turned, NULL, NOW + 1000);
        assert_false(get_last("GPU-0")->is_of_turns);
        assert_int_equal(get_last("GPU-0")->parts[0].id, 1);
        assert_int_equal(get_last("GPU-0")->parts[1].id, 2);
}

static void test_without_turns_the_meter_says_it(void **state)
{
        (void)state;
        percents[0].gpu = 74;
        serve.device = 1;
        percents[1].gpu = 12;
        turns_add(turns, &snapshot, NULL, NOW);
        assert_false(get_last("GPU-0")->is_of_turns);
        assert_int_equal(get_part(get_last("GPU-0"), 1), 740);
        assert_int_equal(get_part(get_last("GPU-0"), 2), 0);
        assert_int_equal(get_part(get_last("GPU-1"), 2), 120);
        assert_null(turns_find(turns, "GPU-2"));
}

static void test_who_left_and_who_came(void **state)
{
        (void)state;
        turns_add(turns, &snapshot, NULL, NOW);
        assert_int_equal(get_last("GPU-0")->n_marks, 0);
        train.state = VGPU_INSTANCE_SUSPENDED;
        serve.device = 1;
        turns_add(turns, &snapshot, NULL, NOW + 1000);
        assert_int_equal(get_last("GPU-0")->n_marks, 2);
        assert_int_equal(get_last("GPU-0")->marks[0].move, TURNS_LEFT);
        assert_int_equal(get_last("GPU-1")->n_marks, 1);
        assert_int_equal(get_last("GPU-1")->marks[0].id, 2);
        assert_int_equal(get_last("GPU-1")->marks[0].move, TURNS_CAME);
        train.state = VGPU_INSTANCE_RUNNING;
        turns_add(turns, &snapshot, NULL, NOW + 2000);
        assert_int_equal(get_last("GPU-0")->n_marks, 1);
        assert_int_equal(get_last("GPU-0")->marks[0].move, TURNS_CAME);
}

/* A vGPU of several devices is on each of them, with a number of its own. */
static void test_several_devices(void **state)
{
        struct vgpu_usage_percents of_part[2] = { { .gpu = 30 }, { .gpu = 60 } };
        struct vgpu_usage_part part[2] = { { .id = 7, .device = 0, .percents = &of_part[0] },
                                           { .id = 8, .device = 1, .percents = &of_part[1] } };
        const struct vgpu_usage_part *const parts[] = { &part[0], &part[1] };
        struct vgpu_usage_instance pair = train;
        const struct vgpu_usage_instance *const pairs[] = { &pair };
        struct vgpu_usage_snapshot several = snapshot;
        (void)state;

        pair.n_parts = 2;
        pair.parts = parts;
        several.n_instances = 1;
        several.instances = pairs;
        turns_add(turns, &several, NULL, NOW);
        assert_int_equal(get_part(get_last("GPU-0"), 7), 300);
        assert_int_equal(get_part(get_last("GPU-0"), 8), 0);
        assert_int_equal(get_part(get_last("GPU-1"), 8), 600);
        pair.state = VGPU_INSTANCE_SUSPENDED;
        turns_add(turns, &several, NULL, NOW + 1000);
        assert_int_equal(get_last("GPU-0")->n_marks, 1);
        assert_int_equal(get_last("GPU-1")->n_marks, 1);
        assert_int_equal(get_last("GPU-1")->marks[0].id, 8);
        assert_int_equal(get_last("GPU-1")->marks[0].move, TURNS_LEFT);
        assert_int_equal(get_part(get_last("GPU-1"), 8), 0);
}

/* Nobody looked for a while, or the clock was set back. */
static void test_it_is_a_minute_and_begins_anew(void **state)
{
        (void)state;
        for (uint64_t i = 0; i < TURNS_SLICES + 20; i++)
                turns_add(turns, &snapshot, NULL, NOW + i * 1000);
        assert_int_equal(turns_find(turns, "GPU-0")->n_slices, TURNS_SLICES);
        assert_int_equal(turns_find(turns, "GPU-0")->slices[0].until_ms, NOW + 20000);
        turns_add(turns, &snapshot, NULL, NOW + 200000);
        assert_int_equal(turns_find(turns, "GPU-0")->n_slices, 1);
        assert_int_equal(get_last("GPU-0")->from_ms, NOW + 199000);
        turns_add(turns, &snapshot, NULL, NOW);
        assert_int_equal(turns_find(turns, "GPU-0")->n_slices, 1);
        assert_true(turns_is_due(turns, NOW - 1));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_missed_turns_count, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_parts_have_one_order, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_without_turns_the_meter_says_it, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_who_left_and_who_came, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_several_devices, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_it_is_a_minute_and_begins_anew, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests_name("exporter-turns", tests, NULL, NULL);
}
