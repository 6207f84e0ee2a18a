/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of vgpu top, and the history that it shows. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "cli/top-graph.h"

#define LAST (TOP_HISTORY_SAMPLES - 1)

static struct vgpu_usage_percents percents;
static struct vgpu_usage_instance instance = { .uuid = "u-1",
                                               .state = VGPU_INSTANCE_RUNNING,
                                               .percents = &percents };
static const struct vgpu_usage_instance *const instances[] = { &instance };
static const struct vgpu_usage_snapshot one = { .n_instances = 1, .instances = instances };
static const struct vgpu_usage_snapshot none;

static void add(struct top_history *history, uint32_t percent)
{
        percents.gpu = percent;
        top_history_add(history, &one);
}

static void test_the_history_has_a_place_for_each_update(void **state)
{
        struct top_history history = { 0 };
        uint8_t past[TOP_HISTORY_SAMPLES];
        (void)state;

        add(&history, 30);
        add(&history, 130);
        top_history_add(&history, NULL); /* no answer */
        instance.state = VGPU_INSTANCE_SUSPENDED;
        add(&history, 0);
        instance.state = VGPU_INSTANCE_RUNNING;
        add(&history, 0);
        top_history_get(&history, "u-1", past);
        assert_int_equal(past[LAST], 0);
        assert_int_equal(past[LAST - 1], TOP_HISTORY_NONE);
        assert_int_equal(past[LAST - 2], TOP_HISTORY_NONE);
        assert_int_equal(past[LAST - 3], 100);
        assert_int_equal(past[LAST - 4], 30);
        assert_int_equal(past[LAST - 5], TOP_HISTORY_NONE);
        top_history_get(&history, "u-2", past);
        assert_int_equal(past[LAST], TOP_HISTORY_NONE);

        for (int i = 0; i < TOP_HISTORY_SAMPLES; i++)
                top_history_add(&history, &none);
        assert_int_equal(history.n, 0); /* it is gone, and nothing of it is left */
        top_history_deinit(&history);
        assert_null(history.pasts);
}

static void test_columns_have_the_mean_of_what_there_was(void **state)
{
        static const char *const expected[] = {
                " 100% |                              ", /* 30 columns, of ten samples each */
                "      |---------------------------##-", /* 75 %: what it is entitled to */
                "  50% |                           ## ", /* 80 % */
                "      |                        :::###", /* 38 %; and 40 %, the mean of 80 and 0 */
                "   0% |_                       ######", /* nothing; and no sample */
                "       5 min ago                  now",
        };
        char lines[6][TOP_TEXT_MAX];
        uint8_t past[TOP_HISTORY_SAMPLES];
        const struct top_graph graph = { .percents = past, .entitled = 75, .delay = 1 };
        (void)state;

        memset(past, TOP_HISTORY_NONE, sizeof(past));
        memset(past, 0, 10);
        memset(past + 240, 38, 30);
        memset(past + 270, 80, 25);
        memset(past + 295, 0, 5);
        top_graph_make(&graph, lines, 6, 37);
        for (size_t i = 0; i < 6; i++)
                assert_string_equal(lines[i], expected[i]);
}

static void test_it_fits_whatever_the_size(void **state)
{
        uint8_t past[TOP_HISTORY_SAMPLES];
        const struct top_graph graph = { .percents = past, .entitled = 50, .delay = 0.1 };
        char(*lines)[TOP_TEXT_MAX] = calloc(60, sizeof(*lines));
        (void)state;

        assert_non_null(lines);
        for (size_t i = 0; i < TOP_HISTORY_SAMPLES; i++)
                past[i] = (uint8_t)(i % 101);
        for (size_t width = 0; width < 500; width++)
                for (size_t n = 0; n < 60; n += 7) {
                        top_graph_make(&graph, lines, n, width);
                        for (size_t i = 0; width >= 10 && i < n; i++)
                                assert_true(strlen(lines[i]) <= width);
                }
        free(lines);
}

static void test_turns_are_a_strip(void **state)
{
        static const struct vgpu_time_sharing_entry turns[] = {
                { .timestamp_ns = 1010000000, .run_ns = 10000000, .id = 1 },
                { .timestamp_ns = 1015000000, .run_ns = 5000000, .id = 2 },
                { .timestamp_ns = 1030000000, .run_ns = 5000000, .id = 1 }, /* nobody's before it */
        };
        static const struct vgpu_time_sharing_entry *const entries[] = { &turns[0], &turns[1],
                                                                         &turns[2] };
        static const struct vgpu_time_sharing_log log = { .n_entries = 3, .entries = entries };
        static const struct vgpu_time_sharing_log empty;
        char lines[6][TOP_TEXT_MAX];
        uint8_t past[TOP_HISTORY_SAMPLES];
        struct top_graph graph = {
                .percents = past, .entitled = 75, .delay = 1, .turns = &log, .id = 1
        };
        (void)state;

        memset(past, 0, sizeof(past));
        top_graph_make(&graph, lines, 6, 13);
        assert_string_equal(lines[4], "turns |##o  #");
        assert_string_equal(lines[5], "       3 turns in 0.03 s: # its own, o others'");
        assert_string_equal(lines[3], "          now");
        top_graph_make(&graph, lines, 5, 13); /* too small for both */
        assert_string_equal(lines[4], "          now");
        graph.turns = &empty;
        top_graph_make(&graph, lines, 6, 13);
        assert_string_equal(lines[5], "          now");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_history_has_a_place_for_each_update),
                cmocka_unit_test(test_columns_have_the_mean_of_what_there_was),
                cmocka_unit_test(test_turns_are_a_strip),
                cmocka_unit_test(test_it_fits_whatever_the_size),
        };

        return cmocka_run_group_tests_name("cli-graph", tests, NULL, NULL);
}
