/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by which the driver takes memory for itself, on a device that is full. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/caller.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/patience.h"
#include "tests/guests/kernels.h"

#define QUOTA (512 * MIB)
#define ASKED (8 * MIB) /* of that */
#define WORDS 256

static struct {
        struct instance_page *page;
        struct instance_page_slot *slot;
        CUfunction add;
        CUdeviceptr words;
        CUstream stream;
        CUgraph graph;
} test;

static void launch_into(CUstream stream, CUresult wanted)
{
        uint64_t n = WORDS;
        uint32_t value = 5;
        void *parameters[] = { &test.words, &value, &n };

        check_answer(cuLaunchKernel(test.add, 1, 1, 1, 64, 1, 1, 0, stream, parameters, NULL),
                     wanted);
}

/* On an overcommitted device. @failures are the driver's: NAME@N=2,... */
static void start(const char *failures)
{
        CUmodule module;

        check(setenv("OPENVGPU_SIM_FAIL", failures, 1) == 0);
        test.page = fake_guest_start(QUOTA);
        test.slot = &test.page->slot[FAKE_SLOT];
        check(cuModuleLoadData(&module, kernels) == CUDA_SUCCESS);
        check(cuModuleGetFunction(&test.add, module, "add") == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&test.words, WORDS * sizeof(uint32_t)) == CUDA_SUCCESS);
        check(cuMemsetD32_v2(test.words, 1, WORDS) == CUDA_SUCCESS);
        check(cuStreamCreate(&test.stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        atomic_store(&test.page->waits, 1);
}

/* The first @n calls. */
static void start_with_many(const char *name, unsigned int n)
{
        char failures[2048] = "";

        for (unsigned int i = 1; i <= n; i++) {
                size_t length = strlen(failures);

                (void)snprintf(failures + length, sizeof(failures) - length, "%s%s@%u=2",
                               length ? "," : "", name, i);
        }
        start(failures);
}

static void expect_words(uint32_t value)
{
        uint32_t words[WORDS];

        check(cuMemcpyDtoH_v2(words, test.words, sizeof(words)) == CUDA_SUCCESS);
        for (size_t i = 0; i < WORDS; i++)
                check(words[i] == value);
}

static void nap(void)
{
        const struct timespec moment = { .tv_nsec = 1000000 };

        nanosleep(&moment, NULL);
}

static void wait_until_asked(uint32_t n)
{
        while (atomic_load(&test.slot->n_asks) != n)
                nap();
}

static void answer(uint64_t denied)
{
        atomic_store(&test.slot->answer, atomic_load(&test.slot->n_asks) | denied);
}

static void *launch(void *wanted)
{
        fake_context();
        launch_into(test.stream, *(CUresult *)wanted);
        check(cuStreamSynchronize(test.stream) == CUDA_SUCCESS);
        return NULL;
}

static void *instantiate(void *wanted)
{
        CUgraphExec exec;

        fake_context();
        check_answer(cuGraphInstantiateWithFlags(&exec, test.graph, 0), *(CUresult *)wanted);
        check(cuGraphLaunch(exec, test.stream) == CUDA_SUCCESS);
        check(cuStreamSynchronize(test.stream) == CUDA_SUCCESS);
        check(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
        return NULL;
}

static pthread_t begin(void *(*call)(void *), CUresult *wanted)
{
        pthread_t thread;

        check(pthread_create(&thread, NULL, call, wanted) == 0);
        return thread;
}

static void end(pthread_t thread)
{
        check(pthread_join(thread, NULL) == 0);
        check(test.slot->wanted == 0 && test.slot->pending == 0);
}

static CUresult succeeds = CUDA_SUCCESS, fails = CUDA_ERROR_OUT_OF_MEMORY;

FAKE_TEST(test_a_launch_waits_until_others_have_left)
{
        pthread_t thread;

        start("cuLaunchKernel@1=2,cuLaunchKernel@2=2");
        thread = begin(launch, &succeeds);
        for (uint32_t n = 1; n <= 2; n++) {
                wait_until_asked(n);
                check(test.slot->wanted == ASKED && test.slot->pending == 0);
                check(fake_close(FAKE_GUEST_TIMEOUT_MS).error ==
                      0); /* it is outside of the driver */
                fake_guest_command(GATE_OPEN);
                answer(0);
        }
        end(thread);
        expect_words(6); /* it was launched once */
}

FAKE_TEST(test_its_own_vgpu_may_leave_meanwhile_and_come_back)
{
        pthread_t thread;

        start("cuLaunchKernel@1=2");
        thread = begin(launch, &succeeds);
        wait_until_asked(1);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).error == 0);
        fake_guest_command(GATE_EXPORT);
        answer(0); /* it goes on when the gate is open */
        fake_guest_command(GATE_RELEASE);
        nap();
        check(test.slot->wanted == ASKED);
        fake_guest_command(GATE_CREATE);
        fake_guest_command(GATE_OPEN);
        end(thread);
}

