/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper and its client, as two processes. TEST_KEEPER is the keeper's program. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/test.h"
#include "manager/keeper.h"
#include "wire/keeper.h"

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

struct fixture {
        char directory[64];
        char socket[96];
        sd_event *event;
        unsigned int n_lost;
};

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        strcpy(fixture->directory, "/tmp/test-keeper-XXXXXX");
        assert_non_null(mkdtemp(fixture->directory));
        snprintf(fixture->socket, sizeof(fixture->socket), "%s/keeper.sock", fixture->directory);
        assert_true(sd_event_new(&fixture->event) >= 0);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        sd_event_unref(fixture->event);
        unlink(fixture->socket);
        assert_int_equal(rmdir(fixture->directory), 0);
        free(fixture);
        return 0;
}

static void on_lost(struct keeper *keeper, void *userdata)
{
        struct fixture *fixture = userdata;

        (void)keeper;
        fixture->n_lost++;
}

static struct keeper *new_client(struct fixture *fixture)
{
        struct keeper *keeper = NULL;

        assert_int_equal(keeper_new(&keeper, fixture->event, fixture->socket, getenv("TEST_KEEPER"),
                                    on_lost, fixture),
                         0);
        return keeper;
}

/* A descriptor that is known again by its content. */
static int new_memfd(const char *text)
{
        int fd = memfd_create("test", MFD_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
        return fd;
}

static void put(struct keeper *keeper, const char *label, const char *text)
{
        CLEANUP(fd_closep) int fd = new_memfd(text);

        assert_int_equal(keeper_put(keeper, label, fd), 0);
}

static void assert_holds(const struct keeper *keeper, const char *label, const char *text)
{
        int fd = keeper_find(keeper, label);
        char buffer[64] = "";

        assert_true(fd >= 0);
        assert_true(pread(fd, buffer, sizeof(buffer) - 1, 0) >= 0);
        assert_string_equal(buffer, text);
}

static int watch_end(pid_t pid)
{
        int fd = (int)syscall(SYS_pidfd_open, pid, 0);

        assert_true(fd >= 0);
        return fd;
}

static void assert_ends(int pidfd)
{
        struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

        assert_int_equal(poll(&poll_fd, 1, 10000), 1);
        close(pidfd);
}

static void kill_keeper(const struct keeper *keeper)
{
        int end = watch_end(keeper_get_pid(keeper));

        assert_int_equal(kill(keeper_get_pid(keeper), SIGKILL), 0);
        assert_ends(end);
}

static int drop(const char *label, int fd, void *userdata)
{
        (void)fd;
        return keeper_drop(userdata, label);
}

/* Empties the keeper and hangs up: that ends it. */
static void finish(struct fixture *fixture, struct keeper *keeper)
{
        int end;

        assert_int_equal(keeper_restore(keeper), 0);
        end = watch_end(keeper_get_pid(keeper));
        assert_int_equal(keeper_list(keeper, "", drop, keeper), 0);
        assert_int_equal(keeper_count(keeper), 0);
        keeper_free(keeper);
        assert_ends(end);
        assert_int_equal(access(fixture->socket, F_OK), -1);
}

static void test_what_is_put_outlives_the_client(void **state)
{
        struct keeper *keeper = new_client(*state);

        put(keeper, "slab/1", "one");
        put(keeper, "slab/2", "two");
        put(keeper, "slab/3", "three");
        put(keeper, "slab/2", "zwei");
        assert_int_equal(keeper_drop(keeper, "slab/3"), 0);
        keeper_free(keeper);

        keeper = new_client(*state);
        assert_int_equal(keeper_count(keeper), 2);
        assert_holds(keeper, "slab/1", "one");
        assert_holds(keeper, "slab/2", "zwei");
        assert_int_equal(keeper_find(keeper, "slab/3"), -1);
        finish(*state, keeper);
}

static void test_a_keeper_that_holds_nothing_ends_with_its_client(void **state)
{
        finish(*state, new_client(*state));
}

static void test_bad_calls_are_refused_and_change_nothing(void **state)
{
        struct keeper *keeper = new_client(*state);
        char label[KEEPER_LABEL_MAX + 1];

        memset(label, 'x', sizeof(label) - 1);
        label[sizeof(label) - 1] = '\0';
        assert_int_equal(keeper_put(keeper, label, STDIN_FILENO), -ENAMETOOLONG);
        assert_int_equal(keeper_put(keeper, "x", -1), -EBADF);
        assert_int_equal(keeper_drop(keeper, "x"), -ENOENT);
        assert_int_equal(keeper_count(keeper), 0);
        finish(*state, keeper);
}

static void test_a_program_that_cannot_be_started_is_an_error_and_leaves_no_socket(void **state)
{
        struct fixture *fixture = *state;
        struct keeper *keeper = NULL;

        assert_int_equal(keeper_new(&keeper, NULL, fixture->socket, "/nowhere", NULL, NULL),
                         -ENOENT);
        assert_int_equal(keeper_new(&keeper, NULL, "keeper.sock", "/nowhere", NULL, NULL), -EINVAL);
        assert_null(keeper);
        assert_int_equal(access(fixture->socket, F_OK), -1);
}

static void test_a_socket_that_a_killed_keeper_left_is_replaced(void **state)
{
        struct fixture *fixture = *state;
        struct keeper *keeper = new_client(fixture);

        kill_keeper(keeper);
        keeper_free(keeper);
        assert_int_equal(access(fixture->socket, F_OK), 0);
        finish(fixture, new_client(fixture));
}

static void test_a_second_client_takes_over(void **state)
{
        struct fixture *fixture = *state;
        struct keeper *old = new_client(fixture), *new;

        put(old, "page/a", "data");
        new = new_client(fixture);
        assert_holds(new, "page/a", "data");

        assert_true(sd_event_run(fixture->event, 10000000) > 0);
        assert_int_equal(fixture->n_lost, 1);
        keeper_free(old);
        finish(fixture, new);
}

static void test_a_killed_keeper_is_replaced_and_gets_everything_again(void **state)
{
        struct fixture *fixture = *state;
        struct keeper *keeper = new_client(fixture);
        pid_t old = keeper_get_pid(keeper);

        put(keeper, "a", "one");
        put(keeper, "b", "two");
        kill_keeper(keeper);
        assert_true(sd_event_run(fixture->event, 10000000) > 0);
        assert_int_equal(fixture->n_lost, 1);
        assert_int_equal(keeper_get_pid(keeper), 0);

        assert_int_equal(keeper_restore(keeper), 0);
        assert_int_not_equal(keeper_get_pid(keeper), old);
        keeper_free(keeper);

        keeper = new_client(fixture);
        assert_int_equal(keeper_count(keeper), 2);
        assert_holds(keeper, "a", "one");
        assert_holds(keeper, "b", "two");
        finish(fixture, keeper);
}

static void test_put_and_drop_after_a_kill_need_nobody_to_restore_first(void **state)
{
        struct fixture *fixture = *state;
        struct keeper *keeper = new_client(fixture);

        put(keeper, "a", "one");
        put(keeper, "b", "two");
        kill_keeper(keeper);
        put(keeper, "c", "three");
        kill_keeper(keeper);
        assert_int_equal(keeper_drop(keeper, "a"), 0);
        keeper_free(keeper);

        keeper = new_client(fixture);
        assert_int_equal(keeper_count(keeper), 2);
        assert_holds(keeper, "b", "two");
        assert_holds(keeper, "c", "three");
        finish(fixture, keeper);
}

static int count(const char *label, int fd, void *userdata)
{
        assert_true(fd >= 0);
        assert_int_equal(strncmp(label, "slab/", 5), 0);
        ++*(unsigned int *)userdata;
        return 0;
}

static void test_thousands_of_labels_come_back(void **state)
{
        struct keeper *keeper = new_client(*state);
        unsigned int n = 0;

        for (int i = 0; i < 3000; i++) {
                char label[32];

                snprintf(label, sizeof(label), "slab/%d", i);
                assert_int_equal(keeper_put(keeper, label, STDERR_FILENO), 0);
        }
        put(keeper, "other", "other");
        keeper_free(keeper);

        keeper = new_client(*state);
        assert_int_equal(keeper_count(keeper), 3001);
        assert_int_equal(keeper_list(keeper, "slab/", count, &n), 0);
        assert_int_equal(n, 3000);
        finish(*state, keeper);
}

/* A client that does not keep to the protocol. */
static int new_raw_client(const struct fixture *fixture, int flags)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

        strcpy(address.sun_path, fixture->socket);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

static void assert_hung_up(int fd)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        char byte;

        assert_int_equal(poll(&poll_fd, 1, 10000), 1);
        assert_true(read(fd, &byte, 1) <= 0);
}

