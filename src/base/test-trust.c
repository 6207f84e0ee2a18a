/* SPDX-License-Identifier: Apache-2.0 */
/* Files and peers of other users. Only root can make any, so for others most of this is skipped. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "base/trust.h"

#define STRANGER 65534

static char directory[] = "/tmp/vgtrust-XXXXXX";

/* Below the directory of the test; each is used before the next one is made. */
static const char *at(const char *name)
{
        static char path[128];

        (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
        return path;
}

static void make_file(const char *name)
{
        int fd = open(at(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

        assert_true(fd >= 0);
        fd_close(fd);
}

static void give_away(const char *name)
{
        if (geteuid() != 0)
                skip();
        assert_int_equal(lchown(at(name), STRANGER, STRANGER), 0);
}

static int try(const char *name, bool is_given)
{
        int fd = trust_open(at(name), is_given);

        return fd < 0 ? fd : fd_close(fd) + 1;
}

static void assert_believed(const char *name)
{
        assert_int_equal(try(name, false), 0);
        assert_int_equal(try(name, true), 0);
}

static int set_up(void **state)
{
        (void)state;
        strcpy(strrchr(directory, '-'), "-XXXXXX");
        return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
        char command[64];
        (void)state;

        (void)snprintf(command, sizeof(command), "rm -rf %s", directory);
        return system(command);
}

static void test_what_is_ours_is_believed(void **state)
{
        (void)state;
        make_file("file");
        assert_int_equal(mkdir(at("folder"), 0755), 0);
        make_file("folder/file");
        assert_believed("file");
        assert_believed("./folder/../file");
        assert_believed("folder//file");
        assert_int_equal(symlink("../file", at("folder/link")), 0);
        assert_believed("folder/link");
        assert_int_equal(symlink(directory, at("folder/absolute")), 0);
        assert_believed("folder/absolute/folder/link");
        assert_int_equal(try("nothing", false), -ENOENT);
        assert_int_equal(try("file/", false), 0);
        assert_int_equal(try("file/x", false), -ENOTDIR);
        assert_int_equal(try("folder", true), -EACCES);
        assert_int_equal(symlink("loop", at("loop")), 0);
        assert_int_equal(try("loop", true), -ELOOP);
        assert_int_equal(mkfifo(at("pipe"), 0644), 0);
        assert_int_equal(try("pipe", true), -EACCES); /* and is not waited for */
}

static void test_a_file_of_others_is_believed_only_where_it_is_named(void **state)
{
        (void)state;
        make_file("file");
        give_away("file");
        assert_int_equal(try("file", false), -EACCES);
        assert_int_equal(try("file", true), 0);
}

static void test_a_folder_of_others_could_hold_anything(void **state)
{
        (void)state;
        assert_int_equal(mkdir(at("folder"), 0755), 0);
        make_file("folder/file");
        give_away("folder");
        assert_int_equal(try("folder/file", false), -EACCES);
        assert_int_equal(try("folder/file", true), 0);
}

static void test_a_link_of_others_is_never_followed(void **state)
{
        (void)state;
        make_file("file");
        assert_int_equal(symlink("file", at("link")), 0);
        assert_int_equal(mkdir(at("folder"), 0755), 0);
        assert_int_equal(symlink(directory, at("folder/link")), 0);
        give_away("link");
        give_away("folder/link");
        assert_int_equal(try("link", true), -EACCES);
        assert_int_equal(try("folder/link/file", true), -EACCES);
}

static void test_what_anybody_can_change_is_not_believed(void **state)
{
        (void)state;
        make_file("file");
        assert_int_equal(chmod(at("file"), 0666), 0);
        assert_int_equal(try("file", false), -EACCES);
        assert_int_equal(mkdir(at("folder"), 0755), 0);
        make_file("folder/file");
        assert_int_equal(chmod(at("folder"), 0777), 0);
        assert_int_equal(try("folder/file", false), -EACCES);
        assert_int_equal(chmod(at("folder"), 01777), 0);
        assert_believed("folder/file");
}

/* A socket on which @user listens; we are connected to it. */
static int connect_to(uid_t user)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        pid_t pid;
        int status;

        strcpy(address.sun_path, at("socket"));
        assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
        pid = fork();
        if (pid == 0)
                _exit(setuid(user) < 0 || listen(listener, 1) < 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        fd_close(listener);
        return fd;
}

static void test_a_peer_is_root_or_we_or_was_named(void **state)
{
        int fd = connect_to(geteuid());
        (void)state;

        unsetenv("OPENVGPU_RUN");
        assert_true(trust_peer(fd));
        fd_close(fd);
        assert_int_equal(unlink(at("socket")), 0);
        if (geteuid() != 0)
                skip();
        fd = connect_to(STRANGER);
        assert_false(trust_peer(fd));
        setenv("OPENVGPU_RUN", directory, 1);
        assert_true(trust_peer(fd));
        unsetenv("OPENVGPU_RUN");
        fd_close(fd);
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                test(what_is_ours_is_believed),
                test(a_file_of_others_is_believed_only_where_it_is_named),
                test(a_folder_of_others_could_hold_anything),
                test(a_link_of_others_is_never_followed),
                test(what_anybody_can_change_is_not_believed),
                test(a_peer_is_root_or_we_or_was_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
