/* SPDX-License-Identifier: Apache-2.0 */
/* What a gate is sent, and what its user is charged for it meanwhile. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/test.h"
#include "manager/guests/gate-link.h"
#include "manager/guests/guest-request.h"
#include "manager/model/account.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
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

/* Of a driver that has not said what it sees. */
static uint32_t count_believed(uint16_t version, uint32_t n_parts, uint32_t n_named)
{
        if (version >= GATE_WIRE_SEEN)
                return n_parts;
        return version >= GATE_WIRE_HIDDEN && n_parts > 1 ? n_named : 0;
}

/* A host of four devices; the vGPU has the third and the first, unless @n_parts is 1. */
static uint32_t welcome(struct fixture *fixture, uint16_t version, size_t n_parts,
                        struct gate_welcome *ret_welcome)
{
        static struct device devices[4];
        static struct instance instance;
        struct guest guest = { .instance = &instance, .gate = &fixture->link };
        char buffer[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;
        uint32_t n_believed;

        for (uint32_t i = 0; i < 4; i++) {
                devices[i] = (struct device){ .index = i, .meter.is_lost = i == 1 };
                snprintf(devices[i].uuid, sizeof(devices[i].uuid), "GPU-%u", i);
        }
        fixture->manager.device = devices;
        fixture->manager.n_devices = 4;
        fixture->link.version = version;
        instance = (struct instance){ .manager = &fixture->manager, .n_parts = n_parts };
        for (size_t i = 0; i < n_parts; i++) {
                instance.part[i].device = &devices[i == 0 ? 2 : 0];
                instance.part[i].page.fd = fixture->gate;
        }
        assert_int_equal(guest_welcome(&guest), 0);
        assert_int_equal(packet_receive(fixture->gate, buffer, &size, fds, &n_fds), 0);
        assert_int_equal(n_fds, n_parts);
        for (size_t i = 0; i < n_fds; i++)
                close(fds[i]);
        memcpy(ret_welcome, buffer, size);
        assert_int_equal(ret_welcome->n_devices, n_parts);
        assert_int_equal(size, gate_welcome_size(gate_welcome_count(size)));
        n_believed = count_believed(version, (uint32_t)n_parts, gate_welcome_count(size));
        for (uint32_t i = 0; i < gate_welcome_count(size); i++)
                assert_int_equal(guest.seen[i],
                                 i < n_believed ? gate_mark(ret_welcome->device_uuid[i]) : 0);
        return gate_welcome_count(size);
}

/* One that is lost might keep a driver from starting. */
static void test_a_gate_is_told_of_all_devices_but_those_that_are_lost(void **state)
{
        struct gate_welcome answer;

        assert_int_equal(welcome(*state, GATE_WIRE_VERSION, 2, &answer), 3);
        assert_string_equal(answer.device_uuid[0], "GPU-2");
        assert_string_equal(answer.device_uuid[1], "GPU-0");
        assert_string_equal(answer.device_uuid[2], "GPU-3");
}

static void test_a_gate_in_a_vgpu_of_one_device_is_told_of_all_as_well(void **state)
{
        struct gate_welcome answer;

        assert_int_equal(welcome(*state, GATE_WIRE_VERSION, 1, &answer), 3);
        assert_string_equal(answer.device_uuid[0], "GPU-2");
        assert_string_equal(answer.device_uuid[1], "GPU-0");
        assert_string_equal(answer.device_uuid[2], "GPU-3");
}

static void test_older_gates_are_told_what_they_were_told(void **state)
{
        struct gate_welcome answer;

        assert_int_equal(welcome(*state, GATE_WIRE_HIDDEN - 1, 2, &answer), 2);
        assert_int_equal(welcome(*state, GATE_WIRE_HIDDEN, 2, &answer), 3);
        assert_int_equal(welcome(*state, GATE_WIRE_HIDDEN, 1, &answer), 1);
        assert_string_equal(answer.device_uuid[0], "GPU-2");
}

static int tell_seen(struct guest *guest, const char *uuid, size_t size, size_t n_fds)
{
        struct gate_seen seen = { { GATE_WIRE_MAGIC, guest->gate->version, GATE_SEEN },
                                  { gate_mark(uuid) } };
        int fds[1] = { -1 };

        return guest_receive(guest, &seen, size, fds, n_fds);
}

static void test_what_a_driver_has_seen_is_what_its_gate_said_last(void **state)
{
        struct fixture *fixture = *state;
        struct guest guest = { .gate = &fixture->link };
        const size_t size = sizeof(struct gate_seen);

        assert_int_equal(tell_seen(&guest, "GPU-0", size, 0), 0);
        assert_int_equal(guest.seen[0], gate_mark("GPU-0"));
        assert_int_equal(tell_seen(&guest, "GPU-1", size, 0), 0);
        assert_int_equal(guest.seen[0], gate_mark("GPU-1"));
        assert_int_equal(guest.seen[1], 0);
        for (size_t wrong = sizeof(struct gate_header); wrong < size; wrong += 4)
                assert_int_equal(tell_seen(&guest, "GPU-0", wrong, 0), -EPROTO);
        assert_int_equal(tell_seen(&guest, "GPU-0", size, 1), -EPROTO);
        fixture->link.version = GATE_WIRE_HIDDEN;
        assert_int_equal(tell_seen(&guest, "GPU-0", size, 0), -EPROTO);
        assert_int_equal(guest.seen[0], gate_mark("GPU-1"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_descriptors_count_until_they_are_received,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_gate_is_told_of_all_devices_but_those_that_are_lost, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_gate_in_a_vgpu_of_one_device_is_told_of_all_as_well, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(test_older_gates_are_told_what_they_were_told,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_what_a_driver_has_seen_is_what_its_gate_said_last, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_gate_that_reads_what_it_is_sent_owes_nothing,
                                                set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
