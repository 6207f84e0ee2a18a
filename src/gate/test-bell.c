/* SPDX-License-Identifier: Apache-2.0 */
/* A program that closes all descriptors, and opens its own under the same numbers. */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "gate/bell.h"

static bool is_rung(const struct bell *bell)
{
        struct pollfd fd = { .fd = bell_get_fd(bell), .events = POLLIN };

        return poll(&fd, 1, 0) == 1;
}

static void test_it_rings(void **state)
{
        struct bell bell = BELL_INIT;
        int fd;

        (void)state;
        bell_ring(&bell);
        assert_int_equal(bell_get_fd(&bell), -1);
        fd = bell_open(&bell);
        assert_true(fd >= 0);
        assert_int_equal(bell_open(&bell), fd);
        assert_false(is_rung(&bell));
        bell_ring(&bell);
        assert_true(is_rung(&bell));
        bell_forget(&bell);
        assert_int_equal(fcntl(fd, F_GETFD), -1);
        bell_forget(&bell);
}

static void test_what_has_its_number_now_is_the_programs(void **state)
{
        struct bell bell = BELL_INIT;
        char name[] = "/tmp/test-bell-XXXXXX";
        int fd, file = mkstemp(name);

        (void)state;
        assert_true(file >= 0);
        unlink(name);
        fd = bell_open(&bell);
        assert_int_equal(dup2(file, fd), fd);
        bell_ring(&bell);
        assert_int_equal(lseek(fd, 0, SEEK_END), 0);
        assert_int_equal(bell_get_fd(&bell), -1);
        bell_forget(&bell);
        assert_true(fcntl(fd, F_GETFD) >= 0);
        close(file);
        close(fd);
}

static void test_one_that_was_closed_is_made_anew(void **state)
{
        struct bell bell = BELL_INIT;

        (void)state;
        close(bell_open(&bell));
        assert_int_equal(bell_get_fd(&bell), -1);
        assert_true(bell_open(&bell) >= 0);
        bell_ring(&bell);
        assert_true(is_rung(&bell));
        bell_forget(&bell);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_rings),
                cmocka_unit_test(test_what_has_its_number_now_is_the_programs),
                cmocka_unit_test(test_one_that_was_closed_is_made_anew),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
