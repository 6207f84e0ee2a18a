/* SPDX-License-Identifier: Apache-2.0 */
/* What the page gets is JSON on one line, whatever names there are. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "exporter/state.h"

#define HOSTILE "</script><img src=x onerror=alert(1)>\"\\\n\r"

static const struct vgpu_usage_percents percents = { .gpu = 74 };
static const struct vgpu_usage_instance instance = {
        .name = HOSTILE,
        .uuid = "u",
        .device = 1,
        .state = VGPU_INSTANCE_SUSPENDED,
        .frame_buffer = 40,
        .frame_buffer_used = 30,
        .entitled = 75.5,
        .percents = &percents,
        .share = 60,
        .id = 9,
        .n_programs = 2,
};
static const struct vgpu_usage_instance *const instances[] = { &instance };
static const struct vgpu_usage_device device = {
        .index = 1,
        .uuid = "GPU-1",
        .name = "NVIDIA H200",
        .source = "turns",
        .memory_total = 100,
        .memory_used = 30,
        .percents = &percents,
        .memory_promised = 40,
};
static const struct vgpu_usage_device *const devices[] = { &device };
static const struct vgpu_usage_snapshot snapshot = {
        .n_devices = 1,
        .devices = devices,
        .n_instances = 1,
        .instances = instances,
};

/* Frees @text. */
static json_t *read_line(char *text)
{
        json_t *root;

        assert_non_null(text);
        assert_null(strpbrk(text, "\n\r"));
        root = json_loads(text, 0, NULL);
        assert_non_null(root);
        free(text);
        return root;
}

static json_t *write_and_read(const struct metrics_input *input)
{
        const struct state_extras extras = { .number = 5, .now_ms = 1764000000000 };

        return read_line(state_write(input, &extras));
}

static void test_everything_is_there(void **state)
{
        const struct vgpu_device_sensors warm = { .temperature = 55, .power_mw = 400500 };
        const struct vgpu_device_sensors *const sensors[] = { &warm };
        const struct metrics_input input = { .snapshot = &snapshot,
                                             .sensors = sensors,
                                             .hostname = "h" };
        json_t *root, *vgpu, *found;
        double watts;
        (void)state;

        root = write_and_read(&input);
        assert_true(json_is_true(json_object_get(root, "up")));
        assert_int_equal(json_integer_value(json_object_get(root, "number")), 5);
        found = json_array_get(json_object_get(root, "devices"), 0);
        assert_int_equal(json_integer_value(json_object_get(found, "promised")), 40);
        assert_int_equal(json_integer_value(json_object_get(found, "celsius")), 55);
        watts = json_real_value(json_object_get(found, "watts"));
        assert_true(watts == 400.5);
        vgpu = json_array_get(json_object_get(root, "vgpus"), 0);
        assert_string_equal(json_string_value(json_object_get(vgpu, "name")), HOSTILE);
        assert_string_equal(json_string_value(json_object_get(vgpu, "state")), "suspended");
        assert_int_equal(json_integer_value(json_object_get(vgpu, "programs")), 2);
        json_decref(root);
}

static void test_what_is_not_known_is_left_out(void **state)
{
        struct vgpu_device_sensors unknown;
        const struct vgpu_device_sensors *const sensors[] = { &unknown };
        struct metrics_input input = { .snapshot = &snapshot, .sensors = sensors, .hostname = "h" };
        json_t *root, *found;
        (void)state;

        memset(&unknown, 0xff, sizeof(unknown));
        root = write_and_read(&input);
        found = json_array_get(json_object_get(root, "devices"), 0);
        assert_null(json_object_get(found, "celsius"));
        assert_null(json_object_get(found, "watts"));
        json_decref(root);

        input.snapshot = NULL;
        root = write_and_read(&input);
        assert_true(json_is_false(json_object_get(root, "up")));
        assert_null(json_object_get(root, "vgpus"));
        json_decref(root);
}

/* Of vGPU and device @i the number at @place in a change. */
static double get_number(const json_t *change, const char *list, size_t i, size_t place)
{
        return json_number_value(
                json_array_get(json_array_get(json_object_get(change, list), i), place));
}

static size_t count(const json_t *change, const char *list)
{
        return json_array_size(json_object_get(change, list));
}

static void test_a_change_has_what_is_different_and_no_more(void **state)
{
        const struct vgpu_pool pool = { .used = 7, .limit = 8 };
        const struct vgpu_manager manager = { .version = "1", .pool = &pool };
        struct vgpu_usage_instance other = instance, same = instance;
        const struct vgpu_usage_instance *now[] = { &same, &other };
        struct vgpu_usage_snapshot later = snapshot;
        struct metrics_input input = { .snapshot = &later, .manager = &manager, .hostname = "h" };
        const struct state_extras extras = { .number = 9, .now_ms = 1764000000000 };
        struct state_base *base;
        json_t *change;
        (void)state;

        later.n_instances = 2;
        later.instances = now;
        other.uuid = "v";
        base = state_base_new(&input, 5);
        assert_non_null(base);
        change = read_line(state_write_change(base, &input, &extras));
        assert_int_equal(json_integer_value(json_object_get(change, "base")), 5);
        assert_int_equal(json_integer_value(json_object_get(change, "number")), 9);
        assert_int_equal(count(change, "vgpus") + count(change, "devices"), 0);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(change, "pool"), 1)), 8);
        json_decref(change);

        other.frame_buffer_used = 31;
        other.entitled = 12.5;
        change = read_line(state_write_change(base, &input, &extras));
        assert_int_equal(count(change, "vgpus"), 1);
        assert_true(get_number(change, "vgpus", 0, 0) == 1);
        assert_true(get_number(change, "vgpus", 0, 3) == 31);
        assert_true(get_number(change, "vgpus", 0, 5) == 12.5);
        json_decref(change);
        assert_null(state_base_free(base));
}