FAKE_TEST(test_a_graph_waits_to_be_instantiated)
{
        pthread_t thread;

        start("cuGraphInstantiateWithFlags@1=2,cuGraphLaunch@1=2");
        check(cuStreamBeginCapture_v2(test.stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        launch_into(test.stream, CUDA_SUCCESS);
        check(cuStreamEndCapture(test.stream, &test.graph) == CUDA_SUCCESS);
        thread = begin(instantiate, &succeeds);
        wait_until_asked(1);
        answer(0);
        wait_until_asked(2);
        answer(0);
        end(thread);
        expect_words(6);
}

/* What comes on the stack and what does not: each call has its arguments the second time, too. */
FAKE_TEST(test_all_arguments_are_there_the_second_time)
{
        uint32_t words[WORDS];
        CUevent event;

        start("cuEventCreate@1=2,cuMemsetD2D32Async@1=2,cuMemcpyDtoHAsync_v2@1=2");
        atomic_store(&test.slot->answer, UINT32_MAX >> 1); /* whatever is asked */
        check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
        check(cuMemsetD2D32Async(test.words, 16 * sizeof(uint32_t), 9, 16, WORDS / 16,
                                 test.stream) == CUDA_SUCCESS);
        check(cuMemcpyDtoHAsync_v2(words, test.words, sizeof(words), test.stream) == CUDA_SUCCESS);
        check(cuEventRecord(event, test.stream) == CUDA_SUCCESS);
        check(cuEventSynchronize(event) == CUDA_SUCCESS);
        check(words[0] == 9 && words[WORDS - 1] == 9);
        check(test.slot->n_asks == 3 && test.slot->wanted == 0);
}

static __typeof__(&cuMemMap) real_cuMemMap;
static __typeof__(&cuMemSetAccess) real_cuMemSetAccess;
static unsigned int n_maps, n_accesses; /* at this address */
static CUdeviceptr mapped;

static CUresult map_at_second_try(CUdeviceptr pointer, size_t size, size_t offset,
                                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
        return pointer == mapped && ++n_maps == 1
                       ? CUDA_ERROR_OUT_OF_MEMORY
                       : real_cuMemMap(pointer, size, offset, handle, flags);
}

static CUresult access_at_second_try(CUdeviceptr pointer, size_t size,
                                     const CUmemAccessDesc *access, size_t n)
{
        return pointer == mapped && ++n_accesses == 1
                       ? CUDA_ERROR_OUT_OF_MEMORY
                       : real_cuMemSetAccess(pointer, size, access, n);
}

static void *map(void *handle)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

        fake_context();
        check(cuMemAddressReserve(&mapped, 2 * MIB, 0, 0, 0) == CUDA_SUCCESS);
        check(cuMemMap(mapped, 2 * MIB, 0, *(CUmemGenericAllocationHandle *)handle, 0) ==
              CUDA_SUCCESS);
        check(cuMemSetAccess(mapped, 2 * MIB, &access, 1) == CUDA_SUCCESS);
        check(cuMemsetD32_v2(mapped, 3, WORDS) == CUDA_SUCCESS);
        check(cuMemUnmap(mapped, 2 * MIB) == CUDA_SUCCESS);
        return NULL;
}

/* What is to be mapped is another handle of the driver's when its vGPU has been away. */
FAKE_TEST(test_page_tables_wait_as_well)
{
        const CUmemAllocationProp place = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location.type = CU_MEM_LOCATION_TYPE_DEVICE };
        CUmemGenericAllocationHandle handle;
        pthread_t thread;

        start("");
        check(cuMemCreate(&handle, 2 * MIB, &place, 0) == CUDA_SUCCESS);
        real_cuMemMap = DRIVER(cuMemMap);
        real_cuMemSetAccess = DRIVER(cuMemSetAccess);
        entry_real[ENTRY_cuMemMap] = (entry_function)map_at_second_try;
        entry_real[ENTRY_cuMemSetAccess] = (entry_function)access_at_second_try;
        check(pthread_create(&thread, NULL, map, &handle) == 0);
        for (uint32_t n = 1; n <= 2; n++) {
                wait_until_asked(n);
                check(fake_close(FAKE_GUEST_TIMEOUT_MS).error == 0);
                fake_guest_command(GATE_EXPORT);
                fake_guest_command(GATE_RELEASE);
                answer(0);
                fake_guest_command(GATE_CREATE);
                fake_guest_command(GATE_OPEN);
        }
        end(thread);
        check(cuMemRelease(handle) == CUDA_SUCCESS);
}

static void answer_asks(uint32_t first, uint32_t last)
{
        for (uint32_t n = first; n <= last; n++) {
                wait_until_asked(n);
                answer(0);
        }
}

FAKE_TEST(test_a_call_that_no_room_helps_ends)
{
        pthread_t thread;

        start_with_many("cuLaunchKernel", 20);
        quota_in_vain_ns = 0;
        thread = begin(launch, &fails);
        answer_asks(1, PATIENCE_TRIES);
        end(thread);
        check(test.slot->n_asks == PATIENCE_TRIES);
        /* And not at once again, lest others leave for it for ever. */
        launch_into(test.stream, CUDA_ERROR_OUT_OF_MEMORY);
        check(test.slot->n_asks == PATIENCE_TRIES);
        expect_words(1);
}

