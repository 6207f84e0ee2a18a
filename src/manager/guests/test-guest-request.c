/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a gate may tell that a thread waits at it: once for each time that it was closed. How long one that is stopped is
 * waited for. And how many descriptors it gets at once.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "manager/guests/gate-link.h"
#include "manager/guests/guest-request.h"
#include "manager/guests/guest-watch.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "wire/gate.h"

#define TIMEOUT_MS 10000

struct fixture {
        struct manager manager;
        struct instance instance;
        struct gate_link link;
        struct guest guest;
};

static size_t n_maps, n_most; /* MAP messages, and the most descriptors in one */

int __wrap_gate_link_send(struct gate_link *link, const void *message, size_t size, const int *fds,
                          size_t n_fds);
int __wrap_gate_link_send(struct gate_link *link, const void *message, size_t size, const int *fds,
                          size_t n_fds)
{
        const struct gate_header *header = message;

        (void)link, (void)size, (void)fds;
        if (header->message == GATE_MAP) {
                n_maps++;
                n_most = n_fds > n_most ? n_fds : n_most;
        }
        return 0;
}

static size_t n_cut_off;

struct gate_link *__wrap_gate_link_free(struct gate_link *link);
struct gate_link *__wrap_gate_link_free(struct gate_link *link)
{
        n_cut_off += link != NULL;
        return NULL;
}

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        fixture->instance.manager = &fixture->manager;
        fixture->guest.instance = &fixture->instance;
        fixture->guest.gate = &fixture->link;
        list_init(&fixture->guest.share.questions);
        *state = fixture;
        return sd_event_new(&fixture->manager.event) < 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        sd_event_unref(fixture->manager.event);
        free(fixture);
        return 0;
}

static void on_done(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        (void)guest, (void)answer, (void)userdata;
}

static int closed(struct fixture *fixture, int error)
{
        const struct gate_closed message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_CLOSED },
                .error = error,
        };

        return guest_receive(&fixture->guest, &message, sizeof(message), NULL, 0);
}

static void close_gate(struct fixture *fixture)
{
        guest_request(&fixture->guest, GATE_CLOSE, TIMEOUT_MS, on_done, NULL);
        assert_int_equal(closed(fixture, 0), 0);
}

static void open_gate(struct fixture *fixture)
{
        const struct gate_result message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_OPENED },
        };

        guest_request(&fixture->guest, GATE_OPEN, TIMEOUT_MS, on_done, NULL);
        assert_int_equal(guest_receive(&fixture->guest, &message, sizeof(message), NULL, 0), 0);
}

static int waiting(struct fixture *fixture)
{
        const struct gate_waiting message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_WAITING },
        };

        return guest_receive(&fixture->guest, &message, sizeof(message), NULL, 0);
}

static void test_once_for_each_time_that_it_was_closed(void **state)
{
        struct fixture *fixture = *state;

        guest_watch_demand(&fixture->guest, true);
        assert_int_equal(waiting(fixture), -EPROTO); /* it is open */
        for (int i = 0; i < 2; i++) {
                close_gate(fixture);
                assert_int_equal(waiting(fixture), 0);
                assert_int_equal(waiting(fixture), -EPROTO);
                open_gate(fixture);
        }
}

static int map_error = 1;

static void note_map(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        (void)guest, (void)userdata;
        map_error = answer->error;
}

static void answer_map(struct fixture *fixture, int error)
{
        const struct gate_result message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_MAPPED },
                .error = error,
        };

        n_maps = n_most = 0;
        assert_int_equal(guest_receive(&fixture->guest, &message, sizeof(message), NULL, 0), 0);
}

static void test_who_may_have_few_descriptors_gets_fewer_at_once(void **state)
{
        struct guest_memory memory[200] = { 0 };
        struct fixture *fixture = *state;

        fixture->guest.memory = memory;
        fixture->guest.n_memory = 200;
        n_maps = n_most = 0;
        guest_request(&fixture->guest, GATE_MAP, TIMEOUT_MS, note_map, NULL);
        assert_int_equal(n_maps, 4);
        for (size_t width = 32; width > 0; width /= 2) {
                answer_map(fixture, EMFILE);
                assert_int_equal(n_most, width);
                assert_int_equal(n_maps, (200 + width - 1) / width);
                assert_int_equal(map_error, 1);
        }
        answer_map(fixture, EMFILE); /* of one */
        assert_int_equal(n_maps, 0);
        assert_int_equal(map_error, -EMFILE);
        fixture->guest.memory = NULL;
        fixture->guest.n_memory = 0;
}

