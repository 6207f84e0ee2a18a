/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the closed gate: exactly so many launches, whoever makes them, and then it is at rest again. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/fake-guest.h"
#include "tests/guests/kernels.h"

#define PATIENT_MS 60000
#define SOON_MS    50

static CUfunction get_function(const char *name)
{
        CUfunction function;
        CUmodule module;

        check(cuModuleLoadData(&module, kernels) == CUDA_SUCCESS);
        check(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
        return function;
}

static _Atomic bool is_over;
static _Atomic uint32_t n_launched, n_calls;

/* The stream is the last argument that is passed on the stack but two: none of them gets lost. */
static void launch_add(CUfunction add, CUdeviceptr words, uint32_t value, CUstream stream)
{
        uint64_t n = 256;
        void *parameters[] = { &words, &value, &n };

        check(cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, stream, parameters, NULL) == CUDA_SUCCESS);
}

static void *launch_for_ever(void *argument)
{
        uint32_t n = 0, result;
        CUdeviceptr words;
        CUstream stream;
        CUcontext context;

        fake_context();
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&words, 1024) == CUDA_SUCCESS);
        check(cuMemsetD32_v2(words, 0, 256) == CUDA_SUCCESS);
        while (!is_over) {
                launch_add(argument, words, 1, stream);
                n++;
                n_launched++;
                if (n % 4 == 0)
                        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
                check(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
        }
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        check(cuMemcpyDtoH_v2(&result, words, 4) == CUDA_SUCCESS);
        check(result == n); /* none lost, none twice */
        return NULL;
}

static void wait_for_launches(uint32_t n)
{
        while (n_launched != n)
                usleep(100);
}

FAKE_TEST(test_a_step_lets_exactly_so_many_launches_through)
{
        struct instance_page *page = fake_guest_start((uint64_t)1 << 30);
        CUfunction add = get_function("add");
        pthread_t thread[4];
        uint32_t entry;

        fake_guest_fill();
        for (int i = 0; i < 4; i++)
                check(pthread_create(&thread[i], NULL, launch_for_ever, add) == 0);
        for (uint32_t n = 1; n <= 40; n++) {
                uint64_t before;
                struct gate_closed closed;

                while (n_launched < 10 * n)
                        usleep(100);
                fake_guest_close();
                before = page->slot[FAKE_SLOT].n_launches;
                wait_for_launches((uint32_t)before); /* who counts after the call has done so */
                closed = fake_step(n, PATIENT_MS, PATIENT_MS);
                check(closed.error == 0 && closed.n_launches == n && closed.can_step);
                check(!caller_find_busy(&entry));
                check(page->slot[FAKE_SLOT].n_launches == before + n);
                closed = fake_step(1, PATIENT_MS, PATIENT_MS); /* one after the other */
                check(closed.error == 0 && closed.n_launches == 1);
                wait_for_launches((uint32_t)before + n + 1);
                fake_guest_command(GATE_OPEN);
        }
        is_over = true;
        for (int i = 0; i < 4; i++)
                check(pthread_join(thread[i], NULL) == 0);
        fake_guest_move();
        fake_guest_check();
        check(page->slot[FAKE_SLOT].n_launches == n_launched);
}

FAKE_TEST(test_a_step_to_which_nobody_comes_ends_by_itself)
{
        struct gate_closed closed;

        fake_guest_start((uint64_t)1 << 30);
        fake_guest_fill();
        fake_guest_close();
        closed = fake_step(5, SOON_MS, PATIENT_MS);
        check(closed.error == 0 && closed.n_launches == 0 && closed.movable_bytes > 0);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
}

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

FAKE_TEST(test_calls_that_are_no_launches_go_through_in_a_step)
{
        uint32_t before;
        pthread_t thread;

        fake_guest_start((uint64_t)1 << 30);
        check(pthread_create(&thread, NULL, call_for_ever, NULL) == 0);
        fake_guest_close();
        while (caller_count_waiting() == 0)
                usleep(100);
        before = n_calls;
        while (n_calls < before + 10)
                check(fake_step(1, SOON_MS, PATIENT_MS).error == 0);
        while (caller_count_waiting() == 0)
                usleep(100);
        before = n_calls;
        usleep(20000);
        check(n_calls == before); /* and not after it */
        fake_guest_command(GATE_OPEN);
        is_over = true;
        check(pthread_join(thread, NULL) == 0);
}

