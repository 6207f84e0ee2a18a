/* SPDX-License-Identifier: Apache-2.0 */
/* What a gate is sent, and what its user is charged for it meanwhile. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/test.h"
#include "manager/guests/gate-link.h"
#include "manager/model/account.h"
#include "manager/model/manager.h"
#include "manager/socket/unread.h"
#include "wire/gate.h"

#define USER     4711
#define MESSAGES 100

struct fixture {
        struct manager manager;
        struct gate_link link;
        int gate;
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct account_cost plenty = { { [ACCOUNT_DESCRIPTORS] = 1000 } };
        int ends[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        fixture->link.manager = &fixture->manager;
        fixture->link.fd = ends[0];
        fixture->link.payer = USER;
        fixture->link.version = GATE_WIRE_VERSION;
        fixture->gate = ends[1];
        *state = fixture;
        return accounts_new(&fixture->manager.accounts, &plenty) < 0 ||
               unread_new(&fixture->manager.unread, NULL, fixture->manager.accounts) < 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        account_end(&fixture->link.charge);
        fixture->manager.unread = unread_free(fixture->manager.unread);
        accounts_free(fixture->manager.accounts);
        close(fixture->link.fd);
        close(fixture->gate);
        free(fixture);
        return 0;
}

static uint64_t get_charged(const struct fixture *fixture)
{
        uint64_t limit;

        return accounts_get_all(fixture->manager.accounts, ACCOUNT_DESCRIPTORS, &limit);
}

static void send_one(struct fixture *fixture)
{
        struct gate_header message = { .magic = GATE_WIRE_MAGIC, .message = GATE_IMPORTED };

        assert_int_equal(
                gate_link_send(&fixture->link, &message, sizeof(message), &fixture->gate, 1), 0);
}

static void receive_one(struct fixture *fixture)
{
        char buffer[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;

        assert_int_equal(packet_receive(fixture->gate, buffer, &size, fds, &n_fds), 0);
        assert_int_equal(n_fds, 1);
        close(fds[0]);
}

static void test_descriptors_count_until_they_are_received(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 1; i <= 10; i++) {
                send_one(fixture);
                assert_int_equal(get_charged(fixture), i);
        }
        for (size_t i = 0; i < 10; i++)
                receive_one(fixture);
        send_one(fixture);
        assert_int_equal(get_charged(fixture), 1);
}

/* Each answer has been read when the next one is sent, and none right when it was. */
static void test_a_gate_that_reads_what_it_is_sent_owes_nothing(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < MESSAGES; i++) {
                send_one(fixture);
                receive_one(fixture);
        }
        assert_true(get_charged(fixture) <= 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_descriptors_count_until_they_are_received,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_gate_that_reads_what_it_is_sent_owes_nothing,
                                                set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
