/* SPDX-License-Identifier: Apache-2.0 */
/* Which manager a client asks, of its own user's and the machine's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/test.h"

struct fixture {
        char folder[32], own[48], machine[48];
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        strcpy(fixture->folder, "/tmp/vgpu-paths-XXXXXX");
        assert_non_null(mkdtemp(fixture->folder));
        snprintf(fixture->own, sizeof(fixture->own), "%s/own", fixture->folder);
        snprintf(fixture->machine, sizeof(fixture->machine), "%s/machine", fixture->folder);
        assert_int_equal(mkdir(fixture->own, 0700), 0);
        assert_int_equal(mkdir(fixture->machine, 0755), 0);
        *state = fixture;
        return 0;
}

static void get_socket(char path[96], const char *directory)
{
        snprintf(path, 96, "%s/%s", directory, PATHS_CONTROL_SOCKET);
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;
        const char *const directories[] = { fixture->own, fixture->machine };
        char path[96];

        for (int i = 0; i < 2; i++) {
                get_socket(path, directories[i]);
                (void)unlink(path);
                (void)rmdir(directories[i]);
        }
        (void)rmdir(fixture->folder);
        free(fixture);
        return 0;
}

static int serve(const char *directory)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char path[96];

        get_socket(path, directory);
        strcpy(address.sun_path, path);
        (void)unlink(path);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(fd, 4), 0);
        return fd;
}

static void check(const struct fixture *fixture, const char *expected)
{
        assert_string_equal(paths_choose(fixture->own, fixture->machine), expected);
}

static void test_ones_own_comes_first_while_it_answers(void **state)
{
        const struct fixture *fixture = *state;
        int machine = serve(fixture->machine), own;

        check(fixture, fixture->machine);
        own = serve(fixture->own);
        check(fixture, fixture->own);
        assert_false(paths_is_passed_by(fixture->own, fixture->machine));
        close(own);
        check(fixture, fixture->machine);
        assert_true(paths_is_passed_by(fixture->own, fixture->machine));
        close(machine);
        assert_false(paths_is_passed_by(fixture->own, fixture->machine));
}

static void test_one_that_has_ended_is_named_where_none_answers(void **state)
{
        const struct fixture *fixture = *state;

        check(fixture, fixture->own);
        close(serve(fixture->machine));
        check(fixture, fixture->machine);
        close(serve(fixture->own));
        check(fixture, fixture->own);
}

/* As one that another user has made in /tmp. */
static void test_a_folder_of_another_user_is_not_ones_own(void **state)
{
        const struct fixture *fixture = *state;
        int own = serve(fixture->own);

        if (geteuid() != 0)
                skip();
        assert_int_equal(chown(fixture->own, 12345, 12345), 0);
        close(serve(fixture->machine));
        check(fixture, fixture->machine);
        close(own);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_ones_own_comes_first_while_it_answers, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_one_that_has_ended_is_named_where_none_answers,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_folder_of_another_user_is_not_ones_own,
                                                set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