/* A kernel that waits for another one, as a collective does. */

static CUfunction meet;
static CUdeviceptr meeting;

static void launch_meet(CUstream stream)
{
        CUdeviceptr pointer = meeting;
        uint32_t n = 2;
        void *parameters[] = { &pointer, &n };

        check(cuLaunchKernel(meet, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL) == CUDA_SUCCESS);
}

static void make_meeting(void)
{
        meet = get_function("meet");
        check(cuMemAlloc_v2(&meeting, 4) == CUDA_SUCCESS);
        check(cuMemsetD32_v2(meeting, 0, 1) == CUDA_SUCCESS);
}

static void *meet_once(void *argument)
{
        CUstream stream;

        (void)argument;
        fake_context();
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        while (!atomic_load(&gate_closed))
                usleep(100);
        launch_meet(stream);
        n_launched++;
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_a_step_waits_until_the_device_has_done_what_was_launched)
{
        struct gate_closed closed;
        pthread_t thread[2];
        uint32_t word;

        if (!fake_is_simulated())
                return;
        fake_guest_start((uint64_t)1 << 30);
        make_meeting();
        for (int i = 0; i < 2; i++)
                check(pthread_create(&thread[i], NULL, meet_once, NULL) == 0);
        fake_guest_close();
        while (caller_count_waiting() < 2)
                usleep(100);
        closed = fake_step(2, PATIENT_MS, PATIENT_MS);
        check(closed.error == 0 && closed.n_launches == 2);
        fake_guest_command(GATE_OPEN);
        for (int i = 0; i < 2; i++)
                check(pthread_join(thread[i], NULL) == 0);
        check(cuMemcpyDtoH_v2(&word, meeting, 4) == CUDA_SUCCESS && word == 2);
}

FAKE_TEST(test_a_step_whose_kernel_waits_for_others_times_out_by_name_and_the_gate_opens)
{
        struct gate_closed closed;
        CUcontext context;
        pthread_t thread;
        CUstream stream;

        if (!fake_is_simulated())
                return;
        fake_guest_start((uint64_t)1 << 30);
        make_meeting();
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        check(pthread_create(&thread, NULL, meet_once, NULL) == 0);
        fake_guest_close();
        while (caller_count_waiting() == 0)
                usleep(100);
        closed = fake_step(1, PATIENT_MS, 300);
        check(closed.error == ETIMEDOUT && closed.n_launches == 1);
        check(strstr(closed.call, "Synchronize"));
        check(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
        launch_meet(stream);
        check(pthread_join(thread, NULL) == 0);
        fake_guest_close();
        fake_guest_command(GATE_OPEN);
}

/* Ranks that are threads of one process, each with a context and memory of its own. */

#define RANKS  3
#define ROUNDS 20

static _Atomic uint32_t n_steps[RANKS];

/* Ends in step with the others: nobody begins a round that another does not make. */
static void *work_in_step(void *argument)
{
        CUfunction add, meet_here;
        uint32_t n_ranks = RANKS, word, index = (uint32_t)(uintptr_t)argument;
        CUdeviceptr words, pointer = meeting;
        void *parameters[] = { &pointer, &n_ranks };
        CUcontext context;
        CUstream stream;

        check(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
        add = get_function("add");
        meet_here = get_function("meet");
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&words, 1024) == CUDA_SUCCESS);
        check(cuMemsetD32_v2(words, 0, 256) == CUDA_SUCCESS);
        while (n_launched == 0 || n_steps[index] < n_launched) {
                for (int i = 0; i < 3; i++) {
                        launch_add(add, words, 1, stream);
                        usleep(1000 * (index + 1));
                }
                check(cuLaunchKernel(meet_here, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL) ==
                      CUDA_SUCCESS);
                n_steps[index]++;
                if (n_steps[index] % 4 == 0)
                        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        }
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        check(cuMemcpyDtoH_v2(&word, words, 4) == CUDA_SUCCESS);
        check(word == 3 * n_steps[index]);
        return NULL;
}

