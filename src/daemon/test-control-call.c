/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "daemon/control-call.h"

static const struct control_parameter table[] = {
        { "name", CONTROL_TEXT, true },
        { "size", CONTROL_SIZE, false },
        { "timeout", CONTROL_SECONDS, false },
        { "fast", CONTROL_BOOL, false },
        { 0 },
};

/* The error of a call with these parameters; NULL: it is fine. @ret_parameter names the culprit. */
static const char *check(const char *parameters, char *ret_parameter)
{
        struct control_call call = { 0 };
        struct failure failure = { 0 };
        char text[1024];

        snprintf(text, sizeof(text), "{\"method\":\"org.openvgpu.Try\",\"parameters\":%s}",
                 parameters);
        assert_int_equal(control_call_parse(&call, text, strlen(text)), 0);
        (void)control_call_check(&call, table, &failure);
        control_call_deinit(&call);
        strcpy(ret_parameter, failure.parameter);
        return failure.name;
}

static void test_messages_come_out_as_they_went_in_whatever_the_pieces(void **state)
{
        static const char bytes[] = "one\0\0three\0fo";
        (void)state;

        for (size_t piece = 1; piece < sizeof(bytes); piece++) {
                struct control_buffer buffer = { 0 };
                char all[64] = "";
                size_t size;

                for (size_t at = 0; at < sizeof(bytes) - 1; at += piece) {
                        size_t n = sizeof(bytes) - 1 - at < piece ? sizeof(bytes) - 1 - at : piece;
                        const char *text;

                        assert_int_equal(control_buffer_append(&buffer, bytes + at, n), 0);
                        while ((text = control_buffer_next(&buffer, &size))) {
                                assert_int_equal(strlen(text), size);
                                strcat(strcat(all, text), ".");
                        }
                }
                assert_string_equal(all, "one..three.");
                control_buffer_deinit(&buffer);
        }
}

static void test_a_message_may_have_a_mebibyte_and_no_more(void **state)
{
        struct control_buffer buffer = { 0 };
        char *bytes = calloc(1, CONTROL_MESSAGE_MAX);
        size_t size;
        (void)state;

        memset(bytes, 'x', CONTROL_MESSAGE_MAX - 1);
        assert_int_equal(control_buffer_append(&buffer, bytes, CONTROL_MESSAGE_MAX), 0);
        assert_non_null(control_buffer_next(&buffer, &size));
        assert_int_equal(size, CONTROL_MESSAGE_MAX - 1);
        assert_int_equal(control_buffer_append(&buffer, bytes, CONTROL_MESSAGE_MAX - 1), 0);
        assert_null(control_buffer_next(&buffer, &size));
        assert_int_equal(control_buffer_append(&buffer, bytes, 2), -EMSGSIZE);
        control_buffer_deinit(&buffer);
        free(bytes);
}

static void test_what_is_no_call_is_refused(void **state)
{
        static const char *const bad[] = {
                "",
                "{",
                "[]",
                "{}",
                "{\"method\":1}",
                "{\"method\":\"GetInfo\"}",
                "{\"method\":\"org.openvgpu\"}",
                "{\"method\":\"org.openvgpu.X\",\"parameters\":[]}",
                "{\"method\":\"org.openvgpu.X\",\"method\":\"org.openvgpu.X\"}",
                "{\"method\":\"org.openvgpu.X\"} x",
                "\xff",
        };
        (void)state;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct control_call call = { 0 };

                assert_int_equal(control_call_parse(&call, bad[i], strlen(bad[i])), -EINVAL);
                assert_null(call.message);
        }
}

/* What comes of a call with a list of @n times @one, and @end behind it. */
static int parse_many(const char *one, size_t n, const char *end)
{
        static const char begin[] = "{\"method\":\"org.openvgpu.X\",\"parameters\":{\"a\":[0";
        char *text = calloc(1, CONTROL_MESSAGE_MAX), *at = stpcpy(text, begin);
        struct control_call call = { 0 };
        int r;

        for (size_t i = 0; i < n; i++)
                at = stpcpy(at, one);
        strcpy(at, end);
        r = control_call_parse(&call, text, strlen(text));
        control_call_deinit(&call);
        free(text);
        return r;
}

