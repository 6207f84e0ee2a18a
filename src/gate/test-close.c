/* SPDX-License-Identifier: Apache-2.0 */
/* A gate closes: what it waits for, what it says of the guest, and what it leaves as it was. */
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
        check(strcmp(closed.call, "cuLaunchKernel") == 0);
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

static _Atomic bool is_work_over;

static void work_for_long(void *unused)
{
        (void)unused;
        while (!is_work_over)
                usleep(1000);
}

static void *wait_for_work(void *unused)
{
        (void)unused;
        fake_context();
        while (!atomic_load(&gate_closed))
                usleep(100);
        check(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
        return NULL;
}

/* At the closed gate, or in the driver while the gate is open for a moment. */
FAKE_TEST(test_work_that_is_not_done_is_named_by_the_call_that_waits_for_it)
{
        struct gate_closed closed;
        pthread_t thread;

        fake_guest_start(GIB);
        check(cuLaunchHostFunc(NULL, work_for_long, NULL) == CUDA_SUCCESS);
        check(pthread_create(&thread, NULL, wait_for_work, NULL) == 0);
        closed = fake_close(2000);
        check(closed.error == ETIMEDOUT && strcmp(closed.call, "cuStreamSynchronize") == 0);
        is_work_over = true;
        check(pthread_join(thread, NULL) == 0);
}

/* A host function that needs a lock, and a thread that holds it while it waits at the gate. */

static pthread_mutex_t needed = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool is_held;

static void need(void *unused)
{
        (void)unused;
        pthread_mutex_lock(&needed);
        pthread_mutex_unlock(&needed);
}

static void *call_with_the_lock(void *argument)
{
        CUcontext context;

        (void)argument;
        fake_context();
        pthread_mutex_lock(&needed);
        is_held = true;
        while (!atomic_load(&gate_closed))
                usleep(100);
        for (int i = 0; i < 100; i++)
                check(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
        pthread_mutex_unlock(&needed);
        return NULL;
}

static pthread_t start_holder(void)
{
        pthread_t thread;

        check(pthread_create(&thread, NULL, call_with_the_lock, NULL) == 0);
        while (!is_held)
                usleep(100);
        return thread;
}

FAKE_TEST(test_who_waits_at_the_gate_with_a_lock_that_the_work_needs_is_let_through)
{
        pthread_t holder;

        fake_guest_start(GIB);
        holder = start_holder();
        check(cuLaunchHostFunc(NULL, need, NULL) == CUDA_SUCCESS);
        fake_guest_close();
        check(pthread_join(holder, NULL) == 0);
        fake_guest_command(GATE_OPEN);
}

FAKE_TEST(test_who_waits_at_the_gate_with_a_lock_that_a_call_needs_is_let_through)
{
        pthread_t holder, waiting;
        uint32_t entry;

        fake_guest_start(GIB);
        holder = start_holder();
        check(cuLaunchHostFunc(NULL, need, NULL) == CUDA_SUCCESS);
        check(pthread_create(&waiting, NULL, synchronize, NULL) == 0);
        while (!caller_find_busy(&entry) || entry != ENTRY_cuCtxSynchronize)
                usleep(100);
        fake_guest_close();
        check(pthread_join(holder, NULL) == 0 && pthread_join(waiting, NULL) == 0);
        fake_guest_command(GATE_OPEN);
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

static void take_dma_buf(CUdeviceptr pointer)
{
        int fd;

        check(cuMemGetHandleForAddressRange(&fd, pointer, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                            0) == CUDA_SUCCESS);
        close(fd);
}

/* A small allocation's block serves no other then: it shall be empty soon. */
FAKE_TEST(test_a_dma_buf_is_held_until_its_memory_is_freed)
{
        struct instance_page *page = fake_guest_start(GIB);
        const struct instance_page_slot *slot = &page->slot[FAKE_SLOT];
        CUdeviceptr first, second, third, pooled;

        check(cuMemAlloc_v2(&first, 4096) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&second, 4096) == CUDA_SUCCESS);
        take_dma_buf(second);
        take_dma_buf(first);
        check(slot->holds == GATE_HOLDS_REGISTERED);
        check(slot->used[INSTANCE_PAGE_FIXED] == 2 * MIB);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).holds == GATE_HOLDS_REGISTERED);
        fake_guest_command(GATE_OPEN);
        check(cuMemAlloc_v2(&third, 4096) == CUDA_SUCCESS);
        check(slot->used[INSTANCE_PAGE_MOVABLE] == 2 * MIB);
        check(cuMemFree_v2(first) == CUDA_SUCCESS);
        check(slot->holds == GATE_HOLDS_REGISTERED);
        check(cuMemFree_v2(second) == CUDA_SUCCESS);
        check(slot->holds == 0 && slot->used[INSTANCE_PAGE_FIXED] == 0);

        check(cuMemAllocAsync(&pooled, 4 * MIB, NULL) == CUDA_SUCCESS);
        take_dma_buf(pooled + MIB);
        check(slot->holds == GATE_HOLDS_REGISTERED);
        check(cuMemFreeAsync(pooled, NULL) == CUDA_SUCCESS);
        check(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
        check(slot->holds == 0);
        check(cuMemFree_v2(third) == CUDA_SUCCESS);
}

FAKE_TEST(test_an_imported_pool_of_the_driver_is_held_until_it_and_its_memory_are_gone)
{
        struct instance_page *page =
                setenv("OPENVGPU_NATIVE_POOLS", "1", 1) == 0 ? fake_guest_start(GIB) : NULL;
        const struct instance_page_slot *slot = &page->slot[FAKE_SLOT];
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                       .maxSize = 64 * MIB };
        CUdeviceptr pointer, imported_pointer;
        CUmemPoolPtrExportData data;
        CUmemoryPool pool, imported;
        unsigned char value;
        int fd;

        check(cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS);
        check(cuMemAllocFromPoolAsync(&pointer, 5000, pool, NULL) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(pointer, 42, 5000) == CUDA_SUCCESS);
        check(cuMemPoolExportToShareableHandle(&fd, pool, 1, 0) == CUDA_SUCCESS);
        check(cuMemPoolExportPointer(&data, pointer) == CUDA_SUCCESS);
        check(slot->holds == GATE_HOLDS_EXPORTED);
        check(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, 1, 0) ==
              CUDA_SUCCESS);
        close(fd);
        check(slot->holds == (GATE_HOLDS_IMPORTED | GATE_HOLDS_EXPORTED));
        check(cuMemPoolImportPointer(&imported_pointer, imported, &data) == CUDA_SUCCESS);
        check(cuMemcpyDtoH_v2(&value, imported_pointer + 4999, 1) == CUDA_SUCCESS && value == 42);
        check(cuMemFreeAsync(imported_pointer, NULL) == CUDA_SUCCESS);
        check(slot->holds == (GATE_HOLDS_IMPORTED | GATE_HOLDS_EXPORTED));
        check(cuMemPoolDestroy(imported) == CUDA_SUCCESS);
        check(slot->holds == GATE_HOLDS_EXPORTED);
        check(cuMemFreeAsync(pointer, NULL) == CUDA_SUCCESS);
        check(slot->holds == GATE_HOLDS_EXPORTED);
        check(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
        check(slot->holds == 0 && slot->n_allocations == 0);
}

