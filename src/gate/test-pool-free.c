/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of other processes' pools: when it goes, and how it comes back after a suspend. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/fake-maker.h"
#include "gate/pool-import-internal.h"
#include "gate/pool-internal.h"
#include "gate/pool-ticket.h"

static struct instance_page *page;
static CUcontext context_of_all;

static void start(void)
{
        page = fake_guest_start(GIB);
        fake_maker_start(0);
}

/* A stream that does not go on until it is told to. */

static atomic_bool is_held;

static void hold(void *unused)
{
        (void)unused;
        while (atomic_load(&is_held))
                usleep(100);
}

static CUstream new_stream(void)
{
        CUstream stream;

        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        return stream;
}

static CUstream held_stream(void)
{
        CUstream stream = new_stream();

        atomic_store(&is_held, true);
        check(cuLaunchHostFunc(stream, hold, NULL) == CUDA_SUCCESS);
        return stream;
}

/* The agent counts a piece as gone right behind its unmapping. */
static void wait_until_nothing_is_charged(void)
{
        while (page->slot[FAKE_SLOT].n_allocations > 0)
                usleep(1000);
}

FAKE_TEST(test_pointers_in_one_piece_share_it_and_it_goes_with_the_last)
{
        CUdeviceptr first, second, again;
        CUmemoryPool pool;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 1);
        first = fake_maker_import_at(pool, 0, MIB);
        second = fake_maker_import_at(pool, 2 * MIB, MIB + 100);
        check(fake_maker.n_asked == 1 && fake_maker.n_mapped == 1 && second - first == 2 * MIB);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == 0);
        fake_maker_write(0, 7);
        fake_maker_write(3 * MIB, 9);
        check(fake_maker_read(first) == 7 && fake_maker_read(second + MIB) == 9);
        again = fake_maker_import_at(pool, 0, MIB);
        check(again == first);
        check(cuMemFree_v2(first) == CUDA_SUCCESS);
        check(cuMemFreeAsync(first, NULL) == CUDA_SUCCESS);
        check(cuMemFree_v2(first) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemFreeAsync(first, NULL) == CUDA_ERROR_INVALID_VALUE);
        check(cuMemFree_v2(second + 512) == CUDA_ERROR_INVALID_VALUE);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(fake_maker.n_mapped == 1 && fake_maker_read(second + MIB) == 9);
        check(cuMemFree_v2(second) == CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0);
        fake_maker_wait(); /* has been told */
        check(page->slot[FAKE_SLOT].n_allocations == 0);
        check(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
}

FAKE_TEST(test_a_free_waits_for_its_stream_and_does_not_make_the_program_wait)
{
        CUdeviceptr first, second;
        CUmemoryPool pool;
        CUstream stream;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(2, 2);
        first = fake_maker_import_at(pool, 0, MIB);
        second = fake_maker_import_at(pool, MIB, MIB);
        stream = held_stream();
        check(cuMemsetD8Async(first, 3, 1, stream) == CUDA_SUCCESS);
        check(cuMemFreeAsync(first, stream) == CUDA_SUCCESS);
        check(cuMemFreeAsync(second, new_stream()) == CUDA_SUCCESS);
        check(cuStreamSynchronize(new_stream()) == CUDA_SUCCESS);
        check(fake_maker.n_mapped == 1);
        first = fake_maker_import_at(pool, 0, MIB); /* it has not gone, so it is there at once */
        check(fake_maker.n_asked == 1);
        check(cuMemFreeAsync(first, new_stream()) == CUDA_SUCCESS);
        check(cuStreamSynchronize(new_stream()) == CUDA_SUCCESS);
        check(fake_maker.n_mapped == 1);
        atomic_store(&is_held, false);
        fake_maker_wait_until_mapped(0);
        check(DRIVER(cuMemcpyDtoH_v2)(&(unsigned char){ 0 }, fake_maker.at, 1) == CUDA_SUCCESS);
        check(fake_maker_read(fake_maker.at) == 3);
        first = fake_maker_import_at(pool, 0, MIB);
        check(fake_maker.n_asked == 2 && fake_maker.n_mapped == 1);
        check(cuMemFree_v2(first) == CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0);
        fake_maker_wait();
}

