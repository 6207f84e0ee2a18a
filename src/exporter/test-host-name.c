/* SPDX-License-Identifier: Apache-2.0 */
/* The names by which a request may call the server. */
#include <string.h>

#include "base/test.h"
#include "exporter/host-name.h"

static const struct host_names names = { .names = { "gpu01", "gpu01.example.org" }, .n = 2 };

static void test_addresses_and_given_names_are_allowed(void **state)
{
        static const char *const allowed[] = {
                "127.0.0.1",         "127.0.0.1:9477", "[::1]:9477", "[::1]",  "10.0.0.7:80",
                "localhost",         "LOCALHOST:9477", "localhost.", "gpu01",  "gpu01:9477",
                "gpu01.example.org", "GPU01:9477",     "gpu01.",     "0.0.0.0"
        };
        (void)state;

        for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
                if (!host_name_is_allowed(&names, allowed[i]))
                        fail_msg("%s is refused", allowed[i]);
        assert_true(host_name_is_allowed(&names, NULL));
}

static void test_other_names_are_refused(void **state)
{
        static const char *const refused[] = {
                "",
                ":9477",
                "[",
                "[]",
                "[::1",
                "evil.example:9477",
                "gpu01.evil.example",
                "gpu",
                "gpu011",
                "localhost.evil",
                "127.0.0.1.evil.example",
                "1.2.3",
                ".",
                "gpu01 ",
                "xn--gpu01-",
                "[localhost]",
                "[localhost]evil.example",
                "[localhost].evil.example:9477",
                "[127.0.0.1]",
                "[::1]evil.example",
                "[::1]:9477.evil.example",
                "localhost:evil.example",
                "gpu01:9477:9477",
        };
        (void)state;

        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
                if (host_name_is_allowed(&names, refused[i]))
                        fail_msg("%s is allowed", refused[i]);
}

static void test_a_name_of_any_length_is_refused(void **state)
{
        char long_name[4096];
        (void)state;

        memset(long_name, 'a', sizeof(long_name) - 1);
        long_name[sizeof(long_name) - 1] = '\0';
        assert_false(host_name_is_allowed(&names, long_name));
        long_name[0] = '[';
        assert_false(host_name_is_allowed(&names, long_name));
}

static void test_what_may_be_a_name(void **state)
{
        static const char *const wrong[] = { "",       "gpu01:9477", "http://gpu01",
                                             "gpu01.", "a b",        "[::1]" };
        (void)state;

        assert_true(host_name_is_name("gpu01.example.org"));
        assert_true(host_name_is_name("GPU_01-a"));
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_false(host_name_is_name(wrong[i]));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_addresses_and_given_names_are_allowed),
                cmocka_unit_test(test_other_names_are_refused),
                cmocka_unit_test(test_a_name_of_any_length_is_refused),
                cmocka_unit_test(test_what_may_be_a_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
