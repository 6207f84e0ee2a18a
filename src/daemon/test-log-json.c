/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "daemon/log-json.h"

static void expect(const char *fields, const char *json)
{
        char line[LOG_JSON_MAX], wanted[LOG_JSON_MAX];
        json_t *parsed;

        (void)snprintf(wanted, sizeof(wanted),
                       "{\"time\":1764000000.050,\"level\":\"info\",\"event\":\"created\"%s}",
                       json);
        assert_string_equal(log_json_format(line, 1764000000050u, "info", "created", fields),
                            wanted);
        parsed = json_loads(line, 0, NULL);
        assert_non_null(parsed);
        json_decref(parsed);
}

static void test_fields_are_members(void **state)
{
        (void)state;
        expect("", "");
        expect("vgpu=train device=0 seconds=0.250 change=-3",
               ",\"vgpu\":\"train\",\"device\":0,\"seconds\":0.250,\"change\":-3");
        expect("name=\"two words\" pid=17", ",\"name\":\"two words\",\"pid\":17");
        expect("name=\"\" path=", ",\"name\":\"\",\"path\":\"\"");
}

static void test_what_is_no_number_is_text(void **state)
{
        (void)state;
        expect("uuid=11112222-3333 zero=007 exponent=1e5 point=1. half=.5 sign=- two=1.2.3",
               ",\"uuid\":\"11112222-3333\",\"zero\":\"007\",\"exponent\":\"1e5\",\"point\":\"1.\","
               "\"half\":\".5\",\"sign\":\"-\",\"two\":\"1.2.3\"");
        expect("quoted=\"17\"", ",\"quoted\":\"17\"");
}

static void test_nothing_ends_the_line_or_the_text(void **state)
{
        (void)state;
        expect("error=\"near \"x\": no\" a=\\", ",\"error\":\"near \\\"x\\\": no\",\"a\":\"\\\\\"");
        expect("a=1\nb=2", ",\"a\":\"1\\u000ab=2\"");
        expect("a=\"no end", ",\"a\":\"no end\"");
        expect("words without a value=1", ",\"value\":1");
}

static void test_a_long_line_is_cut_and_still_json(void **state)
{
        char line[LOG_JSON_MAX], fields[2 * LOG_JSON_MAX] = "a=1 b=";
        json_t *parsed;
        (void)state;

        memset(fields + 6, '\x01', sizeof(fields) - 7);
        fields[sizeof(fields) - 1] = '\0';
        (void)log_json_format(line, 0, "info", "long", fields);
        assert_true(strlen(line) < LOG_JSON_MAX);
        fields[1023] = '\0'; /* as log.c cuts it */
        parsed = json_loads(log_json_format(line, 0, "info", "long", fields), 0, NULL);
        assert_non_null(parsed);
        json_decref(parsed);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fields_are_members),
                cmocka_unit_test(test_what_is_no_number_is_text),
                cmocka_unit_test(test_nothing_ends_the_line_or_the_text),
                cmocka_unit_test(test_a_long_line_is_cut_and_still_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
