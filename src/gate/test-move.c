/* SPDX-License-Identifier: Apache-2.0 */
/* Closing, handing memory away and getting it back, as the manager asks; and when it all goes wrong. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/caller.h"
#include "gate/entry.h"
#include "gate/fake-manager.h"
#include "tests/guests/kernels.h"

#define TIMEOUT_MS 10000

static CUfunction function(const char *name)
{
        CUfunction function;
        CUmodule module;

        check(cuModuleLoadData(&module, kernels) == CUDA_SUCCESS);
        check(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
        return function;
}

static struct instance_page *start(void)
{
        struct instance_page *page;

        fake_host("1xH200:2G");
        page = fake_manager_start(GIB);
        fake_context();
        return page;
}

/* The guest's memory: large and small pieces, each filled with its own number. */
#define PIECES 60
static struct piece {
        CUdeviceptr pointer;
        size_t size;
} pieces[PIECES];

static void fill_memory(void)
{
        for (int i = 0; i < PIECES; i++) {
                pieces[i].size = i % 3 ? (size_t)(i * 1000 + 1) : MIB * (size_t)(1 + i % 5) + 77;
                check(cuMemAlloc_v2(&pieces[i].pointer, pieces[i].size) == CUDA_SUCCESS);
                check(cuMemsetD8_v2(pieces[i].pointer, (unsigned char)(i + 1), pieces[i].size) ==
                      CUDA_SUCCESS);
        }
}

static void check_memory(void)
{
        unsigned char *contents = malloc(8 * MIB);

        check(contents);
        for (int i = 0; i < PIECES; i++) {
                check(cuMemcpyDtoH_v2(contents, pieces[i].pointer, pieces[i].size) == CUDA_SUCCESS);
                for (size_t byte = 0; byte < pieces[i].size; byte++)
                        check(contents[byte] == i + 1);
        }
        free(contents);
}

static void close_and_expect_success(void)
{
        struct gate_closed closed = fake_close(TIMEOUT_MS);

        if (closed.error)
                fprintf(stderr, "close: %d %s %d\n", closed.error, closed.call, closed.driver_code);
        check(closed.error == 0);
}

static void command_and_expect_success(enum gate_message command)
{
        struct gate_result result = fake_command(command);

        if (result.error)
                fprintf(stderr, "%d: %d %s %d\n", command, result.error, result.call,
                        result.driver_code);
        check(result.error == 0);
}

static void move_out_and_in(void)
{
        void *contents;

        close_and_expect_success();
        command_and_expect_success(GATE_EXPORT);
        contents = fake_copy_out();
        command_and_expect_success(GATE_RELEASE);
        command_and_expect_success(GATE_CREATE);
        fake_copy_in(contents);
        free(contents);
        command_and_expect_success(GATE_OPEN);
}

FAKE_TEST(test_contents_and_addresses_survive_moves)
{
        start();
        fill_memory();
        for (int round = 0; round < 3; round++) {
                move_out_and_in();
                check_memory();
        }
        for (int i = 0; i < PIECES; i++)
                check(cuMemFree_v2(pieces[i].pointer) == CUDA_SUCCESS);
}

FAKE_TEST(test_released_memory_is_free_for_others)
{
        size_t before, during, total;

        start();
        check(DRIVER(cuMemGetInfo_v2)(&before, &total) == CUDA_SUCCESS);
        fill_memory();
        close_and_expect_success();
        command_and_expect_success(GATE_EXPORT);
        fake_memory_drop();
        command_and_expect_success(GATE_RELEASE);
        check(DRIVER(cuMemGetInfo_v2)(&during, &total) == CUDA_SUCCESS);
        check(during == before);
}

FAKE_TEST(test_what_closed_says_is_what_export_gives)
{
        struct instance_page *page = start();
        struct gate_closed closed;
        struct gate_result exported;
        uint64_t sum = 0;

        fill_memory();
        closed = fake_close(TIMEOUT_MS);
        exported = fake_command(GATE_EXPORT);
        for (size_t i = 0; i < fake_memory.n; i++)
                sum += fake_memory.allocation[i].size;
        check(closed.n_allocations == fake_memory.n);
        check(closed.movable_bytes == sum && exported.bytes == sum);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == sum);
        command_and_expect_success(GATE_OPEN);
}

