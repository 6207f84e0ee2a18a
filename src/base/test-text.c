/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/test.h"
#include "base/text.h"

static void test_control_characters_and_broken_utf8_become_question_marks(void **state)
{
        static const struct {
                const char *from, *to;
        } cases[] = {
                { "python3", "python3" },
                { "a\nb\tc", "a?b?c" },
                { "\033[2J", "?[2J" },
                { "\302\233x", "??x" }, /* U+009B, a terminal's CSI in one character */
                { "gr\303\266\303\237er", "gr\303\266\303\237er" },
                { "\303", "?" },                /* cut in the middle */
                { "\300\257", "??" },           /* an overlong slash */
                { "\355\240\200", "???" },      /* half of a surrogate pair */
                { "\364\220\200\200", "????" }, /* beyond Unicode */
                { "\360\237\230\200", "\360\237\230\200" },
                { "\x7f", "?" },
        };
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char to[64];

                assert_string_equal(text_clean(to, sizeof(to), cases[i].from), cases[i].to);
        }
}

static void test_a_long_text_is_cut_between_characters(void **state)
{
        char to[5];
        (void)state;

        assert_string_equal(text_clean(to, sizeof(to), "abcdef"), "abcd");
        assert_string_equal(text_clean(to, sizeof(to), "abc\303\266"), "abc");
}

static void test_width_counts_characters(void **state)
{
        (void)state;

        assert_int_equal(text_width(""), 0);
        assert_int_equal(text_width("gr\303\266\303\237er"), 6);
}

static void test_distance_counts_typing_errors(void **state)
{
        char longest[64];
        (void)state;

        assert_int_equal(text_distance("suspend", "suspend"), 0);
        assert_int_equal(text_distance("suspned", "suspend"), 1);
        assert_int_equal(text_distance("supend", "suspend"), 1);
        assert_int_equal(text_distance("resmue", "resume"), 1);
        assert_int_equal(text_distance("", "ls"), 2);
        memset(longest, 'x', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        assert_true(text_distance(longest, "ls") == SIZE_MAX);
        assert_true(text_distance("ls", longest) == SIZE_MAX);
}

static void test_what_is_meant_is_like_it(void **state)
{
        size_t fewest = TEXT_LEAST;
        (void)state;

        assert_false(text_is_closer("foo", "top", &fewest));
        assert_false(text_is_closer("l", "rm", &fewest));
        assert_false(text_is_closer("susp", "suspend", &fewest));
        assert_true(text_is_closer("sl", "ls", &fewest));
        assert_int_equal(fewest, 1);
        assert_false(text_is_closer("sl", "ls", &fewest));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_control_characters_and_broken_utf8_become_question_marks),
                cmocka_unit_test(test_a_long_text_is_cut_between_characters),
                cmocka_unit_test(test_width_counts_characters),
                cmocka_unit_test(test_distance_counts_typing_errors),
                cmocka_unit_test(test_what_is_meant_is_like_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
