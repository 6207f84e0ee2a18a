/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and launches: what runs when, and who gets the device's time. */

#include <pthread.h>

#include "base/clock.h"
#include "sim/test-guest.h"

static CUfunction get_kernel(const char *name)
{
        static const char image[] = "anything";
        CUfunction function;
        CUmodule module;

        must(cuModuleLoadData(&module, image));
        must(cuModuleGetFunction(&function, module, name));
        return function;
}

static CUresult launch(CUfunction function, CUstream stream, void **parameters)
{
        return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static void launch_array(const char *name, CUstream stream, CUdeviceptr pointer, uint32_t value,
                         uint64_t n)
{
        void *parameters[] = { &pointer, &value, &n };

        must(launch(get_kernel(name), stream, parameters));
}

static uint32_t read_word(CUdeviceptr pointer)
{
        uint32_t word;

        must(cuMemcpyDtoH_v2(&word, pointer, sizeof(word)));
        return word;
}

/* A gate in a stream: work behind it waits until the test opens it. */
struct gate {
        int pipe[2];
};

static void wait_at_gate(void *data)
{
        struct gate *gate = data;
        char byte;

        must_equal(read(gate->pipe[0], &byte, 1), 1);
}

static void gate_put(struct gate *gate, CUstream stream)
{
        must_equal(pipe(gate->pipe), 0);
        must(cuLaunchHostFunc(stream, wait_at_gate, gate));
}

static void gate_open(struct gate *gate)
{
        must_equal(write(gate->pipe[1], "", 1), 1);
}

static void run_kernels(int socket)
{
        CUlaunchConfig config = { .gridDimX = 1,
                                  .gridDimY = 1,
                                  .gridDimZ = 1,
                                  .blockDimX = 1,
                                  .blockDimY = 1,
                                  .blockDimZ = 1 };
        char buffer[24];
        size_t size = sizeof(buffer);
        void *extra[] = { (void *)1, buffer, (void *)2, &size, NULL };
        uint64_t n = 1000;
        uint32_t value = 5;
        CUdeviceptr pointer;
        CUfunction function;
        CUmodule module;

        (void)socket;
        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 4000));
        launch_array("fill", NULL, pointer, 7, n);
        launch_array("add", NULL, pointer, 3, n - 1);
        must_equal(read_word(pointer), 10);
        must_equal(read_word(pointer + 4 * (n - 2)), 10);
        must_equal(read_word(pointer + 4 * (n - 1)), 7);

        memcpy(buffer, &pointer, 8);
        memcpy(buffer + 8, &value, 4);
        memcpy(buffer + 16, &n, 8);
        must(cuLaunchKernelEx(&config, get_kernel("add"), NULL, extra));
        must_equal(read_word(pointer), 15);
        size = 20;
        must_equal(cuLaunchKernelEx(&config, get_kernel("add"), NULL, extra),
                   CUDA_ERROR_INVALID_VALUE);

        must(cuModuleLoadData(&module, "x"));
        must_equal(cuModuleGetFunction(&function, module, "subtract"), CUDA_ERROR_NOT_FOUND);
        must(cuModuleUnload(module));
        must_equal(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
        must_equal(cuModuleGetFunction(&function, module, "add"), CUDA_ERROR_INVALID_HANDLE);
}

static void test_kernels_compute(void **state)
{
        (void)state;
        guest_run(run_kernels);
}

static void *open_later(void *gate)
{
        const struct timespec time = { .tv_nsec = 50000000 };

        nanosleep(&time, NULL); /* without it the test would pass where nobody waits, too */
        gate_open(gate);
        return NULL;
}

static CUstream destroy_with_work(struct gate *gate, pthread_t *opener, CUdeviceptr pointer)
{
        CUstream stream;

        must(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
        gate_put(gate, stream);
        launch_array("fill", stream, pointer, 7, 1000);
        must(cuStreamDestroy_v2(stream));
        must_equal(pthread_create(opener, NULL, open_later, gate), 0);
        return stream;
}

/* The work of a stream that is destroyed goes on, and what waits for a context waits for it. */
static void destroy_streams_at_work(int socket)
{
        CUdeviceptr pointer;
        struct gate gate;
        pthread_t opener;
        CUstream stream;

        (void)socket;
        (void)guest_init(0);
        for (int i = 0; i < 3; i++) {
                must(cuMemAlloc_v2(&pointer, 4000));
                must(cuMemsetD32_v2(pointer, 0, 1000));
                stream = destroy_with_work(&gate, &opener, pointer);
                must_equal(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
                if (i == 0)
                        must(cuCtxSynchronize());
                if (i < 2) /* the copy is in the default stream, which waits for the others */
                        must_equal(read_word(pointer + 3996), 7);
                must(cuMemFree_v2(pointer));
                must_equal(pthread_join(opener, NULL), 0);
                must(cuCtxSynchronize());
        }
}

static void test_a_stream_that_is_destroyed_ends_its_work(void **state)
{
        (void)state;
        guest_run(destroy_streams_at_work);
}

static void run_out_of_bounds(int socket)
{
        CUdeviceptr pointer;

        (void)socket;
        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 4000));
        launch_array("fill", NULL, pointer, 7, 1000000);
        must_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
        must_equal(cuMemFree_v2(pointer), CUDA_ERROR_ILLEGAL_ADDRESS); /* for ever */
}

