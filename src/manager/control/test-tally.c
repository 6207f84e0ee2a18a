/* SPDX-License-Identifier: Apache-2.0 */
/* What has ended is counted once, in its kind and result and in the buckets that it fits. */
#include <jansson.h>

#include "base/test.h"
#include "manager/control/describe.h"
#include "manager/model/tally.h"
#include "record/writer.h"

#define MIB ((uint64_t)1 << 20)

static json_t *write_out(const struct tally *tally)
{
        struct writer writer = { 0 };
        json_t *value;
        char *text;

        writer_begin_object(&writer, NULL);
        describe_write_tally(&writer, tally);
        writer_end_object(&writer);
        text = writer_take(&writer);
        assert_non_null(text);
        value = json_loads(text, 0, NULL);
        assert_non_null(value);
        free(text);
        return value;
}

static json_int_t get(const json_t *object, const char *name)
{
        return json_integer_value(json_object_get(object, name));
}

static void add(struct tally *tally, const char *kind, enum tally_result result, uint64_t ns,
                uint64_t bytes)
{
        const struct tally_end end = { .kind = kind,
                                       .result = result,
                                       .vgpu = "train",
                                       .ns = ns,
                                       .bytes = bytes,
                                       .at_ns = 5 * ns };

        tally_add(tally, &end);
}

static void test_an_operation_is_counted_once(void **state)
{
        struct tally tally = { 0 };
        json_t *written, *operations, *resumed;
        json_int_t n = 0;
        (void)state;

        add(&tally, "resume", TALLY_UNDONE, 300000000, 7);
        add(&tally, "resume", TALLY_UNDONE, 90000000000, 5);
        add(&tally, "unheard-of", TALLY_DONE, 1, 1);
        written = write_out(&tally);
        operations = json_object_get(written, "operations");
        assert_int_equal(json_array_size(operations), TALLY_KINDS * TALLY_RESULTS);
        for (size_t i = 0; i < json_array_size(operations); i++)
                n += get(json_array_get(operations, i), "count");
        assert_int_equal(n, 2);

        resumed = json_array_get(operations, TALLY_RESULTS + TALLY_UNDONE);
        assert_string_equal(json_string_value(json_object_get(resumed, "operation")), "resume");
        assert_string_equal(json_string_value(json_object_get(resumed, "result")), "undone");
        assert_int_equal(get(resumed, "bytes"), 12);
        assert_true(json_real_value(json_object_get(resumed, "seconds")) == 90.3);
        assert_string_equal(json_string_value(json_object_get(resumed, "last_vgpu")), "train");
        assert_true(json_real_value(json_object_get(resumed, "last_seconds")) == 90);
        assert_true(json_real_value(json_object_get(resumed, "last_time")) == 450);
        json_decref(written);
}

static void test_buckets_hold_all_that_took_no_longer(void **state)
{
        struct tally tally = { 0 };
        json_t *written, *bounds, *buckets;
        (void)state;

        add(&tally, "suspend", TALLY_DONE, 300000000, 0);   /* 0.3 s */
        add(&tally, "suspend", TALLY_DONE, 500000000, 0);   /* a bound itself */
        add(&tally, "suspend", TALLY_DONE, 99000000000, 0); /* beyond all */
        written = write_out(&tally);
        bounds = json_object_get(written, "buckets");
        buckets = json_object_get(json_array_get(json_object_get(written, "operations"), 0),
                                  "buckets");
        assert_int_equal(json_array_size(bounds), TALLY_BUCKETS);
        assert_int_equal(json_array_size(buckets), TALLY_BUCKETS);
        for (size_t i = 0; i < TALLY_BUCKETS; i++) {
                double bound = json_real_value(json_array_get(bounds, i));

                assert_int_equal(json_integer_value(json_array_get(buckets, i)), bound < 0.3   ? 0
                                                                                 : bound < 0.5 ? 1
                                                                                               : 2);
        }
        json_decref(written);
}

static void test_buckets_hold_all_that_moved_no_more(void **state)
{
        struct tally tally = { 0 };
        json_t *written, *bounds, *buckets, *suspend;
        (void)state;

        add(&tally, "suspend", TALLY_DONE, 1, 0);
        add(&tally, "suspend", TALLY_DONE, 1, MIB); /* a bound itself */
        add(&tally, "suspend", TALLY_DONE, 1, MIB * MIB);
        written = write_out(&tally);
        bounds = json_object_get(written, "byte_buckets");
        suspend = json_array_get(json_object_get(written, "operations"), 0);
        buckets = json_object_get(suspend, "byte_buckets");
        assert_int_equal(json_array_size(bounds), TALLY_BYTE_BUCKETS);
        assert_int_equal(json_array_size(buckets), TALLY_BYTE_BUCKETS);
        assert_int_equal(get(suspend, "last_bytes"), MIB * MIB);
        for (size_t i = 0; i < TALLY_BYTE_BUCKETS; i++) {
                json_int_t bound = json_integer_value(json_array_get(bounds, i));

                assert_int_equal(json_integer_value(json_array_get(buckets, i)),
                                 bound < (json_int_t)MIB ? 1 : 2);
        }
        json_decref(written);
}

static void test_what_was_copied_ahead_is_summed(void **state)
{
        const struct tally_end end = {
                .kind = "suspend",
                .result = TALLY_DONE,
                .vgpu = "train",
                .ahead = { .n = 1,
                           .n_rounds = 3,
                           .bytes = 4 * MIB,
                           .ns = 250000000,
                           .stopped_ns = 125000000 },
        };
        struct tally tally = { 0 };
        json_t *written, *suspend;
        (void)state;

        tally_add(&tally, &end);
        tally_add(&tally, &end);
        add(&tally, "suspend", TALLY_DONE, 1, MIB); /* without one */
        written = write_out(&tally);
        suspend = json_array_get(json_object_get(written, "operations"), 0);
        assert_int_equal(get(suspend, "count"), 3);
        assert_int_equal(get(suspend, "pre_copies"), 2);
        assert_int_equal(get(suspend, "pre_copy_rounds"), 6);
        assert_int_equal(get(suspend, "pre_copy_bytes"), 8 * MIB);
        assert_true(json_real_value(json_object_get(suspend, "pre_copy_seconds")) == 0.5);
        assert_true(json_real_value(json_object_get(suspend, "pre_copy_stopped_seconds")) == 0.25);
        json_decref(written);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_operation_is_counted_once),
                cmocka_unit_test(test_buckets_hold_all_that_took_no_longer),
                cmocka_unit_test(test_buckets_hold_all_that_moved_no_more),
                cmocka_unit_test(test_what_was_copied_ahead_is_summed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