FAKE_TEST(test_ranks_that_are_threads_with_contexts_of_their_own_come_to_rest)
{
        pthread_t thread[RANKS];

        if (!fake_is_simulated())
                return;
        fake_guest_start((uint64_t)1 << 30);
        make_meeting();
        for (uintptr_t i = 0; i < RANKS; i++)
                check(pthread_create(&thread[i], NULL, work_in_step, (void *)i) == 0);
        for (uint32_t round = 0; round < ROUNDS; round++) {
                struct gate_closed closed;
                uint32_t before = n_steps[round % RANKS];

                while (n_steps[round % RANKS] < before + 2)
                        usleep(100);
                usleep(round * 700);
                closed = fake_close(PATIENT_MS);
                check(closed.error == 0);
                fake_guest_command(GATE_OPEN);
        }
        n_launched = n_steps[0] + 100; /* further than any is */
        for (int i = 0; i < RANKS; i++)
                check(pthread_join(thread[i], NULL) == 0);
}

static void *capture_once(void *argument)
{
        CUgraphExec exec;
        CUdeviceptr words;
        CUstream stream;
        CUgraph graph;

        fake_context();
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&words, 1024) == CUDA_SUCCESS);
        while (!atomic_load(&gate_closed))
                usleep(100);
        check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        for (int i = 0; i < 20; i++)
                launch_add(argument, words, 1, stream);
        usleep(2 * SOON_MS * 1000);
        check(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
        check(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
        check(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
        n_launched++;
        check(cuStreamSynchronize(stream) == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_a_capture_that_begins_in_a_step_comes_to_its_end_and_its_graph_is_one_launch)
{
        struct gate_closed closed;
        uint32_t sum = 0;
        pthread_t thread;

        fake_guest_start((uint64_t)1 << 30);
        check(pthread_create(&thread, NULL, capture_once, get_function("add")) == 0);
        fake_guest_close();
        while (caller_count_waiting() == 0)
                usleep(100);
        do {
                closed = fake_step(1, SOON_MS, PATIENT_MS);
                check(closed.error == 0 && !capture_is_active());
                sum += closed.n_launches;
        } while (n_launched == 0);
        check(sum == 1);
        fake_guest_command(GATE_OPEN);
        check(pthread_join(thread, NULL) == 0);
}

FAKE_TEST(test_a_step_of_a_gate_that_is_open_is_nonsense)
{
        struct gate_step step = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_STEP },
                                  .n_launches = 1 };

        fake_guest_start((uint64_t)1 << 30);
        check(fake_send(&step, sizeof(step), NULL, 0) == 0);
        fake_manager_hang_up();
        check(fake_manager_wait_for_join().state == GATE_STATE_OPEN);
}

FAKE_TEST(test_a_manager_that_is_lost_in_a_step_leaves_an_open_gate)
{
        struct gate_step step = { .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_STEP },
                                  .n_launches = 1,
                                  .window_ms = SOON_MS,
                                  .timeout_ms = PATIENT_MS };
        CUcontext context;

        fake_guest_start((uint64_t)1 << 30);
        fake_guest_close();
        check(fake_send(&step, sizeof(step), NULL, 0) == 0);
        fake_manager_hang_up();
        check(fake_manager_wait_for_join().state == GATE_STATE_OPEN);
        check(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_step_lets_exactly_so_many_launches_through),
                cmocka_unit_test(test_a_step_to_which_nobody_comes_ends_by_itself),
                cmocka_unit_test(test_calls_that_are_no_launches_go_through_in_a_step),
                cmocka_unit_test(test_a_step_waits_until_the_device_has_done_what_was_launched),
                cmocka_unit_test(
                        test_a_step_whose_kernel_waits_for_others_times_out_by_name_and_the_gate_opens),
                cmocka_unit_test(
                        test_a_capture_that_begins_in_a_step_comes_to_its_end_and_its_graph_is_one_launch),
                cmocka_unit_test(
                        test_ranks_that_are_threads_with_contexts_of_their_own_come_to_rest),
                cmocka_unit_test(test_a_step_of_a_gate_that_is_open_is_nonsense),
                cmocka_unit_test(test_a_manager_that_is_lost_in_a_step_leaves_an_open_gate),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
