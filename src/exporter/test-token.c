/* SPDX-License-Identifier: Apache-2.0 */
/* The token's file is nobody else's, and nothing but the whole token is the token. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"
#include "exporter/token.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static char folder[] = "/tmp/openvgpu-test-XXXXXX", path[64], why[TOKEN_WHY_MAX];

static int set_up(void **state)
{
        (void)state;
        (void)umask(022);
        if (!mkdtemp(folder))
                return -1;
        snprintf(path, sizeof(path), "%s/token", folder);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        (void)unlink(path);
        return rmdir(folder);
}

static void put(const char *text, mode_t mode)
{
        FILE *file;

        (void)unlink(path); /* only root may write to one that is there and nobody's to write */
        file = fopen(path, "w");

        assert_non_null(file);
        fputs(text, file);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(chmod(path, mode), 0);
}

static void test_a_file_that_is_not_there_is_made(void **state)
{
        struct token token, again;
        struct stat st;
        (void)state;

        (void)unlink(path);
        assert_int_equal(token_load(&token, path, why, sizeof(why)), 0);
        assert_int_equal(token.size, 64);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(token_load(&again, path, why, sizeof(why)), 0);
        assert_string_equal(token.text, again.text);
        (void)unlink(path);
        assert_int_equal(token_load(&again, path, why, sizeof(why)), 0);
        assert_string_not_equal(token.text, again.text);
        assert_int_equal(token_load(&again, "/nowhere/token", why, sizeof(why)), -ENOENT);
}

static void test_a_file_that_others_may_read_is_refused(void **state)
{
        struct token token;
        (void)state;

        for (mode_t mode = 0604; mode <= 0660; mode += 040 - 04) {
                put(TOKEN "\n", mode);
                assert_int_equal(token_load(&token, path, why, sizeof(why)), -EACCES);
                assert_non_null(strstr(why, "chmod 600"));
        }
        put(TOKEN "\n", 0400);
        assert_int_equal(token_load(&token, path, why, sizeof(why)), 0);
        assert_string_equal(token.text, TOKEN);

        /* As systemd hands it to a unit. */
        put(TOKEN, 0440);
        setenv("CREDENTIALS_DIRECTORY", folder, 1);
        assert_int_equal(token_load(&token, path, why, sizeof(why)), geteuid() == 0 ? 0 : -EACCES);
        setenv("CREDENTIALS_DIRECTORY", "/tmp/open", 1);
        assert_int_equal(token_load(&token, path, why, sizeof(why)), -EACCES);
        unsetenv("CREDENTIALS_DIRECTORY");
}

static void test_what_is_no_token_is_said(void **state)
{
        static const char *const wrong[] = {
                "",
                "\n",
                "short\n",
                "0123456789abcdef 0123456789abcdef\n",
                TOKEN "\n" TOKEN "\n",
                "\x01" TOKEN,
                TOKEN "\xff",
        };
        static char large[4 * TOKEN_MAX];
        struct token token;
        (void)state;

        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                put(wrong[i], 0600);
                assert_int_equal(token_load(&token, path, why, sizeof(why)), -EINVAL);
                assert_non_null(strstr(why, "has no token"));
        }
        memset(large, 'x', sizeof(large) - 1);
        put(large, 0600);
        assert_int_equal(token_load(&token, path, why, sizeof(why)), -EINVAL);
        assert_int_equal(token_load(&token, folder, why, sizeof(why)), -EINVAL);
}

static void test_only_the_whole_token_matches(void **state)
{
        struct token token;
        (void)state;

        assert_true(token_parse(&token, TOKEN));
        assert_true(token_matches(&token, "Bearer " TOKEN));
        assert_true(token_matches(&token, "bearer " TOKEN));
        assert_false(token_matches(&token, NULL));
        assert_false(token_matches(&token, ""));
        assert_false(token_matches(&token, TOKEN));
        assert_false(token_matches(&token, "Bearer "));
        assert_false(token_matches(&token, "Basic " TOKEN));
        assert_false(token_matches(&token, "Bearer " TOKEN "0"));
        assert_false(token_matches(&token, "Bearer  " TOKEN));
        assert_false(token_matches(&token, "Bearer 0123456789abcdef0123456789abcdeF"));
        assert_false(token_matches(&token, "Bearer 0123456789abcdef0123456789abcde"));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_file_that_is_not_there_is_made),
                cmocka_unit_test(test_a_file_that_others_may_read_is_refused),
                cmocka_unit_test(test_what_is_no_token_is_said),
                cmocka_unit_test(test_only_the_whole_token_matches),
        };

        return cmocka_run_group_tests_name("exporter-token", tests, set_up, tear_down);
}
