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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/packet.h"
#include "base/test.h"
#include "helper/keeper.h"
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

/* A test that failed has left it: it would live on, with this test's output open. */
static void kill_listener(const char *path)
{
        CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct ucred peer;
        socklen_t size = sizeof(peer);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid != getpid())
                (void)kill(peer.pid, SIGKILL);
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        kill_listener(fixture->socket);
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

/* Batches. */

struct batch {
        char labels[KEEPER_BATCH_MAX + 1][32];
        struct keeper_item items[KEEPER_BATCH_MAX + 1];
};

/* One more than fits, all of the same descriptor. */
static void make_batch(struct batch *batch, const char *name, int fd)
{
        for (int i = 0; i <= KEEPER_BATCH_MAX; i++) {
                snprintf(batch->labels[i], sizeof(batch->labels[i]), "%s/%d", name, i);
                batch->items[i] = (struct keeper_item){ batch->labels[i], fd };
        }
}

static void test_a_batch_is_kept_and_dropped_as_single_ones_are(void **state)
{
        CLEANUP(fd_closep) int fd = new_memfd("data");
        struct keeper *keeper = new_client(*state);
        struct batch batch;

        make_batch(&batch, "memory", fd);
        assert_int_equal(keeper_put_batch(keeper, batch.items, KEEPER_BATCH_MAX + 1), -E2BIG);
        assert_int_equal(keeper_put_batch(keeper, batch.items, 0), 0);
        assert_int_equal(keeper_count(keeper), 0);
        assert_int_equal(keeper_put_batch(keeper, batch.items, KEEPER_BATCH_MAX), 0);
        keeper_free(keeper);

        keeper = new_client(*state);
        assert_int_equal(keeper_count(keeper), KEEPER_BATCH_MAX);
        assert_holds(keeper, "memory/0", "data");
        assert_holds(keeper, "memory/63", "data");
        put(keeper, "other", "other");
        assert_int_equal(keeper_drop(keeper, "memory/7"), 0);
        assert_int_equal(keeper_drop_batch(keeper, batch.items, KEEPER_BATCH_MAX + 1), -E2BIG);
        assert_int_equal(keeper_drop_batch(keeper, batch.items, KEEPER_BATCH_MAX), 0);
        assert_int_equal(keeper_drop_batch(keeper, batch.items, KEEPER_BATCH_MAX), 0);
        keeper_free(keeper);

        keeper = new_client(*state);
        assert_int_equal(keeper_count(keeper), 1);
        assert_holds(keeper, "other", "other");
        finish(*state, keeper);
}

static void test_a_batch_that_cannot_be_kept_whole_is_not_kept(void **state)
{
        CLEANUP(fd_closep) int fd = new_memfd("data");
        struct keeper *keeper = new_client(*state);
        char label[KEEPER_LABEL_MAX + 1];
        struct batch batch;

        memset(label, 'x', sizeof(label) - 1);
        label[sizeof(label) - 1] = '\0';
        make_batch(&batch, "memory", fd);
        batch.items[40].label = label;
        assert_int_equal(keeper_put_batch(keeper, batch.items, KEEPER_BATCH_MAX), -ENAMETOOLONG);
        batch.items[40] = (struct keeper_item){ "bad", -1 };
        assert_int_equal(keeper_put_batch(keeper, batch.items, KEEPER_BATCH_MAX), -EBADF);
        assert_int_equal(keeper_count(keeper), 0);
        finish(*state, keeper); /* which ends only if the keeper has none either */
}

/*
 * In a process of its own: nobody may raise that limit again, and a keeper has its client's. Returns the
 * line of what went wrong, or 0.
 */
static int fill_keeper(const char *socket)
{
        const rlim_t n = PACKET_FDS_MAX + 16 + 100; /* the keeper's spare ones, and 100 labels */
        struct batch first, second;
        struct keeper *keeper;

        make_batch(&first, "first", STDERR_FILENO);
        make_batch(&second, "second", STDERR_FILENO);
        if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ n, n }) < 0 ||
            keeper_new(&keeper, NULL, socket, getenv("TEST_KEEPER"), NULL, NULL) < 0)
                return __LINE__;
        if (keeper_put_batch(keeper, first.items, KEEPER_BATCH_MAX) != 0)
                return __LINE__;
        if (keeper_put_batch(keeper, second.items, KEEPER_BATCH_MAX) != -EMFILE ||
            keeper_count(keeper) != KEEPER_BATCH_MAX)
                return __LINE__;
        if (keeper_put_batch(keeper, second.items, 36) != 0 ||
            keeper_drop_batch(keeper, second.items, 36) != 0)
                return __LINE__;
        keeper_free(keeper);
        return 0;
}