static void test_a_kernel_out_of_bounds_breaks_its_context(void **state)
{
        (void)state;
        guest_run(run_out_of_bounds);
}

static void order_streams(int socket)
{
        CUstream stream, free_stream;
        CUdeviceptr pointer;
        CUevent event, never;
        struct gate gate;
        float ms;

        (void)socket;
        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 4096));
        must(cuMemsetD32_v2(pointer, 0, 1024));
        must(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
        must(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
        must(cuEventCreate(&event, 0));
        must(cuEventCreate(&never, 0));
        must(cuEventQuery(never));
        must(cuStreamWaitEvent(stream, never, 0));

        /* What is behind a gate waits, also the legacy stream; a non-blocking one does not. */
        gate_put(&gate, stream);
        launch_array("add", stream, pointer, 1, 1);
        must(cuEventRecord(event, stream));
        launch_array("add", NULL, pointer, 1, 1);
        must(cuStreamWaitEvent(free_stream, event, 0));
        launch_array("add", free_stream, pointer + 4, 1, 1);
        must_equal(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        must_equal(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
        must_equal(cuStreamQuery(free_stream), CUDA_ERROR_NOT_READY); /* for the event */
        must_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
        must_equal(cuEventElapsedTime(&ms, event, event), CUDA_ERROR_NOT_READY);
        must_equal(*(volatile uint32_t *)(uintptr_t)pointer, 0);
        gate_open(&gate);
        must(cuEventSynchronize(event));
        must(cuStreamSynchronize(NULL));
        must(cuStreamSynchronize(free_stream));
        must_equal(read_word(pointer), 2);
        must_equal(read_word(pointer + 4), 1);
        must(cuEventElapsedTime(&ms, event, event));
        must_equal(ms == 0.0f, 1);

        gate_put(&gate, stream);
        launch_array("add", free_stream, pointer, 1, 1);
        must(cuStreamSynchronize(free_stream)); /* does not wait for the other */
        must_equal(*(volatile uint32_t *)(uintptr_t)pointer, 3);
        must(cuStreamDestroy_v2(stream)); /* its work goes on */
        must_equal(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
        gate_open(&gate);
        must(cuCtxSynchronize());
        must(cuEventDestroy_v2(event));
        must_equal(cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
}

static void test_streams_wait_for_whom_they_must(void **state)
{
        (void)state;
        guest_run(order_streams);
}

static void launch_in_two_streams(int socket)
{
        CUstream first, second;
        CUdeviceptr pointer;
        struct gate gate;
        CUgraphExec exec;
        CUgraph graph;

        (void)socket;
        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 4));
        must(cuMemsetD32_v2(pointer, 0, 1));
        must(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
        must(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
        must(cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_RELAXED));
        launch_array("add", first, pointer, 1, 1);
        must(cuStreamEndCapture(first, &graph));
        must(cuGraphInstantiateWithFlags(&exec, graph, 0));
        gate_put(&gate, first);
        must(cuGraphLaunch(exec, first));
        must(cuGraphLaunch(exec, second));
        (void)usleep(20000);
        must_equal(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
        gate_open(&gate);
        must(cuStreamSynchronize(second));
        must_equal(read_word(pointer), 2);
        must(cuGraphLaunch(exec, first));
        must(cuGraphExecDestroy(exec)); /* its work goes on */
        must(cuStreamSynchronize(first));
        must_equal(read_word(pointer), 3);
        must(cuGraphDestroy(graph));
}

static void test_launches_of_a_graph_are_one_after_the_other(void **state)
{
        (void)state;
        guest_run(launch_in_two_streams);
}

CUDA_API CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *data);
CUDA_API CUresult cuStreamQuery_ptsz(CUstream stream);
CUDA_API CUresult cuStreamSynchronize_ptsz(CUstream stream);

static void use_own_stream(int socket)
{
        struct gate gate;

        (void)socket;
        (void)guest_init(0);
        must_equal(pipe(gate.pipe), 0);
        must(cuLaunchHostFunc_ptsz(NULL, wait_at_gate, &gate));
        must_equal(cuStreamQuery_ptsz(NULL), CUDA_ERROR_NOT_READY);
        must_equal(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
        must(cuStreamQuery(CU_STREAM_LEGACY)); /* nothing was given to it */
        gate_open(&gate);
        must(cuStreamSynchronize_ptsz(NULL));
        must(cuStreamQuery_ptsz(NULL));
}

static void test_ptsz_names_use_the_threads_own_stream(void **state)
{
        (void)state;
        guest_run(use_own_stream);
}

static void copy_in_streams(int socket)
{
        static uint32_t pageable[1024], pinned[1024];
        CUdeviceptr pointer;
        CUstream stream;
        struct gate gate;

        (void)socket;
        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 4096));
        must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        must(cuMemHostRegister_v2(pinned, sizeof(pinned), 0));
        pageable[5] = 8;
        must(cuMemcpyHtoDAsync_v2(pointer, pageable, 4096, stream));
        pageable[5] = 9; /* the copy is done with it */
        gate_put(&gate, stream);
        must(cuMemcpyDtoHAsync_v2(pinned, pointer, 4096, stream));
        must_equal(*(volatile uint32_t *)&pinned[5], 0); /* this one waits */
        gate_open(&gate);
        must(cuStreamSynchronize(stream));
        must_equal(pinned[5], 8);
        must_equal(cuMemcpyDtoHAsync_v2(pinned, pointer, 5000, stream), CUDA_ERROR_INVALID_VALUE);
}

static void test_copies_keep_the_order_of_their_stream(void **state)
{
        (void)state;
        guest_run(copy_in_streams);
}

/* Tells how long @microseconds of the device's time took. */
static void be_busy(int socket)
{
        uint64_t microseconds = 40000, begin;
        void *parameters[] = { &microseconds };
        CUfunction busy;

        (void)guest_init(0);
        busy = get_kernel("busy");
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
        begin = clock_now(CLOCK_MONOTONIC) / 1000;
        must(launch(busy, NULL, parameters));
        must(cuCtxSynchronize());
        guest_tell(socket, clock_now(CLOCK_MONOTONIC) / 1000 - begin, -1);
}

/* What stands behind the number in memory is not part of it. */
static void be_busy_by_int(int socket)
{
        uint32_t numbers[2] = { 1000, UINT32_MAX };
        void *parameters[] = { &numbers[0] };

        (void)guest_init(0);
        must(launch(get_kernel("busy"), NULL, parameters));
        must(cuCtxSynchronize());
        guest_tell(socket, 0, -1);
}

static void test_a_time_of_32_bits_is_no_longer_than_it_says(void **state)
{
        struct guest guest = guest_start(be_busy_by_int);

        (void)state;
        assert_int_equal(guest_hear(guest.socket, NULL), 0);
        assert_int_equal(guest_end(&guest), 0);
}

static void test_processes_share_the_time_of_a_device(void **state)
{
        struct guest guests[2] = { guest_start(be_busy), guest_start(be_busy) };
        uint64_t took[2];

        (void)state;
        for (int i = 0; i < 2; i++)
                (void)guest_hear(guests[i].socket, NULL);
        for (int i = 0; i < 2; i++)
                guest_tell(guests[i].socket, 0, -1);
        for (int i = 0; i < 2; i++)
                took[i] = guest_hear(guests[i].socket, NULL);
        /* Both began at about the same time, so in turns both take the time of both. */
        assert_true(took[0] + took[1] >= 3 * 40000);
        assert_true(took[0] >= 40000 && took[1] >= 40000);
        for (int i = 0; i < 2; i++)
                assert_int_equal(guest_end(&guests[i]), 0);
}

static void be_busy_for_ever(int socket)
{
        uint64_t microseconds = 1000000000;
        void *parameters[] = { &microseconds };

        (void)guest_init(0);
        must(launch(get_kernel("busy"), NULL, parameters));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
        exit(0); /* with work in flight */
}

static void test_a_process_may_end_or_die_with_work_in_flight(void **state)
{
        struct guest ending = guest_start(be_busy_for_ever), dying = guest_start(be_busy_for_ever);
        struct guest next;

        (void)state;
        (void)guest_hear(ending.socket, NULL);
        (void)guest_hear(dying.socket, NULL);
        guest_tell(ending.socket, 0, -1);
        assert_int_equal(guest_end(&ending), 0);
        assert_int_equal(guest_kill(&dying), 128 + SIGKILL);
        next = guest_start(be_busy);
        (void)guest_hear(next.socket, NULL);
        guest_tell(next.socket, 0, -1);
        assert_true(guest_hear(next.socket, NULL) >= 40000);
        assert_int_equal(guest_end(&next), 0);
}

#define ROUNDS 200

static void *allocate_and_copy(void *argument)
{
        CUcontext context = argument;
        uint32_t words[64], back[64];
        CUdeviceptr pointer;
        CUstream stream;

        must(cuCtxSetCurrent(context));
        must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        for (uint32_t i = 0; i < ROUNDS; i++) {
                for (uint32_t k = 0; k < 64; k++)
                        words[k] = i * 64 + k;
                must(cuMemAlloc_v2(&pointer, i % 5 ? 256 : 3 * MIB));
                must(cuMemcpyHtoDAsync_v2(pointer, words, sizeof(words), stream));
                launch_array("add", stream, pointer, 1, 64);
                must(cuMemcpyDtoHAsync_v2(back, pointer, sizeof(back), stream));
                must(cuStreamSynchronize(stream));
                must_equal(back[63], i * 64 + 64);
                must(cuMemFree_v2(pointer));
        }
        must(cuStreamDestroy_v2(stream));
        return NULL;
}

static void use_many_threads(int socket)
{
        CUcontext context = guest_init(0);
        uint64_t before = guest_get_free();
        pthread_t threads[6];

        (void)socket;
        for (int i = 0; i < 6; i++)
                must_equal(pthread_create(&threads[i], NULL, allocate_and_copy, context), 0);
        for (int i = 0; i < 6; i++)
                must_equal(pthread_join(threads[i], NULL), 0);
        must_equal(guest_get_free(), before);
}

static void test_many_threads_use_the_driver_at_once(void **state)
{
        (void)state;
        guest_run(use_many_threads);
}

static void launch_meet(CUstream stream, CUdeviceptr pointer, uint32_t n)
{
        void *parameters[] = { &pointer, &n };

        must(launch(get_kernel("meet"), stream, parameters));
}

static void meet_in_two_streams(int socket)
{
        CUdeviceptr word;
        CUstream one, other;

        (void)socket;
        (void)guest_init(0);
        must(cuMemAlloc_v2(&word, 4));
        must(cuMemsetD32_v2(word, 0, 1));
        must(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
        must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        for (int i = 0; i < 3; i++) {
                launch_meet(one, word, 2);
                must_equal(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
                launch_meet(other, word, 2);
                must(cuCtxSynchronize());
        }
        must_equal(read_word(word), 6);
        launch_meet(one, word, 1);
        launch_meet(one, word, 0); /* waits for nobody */
        must(cuCtxSynchronize());
        launch_meet(one, word + 2 * MIB, 1);
        must_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static CUdeviceptr map_shared(CUmemGenericAllocationHandle handle)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        CUdeviceptr pointer;

        must(cuMemAddressReserve(&pointer, 2 * MIB, 0, 0, 0));
        must(cuMemMap(pointer, 2 * MIB, 0, handle, 0));
        must(cuMemSetAccess(pointer, 2 * MIB, &access, 1));
        return pointer;
}

/* Rank 1, in memory of rank 0. */
static void meet_as_importer(int socket)
{
        CUmemGenericAllocationHandle handle;
        int fd;

        (void)guest_init(0);
        must_equal(guest_hear(socket, &fd), 0);
        must(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        launch_meet(NULL, map_shared(handle), 2);
        must(cuCtxSynchronize());
        guest_tell(socket, 1, -1);
}

static void meet_as_exporter(int socket)
{
        const CUmemAllocationProp prop = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
        };
        struct guest other = guest_start(meet_as_importer);
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;
        int fd;

        (void)socket;
        (void)guest_init(0);
        must(cuMemCreate(&handle, 2 * MIB, &prop, 0));
        must(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                          0));
        pointer = map_shared(handle);
        guest_tell(other.socket, 0, fd);
        while (read_word(pointer) == 0) /* it has launched its own, and waits */
                (void)usleep(100);
        launch_meet(NULL, pointer, 2);
        must(cuCtxSynchronize());
        must_equal(guest_hear(other.socket, NULL), 1);
        must_equal(guest_end(&other), 0);
}

static void test_kernels_meet_across_streams_and_processes(void **state)
{
        (void)state;
        guest_run(meet_in_two_streams);
        guest_run(meet_as_exporter);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kernels_compute),
                cmocka_unit_test(test_a_kernel_out_of_bounds_breaks_its_context),
                cmocka_unit_test(test_a_stream_that_is_destroyed_ends_its_work),
                cmocka_unit_test(test_streams_wait_for_whom_they_must),
                cmocka_unit_test(test_launches_of_a_graph_are_one_after_the_other),
                cmocka_unit_test(test_ptsz_names_use_the_threads_own_stream),
                cmocka_unit_test(test_copies_keep_the_order_of_their_stream),
                cmocka_unit_test(test_a_time_of_32_bits_is_no_longer_than_it_says),
                cmocka_unit_test(test_processes_share_the_time_of_a_device),
                cmocka_unit_test(test_a_process_may_end_or_die_with_work_in_flight),
                cmocka_unit_test(test_many_threads_use_the_driver_at_once),
                cmocka_unit_test(test_kernels_meet_across_streams_and_processes),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
