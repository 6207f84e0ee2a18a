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
        .owner = 4294967294,
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

static json_t *write_and_read(const struct metrics_input *input, const struct history *history)
{
        const struct state_extras extras = { .history = history,
                                             .number = 5,
                                             .now_ms = 1764000000000 };
        char *text = state_write(input, &extras);
        json_t *root;

        assert_non_null(text);
        assert_null(strpbrk(text, "\n\r"));
        root = json_loads(text, 0, NULL);
        assert_non_null(root);
        free(text);
        return root;
}

static void test_everything_is_there(void **state)
{
        const struct vgpu_device_sensors warm = { .temperature = 55, .power_mw = 400500 };
        const struct vgpu_device_sensors *const sensors[] = { &warm };
        const struct metrics_input input = { .snapshot = &snapshot,
                                             .sensors = sensors,
                                             .hostname = "h" };
        struct history *history;
        json_t *root, *vgpu, *found;
        double watts;
        (void)state;

        assert_int_equal(history_new(&history), 0);
        history_add(history, &snapshot, 1000);
        root = write_and_read(&input, history);
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
        assert_true(json_integer_value(json_object_get(vgpu, "owner")) == 4294967294);
        assert_int_equal(json_integer_value(json_object_get(vgpu, "programs")), 2);
        found = json_object_get(json_object_get(root, "history"), "gpu");
        assert_int_equal(json_integer_value(json_array_get(json_object_get(found, "u"), 0)), 74);
        json_decref(root);
        assert_null(history_free(history));
}

static void test_what_is_not_known_is_left_out(void **state)
{
        struct vgpu_device_sensors unknown;
        const struct vgpu_device_sensors *const sensors[] = { &unknown };
        struct metrics_input input = { .snapshot = &snapshot, .sensors = sensors, .hostname = "h" };
        json_t *root, *found;
        (void)state;

        memset(&unknown, 0xff, sizeof(unknown));
        root = write_and_read(&input, NULL);
        found = json_array_get(json_object_get(root, "devices"), 0);
        assert_null(json_object_get(found, "celsius"));
        assert_null(json_object_get(found, "watts"));
        assert_null(json_object_get(root, "history"));
        json_decref(root);

        input.snapshot = NULL;
        root = write_and_read(&input, NULL);
        assert_true(json_is_false(json_object_get(root, "up")));
        assert_null(json_object_get(root, "vgpus"));
        json_decref(root);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_everything_is_there),
                cmocka_unit_test(test_what_is_not_known_is_left_out),
        };

        return cmocka_run_group_tests_name("exporter-state", tests, NULL, NULL);
}