static void test_a_full_keeper_takes_nothing_of_a_batch(void **state)
{
        struct fixture *fixture = *state;
        struct keeper *keeper;
        int status = -1;
        pid_t child = fork();

        if (child == 0) {
                int line = fill_keeper(fixture->socket);

                if (line)
                        fprintf(stderr, "line %d\n", line);
                _exit(line ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        keeper = new_client(fixture);
        assert_int_equal(keeper_count(keeper), KEEPER_BATCH_MAX);
        assert_true(keeper_find(keeper, "first/63") >= 0);
        finish(fixture, keeper);
}

static void test_a_batch_whose_keeper_was_killed_goes_to_the_next_one_with_all_before(void **state)
{
        CLEANUP(fd_closep) int fd = new_memfd("data");
        struct keeper *keeper = new_client(*state);
        struct batch batches[3];

        for (int i = 0; i < 3; i++) {
                make_batch(&batches[i], i == 0 ? "a" : i == 1 ? "b" : "c", fd);
                assert_int_equal(keeper_put_batch(keeper, batches[i].items, KEEPER_BATCH_MAX), 0);
                kill_keeper(keeper);
        }
        assert_int_equal(keeper_drop_batch(keeper, batches[1].items, KEEPER_BATCH_MAX), 0);
        keeper_free(keeper);

        keeper = new_client(*state);
        assert_int_equal(keeper_count(keeper), 2 * KEEPER_BATCH_MAX);
        assert_holds(keeper, "a/63", "data");
        assert_holds(keeper, "c/0", "data");
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

static struct keeper_packet make_packet(enum keeper_message message, const char *label,
                                        uint32_t count)
{
        struct keeper_packet packet = { 0 };

        keeper_packet_begin(&packet, message, 0);
        packet.count = count;
        for (uint32_t i = 0; i < count && i < KEEPER_BATCH_MAX; i++)
                strcpy(packet.label[i], label);
        return packet;
}

static void test_garbage_ends_the_connection_and_nothing_else(void **state)
{
        static const int some_fds[2] = { STDERR_FILENO, STDERR_FILENO };
        struct {
                struct keeper_packet packet;
                size_t n_fds;
                size_t more; /* bytes than its labels need */
        } bad[] = {
                { make_packet(KEEPER_DROP, "a", 1), 0, 0 }, /* its magic is spoilt below, */
                { make_packet(KEEPER_DROP, "a", 1), 0, 0 }, /* its version, */
                { make_packet(KEEPER_DROP, "a", 1), 0, 0 }, /* and the end of its label */
                { make_packet(77, "a", 1), 0, 0 },
                { make_packet(KEEPER_DONE, "a", 1), 0, 0 },
                { make_packet(KEEPER_PUT, "a", 1), 0, 0 }, /* without a descriptor */
                { make_packet(KEEPER_PUT, "a", 1), 2, 0 },
                { make_packet(KEEPER_PUT, "a", 3), 2, 0 },
                { make_packet(KEEPER_PUT, "a", 0), 0, 0 },
                { make_packet(KEEPER_DROP, "a", 1), 1, 0 },
                { make_packet(KEEPER_DROP, "a", 0), 0, 0 },
                { make_packet(KEEPER_LIST, "", 0), 1, 0 },
                { make_packet(KEEPER_LIST, "", 1), 0, 0 },
                { make_packet(KEEPER_DROP, "a", 1), 0, 1 },
                { make_packet(KEEPER_DROP, "a", 1), 0, (size_t)-1 },
                { make_packet(KEEPER_DROP, "a", KEEPER_BATCH_MAX + 1), 0,
                  (size_t)-KEEPER_LABEL_MAX },
        };
        struct fixture *fixture = *state;
        struct keeper *keeper = new_client(fixture);

        bad[0].packet.magic++;
        bad[1].packet.version++;
        memset(bad[2].packet.label[0], 'a', KEEPER_LABEL_MAX);
        put(keeper, "a", "one");
        keeper_free(keeper);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                CLEANUP(fd_closep) int fd = new_raw_client(fixture, 0);
                size_t size = keeper_packet_size(bad[i].packet.count) + bad[i].more;

                assert_int_equal(packet_send(fd, &bad[i].packet, size, some_fds, bad[i].n_fds), 0);
                assert_hung_up(fd);
        }

        keeper = new_client(fixture);
        assert_int_equal(keeper_count(keeper), 1);
        assert_holds(keeper, "a", "one");
        finish(fixture, keeper);
}

static void test_a_client_that_never_reads_cannot_hold_up_the_next_one(void **state)
{
        const struct keeper_packet list = make_packet(KEEPER_LIST, "", 0);
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
        while (packet_send(flood, &list, keeper_packet_size(0), NULL, 0) == 0)
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
                TEST(test_a_batch_is_kept_and_dropped_as_single_ones_are),
                TEST(test_a_batch_that_cannot_be_kept_whole_is_not_kept),
                TEST(test_a_full_keeper_takes_nothing_of_a_batch),
                TEST(test_a_batch_whose_keeper_was_killed_goes_to_the_next_one_with_all_before),
                TEST(test_garbage_ends_the_connection_and_nothing_else),
                TEST(test_a_client_that_never_reads_cannot_hold_up_the_next_one),
        };

        descriptors_make_room(); /* a login has 1024, and thousands are put here */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
