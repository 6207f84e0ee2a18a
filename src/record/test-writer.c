/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is JSON, and says what it was asked to. */
#include <jansson.h>

#include "base/test.h"
#include "record/writer.h"

static json_t *read_back(struct writer *writer)
{
        char *text = writer_take(writer);
        json_t *value;

        assert_non_null(text);
        value = json_loads(text, 0, NULL);
        assert_non_null(value);
        free(text);
        return value;
}

static void test_numbers_are_as_they_were(void **state)
{
        static const int64_t integers[] = { 0, 1, -1, 9, 10, INT64_MAX, INT64_MIN };
        static const double reals[] = { 0, 1, -2.5, 1e300, 1.0 / 3, 1764000000.123456789 };
        struct writer writer = { 0 };
        json_t *array;
        (void)state;

        writer_begin_array(&writer, NULL);
        for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
                writer_integer(&writer, NULL, integers[i]);
        for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++)
                writer_real(&writer, NULL, reals[i]);
        writer_end_array(&writer);
        array = read_back(&writer);
        for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
                assert_true(json_integer_value(json_array_get(array, i)) == integers[i]);
        for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++) {
                const json_t *value =
                        json_array_get(array, sizeof(integers) / sizeof(integers[0]) + i);

                assert_true(json_is_real(value));
                assert_true(json_real_value(value) == reals[i]);
        }
        json_decref(array);
}

static void test_texts_are_escaped(void **state)
{
        struct writer writer = { 0 };
        json_t *object;
        (void)state;

        writer_begin_object(&writer, NULL);
        writer_text(&writer, "plain", "train-1");
        writer_text(&writer, "signs", "a\"b\\c/d");
        writer_text(&writer, "other", "\n\xc3\xa4\x7f");
        writer_text(&writer, "empty", "");
        writer_end_object(&writer);
        object = read_back(&writer);
        assert_string_equal(json_string_value(json_object_get(object, "plain")), "train-1");
        assert_string_equal(json_string_value(json_object_get(object, "signs")), "a\"b\\c/d");
        assert_string_equal(json_string_value(json_object_get(object, "other")), "?\xc3\xa4?");
        assert_string_equal(json_string_value(json_object_get(object, "empty")), "");
        json_decref(object);
}

static void test_groups_stand_in_groups(void **state)
{
        struct writer writer = { 0 };
        char *text;
        (void)state;

        writer_begin_object(&writer, NULL);
        writer_begin_array(&writer, "empty");
        writer_end_array(&writer);
        writer_begin_array(&writer, "two");
        writer_begin_object(&writer, NULL);
        writer_boolean(&writer, "is", true);
        writer_end_object(&writer);
        writer_begin_object(&writer, NULL);
        writer_end_object(&writer);
        writer_end_array(&writer);
        writer_boolean(&writer, "last", false);
        writer_end_object(&writer);
        text = writer_take(&writer);
        assert_string_equal(text, "{\"empty\":[],\"two\":[{\"is\":true},{}],\"last\":false}");
        free(text);
}

static void test_a_long_text_is_whole(void **state)
{
        struct writer writer = { 0 };
        json_t *array;
        (void)state;

        writer_begin_array(&writer, NULL);
        for (int i = 0; i < 100000; i++)
                writer_integer(&writer, NULL, i);
        writer_end_array(&writer);
        array = read_back(&writer);
        assert_int_equal(json_array_size(array), 100000);
        assert_int_equal(json_integer_value(json_array_get(array, 99999)), 99999);
        json_decref(array);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers_are_as_they_were),
                cmocka_unit_test(test_texts_are_escaped),
                cmocka_unit_test(test_groups_stand_in_groups),
                cmocka_unit_test(test_a_long_text_is_whole),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
