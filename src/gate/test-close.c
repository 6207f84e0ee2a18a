/* SPDX-License-Identifier: Apache-2.0 */
/* A gate closes: what it waits for, what it says of the guest, and what it leaves as it was. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/caller.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "tests/guests/kernels.h"

static CUfunction get_function(const char *name)
{
        CUfunction function;
        CUmodule module;

        check(cuModuleLoadData(&module, kernels) == CUDA_SUCCESS);
        check(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
        return function;
}

/* Threads that never stop calling. */

static _Atomic bool is_over;
static _Atomic uint64_t n_calls, n_launches_made;

static void *call_for_ever(void *argument)
{
        CUcontext context;

        (void)argument;
        fake_context();
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

        fake_context();
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
        fake_context();
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
        struct instance_page *page = fake_guest_start(GIB);
        CUfunction add = get_function("add");
        pthread_t thread[6];
        uint32_t entry;

        for (int i = 0; i < 6; i++)
                check(pthread_create(&thread[i], NULL,
                                     i < 2   ? call_for_ever
                                     : i < 4 ? launch_for_ever
                                             : allocate_for_ever,
                                     add) == 0);
        fake_guest_fill();
        for (int round = 0; round < 10; round++) {
                uint64_t calls;

                wait_for_calls(50);
                fake_guest_close();
                usleep(20000); /* who counted its last call late has counted it now */
                calls = n_calls;
                check(!caller_find_busy(&entry));
                usleep(20000);
                check(n_calls == calls);
                fake_guest_command(GATE_OPEN);
                wait_for_calls(50);
                fake_guest_move();
        }
        is_over = true;
        for (int i = 0; i < 6; i++)
                check(pthread_join(thread[i], NULL) == 0);
        fake_guest_check();
        check(page->slot[FAKE_SLOT].n_launches == n_launches_made);
}

FAKE_TEST(test_a_call_that_does_not_return_times_out_by_name_and_the_guest_goes_on)
{
        uint64_t microseconds = 1500000;
        void *parameters[] = { &microseconds };
        struct gate_closed closed;

        fake_guest_start(GIB);
        fake_guest_fill();
        check(cuLaunchKernel(get_function("busy"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL) ==
              CUDA_SUCCESS);
        closed = fake_close(100);
        check(closed.error == ETIMEDOUT);
        check(strcmp(closed.call, "cuCtxSynchronize") == 0);
        fake_guest_check(); /* the gate is open */
        fake_guest_close();
        fake_guest_command(GATE_OPEN);
}

static void *synchronize(void *argument)
{
        (void)argument;
        fake_context();
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

        fake_guest_start(GIB);
        check(cuLaunchKernel(get_function("busy"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL) ==
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
        struct instance_page *page = fake_guest_start(GIB);
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;

        fake_guest_fill();
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).holds == 0);
        check(page->slot[FAKE_SLOT].holds == 0);
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_OPEN);
        check(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fake_memory.fd[0], 1) ==
              CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].holds == GATE_HOLDS_IMPORTED);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).holds == GATE_HOLDS_IMPORTED);
        fake_guest_command(GATE_OPEN);
        check(cuMemAllocManaged(&pointer, MIB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].holds == (GATE_HOLDS_IMPORTED | GATE_HOLDS_MANAGED));
        check(cuMemRelease(handle) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].holds == GATE_HOLDS_MANAGED);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).holds == GATE_HOLDS_MANAGED);
        fake_guest_command(GATE_OPEN);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].holds == 0);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).holds == 0);
}

FAKE_TEST(test_what_a_context_takes_with_it_is_held_no_more)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUdeviceptr pointer;
        CUcontext context;

        check(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
        check(cuMemAllocManaged(&pointer, MIB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].holds == GATE_HOLDS_MANAGED);
        check(cuMemAllocManaged(&pointer, (size_t)1 << 50, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS);
        check(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].holds == 0);
}

/* Captures. */

static void *end_capture_later(void *argument)
{
        CUstream stream = argument;
        CUgraph graph;

        fake_context();
        usleep(300000);
        check(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
        check(graph);
        return NULL;
}

FAKE_TEST(test_closing_waits_for_a_capture_and_does_not_ruin_it)
{
        CUstream stream;
        pthread_t thread;

        fake_guest_start(GIB);
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        check(fake_close(100).error == ETIMEDOUT);
        check(pthread_create(&thread, NULL, end_capture_later, stream) == 0);
        fake_guest_close();
        check(pthread_join(thread, NULL) == 0);
        fake_guest_command(GATE_OPEN);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_call_starts_after_closed_and_all_go_on_after_open),
                cmocka_unit_test(
                        test_a_call_that_does_not_return_times_out_by_name_and_the_guest_goes_on),
                cmocka_unit_test(test_a_thread_that_waits_in_the_driver_is_named),
                cmocka_unit_test(test_managed_and_imported_memory_are_reported),
                cmocka_unit_test(test_what_a_context_takes_with_it_is_held_no_more),
                cmocka_unit_test(test_closing_waits_for_a_capture_and_does_not_ruin_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