static void test_what_would_take_long_is_refused_before_it_is_parsed(void **state)
{
        (void)state;
        assert_int_equal(parse_many(",{\"p\":1}", 1000, "]}}"), 0);
        assert_int_equal(parse_many(",{\"p\":1}", 60000, "]}}"), -E2BIG);
        assert_int_equal(parse_many(",{\"p\":1}", 60000, ""), -E2BIG);
        assert_int_equal(parse_many(",[4096,4096]", 30000, "]}}"), 0);
        assert_int_equal(parse_many(",1", 120000, "]}}"), -E2BIG);
        assert_int_equal(parse_many(",[]", 120000, "]}}"), -E2BIG);
        assert_int_equal(parse_many(",\"\\\":,:,\\\\\"", 1000, "]}}"), 0); /* ,"\":,:,\\" */
        assert_int_equal(parse_many(",\"\\\":,:,[{\\\\\"", 40000, "]}}"), 0);
}

static void test_parameters_may_be_absent_or_null(void **state)
{
        struct control_call call;
        static const char *const good[] = {
                "{\"method\":\"org.openvgpu.X\"}",
                "{\"method\":\"org.openvgpu.X\",\"parameters\":null,\"more\":true}",
        };
        (void)state;

        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(control_call_parse(&call, good[i], strlen(good[i])), 0);
                assert_string_equal(call.method, "X");
                assert_int_equal(call.wants_progress, i == 1);
                assert_int_equal(json_object_size(call.parameters), 0);
                control_call_deinit(&call);
        }
}

static void test_parameters_are_checked_by_the_table(void **state)
{
        static const struct {
                const char *parameters, *culprit; /* NULL: fine */
        } cases[] = {
                { "{\"name\":\"a\"}", NULL },
                { "{\"name\":\"a\",\"size\":1,\"timeout\":0.5,\"fast\":false}", NULL },
                { "{\"name\":\"a\",\"timeout\":3}", NULL },
                { "{\"name\":\"a\",\"size\":null}", NULL },
                { "{}", "name" },
                { "{\"name\":null}", "name" },
                { "{\"name\":1}", "name" },
                { "{\"name\":\"a\",\"size\":0}", "size" },
                { "{\"name\":\"a\",\"size\":-5}", "size" },
                { "{\"name\":\"a\",\"size\":1.5}", "size" },
                { "{\"name\":\"a\",\"size\":\"1G\"}", "size" },
                { "{\"name\":\"a\",\"timeout\":0}", "timeout" },
                { "{\"name\":\"a\",\"timeout\":1e300}", "timeout" },
                { "{\"name\":\"a\",\"fast\":1}", "fast" },
                { "{\"name\":\"a\",\"colour\":1}", "colour" },
        };
        char culprit[32];
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const char *error = check(cases[i].parameters, culprit);

                if (!cases[i].culprit) {
                        assert_null(error);
                        continue;
                }
                assert_string_equal(error, "InvalidParameter");
                assert_string_equal(culprit, cases[i].culprit);
        }
}

static void test_an_error_is_json_whatever_is_quoted_in_it(void **state)
{
        struct failure failure = { 0 };
        json_t *error;
        (void)state;

        (void)failure_set(&failure, -EINVAL, "NoSuchVgpu", "hint\n", "there is no '%.4s'",
                          "\xc3\xa4\x1b\xc3\xa4");
        error = control_error_json(&failure);
        assert_non_null(error);
        assert_string_equal(json_string_value(json_object_get(error, "error")),
                            "org.openvgpu.NoSuchVgpu");
        assert_string_equal(
                json_string_value(json_object_get(json_object_get(error, "parameters"), "message")),
                "there is no '\xc3\xa4?\?'");
        json_decref(error);
}

static void test_the_first_reason_stays(void **state)
{
        struct failure failure = { 0 };
        (void)state;

        assert_int_equal(failure_set(&failure, -ENOSPC, "NoRoom", "", "first"), -ENOSPC);
        assert_int_equal(failure_from_errno(&failure, -EIO, "second"), -EIO);
        assert_string_equal(failure.name, "NoRoom");
        assert_string_equal(failure.message, "first");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_messages_come_out_as_they_went_in_whatever_the_pieces),
                cmocka_unit_test(test_a_message_may_have_a_mebibyte_and_no_more),
                cmocka_unit_test(test_what_is_no_call_is_refused),
                cmocka_unit_test(test_what_would_take_long_is_refused_before_it_is_parsed),
                cmocka_unit_test(test_parameters_may_be_absent_or_null),
                cmocka_unit_test(test_parameters_are_checked_by_the_table),
                cmocka_unit_test(test_an_error_is_json_whatever_is_quoted_in_it),
                cmocka_unit_test(test_the_first_reason_stays),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