FAKE_TEST(test_many_allocations_travel_in_batches)
{
        static CUdeviceptr pointer[140];
        unsigned char value;

        start();
        for (int i = 0; i < 140; i++) {
                check(cuMemAlloc_v2(&pointer[i], 2 * MIB) == CUDA_SUCCESS);
                check(cuMemsetD8_v2(pointer[i], (unsigned char)i, 2 * MIB) == CUDA_SUCCESS);
        }
        move_out_and_in();
        for (int i = 0; i < 140; i++) {
                check(cuMemcpyDtoH_v2(&value, pointer[i] + MIB, 1) == CUDA_SUCCESS);
                check(value == (unsigned char)i);
        }
}

FAKE_TEST(test_a_release_can_be_undone_with_the_descriptors_and_the_memory_moved_again)
{
        start();
        fill_memory();
        close_and_expect_success();
        command_and_expect_success(GATE_EXPORT);
        command_and_expect_success(GATE_RELEASE);
        check(fake_map().error == 0);
        command_and_expect_success(GATE_OPEN);
        fake_memory_drop();
        check_memory();
        move_out_and_in(); /* imported handles cannot be exported: their descriptors are */
        check_memory();
}

/* Threads that never stop calling. */

static _Atomic bool is_over;
static _Atomic uint64_t n_calls, n_launches_made;

