/* SPDX-License-Identifier: Apache-2.0 */
/* A store on a disk that is small, and full. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "state/state-page.h"
#include "store/store.h"

/* In a process of its own: what fails there ends it. */
#define MUST(condition)                                                                       \
        do {                                                                                  \
                if (!(condition)) {                                                           \
                        (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
                        _exit(1);                                                             \
                }                                                                             \
        } while (0)

#define SKIPPED 77

static char small_disk[] = "/tmp/test-store-disk-XXXXXX";

/* Seen by this process and its children only. */
static int write_line(const char *path, const char *line)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        ssize_t n = write(fd, line, strlen(line));

        (void)close(fd);
        return n < 0 ? -errno : 0;
}

/* In a new user namespace: without a number there a process can make no file. */
static int become_root(uid_t user, gid_t group)
{
        char users[32], groups[32];

        (void)snprintf(users, sizeof(users), "0 %u 1", user);
        (void)snprintf(groups, sizeof(groups), "0 %u 1", group);
        if (write_line("/proc/self/setgroups", "deny") < 0 ||
            write_line("/proc/self/uid_map", users) < 0)
                return -EPERM;
        return write_line("/proc/self/gid_map", groups);
}

static void mount_small_disk(void)
{
        const uid_t user = geteuid();
        const gid_t group = getegid();
        int flags = user == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;

        if (unshare(flags) < 0 || ((flags & CLONE_NEWUSER) && become_root(user, group) < 0) ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", small_disk, "tmpfs", 0, "size=1M") < 0)
                _exit(SKIPPED);
}

static struct store *open_on_small_disk(void)
{
        struct failure failure = { 0 };
        struct store *store = NULL;
        char path[64];

        (void)snprintf(path, sizeof(path), "%s/state.db", small_disk);
        if (store_open(&store, path, "boot", &failure) < 0)
                (void)fprintf(stderr, "%s\n", failure.message);
        MUST(store);
        return store;
}

/* A resume says so much on its way, and the way out as much. */
static void move(struct store *store, uint32_t id, int times)
{
        for (int i = 0; i < times; i++) {
                struct store_operation operation = { .instance = id };

                (void)snprintf(operation.kind, sizeof(operation.kind), "resume");
                (void)snprintf(operation.step, sizeof(operation.step), "step-%d", i);
                MUST(store_begin(store) == 0);
                MUST(store_put_operation(store, &operation) == 0);
                MUST(store_set_instance(store, id, STATE_SUSPENDED, "GPU-2") == 0);
                MUST(store_commit(store) == 0);
                MUST(store_remove_operation(store, id) == 0);
        }
}

static void fill_small_disk(void)
{
        char path[64], bytes[4096] = { 1 };
        int fd;

        (void)snprintf(path, sizeof(path), "%s/filler", small_disk);
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        while (write(fd, bytes, sizeof(bytes)) > 0)
                continue;
        MUST(errno == ENOSPC);
        (void)close(fd);
}

static void write_and_be_killed(void)
{
        struct store *store = open_on_small_disk();
        struct store_instance instance = { .name = "one", .uuid = "1", .device_uuid = "GPU-1" };

        MUST(store_add_instance(store, &instance) == 0);
        move(store, instance.id, 1000);
        fill_small_disk();
        move(store, instance.id, 100);
        (void)raise(SIGKILL);
}

static void live_on_small_disk(void)
{
        struct store *store;
        pid_t pid;
        int status;

        mount_small_disk();
        pid = fork();
        if (pid == 0)
                write_and_be_killed();
        MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        store = open_on_small_disk(); /* which is full */
        move(store, 1, 100);
        _exit(0);
}

static void test_a_disk_that_is_small_and_full_takes_what_a_resume_says(void **state)
{
        pid_t pid;
        int status;

        (void)state;
        assert_non_null(mkdtemp(small_disk));
        pid = fork();
        if (pid == 0)
                live_on_small_disk();
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(rmdir(small_disk), 0);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == SKIPPED)
                skip();
        assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_disk_that_is_small_and_full_takes_what_a_resume_says),
        };

        return cmocka_run_group_tests_name("store-disk", tests, NULL, NULL);
}