/* The program calls nothing any more: it works on something else, or only looks. */
FAKE_TEST(test_what_a_stream_is_done_with_goes_without_the_program)
{
        CUdeviceptr pointer;
        CUmemoryPool pool;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 1);
        pointer = fake_maker_import_at(pool, 0, MIB);
        check(cuMemFreeAsync(pointer, held_stream()) == CUDA_SUCCESS);
        usleep(100000);
        check(fake_maker.n_mapped == 1);
        atomic_store(&is_held, false);
        fake_maker_wait(); /* the manager is told */
        check(fake_maker.n_mapped == 0);
        wait_until_nothing_is_charged();
}

static void *free_in_own_stream(void *pointer)
{
        check(cuCtxSetCurrent(context_of_all) == CUDA_SUCCESS);
        atomic_store(&is_held, true);
        check(cuLaunchHostFunc(NULL, hold, NULL) == CUDA_SUCCESS);
        check(cuMemFreeAsync_ptsz(*(CUdeviceptr *)pointer, NULL) == CUDA_SUCCESS);
        return NULL;
}

/* A thread that is started later may look as if it were this one, and its stream is another. */
FAKE_TEST(test_the_stream_of_a_thread_ends_with_it)
{
        CUdeviceptr pointer;
        CUmemoryPool pool;
        pthread_t thread;

        start();
        check(cuCtxGetCurrent(&context_of_all) == CUDA_SUCCESS);
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 1);
        pointer = fake_maker_import_at(pool, 0, MIB);
        check(pthread_create(&thread, NULL, free_in_own_stream, &pointer) == 0);
        check(pthread_join(thread, NULL) == 0);
        pthread_mutex_lock(&pool_imports.lock);
        check(pool_imports.first->pieces->frees);
        check(!pool_imports.first->pieces->frees->mark->key.stream);
        pthread_mutex_unlock(&pool_imports.lock);
        atomic_store(&is_held, false);
        fake_maker_wait();
}

FAKE_TEST(test_a_free_waits_where_a_stream_has_no_event_for_us)
{
        CUdeviceptr pointer;
        CUmemoryPool pool;
        CUstream stream;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL", "cuEventRecord@1=400,cuEventRecord@2=999", 1) == 0);
        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 1);
        pointer = fake_maker_import_at(pool, 0, MIB);
        stream = new_stream();
        check(cuMemsetD8Async(pointer, 1, MIB, stream) == CUDA_SUCCESS);
        check_answer(cuMemFreeAsync(pointer, stream), CUDA_SUCCESS);
        check(cuStreamQuery(stream) == CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0);
        fake_maker_wait();
}

FAKE_TEST(test_nothing_is_unmapped_while_a_stream_is_captured)
{
        CUdeviceptr first, second;
        CUstream captured;
        CUmemoryPool pool;
        CUgraph graph;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 1);
        first = fake_maker_import_at(pool, 0, MIB);
        second = fake_maker_import_at(pool, MIB, MIB);
        captured = new_stream();
        check(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
        check(cuMemFreeAsync(first, captured) != CUDA_SUCCESS); /* it is none of the graph's */
        (void)cuStreamEndCapture(captured, &graph);
        check(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
        check(cuMemFreeAsync(first, new_stream()) == CUDA_SUCCESS);
        check(cuMemFree_v2(second) == CUDA_SUCCESS);
        check(fake_maker.n_mapped == 1);
        check(cuStreamEndCapture(captured, &graph) == CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0);
        fake_maker_wait();
}

static struct gate_closed close_gate(void)
{
        struct gate_close close_message = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION,
                                                        GATE_CLOSE },
                                            .timeout_ms = FAKE_GUEST_TIMEOUT_MS };
        union {
                struct gate_header header;
                struct gate_closed closed;
                char bytes[PACKET_SIZE_MAX];
        } message;
        size_t size;

        check(fake_send(&close_message, sizeof(close_message), NULL, 0) == 0);
        do
                check(fake_receive(&message, &size) == 0);
        while (message.header.message != GATE_CLOSED);
        return message.closed;
}