static void set_context(void)
{
        CUcontext context;

        check(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

static void *call_for_ever(void *argument)
{
        CUcontext context;

        (void)argument;
        set_context();
        while (!is_over) {
                check(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
                n_calls++;
        }
        return NULL;
}

static void *launch_for_ever(void *argument)
{
        CUfunction add = argument;
        CUdeviceptr words;
        uint32_t value = 1, result;
        uint64_t n = 256;
        void *parameters[] = { &words, &value, &n };
        uint32_t n_launched = 0;

        set_context();
        check(cuMemAlloc_v2(&words, 4 * n) == CUDA_SUCCESS);
        check(cuMemsetD32_v2(words, 0, n) == CUDA_SUCCESS);
        while (!is_over) {
                check(cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL) ==
                      CUDA_SUCCESS);
                if (++n_launched % 16 == 0)
                        check(cuCtxSynchronize() == CUDA_SUCCESS);
                n_calls++;
        }
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(cuMemcpyDtoH_v2(&result, words, 4) == CUDA_SUCCESS);
        check(result == n_launched); /* none lost, none twice */
        n_launches_made += n_launched;
        return NULL;
}

static void *allocate_for_ever(void *argument)
{
        CUdeviceptr pointer;
        unsigned char value;

        (void)argument;
        set_context();
        for (unsigned int i = 0; !is_over; i++) {
                size_t size = i % 2 ? 1000 : 3 * MIB;

                check(cuMemAlloc_v2(&pointer, size) == CUDA_SUCCESS);
                check(cuMemsetD8_v2(pointer, (unsigned char)i, size) == CUDA_SUCCESS);
                check(cuMemcpyDtoH_v2(&value, pointer + size - 1, 1) == CUDA_SUCCESS);
                check(value == (unsigned char)i);
                check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
                n_calls++;
        }
        return NULL;
}

static void wait_for_calls(uint64_t n)
{
        uint64_t target = n_calls + n;

        while (n_calls < target)
                usleep(100);
}

FAKE_TEST(test_no_call_starts_after_closed_and_all_go_on_after_open)
{
        struct instance_page *page = start();
        CUfunction add = function("add");
        pthread_t thread[6];
        uint32_t entry;

        for (int i = 0; i < 6; i++)
                check(pthread_create(&thread[i], NULL,
                                     i < 2   ? call_for_ever
                                     : i < 4 ? launch_for_ever
                                             : allocate_for_ever,
                                     add) == 0);
        fill_memory();
        for (int round = 0; round < 10; round++) {
                uint64_t calls;

                wait_for_calls(50);
                close_and_expect_success();
                usleep(20000); /* who counted its last call late has counted it now */
                calls = n_calls;
                check(!caller_find_busy(&entry));
                usleep(20000);
                check(n_calls == calls);
                command_and_expect_success(GATE_OPEN);
                wait_for_calls(50);
                move_out_and_in();
        }
        is_over = true;
        for (int i = 0; i < 6; i++)
                check(pthread_join(thread[i], NULL) == 0);
        check_memory();
        check(page->slot[FAKE_SLOT].n_launches == n_launches_made);
}

FAKE_TEST(test_a_call_that_does_not_return_times_out_by_name_and_the_guest_goes_on)
{
        uint64_t microseconds = 1500000;
        void *parameters[] = { &microseconds };
        struct gate_closed closed;

        start();
        fill_memory();
        check(cuLaunchKernel(function("busy"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL) ==
              CUDA_SUCCESS);
        closed = fake_close(100);
        check(closed.error == ETIMEDOUT);
        check(strcmp(closed.call, "cuCtxSynchronize") == 0);
        check_memory(); /* the gate is open */
        close_and_expect_success();
        command_and_expect_success(GATE_OPEN);
}

static void *synchronize(void *argument)
{
        (void)argument;
        set_context();
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_a_thread_that_waits_in_the_driver_is_named)
{
        uint64_t microseconds = 1500000;
        void *parameters[] = { &microseconds };
        struct gate_closed closed;
        pthread_t thread;
        uint32_t entry;

        start();
        check(cuLaunchKernel(function("busy"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL) ==
              CUDA_SUCCESS);
        check(pthread_create(&thread, NULL, synchronize, NULL) == 0);
        while (!caller_find_busy(&entry) || entry != ENTRY_cuCtxSynchronize)
                usleep(100);
        closed = fake_close(100);
        check(closed.error == ETIMEDOUT && strcmp(closed.call, "cuCtxSynchronize") == 0);
        check(pthread_join(thread, NULL) == 0);
}

FAKE_TEST(test_managed_and_imported_memory_are_reported)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;

        start();
        fill_memory();
        check(fake_close(TIMEOUT_MS).holds == 0);
        command_and_expect_success(GATE_EXPORT);
        command_and_expect_success(GATE_OPEN);
        check(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fake_memory.fd[0], 1) ==
              CUDA_SUCCESS);
        check(fake_close(TIMEOUT_MS).holds == GATE_HOLDS_IMPORTED);
        command_and_expect_success(GATE_OPEN);
        check(cuMemRelease(handle) == CUDA_SUCCESS);
        check(cuMemAllocManaged(&pointer, MIB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
        check(fake_close(TIMEOUT_MS).holds == GATE_HOLDS_MANAGED);
        command_and_expect_success(GATE_OPEN);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(fake_close(TIMEOUT_MS).holds == 0);
}

/* What fails is undone: with @failures, @command answers an error and the guest's memory is whole. */
static void fail_once(const char *failures, enum gate_message command, const char *call)
{
        struct gate_result result;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", failures, 1) == 0);
        start();
        fill_memory();
        close_and_expect_success();
        command_and_expect_success(GATE_EXPORT);
        result = fake_command(command);
        check(result.error == EIO);
        check(strcmp(result.call, call) == 0);
        check(result.driver_code == 999);
        command_and_expect_success(GATE_OPEN);
        check_memory();
        move_out_and_in();
        check_memory();
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
        start();
        fill_memory();
        close_and_expect_success();
        command_and_expect_success(GATE_EXPORT);
        contents = fake_copy_out();
        command_and_expect_success(GATE_RELEASE);
        result = fake_command(GATE_CREATE);
        check(result.error == EIO);
        check(fake_command(GATE_OPEN).error == EBUSY);
        command_and_expect_success(GATE_CREATE);
        fake_copy_in(contents);
        command_and_expect_success(GATE_OPEN);
        check_memory();
}

FAKE_TEST(test_a_map_that_does_not_fit_is_undone_and_can_be_tried_again)
{
        start();
        fill_memory();
        close_and_expect_success();
        command_and_expect_success(GATE_EXPORT);
        command_and_expect_success(GATE_RELEASE);
        fake_memory.allocation[5].size += 2 * MIB;
        check(fake_map().error == EINVAL);
        fake_memory.allocation[5].size -= 2 * MIB;
        fake_memory.n--; /* not all */
        check(fake_map().error == EINVAL);
        fake_memory.n++;
        check(fake_map().error == 0);
        command_and_expect_success(GATE_OPEN);
        check_memory();
}

FAKE_TEST(test_steps_out_of_order_are_refused_and_change_nothing)
{
        start();
        fill_memory();
        check(fake_command(GATE_EXPORT).error == EBUSY);
        check(fake_command(GATE_RELEASE).error == EBUSY);
        check(fake_command(GATE_CREATE).error == EBUSY);
        check(fake_command(GATE_OPEN).error == 0);
        close_and_expect_success();
        close_and_expect_success();
        check(fake_command(GATE_CREATE).error == EBUSY);
        command_and_expect_success(GATE_OPEN);
        check_memory();
}

/* The manager vanishes. */

static enum gate_state rejoin(void)
{
        fake_manager_stop();
        fake_manager_restart();
        return fake_manager_wait_for_join().state;
}

FAKE_TEST(test_a_gate_that_was_only_closed_opens_when_the_manager_dies)
{
        struct instance_page *page = start();
        uint64_t used;

        fill_memory();
        used = page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE];
        close_and_expect_success();
        fake_manager_stop();
        check_memory(); /* returns only through an open gate */
        page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] = 0; /* a new manager has a clean page */
        fake_manager_restart();
        check(fake_manager_wait_for_join().state == GATE_STATE_OPEN);
        move_out_and_in();
        check_memory();
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == used);
}

FAKE_TEST(test_after_an_export_the_guest_goes_on_too_when_the_manager_dies)
{
        start();
        fill_memory();
        close_and_expect_success();
        command_and_expect_success(GATE_EXPORT);
        check(rejoin() == GATE_STATE_OPEN);
        check_memory();
}

FAKE_TEST(test_a_released_gate_waits_for_the_next_manager)
{
        void *contents;

        start();
        fill_memory();
        close_and_expect_success();
        command_and_expect_success(GATE_EXPORT);
        contents = fake_copy_out();
        command_and_expect_success(GATE_RELEASE);
        check(rejoin() == GATE_STATE_RELEASED);
        check(fake_close(TIMEOUT_MS).error == 0); /* as it is; harmless */
        command_and_expect_success(GATE_CREATE);
        fake_memory_drop();
        check(rejoin() == GATE_STATE_CREATED); /* mapped, not filled: still not open */
        check(atomic_load(&gate_closed) == 1);
        command_and_expect_success(GATE_EXPORT);
        fake_copy_in(contents);
        command_and_expect_success(GATE_OPEN);
        check_memory();
}

FAKE_TEST(test_a_manager_that_dies_in_the_middle_of_a_map_leaves_nothing_mapped)
{
        struct gate_allocations batch = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_MAP }, .count = 1
        };
        int fd;

        start();
        fill_memory();
        close_and_expect_success();
        command_and_expect_success(GATE_EXPORT);
        command_and_expect_success(GATE_RELEASE);
        batch.allocation[0] = fake_memory.allocation[0];
        check(fake_send(&batch, sizeof(batch), fake_memory.fd, 1) == 0);
        fd = dup(fake_memory.fd[0]);
        check(rejoin() == GATE_STATE_RELEASED);
        close(fd);
        command_and_expect_success(GATE_CREATE);
        command_and_expect_success(GATE_OPEN);
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
        check_memory();
}