FAKE_TEST(test_a_pool_of_managed_memory_is_held_while_it_or_memory_of_it_is_there)
{
        struct instance_page *page = fake_guest_start(GIB);
        const struct instance_page_slot *slot = &page->slot[FAKE_SLOT];
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_MANAGED };
        CUdeviceptr pointer;
        CUmemoryPool pool;

        check(cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS);
        check(slot->holds == GATE_HOLDS_MANAGED_POOL);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).holds == GATE_HOLDS_MANAGED_POOL);
        fake_guest_command(GATE_OPEN);
        check(cuMemAllocFromPoolAsync(&pointer, 1024, pool, NULL) == CUDA_SUCCESS);
        check(cuMemFreeAsync(pointer, NULL) == CUDA_SUCCESS);
        check(slot->holds == GATE_HOLDS_MANAGED_POOL);
        check(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
        check(slot->holds == 0 && slot->n_allocations == 0);
}

/* Each of them; the pool itself is no reason, and the device has nothing of it. */
FAKE_TEST(test_memory_of_a_pool_on_the_host_is_held)
{
        struct instance_page *page = fake_guest_start(GIB);
        const struct instance_page_slot *slot = &page->slot[FAKE_SLOT];
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { CU_MEM_LOCATION_TYPE_HOST, 0 },
                                       .maxSize = 2 * MIB };
        CUdeviceptr first, second;
        CUmemoryPool pool;

        check(cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS);
        check(slot->holds == 0);
        check(cuMemAllocFromPoolAsync(&first, 1024, pool, NULL) == CUDA_SUCCESS);
        check(cuMemAllocFromPoolAsync_ptsz(&second, 1024, pool, NULL) == CUDA_SUCCESS);
        check(slot->holds == GATE_HOLDS_HOST_POOL);
        check(slot->used[INSTANCE_PAGE_FIXED] == 0);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).holds == GATE_HOLDS_HOST_POOL);
        fake_guest_command(GATE_OPEN);
        check(cuMemFreeAsync(first, NULL) == CUDA_SUCCESS);
        check(slot->holds == GATE_HOLDS_HOST_POOL);
        check(cuMemFree_v2(second) == CUDA_SUCCESS);
        check(slot->holds == 0);
        check(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
}