FAKE_TEST(test_what_is_freed_is_not_there_any_more_when_the_gate_has_closed)
{
        CUdeviceptr pointer, kept;
        CUmemoryPool pool;
        CUstream stream;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 0);
        pointer = fake_maker_import_at(pool, 0, MIB);
        fake_maker_wait();
        stream = new_stream();
        check(cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS);
        check(close_gate().n_imports == 0);
        check(fake_maker.n_mapped == 0);
        fake_guest_command(GATE_OPEN);

        fake_maker_expect(1, 0);
        kept = fake_maker_import_at(pool, 0, MIB);
        pointer = fake_maker_import_at(pool, MIB, MIB);
        fake_maker_wait();
        check(cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS);
        check(close_gate().n_imports == 1);
        fake_guest_command(GATE_OPEN);
        fake_maker_write(5, 50);
        check(fake_maker_read(kept + 5) == 50);
}

/* Returns what the gate says of it, an errno. */
static int32_t take_again(void)
{
        struct gate_take take = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_TAKE } };
        union {
                struct gate_header header;
                struct gate_import import;
                struct gate_result result;
                char bytes[PACKET_SIZE_MAX];
        } message;
        size_t size;

        check(fake_send(&take, sizeof(take), NULL, 0) == 0);
        for (;;) {
                check(fake_receive(&message, &size) == 0);
                if (message.header.message == GATE_TAKEN)
                        return message.result.error;
                check(message.header.message == GATE_IMPORT);
                fake_maker_answer(&message.import);
        }
}

FAKE_TEST(test_it_goes_and_comes_back_where_it_was)
{
        CUdeviceptr pointer;
        CUmemoryPool pool;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 0);
        pointer = fake_maker_import_at(pool, MIB, MIB);
        fake_maker_wait();
        fake_maker_write(MIB, 8);
        for (int i = 0; i < 3; i++) {
                check(close_gate().n_imports == 1);
                fake_guest_command(GATE_RELEASE);
                check(fake_maker.n_mapped == 0);
                fake_guest_command(GATE_CREATE);
                check(take_again() == 0);
                fake_guest_command(GATE_OPEN);
                check(fake_maker.n_mapped == 1 && fake_maker_read(pointer) == 8);
        }
        fake_maker_expect(0, 1);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0);
        fake_maker_wait();
}

/* Its process has ended while the vGPU was away. */
FAKE_TEST(test_what_is_gone_for_ever_can_be_freed)
{
        CUdeviceptr pointer;
        CUmemoryPool pool;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 0);
        pointer = fake_maker_import_at(pool, MIB, MIB);
        fake_maker_wait();
        check(close_gate().n_imports == 1);
        fake_guest_command(GATE_RELEASE);
        fake_guest_command(GATE_CREATE);
        fake_maker.error = ESRCH;
        check(take_again() == EOWNERDEAD);
        fake_manager_hang_up();
        check(fake_manager_wait_for_join().n_imports == 0);
        check_answer(cuMemFreeAsync(pointer, NULL), CUDA_SUCCESS);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check_answer(cuMemFreeAsync(pointer, NULL), CUDA_ERROR_INVALID_VALUE);
        fake_maker.error = 0;
        fake_maker_expect(1, 1);
        pointer = fake_maker_import_at(pool, MIB, MIB);
        fake_maker_write(MIB, 6);
        check(fake_maker_read(pointer) == 6);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0);
        fake_maker_wait();
        check(page->slot[FAKE_SLOT].n_allocations == 0);
}

/* Another of its processes has ended while the vGPU was away, and this one lives. */
FAKE_TEST(test_what_was_lost_is_asked_for_anew)
{
        CUdeviceptr lost, pointer;
        CUmemoryPool pool;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 0);
        lost = fake_maker_import_at(pool, 0, MIB);
        fake_maker_wait();
        (void)close_gate();
        fake_guest_command(GATE_RELEASE);
        fake_guest_command(GATE_CREATE);
        fake_maker.error = ESRCH;
        check(take_again() == EOWNERDEAD);
        fake_manager_hang_up();
        (void)fake_manager_wait_for_join();
        fake_maker.error = 0;
        fake_maker_expect(1, 0);
        pointer = fake_maker_import_at(pool, MIB, MIB);
        fake_maker_wait();
        check(fake_maker.n_mapped == 1);
        fake_maker_write(MIB, 6);
        check(fake_maker_read(pointer) == 6);
        check_answer(cuMemFreeAsync(lost, NULL), CUDA_SUCCESS);
        check(fake_maker_read(pointer) == 6);
}

