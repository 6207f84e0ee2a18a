/* SPDX-License-Identifier: Apache-2.0 */
/* When a gate may tell that a thread waits at it: once for each time that it was closed. */
#include <errno.h>
#include <stdlib.h>

#include "base/test.h"
#include "manager/guests/gate-link.h"
#include "manager/guests/guest-request.h"
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

int __wrap_gate_link_send(struct gate_link *link, const void *message, size_t size, const int *fds,
                          size_t n_fds);
int __wrap_gate_link_send(struct gate_link *link, const void *message, size_t size, const int *fds,
                          size_t n_fds)
{
        (void)link, (void)message, (void)size, (void)fds, (void)n_fds;
        return 0;
}

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        fixture->instance.manager = &fixture->manager;
        fixture->guest.instance = &fixture->instance;
        fixture->guest.gate = &fixture->link;
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_once_for_each_time_that_it_was_closed, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_also_after_a_step_that_failed, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_not_for_a_gate_that_could_not_be_closed,
                                                set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