static void test_garbage_ends_the_connection_and_nothing_else(void **state)
{
        static const struct keeper_packet good = { .magic = KEEPER_WIRE_MAGIC,
                                                   .version = KEEPER_WIRE_VERSION,
                                                   .message = KEEPER_DROP,
                                                   .label = "a" };
        struct keeper_packet bad[8];
        int n_fds[8] = { 0, 0, 0, 0, 1, 0, 2, 0 };
        struct fixture *fixture = *state;
        struct keeper *keeper = new_client(fixture);

        for (size_t i = 0; i < 8; i++)
                bad[i] = good;
        bad[0].magic++;
        bad[1].version++;
        bad[2].message = 77;
        bad[3].message = KEEPER_PUT; /* without a descriptor */
        bad[4].message = KEEPER_LIST;
        memset(bad[5].label, 'a', sizeof(bad[5].label)); /* without an end */
        bad[6].message = KEEPER_PUT;
        bad[7].message = KEEPER_DONE;

        put(keeper, "a", "one");
        keeper_free(keeper);
        for (size_t i = 0; i < 9; i++) {
                CLEANUP(fd_closep) int fd = new_raw_client(fixture, 0);
                static const int some_fds[2] = { STDERR_FILENO, STDERR_FILENO };

                if (i < 8)
                        packet_send(fd, &bad[i], sizeof(bad[i]), some_fds, (size_t)n_fds[i]);
                else
                        packet_send(fd, &good, sizeof(good) - 1, NULL, 0);
                assert_hung_up(fd);
        }

        keeper = new_client(fixture);
        assert_int_equal(keeper_count(keeper), 1);
        assert_holds(keeper, "a", "one");
        finish(fixture, keeper);
}

