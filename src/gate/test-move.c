/* SPDX-License-Identifier: Apache-2.0 */
/* Handing memory away and getting it back, as the manager asks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"

FAKE_TEST(test_contents_and_addresses_survive_moves)
{
        fake_guest_start(GIB);
        fake_guest_fill();
        for (int round = 0; round < 3; round++) {
                fake_guest_move();
                fake_guest_check();
        }
        fake_guest_free();
}

FAKE_TEST(test_released_memory_is_free_for_others)
{
        size_t before, during, total;

        fake_guest_start(GIB);
        check(DRIVER(cuMemGetInfo_v2)(&before, &total) == CUDA_SUCCESS);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_memory_drop();
        fake_guest_command(GATE_RELEASE);
        check(DRIVER(cuMemGetInfo_v2)(&during, &total) == CUDA_SUCCESS);
        check(during == before);
}

FAKE_TEST(test_what_closed_says_is_what_export_gives)
{
        struct instance_page *page = fake_guest_start(GIB);
        struct gate_closed closed;
        struct gate_result exported;
        uint64_t sum = 0;

        fake_guest_fill();
        closed = fake_close(FAKE_GUEST_TIMEOUT_MS);
        exported = fake_command(GATE_EXPORT);
        for (size_t i = 0; i < fake_memory.n; i++)
                sum += fake_memory.allocation[i].size;
        check(closed.n_allocations == fake_memory.n);
        check(closed.movable_bytes == sum && exported.bytes == sum);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == sum);
        fake_guest_command(GATE_OPEN);
}

FAKE_TEST(test_many_allocations_travel_in_batches)
{
        static CUdeviceptr pointer[140];
        unsigned char value;

        fake_guest_start(GIB);
        for (int i = 0; i < 140; i++) {
                check(cuMemAlloc_v2(&pointer[i], 2 * MIB) == CUDA_SUCCESS);
                check(cuMemsetD8_v2(pointer[i], (unsigned char)i, 2 * MIB) == CUDA_SUCCESS);
        }
        fake_guest_move();
        for (int i = 0; i < 140; i++) {
                check(cuMemcpyDtoH_v2(&value, pointer[i] + MIB, 1) == CUDA_SUCCESS);
                check(value == (unsigned char)i);
        }
}

FAKE_TEST(test_a_release_can_be_undone_with_the_descriptors_and_the_memory_moved_again)
{
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        check(fake_map().error == 0);
        fake_guest_command(GATE_OPEN);
        fake_memory_drop();
        fake_guest_check();
        fake_guest_move(); /* imported handles cannot be exported: their descriptors are */
        fake_guest_check();
}

/* What fails is undone: with @failures, @command answers an error and the guest's memory is whole. */
static void fail_once(const char *failures, enum gate_message command, const char *call)
{
        struct gate_result result;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", failures, 1) == 0);
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        result = fake_command(command);
        check(result.error == EIO);
        check(strcmp(result.call, call) == 0);
        check(result.driver_code == 999);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
        fake_guest_move();
        fake_guest_check();
}

FAKE_TEST(test_an_export_that_fails_changes_nothing)
{
        fail_once("cuMemExportToShareableHandle@30=999", GATE_EXPORT,
                  "cuMemExportToShareableHandle");
}

FAKE_TEST(test_a_release_that_fails_half_way_is_undone)
{
        fail_once("cuMemUnmap@10=999", GATE_RELEASE, "cuMemUnmap");
}

FAKE_TEST(test_a_create_that_fails_half_way_can_be_tried_again)
{
        struct gate_result result;
        void *contents;

        check(setenv("OPENVGPU_FAULT", "gate-create=fail@7", 1) == 0);
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        contents = fake_copy_out();
        fake_guest_command(GATE_RELEASE);
        result = fake_command(GATE_CREATE);
        check(result.error == EIO);
        check(fake_command(GATE_OPEN).error == EBUSY);
        fake_guest_command(GATE_CREATE);
        fake_copy_in(contents);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
}

FAKE_TEST(test_a_map_that_does_not_fit_is_undone_and_can_be_tried_again)
{
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        fake_memory.allocation[5].size += 2 * MIB;
        check(fake_map().error == EINVAL);
        fake_memory.allocation[5].size -= 2 * MIB;
        fake_memory.n--; /* not all */
        check(fake_map().error == EINVAL);
        fake_memory.n++;
        check(fake_map().error == 0);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
}

FAKE_TEST(test_steps_out_of_order_are_refused_and_change_nothing)
{
        fake_guest_start(GIB);
        fake_guest_fill();
        check(fake_command(GATE_EXPORT).error == EBUSY);
        check(fake_command(GATE_RELEASE).error == EBUSY);
        check(fake_command(GATE_CREATE).error == EBUSY);
        check(fake_command(GATE_OPEN).error == 0);
        fake_guest_close();
        fake_guest_close();
        check(fake_command(GATE_CREATE).error == EBUSY);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_contents_and_addresses_survive_moves),
                cmocka_unit_test(test_released_memory_is_free_for_others),
                cmocka_unit_test(test_what_closed_says_is_what_export_gives),
                cmocka_unit_test(test_many_allocations_travel_in_batches),
                cmocka_unit_test(
                        test_a_release_can_be_undone_with_the_descriptors_and_the_memory_moved_again),
                cmocka_unit_test(test_an_export_that_fails_changes_nothing),
                cmocka_unit_test(test_a_release_that_fails_half_way_is_undone),
                cmocka_unit_test(test_a_create_that_fails_half_way_can_be_tried_again),
                cmocka_unit_test(test_a_map_that_does_not_fit_is_undone_and_can_be_tried_again),
                cmocka_unit_test(test_steps_out_of_order_are_refused_and_change_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