/* They are there without being made, and cannot be destroyed. */
FAKE_TEST(test_a_pool_of_managed_memory_that_is_there_is_held_from_when_it_is_known)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
        CUmemoryPool pool;

        check(cuMemGetMemPool(&pool, &here, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS);
        check(cuMemGetDefaultMemPool(&pool, &here, CU_MEM_ALLOCATION_TYPE_PINNED) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].holds == 0);
        check(cuMemGetMemPool(&pool, &here, CU_MEM_ALLOCATION_TYPE_MANAGED) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].holds == GATE_HOLDS_MANAGED_POOL);
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

FAKE_TEST(test_a_context_that_was_detached_is_waited_for_no_more)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUdeviceptr pointer;
        CUcontext context, same;

        check(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
        check(cuCtxAttach(&same, 0) == CUDA_SUCCESS && same == context);
        check(cuMemAllocManaged(&pointer, MIB, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
        check(cuCtxDetach(context) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].holds == GATE_HOLDS_MANAGED); /* it is there */
        check(cuCtxDetach(context) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].holds == 0);
        fake_guest_close();
        fake_guest_command(GATE_OPEN);
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

/* What a driver answers that has ended, or whose context is broken. */

/* Failures of a moment: they are asked for by a file. */
static void expect_failure(void)
{
        char path[64];

        (void)snprintf(path, sizeof(path), "/tmp/openvgpu-test-fail-%d", (int)getpid());
        check(setenv("OPENVGPU_SIM_FAIL_FILE", path, 1) == 0);
}

static void fail_next(const char *call, int code)
{
        const char *path = getenv("OPENVGPU_SIM_FAIL_FILE");
        char draft[128];
        FILE *file;

        (void)snprintf(draft, sizeof(draft), "%s.draft", path);
        file = fopen(draft, "w");
        check(file);
        check(fprintf(file, "%s@1=%d", call, code) > 0);
        check(fclose(file) == 0 && rename(draft, path) == 0);
}

static void check_left(void)
{
        char buffer[PACKET_SIZE_MAX];
        size_t size;
        int r = fake_receive(buffer, &size);

        check(r == -ENODATA || r == -ECONNRESET); /* it hangs up */
}

FAKE_TEST(test_a_gate_whose_driver_has_ended_opens_and_leaves)
{
        struct gate_closed closed;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuCtxSynchronize@1=4", 1) == 0);
        fake_guest_start(GIB);
        closed = fake_close(FAKE_GUEST_TIMEOUT_MS);
        check(closed.error == EIO && closed.driver_code == CUDA_ERROR_DEINITIALIZED);
        check(closed.fate == GATE_FATE_ENDS);
        check_left();
        check(cuCtxSynchronize() == CUDA_ERROR_DEINITIALIZED); /* it is not held */
}

FAKE_TEST(test_a_gate_whose_driver_has_ended_leaves_also_without_its_memory)
{
        struct instance_page *page;
        struct gate_result result;
        CUdeviceptr pointer;

        if (!fake_is_simulated())
                return;
        expect_failure();
        page = fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        fail_next("cuMemCreate", CUDA_ERROR_DEINITIALIZED);
        result = fake_command(GATE_CREATE);
        check(result.error == EIO && result.fate == GATE_FATE_ENDS);
        check_left();
        page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] = 7; /* the slot is another's by now */
        check(cuMemAlloc_v2(&pointer, 4 * MIB) == CUDA_ERROR_DEINITIALIZED);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == 7);
}

