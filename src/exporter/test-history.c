/* SPDX-License-Identifier: Apache-2.0 */
/* The last samples of each vGPU, in their order; what is gone is forgotten. */
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "exporter/history.h"

#define VGPUS_MAX 40
#define ROUNDS    300 /* more than there are samples */

/* Between two samples. */
#define STEP_MS ((uint64_t)HISTORY_INTERVAL_MS)

/* @seconds: GPU time in all */
static void add_used(struct history *history, size_t n, const char *const *uuids,
                     const uint32_t *percents, const double *seconds, uint64_t now_ms)
{
        struct vgpu_usage_percents values[VGPUS_MAX] = { 0 };
        struct vgpu_usage_instance instances[VGPUS_MAX] = { 0 };
        const struct vgpu_usage_instance *pointers[VGPUS_MAX];
        const struct vgpu_usage_snapshot snapshot = { .n_instances = n, .instances = pointers };

        for (size_t i = 0; i < n; i++) {
                values[i].gpu = percents[i];
                instances[i].uuid = uuids[i];
                instances[i].percents = &values[i];
                instances[i].gpu_seconds_total = seconds[i];
                pointers[i] = &instances[i];
        }
        history_add(history, &snapshot, now_ms);
}

/* Each time with less than before, as a new vgpud: then what it gets now counts. */
static void add(struct history *history, size_t n, const char *const *uuids,
                const uint32_t *percents, uint64_t now_ms)
{
        double seconds[VGPUS_MAX];

        for (size_t i = 0; i < n; i++)
                seconds[i] = 1e12 - (double)now_ms;
        add_used(history, n, uuids, percents, seconds, now_ms);
}

/* Of a vGPU of which nothing is known, too. */
static void get_percents(const struct history *history, const char *name, uint8_t *percents)
{
        const char *uuid;

        memset(percents, HISTORY_NONE, HISTORY_SAMPLES);
        for (size_t i = 0; (uuid = history_get_uuid(history, i)); i++)
                if (strcmp(uuid, name) == 0)
                        history_get_percents(history, i, percents);
}

static void expect(const struct history *history, const char *uuid, size_t n,
                   const uint8_t *expected)
{
        uint8_t percents[HISTORY_SAMPLES];

        assert_int_equal(history_count(history), n);
        get_percents(history, uuid, percents);
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
        add(history, 2, both, (const uint32_t[]){ 99, 99 }, 1000 + STEP_MS - 1); /* too soon */
        add(history, 2, turned, (const uint32_t[]){ 21, 170 }, 1000 + STEP_MS);
        expect(history, "a", 2, (const uint8_t[]){ 10, HISTORY_NONE });
        expect(history, "b", 2, (const uint8_t[]){ 20, 21 });
        expect(history, "c", 2, (const uint8_t[]){ HISTORY_NONE, 100 });
        expect(history, "d", 2, (const uint8_t[]){ HISTORY_NONE, HISTORY_NONE });
        assert_int_equal(history_get_time(history, 1), 1000 + STEP_MS);
        assert_null(history_free(history));
}

static void test_a_sample_is_the_mean_since_the_one_before(void **state)
{
        static const char *const both[] = { "a", "b" };
        const uint32_t now[] = { 90, 7 };
        struct history *history;
        (void)state;

        assert_int_equal(history_new(&history), 0);
        add_used(history, 2, both, now, (const double[]){ 100, 5 }, 1000);
        add_used(history, 2, both, now, (const double[]){ 110, 5 }, 21000); /* 10 of 20 seconds */
        add_used(history, 2, both, now, (const double[]){ 410, 305 }, 621000); /* of 10 minutes */
        add_used(history, 2, both, now, (const double[]){ 1, 400 },
                 641000); /* anew; and too much */
        expect(history, "a", 4, (const uint8_t[]){ 90, 50, 50, 90 });
        expect(history, "b", 4, (const uint8_t[]){ 7, 0, 50, 100 });
        assert_null(history_free(history));
}

static void test_the_oldest_go_first(void **state)
{
        static const char *const first[] = { "a" }, *const later[] = { "b" };
        uint8_t percents[HISTORY_SAMPLES];
        struct history *history;
        size_t n;
        (void)state;

        assert_int_equal(history_new(&history), 0);
        add(history, 1, first, (const uint32_t[]){ 50 }, STEP_MS);
        for (uint32_t i = 2; i * STEP_MS <= HISTORY_MS + STEP_MS; i++)
                add(history, 1, later, (const uint32_t[]){ i % 100 }, i * STEP_MS);
        n = history_count(history);
        assert_true(n <= HISTORY_SAMPLES);
        get_percents(history, "a", percents);
        assert_int_equal(percents[0], 50);
        add(history, 1, later, (const uint32_t[]){ 7 }, HISTORY_MS + STEP_MS + STEP_MS);
        assert_int_equal(history_get_time(history, 0), 2 * STEP_MS);
        get_percents(history, "a", percents);
        for (size_t i = 0; i < history_count(history); i++)
                assert_int_equal(percents[i], HISTORY_NONE);
        get_percents(history, "b", percents);
        assert_int_equal(percents[0], 2);
        assert_int_equal(percents[history_count(history) - 1], 7);

        /* After an hour in which nobody looked, there is the mean of it. */
        add(history, 1, later, (const uint32_t[]){ 8 }, 3 * HISTORY_MS);
        expect(history, "b", 1, (const uint8_t[]){ 8 });
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
        for (uint64_t round = 0; round < ROUNDS + 50; round++) {
                for (int i = 0; i < VGPUS_MAX; i++) {
                        snprintf(names[i], sizeof(names[i]), "%d-%d", (int)round, i);
                        uuids[i] = names[i];
                }
                add(history, VGPUS_MAX, uuids, percents, STEP_MS * (round + 1));
        }
        get_percents(history, "349-0", found);
        assert_int_equal(found[history_count(history) - 1], 0);
        get_percents(history, "50-0", found);
        for (size_t i = 0; i < history_count(history); i++)
                assert_int_equal(found[i], HISTORY_NONE);
        assert_null(history_free(history));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_samples_come_in_their_order),
                cmocka_unit_test(test_a_sample_is_the_mean_since_the_one_before),
                cmocka_unit_test(test_the_oldest_go_first),
                cmocka_unit_test(test_what_is_gone_takes_no_room),
        };

        return cmocka_run_group_tests_name("exporter-history", tests, NULL, NULL);
}