/* Tries are soon made, and on a busy machine others take the room each time. */
FAKE_TEST(test_a_few_tries_are_not_in_vain_before_some_time_is_over)
{
        pthread_t thread;

        start_with_many("cuLaunchKernel", PATIENCE_TRIES + 3);
        quota_in_vain_ns = UINT64_MAX;
        thread = begin(launch, &succeeds);
        answer_asks(1, PATIENCE_TRIES + 3);
        end(thread);
        expect_words(6);
}

FAKE_TEST(test_what_others_could_never_leave_is_out_of_memory)
{
        pthread_t thread;

        start("cuLaunchKernel@1=2");
        thread = begin(launch, &fails);
        wait_until_asked(1);
        answer(INSTANCE_PAGE_DENIED);
        end(thread);
        launch_into(test.stream, CUDA_SUCCESS);
}

FAKE_TEST(test_elsewhere_nothing_waits_for_others)
{
        start("cuLaunchKernel@1=2");
        atomic_store(&test.page->waits, 0);
        launch_into(test.stream, CUDA_ERROR_OUT_OF_MEMORY);
        check(test.slot->n_asks == 0);
}

/* cuda.h does not have it: the simulated driver refuses it. */
CUresult cuLaunchCooperativeKernelMultiDevice(void *list, unsigned int n, unsigned int flags);

static unsigned int n_multi_device;

static CUresult launch_some(void)
{
        n_multi_device++;
        return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Some of its kernels may run. */
FAKE_TEST(test_a_launch_on_several_devices_is_not_made_again)
{
        start("");
        check(entry_target[ENTRY_cuLaunchCooperativeKernelMultiDevice] ==
              entry_real[ENTRY_cuLaunchCooperativeKernelMultiDevice]);
        entry_real[ENTRY_cuLaunchCooperativeKernelMultiDevice] = (entry_function)launch_some;
        entry_target[ENTRY_cuLaunchCooperativeKernelMultiDevice] = (entry_function)launch_some;
        check(cuLaunchCooperativeKernelMultiDevice(NULL, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);
        check(n_multi_device == 1 && test.slot->n_asks == 0);
}

static void *create_event(void *wanted)
{
        CUevent event;

        check_answer(cuEventCreate(&event, 0), *(CUresult *)wanted);
        return NULL;
}

FAKE_TEST(test_a_thread_without_a_context_waits_for_nothing)
{
        start("cuEventCreate@1=2");
        end(begin(create_event, &fails));
        check(test.slot->n_asks == 0);
}

FAKE_TEST(test_a_call_from_within_a_call_waits_for_nothing)
{
        start("cuEventCreate@1=2");
        check(caller_begin(ENTRY_cuStreamQuery));
        create_event(&fails);
        caller_end();
        check(test.slot->n_asks == 0);
}

/* Nobody's gate closes during a capture: two that wait in captures would wait for each other for ever. */
FAKE_TEST(test_a_wait_in_a_capture_ends)
{
        uint64_t start_ns;
        CUgraph graph;

        start("cuLaunchKernel@1=2,cuLaunchKernel@2=2");
        check(patience_captured_ns >= 10000000000);
        patience_captured_ns = 500000000;
        check(cuStreamBeginCapture_v2(test.stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        start_ns = clock_now(CLOCK_MONOTONIC);
        launch_into(test.stream, CUDA_ERROR_OUT_OF_MEMORY);
        check(clock_now(CLOCK_MONOTONIC) - start_ns >= patience_captured_ns);
        check(test.slot->n_asks == 1 && test.slot->wanted == 0);
        atomic_store(&test.slot->answer, 2); /* of the next one */
        launch_into(test.stream, CUDA_SUCCESS);
        check(test.slot->n_asks == 2);
        check(cuStreamEndCapture(test.stream, &graph) == CUDA_SUCCESS);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).error == 0);
        fake_guest_command(GATE_OPEN);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_launch_waits_until_others_have_left),
                cmocka_unit_test(test_its_own_vgpu_may_leave_meanwhile_and_come_back),
                cmocka_unit_test(test_a_graph_waits_to_be_instantiated),
                cmocka_unit_test(test_all_arguments_are_there_the_second_time),
                cmocka_unit_test(test_page_tables_wait_as_well),
                cmocka_unit_test(test_a_call_that_no_room_helps_ends),
                cmocka_unit_test(test_a_few_tries_are_not_in_vain_before_some_time_is_over),
                cmocka_unit_test(test_what_others_could_never_leave_is_out_of_memory),
                cmocka_unit_test(test_elsewhere_nothing_waits_for_others),
                cmocka_unit_test(test_a_launch_on_several_devices_is_not_made_again),
                cmocka_unit_test(test_a_thread_without_a_context_waits_for_nothing),
                cmocka_unit_test(test_a_call_from_within_a_call_waits_for_nothing),
                cmocka_unit_test(test_a_wait_in_a_capture_ends),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