static void test_a_client_that_never_reads_cannot_hold_up_the_next_one(void **state)
{
        static const struct keeper_packet list = { .magic = KEEPER_WIRE_MAGIC,
                                                   .version = KEEPER_WIRE_VERSION,
                                                   .message = KEEPER_LIST };
        struct fixture *fixture = *state;
        struct keeper *keeper = new_client(fixture);
        CLEANUP(fd_closep) int flood = -1;

        for (int i = 0; i < 500; i++) {
                char label[32];

                snprintf(label, sizeof(label), "slab/%d", i);
                assert_int_equal(keeper_put(keeper, label, STDERR_FILENO), 0);
        }
        keeper_free(keeper);

        flood = new_raw_client(fixture, SOCK_NONBLOCK);
        while (packet_send(flood, &list, sizeof(list), NULL, 0) == 0)
                ;
        keeper = new_client(fixture);
        assert_int_equal(keeper_count(keeper), 500);
        finish(fixture, keeper);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_what_is_put_outlives_the_client),
                TEST(test_a_keeper_that_holds_nothing_ends_with_its_client),
                TEST(test_bad_calls_are_refused_and_change_nothing),
                TEST(test_a_program_that_cannot_be_started_is_an_error_and_leaves_no_socket),
                TEST(test_a_socket_that_a_killed_keeper_left_is_replaced),
                TEST(test_a_second_client_takes_over),
                TEST(test_a_killed_keeper_is_replaced_and_gets_everything_again),
                TEST(test_put_and_drop_after_a_kill_need_nobody_to_restore_first),
                TEST(test_thousands_of_labels_come_back),
                TEST(test_garbage_ends_the_connection_and_nothing_else),
                TEST(test_a_client_that_never_reads_cannot_hold_up_the_next_one),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