FAKE_TEST(test_a_failing_driver_call_leaves_nothing_behind)
{
        struct gate_ticket good;
        CUdeviceptr pointer;
        CUmemoryPool pool;

        if (!fake_is_simulated())
                return;
        check(setenv("OPENVGPU_SIM_FAIL",
                     "cuMemPoolCreate@1=999,cuMemMap@2=999,cuMemSetAccess@2=999,cuMemUnmap@2=999,"
                     "cuEventRecord@1=999",
                     1) == 0);
        start();
        fake_maker_identify(&good, FAKE_POOL);
        pool_ticket_write(&good, 0);
        check_answer(fake_maker_import_ticket(&pool, &good), CUDA_ERROR_UNKNOWN);
        pool = fake_maker_import_pool(FAKE_POOL);
        good = fake_maker_ticket(FAKE_POOL, FAKE_PIECE_NAME, 0, MIB);
        fake_maker_expect(3, 3);
        for (int i = 0; i < 2; i++) {
                check_answer(fake_maker_import(&pointer, pool, &good), CUDA_ERROR_UNKNOWN);
                check(fake_maker.n_mapped == 0 && page->slot[FAKE_SLOT].n_allocations == 0);
        }
        check_answer(fake_maker_import(&pointer, pool, &good), CUDA_SUCCESS);
        check_answer(cuMemFreeAsync(pointer, NULL), CUDA_ERROR_UNKNOWN);
        check(cuMemsetD8_v2(pointer, 1, MIB) == CUDA_SUCCESS);
        check_answer(cuMemFreeAsync(pointer, NULL), CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0); /* at the second try */
        fake_maker_wait();
        check(page->slot[FAKE_SLOT].n_allocations == 0);
}

#define THREADS 4
#define ROUNDS  60

static CUmemoryPool pool_of_all;

static void *import_and_free(void *argument)
{
        uint64_t offset = (uint64_t)(uintptr_t)argument * MIB;
        CUstream stream;

        check(cuCtxSetCurrent(context_of_all) == CUDA_SUCCESS);
        stream = new_stream();
        for (int i = 0; i < ROUNDS; i++) {
                CUdeviceptr pointer = fake_maker_import_at(pool_of_all, offset, MIB);

                check(cuMemsetD8Async(pointer, (unsigned char)i, 1, stream) == CUDA_SUCCESS);
                check(cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS);
                if (i % 5 == 0)
                        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        }
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_threads_import_and_free_at_the_same_time)
{
        pthread_t thread[THREADS];
        unsigned char value;

        start();
        pool_of_all = fake_maker_import_pool(FAKE_POOL);
        check(cuCtxGetCurrent(&context_of_all) == CUDA_SUCCESS);
        fake_maker_expect(INT_MAX, INT_MAX);
        for (size_t i = 0; i < THREADS; i++)
                check(pthread_create(&thread[i], NULL, import_and_free, (void *)i) == 0);
        for (size_t i = 0; i < THREADS; i++)
                check(pthread_join(thread[i], NULL) == 0);
        fake_maker_wait_until_mapped(0);
        for (size_t i = 0; i < THREADS; i++) {
                check(DRIVER(cuMemcpyDtoH_v2)(&value, fake_maker.at + i * MIB, 1) == CUDA_SUCCESS);
                check(value == ROUNDS - 1);
        }
        wait_until_nothing_is_charged();
        _exit(EXIT_SUCCESS); /* the manager waits for more */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pointers_in_one_piece_share_it_and_it_goes_with_the_last),
                cmocka_unit_test(
                        test_a_free_waits_for_its_stream_and_does_not_make_the_program_wait),
                cmocka_unit_test(test_what_a_stream_is_done_with_goes_without_the_program),
                cmocka_unit_test(test_the_stream_of_a_thread_ends_with_it),
                cmocka_unit_test(test_a_free_waits_where_a_stream_has_no_event_for_us),
                cmocka_unit_test(test_nothing_is_unmapped_while_a_stream_is_captured),
                cmocka_unit_test(test_what_is_freed_is_not_there_any_more_when_the_gate_has_closed),
                cmocka_unit_test(test_it_goes_and_comes_back_where_it_was),
                cmocka_unit_test(test_what_is_gone_for_ever_can_be_freed),
                cmocka_unit_test(test_what_was_lost_is_asked_for_anew),
                cmocka_unit_test(test_a_failing_driver_call_leaves_nothing_behind),
                cmocka_unit_test(test_threads_import_and_free_at_the_same_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
