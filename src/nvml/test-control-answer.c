/* SPDX-License-Identifier: Apache-2.0 */
/* The walk through an answer stops at its end, whatever the answer is. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "nvml/control-answer.h"

#define ERROR(name) "{\"error\":\"org.openvgpu." name "\",\"parameters\":{\"message\":\"no\"}}"

static const struct {
        const char *answer;
        nvmlReturn_t code;
} cases[] = {
        { "{}", NVML_SUCCESS },
        { " { \"parameters\" : { \"a\" : [ 1, { \"error\" : 2 } ] } } ", NVML_SUCCESS },
        { "{\"a\":1.5,\"b\":true,\"c\":null}", NVML_SUCCESS },
        { "{\"a\":\"\\\"error\\\":\"}", NVML_SUCCESS },
        { "{\"a\":\"}\",\"b\":\"\\\\\"}", NVML_SUCCESS },
        { ERROR("PermissionDenied"), NVML_ERROR_NO_PERMISSION },
        { ERROR("InvalidParameter"), NVML_ERROR_INVALID_ARGUMENT },
        { ERROR("NoSuchDevice"), NVML_ERROR_INVALID_ARGUMENT },
        { ERROR("NoSuchVgpu"), NVML_ERROR_NOT_FOUND },
        { ERROR("InUse"), NVML_ERROR_IN_USE },
        { ERROR("NoRoom"), NVML_ERROR_INSUFFICIENT_RESOURCES },
        { ERROR("Unsupported"), NVML_ERROR_NOT_SUPPORTED },
        { ERROR("MethodNotFound"), NVML_ERROR_NOT_SUPPORTED },
        { ERROR("Failed"), NVML_ERROR_UNKNOWN },
        { ERROR("InUs"), NVML_ERROR_UNKNOWN },
        { ERROR("InUsed"), NVML_ERROR_UNKNOWN },
        { "{\"parameters\":{\"x\":\"{\"},\"error\":\"org.openvgpu.InUse\"}", NVML_ERROR_IN_USE },
        { "{\"error\":\"InUse\"}", NVML_ERROR_UNKNOWN },
        { "{\"error\":7}", NVML_ERROR_UNKNOWN },
        { "", NVML_ERROR_UNKNOWN },
        { "[]", NVML_ERROR_UNKNOWN },
        { "{", NVML_ERROR_UNKNOWN },
        { "{\"a", NVML_ERROR_UNKNOWN },
        { "{\"a\\", NVML_ERROR_UNKNOWN },
        { "{\"a\"", NVML_ERROR_UNKNOWN },
        { "{\"a\":", NVML_ERROR_UNKNOWN },
        { "{\"a\":[", NVML_ERROR_UNKNOWN },
        { "{\"a\":{}", NVML_ERROR_UNKNOWN },
        { "{\"a\":\"", NVML_ERROR_UNKNOWN },
        { "{\"a\":1,", NVML_ERROR_UNKNOWN },
        { "{a:1}", NVML_ERROR_UNKNOWN },
};

/* Each in memory of its own, so that a sanitizer sees a step too far. */
static nvmlReturn_t get_code(const char *text, size_t n)
{
        char *copy = malloc(n + 1);
        nvmlReturn_t code;

        assert_non_null(copy);
        memcpy(copy, text, n);
        copy[n] = '\0';
        code = control_answer_get_code(copy);
        free(copy);
        return code;
}

static void test_answers(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                print_message("%s\n", cases[i].answer);
                assert_int_equal(get_code(cases[i].answer, strlen(cases[i].answer)), cases[i].code);
        }
}

static void test_no_cut_answer_is_a_success(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                size_t n = strlen(cases[i].answer);

                while (n > 0 && cases[i].answer[n - 1] == ' ')
                        n--;
                for (size_t cut = 0; cut + 1 < n; cut++)
                        assert_int_not_equal(get_code(cases[i].answer, cut), NVML_SUCCESS);
        }
}

static void test_what_was_made_has_a_number(void **state)
{
        static const struct {
                const char *answer;
                bool has;
                unsigned int id;
        } rows[] = {
                { "{\"parameters\":{\"id\":7}}", true, 7 },
                { "{\"a\":{\"id\":1},\"parameters\" : { \"b\":[{}], \"id\" : 4294967295 } }", true,
                  4294967295u },
                { "{\"parameters\":{\"id\":4294967296}}", false, 0 },
                { "{\"parameters\":{\"id\":\"7\"}}", false, 0 },
                { "{\"parameters\":{}}", false, 0 },
                { "{\"parameters\":7}", false, 0 },
                { "{\"parameters\":{\"id\":", false, 0 },
                { "{}", false, 0 },
                { "", false, 0 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                unsigned int id = 0;

                assert_int_equal(control_answer_get_id(rows[i].answer, &id), rows[i].has);
                if (rows[i].has)
                        assert_int_equal(id, rows[i].id);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_no_cut_answer_is_a_success),
                cmocka_unit_test(test_what_was_made_has_a_number),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