static void test_parts_of_several_devices(void **state)
{
        struct vgpu_usage_part part[2] = { { .id = 9, .device = 1, .percents = &percents },
                                           { .id = 10, .device = 2, .percents = &percents } };
        const struct vgpu_usage_part *const parts[] = { &part[0], &part[1] };
        struct vgpu_usage_instance pair = instance;
        const struct vgpu_usage_instance *const pairs[] = { &pair };
        struct vgpu_usage_snapshot several = snapshot;
        struct metrics_input input = { .snapshot = &several, .hostname = "h" };
        const struct state_extras extras = { .number = 9 };
        struct state_base *base;
        json_t *root, *found;
        (void)state;

        pair.n_parts = 2;
        pair.parts = parts;
        several.instances = pairs;
        root = write_and_read(&input);
        found = json_object_get(json_array_get(json_object_get(root, "vgpus"), 0), "parts");
        assert_int_equal(json_array_size(found), 2);
        found = json_array_get(found, 1);
        assert_int_equal(json_integer_value(json_object_get(found, "id")), 10);
        assert_int_equal(json_integer_value(json_object_get(found, "device")), 2);
        json_decref(root);

        base = state_base_new(&input, 5);
        assert_non_null(base);
        root = read_line(state_write_change(base, &input, &extras));
        assert_int_equal(count(root, "vgpus"), 0);
        json_decref(root);
        part[1].frame_buffer_used = 4;
        root = read_line(state_write_change(base, &input, &extras));
        found = json_array_get(json_array_get(json_object_get(root, "vgpus"), 0), 8);
        assert_int_equal(json_array_size(found), 2);
        assert_int_equal(json_integer_value(json_array_get(json_array_get(found, 1), 1)), 4);
        json_decref(root);
        pair.n_parts = 0;
        assert_null(state_write_change(base, &input, &extras));
        assert_null(state_base_free(base));
}

static void test_another_state_is_no_change(void **state)
{
        struct vgpu_usage_instance other = instance;
        const struct vgpu_usage_instance *now[] = { &other };
        struct vgpu_usage_snapshot later = snapshot;
        struct metrics_input input = { .snapshot = &snapshot, .hostname = "h" };
        const struct state_extras extras = { .number = 9 };
        struct state_base *base = state_base_new(&input, 5);
        (void)state;

        assert_non_null(base);
        later.instances = now;
        input.snapshot = &later;
        free(state_write_change(base, &input, &extras));
        other.name = "renamed";
        assert_null(state_write_change(base, &input, &extras));
        other = instance;
        other.frame_buffer++; /* resized */
        assert_null(state_write_change(base, &input, &extras));
        other = instance;
        other.uuid = "another";
        assert_null(state_write_change(base, &input, &extras));
        later.n_instances = 0;
        assert_null(state_write_change(base, &input, &extras));
        input.snapshot = NULL;
        assert_null(state_write_change(base, &input, &extras));
        assert_null(state_base_new(&input, 6));
        assert_null(state_base_free(base));
}

static void test_the_past_and_its_news(void **state)
{
        struct metrics_input input = { .snapshot = &snapshot, .hostname = "h" };
        struct state_extras extras = { .number = 9, .now_ms = 1764000000000 };
        struct state_base *base = state_base_new(&input, 5);
        uint64_t step = HISTORY_INTERVAL_MS;
        json_t *past, *change, *found;
        struct history *history;
        struct turns *turns;
        (void)state;

        assert_non_null(base);
        assert_int_equal(history_new(&history), 0);
        assert_int_equal(turns_new(&turns), 0);
        for (uint64_t i = 0; i < 5; i++)
                history_add(history, &snapshot, extras.now_ms - (5 - i) * step);
        turns_add(turns, &snapshot, NULL, extras.now_ms - 90000);
        past = read_line(state_write_past(history, turns, extras.now_ms));
        found = json_object_get(past, "history");
        assert_int_equal(json_array_size(json_object_get(found, "times")), 5);
        found = json_object_get(json_object_get(found, "gpu"), "u");
        assert_int_equal(json_integer_value(json_array_get(found, 0)), 74);
        assert_int_equal(json_array_size(found), 5);
        found = json_object_get(json_object_get(past, "turns"), "GPU-1");
        assert_int_equal(count(found, "slices"), 0); /* it is longer ago than a minute */
        json_decref(past);

        turns_add(turns, &snapshot, NULL, extras.now_ms);
        extras.history = history;
        extras.turns = turns;
        change = read_line(state_write_change(base, &input, &extras));
        found = json_object_get(json_object_get(change, "history"), "gpu");
        assert_int_equal(json_array_size(json_object_get(found, "u")), 3);
        found = json_array_get(json_array_get(json_object_get(change, "devices"), 0), 6);
        assert_int_equal(count(found, "slices"), 1);
        json_decref(change);
        assert_null(history_free(history));
        assert_null(turns_free(turns));
        assert_null(state_base_free(base));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_everything_is_there),
                cmocka_unit_test(test_what_is_not_known_is_left_out),
                cmocka_unit_test(test_a_change_has_what_is_different_and_no_more),
                cmocka_unit_test(test_parts_of_several_devices),
                cmocka_unit_test(test_another_state_is_no_change),
                cmocka_unit_test(test_the_past_and_its_news),
        };

        return cmocka_run_group_tests_name("exporter-state", tests, NULL, NULL);
}
