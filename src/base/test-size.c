/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/size.h"
#include "base/test.h"

static void test_units_are_powers_of_1024(void **state)
{
        static const struct {
                const char *text;
                uint64_t bytes;
        } good[] = {
                { "0", 0 },
                { "4096", 4096 },
                { "1K", KIB },
                { "40G", 40 * GIB },
                { "40GiB", 40 * GIB },
                { "40gb", 40 * GIB },
                { "1.5 GiB", GIB + GIB / 2 },
                { "2T", 2 * TIB },
                { "18446744073709551615", UINT64_MAX },
        };
        (void)state;

        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                uint64_t bytes = 1;

                assert_int_equal(size_parse(&bytes, good[i].text), 0);
                assert_int_equal(bytes, good[i].bytes);
        }
}

static void test_what_is_not_a_size_is_refused_and_changes_nothing(void **state)
{
        static const char *const bad[] = { "",    "G",   "-1G",  "12abcM", "1.5",  "1..5G", ".5G",
                                           "5.G", "1e9", "0x10", "40 G B", "40Gx", "nan",   "inf" };
        (void)state;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                uint64_t bytes = 7;

                assert_int_equal(size_parse(&bytes, bad[i]), -EINVAL);
                assert_int_equal(bytes, 7);
        }
}

static void test_a_small_number_lacks_its_unit(void **state)
{
        (void)state;

        assert_true(size_lacks_unit("40"));
        assert_true(size_lacks_unit("1048575"));
        assert_false(size_lacks_unit("1048576"));
        assert_false(size_lacks_unit("42949672960"));
        assert_false(size_lacks_unit("0"));
        assert_false(size_lacks_unit("40G"));
        assert_false(size_lacks_unit("40B"));
        assert_false(size_lacks_unit(""));
}

static void test_too_large_is_told_from_malformed(void **state)
{
        uint64_t bytes;
        (void)state;

        assert_int_equal(size_parse(&bytes, "18446744073709551616"), -ERANGE);
        assert_int_equal(size_parse(&bytes, "16777216T"), -ERANGE);
}

static void test_format_reads_like_a_person_would_write(void **state)
{
        char text[SIZE_TEXT_MAX];
        (void)state;

        assert_string_equal(size_format(text, 17), "17 B");
        assert_string_equal(size_format(text, 40 * GIB), "40 GiB");
        assert_string_equal(size_format(text, 40 * GIB + GIB / 2), "40.5 GiB");
        assert_string_equal(size_format(text, UINT64_MAX), "16777216.0 TiB");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_units_are_powers_of_1024),
                cmocka_unit_test(test_what_is_not_a_size_is_refused_and_changes_nothing),
                cmocka_unit_test(test_a_small_number_lacks_its_unit),
                cmocka_unit_test(test_too_large_is_told_from_malformed),
                cmocka_unit_test(test_format_reads_like_a_person_would_write),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