static void test_also_after_a_step_that_failed(void **state)
{
        struct fixture *fixture = *state;

        guest_watch_demand(&fixture->guest, true);
        close_gate(fixture);
        assert_int_equal(waiting(fixture), 0);
        guest_request_step(&fixture->guest, 1, 10, TIMEOUT_MS, on_done, NULL);
        assert_int_equal(closed(fixture, ETIMEDOUT), 0);
        close_gate(fixture);
        assert_int_equal(waiting(fixture), 0);
        assert_int_equal(waiting(fixture), -EPROTO);
}

/* It may tell no more often for that. */
static void test_not_for_a_gate_that_could_not_be_closed(void **state)
{
        struct fixture *fixture = *state;

        guest_watch_demand(&fixture->guest, true);
        for (int i = 0; i < 3; i++) {
                guest_request(&fixture->guest, GATE_CLOSE, TIMEOUT_MS, on_done, NULL);
                assert_int_equal(closed(fixture, ETIMEDOUT), 0);
        }
        close_gate(fixture);
        assert_int_equal(waiting(fixture), 0);
        assert_int_equal(waiting(fixture), -EPROTO);
}

/* A process that is stopped. */

static pid_t start_stopped(void)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void)raise(SIGSTOP);
                for (;;)
                        pause();
        }
        assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
        return pid;
}

static void note_error(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        (void)guest;
        *(int *)userdata = answer->error;
}

/* What comes of a request to one that is stopped, after @ms at most; 1: nothing. */
static int ask_stopped(struct fixture *fixture, enum gate_message message, uint64_t ms)
{
        uint64_t end = clock_now(CLOCK_MONOTONIC) + ms * 1000000;
        static int error; /* it may be told later */

        fixture->guest.pid = start_stopped();
        assert_true((fixture->guest.pidfd = (int)syscall(SYS_pidfd_open, fixture->guest.pid, 0)) >=
                    0);
        n_cut_off = 0;
        error = 1;
        guest_request(&fixture->guest, message, TIMEOUT_MS, note_error, &error);
        while (error == 1 && clock_now(CLOCK_MONOTONIC) < end)
                assert_true(sd_event_run(fixture->manager.event, 10000) >= 0);
        kill(fixture->guest.pid, SIGKILL);
        waitpid(fixture->guest.pid, NULL, 0);
        close(fixture->guest.pidfd);
        return error;
}

static void test_who_is_stopped_is_cut_off_where_the_operation_gives_it_up(void **state)
{
        struct fixture *fixture = *state;

        fixture->instance.course.gives_up_stopped = true;
        fixture->guest.state = GATE_STATE_CLOSED;
        assert_int_equal(ask_stopped(fixture, GATE_CLOSE, TIMEOUT_MS / 2), -ETIMEDOUT);
        assert_int_equal(n_cut_off, 1); /* so nothing of what it answers later is heard */
        assert_null(fixture->guest.gate);
        assert_int_equal(fixture->guest.state, GATE_STATE_OPEN);
}

static void test_who_has_let_its_memory_go_keeps_its_state(void **state)
{
        struct fixture *fixture = *state;

        fixture->instance.course.gives_up_stopped = true;
        fixture->guest.state = GATE_STATE_CLOSED;
        assert_int_equal(ask_stopped(fixture, GATE_RELEASE, TIMEOUT_MS / 2), -ETIMEDOUT);
        assert_int_equal(fixture->guest.state, GATE_STATE_CLOSED);
        assert_int_equal(ask_stopped(fixture, 0, TIMEOUT_MS / 2),
                         -ENOTCONN); /* nor is it waited for */
}

static void test_who_is_stopped_has_its_time_elsewhere(void **state)
{
        struct fixture *fixture = *state;
        int error = ask_stopped(fixture, GATE_CLOSE, 300);

        assert_int_equal(error, 1);
        assert_int_equal(n_cut_off, 0);
        assert_int_equal(closed(fixture, 0), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_once_for_each_time_that_it_was_closed, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_also_after_a_step_that_failed, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_who_may_have_few_descriptors_gets_fewer_at_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_not_for_a_gate_that_could_not_be_closed,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_who_is_stopped_is_cut_off_where_the_operation_gives_it_up, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_who_has_let_its_memory_go_keeps_its_state,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_who_is_stopped_has_its_time_elsewhere, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