FAKE_TEST(test_a_gate_whose_context_is_broken_says_so_and_stays_open)
{
        struct gate_closed closed;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuCtxSynchronize@1=719", 1) == 0);
        fake_guest_start(GIB);
        closed = fake_close(FAKE_GUEST_TIMEOUT_MS);
        check(closed.error == EIO && closed.driver_code == CUDA_ERROR_LAUNCH_FAILED);
        check(closed.fate == GATE_FATE_BROKEN);
        check(atomic_load(&gate_closed) == 0);
        check(fake_close(FAKE_GUEST_TIMEOUT_MS).fate == GATE_FATE_BROKEN); /* it is there still */
}

FAKE_TEST(test_a_gate_whose_context_breaks_without_its_memory_joins_anew)
{
        struct gate_result result;

        if (!fake_is_simulated())
                return;
        expect_failure();
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        fail_next("cuMemCreate", CUDA_ERROR_LAUNCH_FAILED);
        result = fake_command(GATE_CREATE);
        check(result.error == EIO && result.fate == GATE_FATE_BROKEN);
        fake_manager_hang_up();
        check(fake_manager_wait_for_join().state == GATE_STATE_OPEN);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_call_starts_after_closed_and_all_go_on_after_open),
                cmocka_unit_test(
                        test_a_call_that_does_not_return_times_out_by_name_and_the_guest_goes_on),
                cmocka_unit_test(test_a_thread_that_waits_in_the_driver_is_named),
                cmocka_unit_test(test_work_that_is_not_done_is_named_by_the_call_that_waits_for_it),
                cmocka_unit_test(
                        test_who_waits_at_the_gate_with_a_lock_that_the_work_needs_is_let_through),
                cmocka_unit_test(
                        test_who_waits_at_the_gate_with_a_lock_that_a_call_needs_is_let_through),
                cmocka_unit_test(test_managed_and_imported_memory_are_reported),
                cmocka_unit_test(test_a_dma_buf_is_held_until_its_memory_is_freed),
                cmocka_unit_test(
                        test_an_imported_pool_of_the_driver_is_held_until_it_and_its_memory_are_gone),
                cmocka_unit_test(
                        test_a_pool_of_managed_memory_is_held_while_it_or_memory_of_it_is_there),
                cmocka_unit_test(test_memory_of_a_pool_on_the_host_is_held),
                cmocka_unit_test(
                        test_a_pool_of_managed_memory_that_is_there_is_held_from_when_it_is_known),
                cmocka_unit_test(test_what_a_context_takes_with_it_is_held_no_more),
                cmocka_unit_test(test_a_context_that_was_detached_is_waited_for_no_more),
                cmocka_unit_test(test_closing_waits_for_a_capture_and_does_not_ruin_it),
                cmocka_unit_test(test_a_gate_whose_driver_has_ended_opens_and_leaves),
                cmocka_unit_test(test_a_gate_whose_driver_has_ended_leaves_also_without_its_memory),
                cmocka_unit_test(test_a_gate_whose_context_is_broken_says_so_and_stays_open),
                cmocka_unit_test(test_a_gate_whose_context_breaks_without_its_memory_joins_anew),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