FAKE_TEST(test_a_manager_that_talks_nonsense_is_left_and_the_guest_goes_on)
{
        struct gate_command command = { { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, 77 } };
        struct gate_allocations map = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_MAP },
                                        .count = 1000000 };
        char noise[PACKET_SIZE_MAX];

        start();
        fill_memory();
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

/* Captures. */

static void *end_capture_later(void *argument)
{
        CUstream stream = argument;
        CUgraph graph;

        set_context();
        usleep(300000);
        check(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
        check(graph);
        return NULL;
}

FAKE_TEST(test_closing_waits_for_a_capture_and_does_not_ruin_it)
{
        CUstream stream;
        pthread_t thread;

        start();
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        check(fake_close(100).error == ETIMEDOUT);
        check(pthread_create(&thread, NULL, end_capture_later, stream) == 0);
        close_and_expect_success();
        check(pthread_join(thread, NULL) == 0);
        command_and_expect_success(GATE_OPEN);
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
                cmocka_unit_test(test_no_call_starts_after_closed_and_all_go_on_after_open),
                cmocka_unit_test(
                        test_a_call_that_does_not_return_times_out_by_name_and_the_guest_goes_on),
                cmocka_unit_test(test_a_thread_that_waits_in_the_driver_is_named),
                cmocka_unit_test(test_managed_and_imported_memory_are_reported),
                cmocka_unit_test(test_an_export_that_fails_changes_nothing),
                cmocka_unit_test(test_a_release_that_fails_half_way_is_undone),
                cmocka_unit_test(test_a_create_that_fails_half_way_can_be_tried_again),
                cmocka_unit_test(test_a_map_that_does_not_fit_is_undone_and_can_be_tried_again),
                cmocka_unit_test(test_steps_out_of_order_are_refused_and_change_nothing),
                cmocka_unit_test(test_a_gate_that_was_only_closed_opens_when_the_manager_dies),
                cmocka_unit_test(test_after_an_export_the_guest_goes_on_too_when_the_manager_dies),
                cmocka_unit_test(test_a_released_gate_waits_for_the_next_manager),
                cmocka_unit_test(
                        test_a_manager_that_dies_in_the_middle_of_a_map_leaves_nothing_mapped),
                cmocka_unit_test(test_a_manager_that_talks_nonsense_is_left_and_the_guest_goes_on),
                cmocka_unit_test(test_closing_waits_for_a_capture_and_does_not_ruin_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
