/* SPDX-License-Identifier: Apache-2.0 */
/* The manager vanishes, at any moment, or has gone mad: the guest goes on. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/packet.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/caller.h"
#include "gate/fake-guest.h"

static enum gate_state rejoin(void)
{
        fake_manager_stop();
        fake_manager_restart();
        return fake_manager_wait_for_join().state;
}

FAKE_TEST(test_a_gate_that_was_only_closed_opens_when_the_manager_dies)
{
        struct instance_page *page = fake_guest_start(GIB);
        uint64_t used;

        fake_guest_fill();
        used = page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE];
        fake_guest_close();
        fake_manager_stop();
        fake_guest_check(); /* returns only through an open gate */
        page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] = 0; /* a new manager has a clean page */
        fake_manager_restart();
        check(fake_manager_wait_for_join().state == GATE_STATE_OPEN);
        fake_guest_move();
        fake_guest_check();
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == used);
}

FAKE_TEST(test_after_an_export_the_guest_goes_on_too_when_the_manager_dies)
{
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        check(rejoin() == GATE_STATE_OPEN);
        fake_guest_check();
}

FAKE_TEST(test_a_released_gate_waits_for_the_next_manager)
{
        void *contents;

        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        contents = fake_copy_out();
        fake_guest_command(GATE_RELEASE);
        check(rejoin() == GATE_STATE_RELEASED);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).error == 0); /* as it is; harmless */
        fake_guest_command(GATE_CREATE);
        fake_memory_drop();
        check(rejoin() == GATE_STATE_CREATED); /* mapped, not filled: still not open */
        check(atomic_load(&gate_closed) == 1);
        fake_guest_command(GATE_EXPORT);
        fake_copy_in(contents);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
}

FAKE_TEST(test_a_manager_that_dies_in_the_middle_of_a_map_leaves_nothing_mapped)
{
        struct gate_allocations batch = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_MAP }, .count = 1
        };
        int fd;

        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        batch.allocation[0] = fake_memory.allocation[0];
        check(fake_send(&batch, sizeof(batch), fake_memory.fd, 1) == 0);
        fd = dup(fake_memory.fd[0]);
        check(rejoin() == GATE_STATE_RELEASED);
        close(fd);
        fake_guest_command(GATE_CREATE);
        fake_guest_command(GATE_OPEN);
}

/* The gate thinks so little of a manager that leaves at once that it takes its time, ever more of it. */
FAKE_TEST(test_a_manager_that_hangs_up_at_once_is_not_asked_without_a_pause)
{
        uint64_t start = clock_now(CLOCK_MONOTONIC);

        fake_guest_start(GIB);
        for (int i = 0; i < 4; i++)
                fake_manager_hang_up();
        check(fake_manager_wait_for_join().state == GATE_STATE_OPEN);
        check(clock_now(CLOCK_MONOTONIC) - start >= (50 + 100 + 200) * UINT64_C(1000000));
        fake_guest_fill();
        fake_guest_check();
}

static void send_garbage(const void *bytes, size_t size)
{
        char buffer[PACKET_SIZE_MAX];
        size_t received;
        int r;

        check(fake_send(bytes, size, NULL, 0) == 0);
        r = fake_receive(buffer, &received);
        check(r == -ENODATA || r == -ECONNRESET); /* it hangs up */
        check(rejoin() == GATE_STATE_OPEN);
        fake_guest_check();
}

FAKE_TEST(test_a_manager_that_talks_nonsense_is_left_and_the_guest_goes_on)
{
        struct gate_command command = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, 77 } };
        struct gate_allocations map = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_MAP },
                                        .count = 1000000 };
        char noise[PACKET_SIZE_MAX];

        fake_guest_start(GIB);
        fake_guest_fill();
        memset(noise, 0x5a, sizeof(noise));
        send_garbage("x", 1);
        send_garbage(noise, sizeof(noise));
        send_garbage(&command, sizeof(command));
        command.header.message = GATE_CLOSE; /* too short */
        send_garbage(&command, sizeof(command));
        command.header.version++;
        send_garbage(&command, sizeof(command));
        send_garbage(&map, sizeof(map));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_gate_that_was_only_closed_opens_when_the_manager_dies),
                cmocka_unit_test(test_after_an_export_the_guest_goes_on_too_when_the_manager_dies),
                cmocka_unit_test(test_a_released_gate_waits_for_the_next_manager),
                cmocka_unit_test(
                        test_a_manager_that_dies_in_the_middle_of_a_map_leaves_nothing_mapped),
                cmocka_unit_test(test_a_manager_that_hangs_up_at_once_is_not_asked_without_a_pause),
                cmocka_unit_test(test_a_manager_that_talks_nonsense_is_left_and_the_guest_goes_on),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
