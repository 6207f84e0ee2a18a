/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "gate/box.h"
#include "gate/child.h"

#define NUMBER 7

static const struct gate_process maker = { .slot = 3, .mark = GATE_TICKET_MARK };

static const uint8_t *name_of(int i)
{
        static uint8_t name[GATE_NAME_SIZE];

        memset(name, i + 1, sizeof(name));
        return name;
}

static struct gate_ticket ticket_of(int i)
{
        struct gate_ticket ticket = { .process = maker };

        memcpy(ticket.name, name_of(i), sizeof(ticket.name));
        return ticket;
}

/* This process is both the maker and the user. */
static void open_boxes(void)
{
        struct gate_box message = { .number = NUMBER, .role = GATE_BOX_MAKER };
        int ends[2], fds[2];

        assert_int_equal(
                socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &(int){ 4608 }, sizeof(int)),
                         0);
        fds[0] = dup(ends[0]);
        fds[1] = ends[1];
        assert_int_equal(box_open(&message, fds), 0);
        assert_true(fds[0] == -1 && fds[1] == -1);
        message = (struct gate_box){ .number = NUMBER + 1, .role = GATE_BOX_USER, .maker = maker };
        assert_int_equal(box_open(&message, ends), 0);
}

static int count_open(void)
{
        int n = 0;

        for (int fd = 0; fd < 1024; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

/* A piece is a file of i bytes. */
static void put(int i)
{
        CLEANUP(fd_closep) int fd = memfd_create("piece", MFD_CLOEXEC);

        assert_int_equal(ftruncate(fd, i), 0);
        box_put(name_of(i), fd);
}

static bool lies_there(int i)
{
        const struct gate_ticket ticket = ticket_of(i);
        CLEANUP(fd_closep) int fd = box_take(&ticket);
        struct stat status;

        if (fd < 0)
                return false;
        assert_int_equal(fstat(fd, &status), 0);
        assert_int_equal(status.st_size, i);
        return true;
}

static void test_what_is_put_in_can_be_taken_once(void **state)
{
        int n = count_open();

        (void)state;
        assert_false(box_is_any());
        assert_false(lies_there(1));
        open_boxes();
        assert_true(box_is_any());
        for (int i = 1; i <= 5; i++)
                put(i);
        assert_true(lies_there(1));
        assert_false(lies_there(1)); /* and all that lay behind it is dropped */
        assert_false(lies_there(2));
        for (int i = 1; i <= 5; i++)
                put(i);
        assert_true(lies_there(2));
        assert_true(lies_there(5));
        box_close_all();
        assert_false(box_is_any());
        assert_int_equal(count_open(), n);
}

static void test_another_process_has_another_box(void **state)
{
        struct gate_ticket ticket = ticket_of(1);

        (void)state;
        open_boxes();
        put(1);
        ticket.process.slot++;
        assert_int_equal(box_take(&ticket), -1);
        assert_true(lies_there(1));
        box_close_all();
}

static void test_the_oldest_make_room(void **state)
{
        int n = count_open(), full = 0, fd;

        (void)state;
        open_boxes();
        fd = memfd_create("piece", MFD_CLOEXEC);
        while (box_fill(NUMBER, name_of(full), fd))
                assert_true(++full < 32);
        assert_true(full >= 8);
        fd_close(fd);
        box_empty();
        for (int i = 1; i <= 40; i++)
                put(i);
        assert_false(lies_there(1));
        for (int i = 1; i <= 40; i++)
                put(i);
        assert_true(lies_there(40 - full + 1));
        assert_true(lies_there(40));
        assert_false(box_fill(NUMBER + 1, name_of(1), 0)); /* it is not ours to fill */
        box_close(NUMBER);
        assert_false(box_is_any());
        box_close(NUMBER + 1);
        assert_int_equal(count_open(), n);
}

static void test_what_is_freed_is_taken_out_and_the_rest_stays(void **state)
{
        (void)state;
        open_boxes();
        for (int i = 1; i <= 4; i++)
                put(i);
        box_remove(name_of(2));
        assert_true(lies_there(1));
        assert_true(lies_there(3));
        assert_true(lies_there(4));
        for (int i = 1; i <= 4; i++)
                put(i);
        box_empty();
        assert_false(lies_there(4));
        put(4);
        box_close(NUMBER); /* with all that lies in it, also for who has the other end */
        assert_false(lies_there(4));
        box_close_all();
}

static void test_what_is_no_piece_is_not_believed(void **state)
{
        struct gate_box message = { .number = NUMBER, .role = GATE_BOX_USER, .maker = maker };
        int ends[2], fd = memfd_create("piece", MFD_CLOEXEC), n = count_open();

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
        assert_int_equal(box_open(&message, ends), 0);
        assert_true(send(ends[1], "x", 1, 0) == 1);
        assert_true(send(ends[1], name_of(1), GATE_NAME_SIZE, 0) == GATE_NAME_SIZE);
        assert_false(lies_there(1));
        assert_false(lies_there(1));
        box_close_all();
        fd_close(ends[1]);
        ends[0] = fd; /* no socket */
        assert_true(box_open(&message, ends) < 0);
        assert_int_equal(count_open(), n);
        fd_close(fd);
}

/* The end to take out is one file for both, so each says for both whether that waits. */
static void test_the_other_process_makes_nobody_wait(void **state)
{
        struct gate_box message = { .number = NUMBER, .role = GATE_BOX_MAKER };
        int ends[2], theirs;

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
        theirs = dup(ends[0]);
        assert_int_equal(box_open(&message, ends), 0);
        assert_int_equal(fcntl(theirs, F_SETFL, 0), 0);
        put(1);
        (void)alarm(10); /* else it ends never */
        box_remove(name_of(2));
        box_empty();
        box_close_all();
        (void)alarm(0);
        fd_close(theirs);
}

/* A program closes what it does not know, and gets the number for a file of its own. */
static void test_the_programs_own_files_are_left_alone(void **state)
{
        int other[2], n = count_open();
        char text[8];

        (void)state;
        open_boxes();
        put(1);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, other), 0);
        assert_true(send(other[1], "mine", 4, 0) == 4);
        for (int fd = 3; fd < other[0]; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        assert_true(dup2(other[0], fd) == fd);
        assert_false(lies_there(1));
        put(2);
        box_empty();
        box_close_all();
        assert_true(recv(other[0], text, sizeof(text), 0) == 4);
        assert_true(count_open() >= n + 2);
        for (int fd = 3; fd < 1024; fd++)
                (void)close(fd);
}

static void test_the_child_of_a_fork_has_none(void **state)
{
        int n = count_open(), status;
        pid_t pid;

        (void)state;
        open_boxes();
        put(1);
        pid = fork();
        if (pid == 0) {
                box_forget();
                _exit(box_is_any() || lies_there(1) || count_open() != n);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_true(lies_there(1));
        box_close_all();
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_put_in_can_be_taken_once),
                cmocka_unit_test(test_another_process_has_another_box),
                cmocka_unit_test(test_the_oldest_make_room),
                cmocka_unit_test(test_what_is_freed_is_taken_out_and_the_rest_stays),
                cmocka_unit_test(test_what_is_no_piece_is_not_believed),
                cmocka_unit_test(test_the_other_process_makes_nobody_wait),
                cmocka_unit_test(test_the_child_of_a_fork_has_none),
                cmocka_unit_test(test_the_programs_own_files_are_left_alone),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
