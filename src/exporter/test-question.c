/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers' text is either exactly what may be asked, or refused. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/test.h"
#include "exporter/question.h"

#define UUID "01234567-89ab-cdef-0123-456789abcdef"

static void test_uuids(void **state)
{
        struct question question = { .vgpu = "" };
        (void)state;

        assert_true(question_parse_uuid(&question, UUID));
        assert_string_equal(question.vgpu, UUID);
        assert_false(question_parse_uuid(&question, NULL));
        assert_false(question_parse_uuid(&question, ""));
        assert_false(question_parse_uuid(&question, UUID "0"));
        assert_false(question_parse_uuid(&question, "../../../../../../../../../../etc/pas"));
}

static void test_months(void **state)
{
        static const char *const wrong[] = { "",         "2026",    "2026-13", "2026-00",
                                             "26-11-01", "2026-1 ", "+026-11", "2026-11-01",
                                             "1999-12",  "9999-01" };
        struct question question = { .since = 0 };
        (void)state;

        setenv("TZ", "UTC", 1);
        tzset();
        assert_true(question_parse_month(&question, "2026-11"));
        assert_true(question.since == 1793491200);
        assert_true(question.until == question.since + 30 * 86400);
        assert_true(question_parse_month(&question, "2026-12"));
        assert_true(question.until == question.since + 31 * 86400);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_false(question_parse_month(&question, wrong[i]));
        assert_false(question_parse_month(&question, NULL));
}

static const char *parse(struct question *question, const char *body)
{
        *question = (struct question){ .kind = QUESTION_ACT };
        return question_parse_action(question, body, strlen(body));
}

static void test_actions(void **state)
{
        struct question question;
        (void)state;

        assert_null(parse(&question, "{\"action\": \"suspend\", \"vgpu\": \"" UUID "\"}"));
        assert_int_equal(question.action, ACTION_SUSPEND);
        assert_string_equal(question.vgpu, UUID);
        assert_string_equal(question.device, "");
        assert_null(parse(&question,
                          "{\"action\":\"migrate\",\"vgpu\":\"" UUID "\",\"device\":\"1\"}"));
        assert_string_equal(question.device, "1");
        assert_null(parse(&question,
                          "{\"action\":\"migrate\",\"vgpu\":\"" UUID "\",\"device\":\"2,3\"}"));
        assert_string_equal(question.device, "2,3");
        assert_null(parse(&question,
                          "{\"action\":\"migrate\",\"vgpu\":\"" UUID "\",\"device\":\"GPU-" UUID
                          ",GPU-" UUID ",GPU-" UUID ",GPU-" UUID ",GPU-" UUID ",GPU-" UUID
                          ",GPU-" UUID ",GPU-" UUID "\"}"));
        assert_int_equal(strlen(question.device), 8 * 41 - 1);
        assert_null(
                parse(&question, "{\"action\":\"share\",\"vgpu\":\"" UUID "\",\"percent\":40}"));
        assert_int_equal(question.percent, 40);
        assert_string_equal(question_get_action_name(question.action), "share");
}

static void test_what_is_no_action_is_said(void **state)
{
        static const char *const wrong[][2] = {
                { "", "one JSON object" },
                { "[]", "one JSON object" },
                { "{}", "\"action\"" },
                { "{\"action\":\"suspend\",\"action\":\"resume\"}", "one JSON object" },
                { "{\"action\":\"remove\",\"vgpu\":\"" UUID "\"}", "\"action\"" },
                { "{\"action\":\"suspend\",\"vgpu\":\"train\"}", "\"vgpu\"" },
                { "{\"action\":\"suspend\",\"vgpu\":7}", "\"vgpu\"" },
                { "{\"action\":\"migrate\",\"vgpu\":\"" UUID "\"}", "\"device\" is missing" },
                { "{\"action\":\"resume\",\"vgpu\":\"" UUID "\",\"device\":1}", "\"device\"" },
                { "{\"action\":\"resume\",\"vgpu\":\"" UUID "\",\"device\":\"../0\"}",
                  "\"device\"" },
                { "{\"action\":\"share\",\"vgpu\":\"" UUID "\"}", "\"percent\"" },
                { "{\"action\":\"share\",\"vgpu\":\"" UUID "\",\"percent\":101}", "\"percent\"" },
                { "{\"action\":\"share\",\"vgpu\":\"" UUID "\",\"percent\":-1}", "\"percent\"" },
                { "{\"action\":\"share\",\"vgpu\":\"" UUID "\",\"percent\":1.5}", "\"percent\"" },
                { "{\"action\":\"suspend\",\"vgpu\":\"" UUID "\",\"x\":1}", "not known" },
        };
        static char large[2 * QUESTION_BODY_MAX];
        struct question question;
        (void)state;

        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                const char *why = parse(&question, wrong[i][0]);

                if (!why || !strstr(why, wrong[i][1]))
                        fail_msg("%s: %s", wrong[i][0], why);
        }
        memset(large, ' ', sizeof(large) - 1);
        memcpy(large, "{}", 2);
        assert_non_null(strstr(parse(&question, large), "1,024"));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_uuids),
                cmocka_unit_test(test_months),
                cmocka_unit_test(test_actions),
                cmocka_unit_test(test_what_is_no_action_is_said),
        };

        return cmocka_run_group_tests_name("exporter-question", tests, NULL, NULL);
}
