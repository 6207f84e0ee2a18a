/* SPDX-License-Identifier: Apache-2.0 */
/* It listens where it was told, never elsewhere, and takes no socket from somebody who uses it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "exporter/listen.h"

static int open_one(const char *where)
{
        char why[160];

        return listen_open(where, why, sizeof(why));
}

static void test_only_numbers_and_paths(void **state)
{
        static const char *const wrong[] = {
                "",
                ":",
                ":80",
                "80",
                "127.0.0.1",
                "127.0.0.1:",
                "localhost:80",
                "1.2.3.4:http",
                "127.0.0.1:65536",
                "[::1]",
                "[]:80",
                "unix:",
                "unix:x",
                "unix",
                "999.0.0.1:80",
        };
        char path[256] = "unix:/";
        (void)state;

        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_int_equal(open_one(wrong[i]), -EINVAL);
        memset(path + 6, 'x', sizeof(path) - 7);
        assert_int_equal(open_one(path), -ENAMETOOLONG);
}

static void test_ports(void **state)
{
        char name[64];
        int fd = open_one("127.0.0.1:0");
        (void)state;

        assert_true(fd >= 0);
        listen_name(fd, "http", name, sizeof(name));
        assert_memory_equal(name, "http://127.0.0.1:", 17);
        assert_true(strcmp(name, "http://127.0.0.1:0") != 0);
        assert_int_equal(open_one(name + 7), -EADDRINUSE);
        fd_close(fd);
        fd = open_one(name + 7); /* and again when it is free */
        assert_true(fd >= 0);
        fd_close(fd);
}

static void expect_words(const char *where, const char *words)
{
        char why[256];

        assert_true(listen_open(where, why, sizeof(why)) < 0);
        if (!strstr(why, words))
                fail_msg("%s: %s", where, why);
}

static void test_it_says_what_to_do(void **state)
{
        char name[64];
        int fd = open_one("127.0.0.1:0");
        (void)state;

        listen_name(fd, "http", name, sizeof(name));
        expect_words(name + 7, "another program has this port");
        fd_close(fd);
        expect_words("192.0.2.1:1", "does not have that address");
        expect_words("localhost:1", "with numbers");
        expect_words("unix:/nowhere/x", "its folder is not there");
        expect_words("unix:/etc/passwd", "there is a file of that name");
}

static void test_a_socket_that_was_left_behind_is_replaced(void **state)
{
        char folder[] = "/tmp/openvgpu-test-XXXXXX", where[64], name[64];
        struct stat st;
        int fd;
        (void)state;

        assert_non_null(mkdtemp(folder));
        snprintf(where, sizeof(where), "unix:%s/s", folder);
        fd = open_one(where);
        assert_true(fd >= 0);
        assert_string_equal(listen_name(fd, "http", name, sizeof(name)), where);
        assert_int_equal(stat(where + 5, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0660);
        assert_int_equal(open_one(where), -EADDRINUSE); /* somebody listens */
        fd_close(fd);
        fd = open_one(where);
        assert_true(fd >= 0);
        fd_close(fd);

        assert_int_equal(unlink(where + 5), 0);
        fd = open(where + 5, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        fd_close(fd);
        assert_int_equal(open_one(where), -EADDRINUSE); /* a file is nobody's to remove */
        assert_int_equal(unlink(where + 5), 0);
        assert_int_equal(rmdir(folder), 0);
}

static void test_what_is_given_must_listen(void **state)
{
        char why[128], text[16];
        int fd, saved = dup(3);
        (void)state;

        assert_int_equal(setenv("LISTEN_FDS", "1", 1), 0);
        assert_int_equal(setenv("LISTEN_PID", "1", 1), 0); /* somebody else's */
        assert_int_equal(listen_take_given(why, sizeof(why)), -ENOENT);
        snprintf(text, sizeof(text), "%d", (int)getpid());
        assert_int_equal(setenv("LISTEN_PID", text, 1), 0);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(fd == 3 ? 3 : dup2(fd, 3), 3);
        assert_int_equal(listen_take_given(why, sizeof(why)), -EINVAL);
        assert_int_equal(listen(3, 1), 0);
        assert_int_equal(listen_take_given(why, sizeof(why)), 3);
        assert_int_equal(setenv("LISTEN_FDS", "2", 1), 0);
        assert_int_equal(listen_take_given(why, sizeof(why)), -EINVAL);
        assert_int_equal(unsetenv("LISTEN_FDS"), 0);
        assert_int_equal(unsetenv("LISTEN_PID"), 0);
        assert_int_equal(listen_take_given(why, sizeof(why)), -ENOENT);
        if (fd != 3)
                fd_close(fd);
        if (saved >= 0)
                assert_int_equal(dup2(saved, 3), 3);
        else
                fd_close(3);
        fd_close(saved);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_numbers_and_paths),
                cmocka_unit_test(test_ports),
                cmocka_unit_test(test_it_says_what_to_do),
                cmocka_unit_test(test_what_is_given_must_listen),
                cmocka_unit_test(test_a_socket_that_was_left_behind_is_replaced),
        };

        return cmocka_run_group_tests_name("exporter-listen", tests, NULL, NULL);
}
