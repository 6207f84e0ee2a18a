/* SPDX-License-Identifier: Apache-2.0 */
/* The last samples of each vGPU, in their order; what is gone is forgotten. */
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "exporter/history.h"

#define VGPUS_MAX 40

static void add(struct history *history, size_t n, const char *const *uuids,
                const uint32_t *percents, uint64_t now_ms)
{
        struct vgpu_usage_percents values[VGPUS_MAX] = { 0 };
        struct vgpu_usage_instance instances[VGPUS_MAX] = { 0 };
        const struct vgpu_usage_instance *pointers[VGPUS_MAX];
        const struct vgpu_usage_snapshot snapshot = { .n_instances = n, .instances = pointers };

        for (size_t i = 0; i < n; i++) {
                values[i].gpu = percents[i];
                instances[i].uuid = uuids[i];
                instances[i].percents = &values[i];
                pointers[i] = &instances[i];
        }
        history_add(history, &snapshot, now_ms);
}

static void expect(const struct history *history, const char *uuid, size_t n,
                   const uint8_t *expected)
{
        uint8_t percents[HISTORY_SAMPLES];

        assert_int_equal(history_count(history), n);
        history_get_percents(history, uuid, percents);
        assert_memory_equal(percents, expected, n);
}

static void test_samples_come_in_their_order(void **state)
{
        static const char *const both[] = { "a", "b" }, *const turned[] = { "b", "c" };
        struct history *history;
        (void)state;

        assert_int_equal(history_new(&history), 0);
        expect(history, "a", 0, NULL);
        add(history, 2, both, (const uint32_t[]){ 10, 20 }, 1000);
        add(history, 2, both, (const uint32_t[]){ 99, 99 }, 1500); /* too soon */
        add(history, 2, turned, (const uint32_t[]){ 21, 170 }, 2000);
        expect(history, "a", 2, (const uint8_t[]){ 10, HISTORY_NONE });
        expect(history, "b", 2, (const uint8_t[]){ 20, 21 });
        expect(history, "c", 2, (const uint8_t[]){ HISTORY_NONE, 100 });
        expect(history, "d", 2, (const uint8_t[]){ HISTORY_NONE, HISTORY_NONE });
        assert_int_equal(history_get_time(history, 1), 2000);
        assert_null(history_free(history));
}

static void test_the_oldest_go_first(void **state)
{
        static const char *const first[] = { "a" }, *const later[] = { "b" };
        uint8_t percents[HISTORY_SAMPLES];
        struct history *history;
        (void)state;

        assert_int_equal(history_new(&history), 0);
        add(history, 1, first, (const uint32_t[]){ 50 }, 1000);
        for (uint32_t i = 0; i < HISTORY_SAMPLES - 1; i++)
                add(history, 1, later, &i, 2000 + 1000 * (uint64_t)i);
        history_get_percents(history, "a", percents);
        assert_int_equal(percents[0], 50);
        add(history, 1, later, (const uint32_t[]){ 7 }, 1000000);
        history_get_percents(history, "a", percents);
        assert_int_equal(percents[0], HISTORY_NONE);
        assert_int_equal(history_count(history), HISTORY_SAMPLES);
        assert_int_equal(history_get_time(history, 0), 2000);
        assert_int_equal(history_get_time(history, HISTORY_SAMPLES - 1), 1000000);
        history_get_percents(history, "b", percents);
        assert_int_equal(percents[1], 1);
        assert_int_equal(percents[HISTORY_SAMPLES - 1], 7);
        assert_null(history_free(history));
}

/* New vGPUs all the time, each a little while. */
static void test_what_is_gone_takes_no_room(void **state)
{
        char names[VGPUS_MAX][16];
        const char *uuids[VGPUS_MAX];
        uint32_t percents[VGPUS_MAX] = { 0 };
        uint8_t found[HISTORY_SAMPLES];
        struct history *history;
        (void)state;

        assert_int_equal(history_new(&history), 0);
        for (uint64_t round = 0; round < 1000; round++) {
                for (int i = 0; i < VGPUS_MAX; i++) {
                        snprintf(names[i], sizeof(names[i]), "%d-%d", (int)round, i);
                        uuids[i] = names[i];
                }
                add(history, VGPUS_MAX, uuids, percents, 1000 * round + 1);
        }
        history_get_percents(history, "999-0", found);
        assert_int_equal(found[HISTORY_SAMPLES - 1], 0);
        history_get_percents(history, "500-0", found);
        for (size_t i = 0; i < HISTORY_SAMPLES; i++)
                assert_int_equal(found[i], HISTORY_NONE);
        assert_null(history_free(history));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_samples_come_in_their_order),
                cmocka_unit_test(test_the_oldest_go_first),
                cmocka_unit_test(test_what_is_gone_takes_no_room),
        };

        return cmocka_run_group_tests_name("exporter-history", tests, NULL, NULL);
}
