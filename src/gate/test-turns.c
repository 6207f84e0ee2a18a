/* SPDX-License-Identifier: Apache-2.0 */
/* Turns at the gate, as the threads of a guest see them. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "base/test.h"
#include "gate/fake-guest.h"
#include "gate/fake-manager.h"
#include "tests/guests/kernels.h"

#define GIB (1024ull * 1024 * 1024)

/* More than may be on the device at a time. */
#define LAUNCHES 100

static _Atomic bool may_go_on;

static void wait_for_the_thread(void *data)
{
        (void)data;
        while (!atomic_load(&may_go_on))
                usleep(1000);
}

/* The turn is the vGPU's, and others want the device too. */
static void take_turns(struct instance_page *page)
{
        const struct gate_watch_message watch = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_WATCH },
                .watch = GATE_WATCH_TURNS,
        };

        atomic_store(&page->turn, INSTANCE_PAGE_OPEN);
        atomic_store(&page->slot[FAKE_SLOT].work, UINT32_MAX);
        check(fake_send(&watch, sizeof(watch), NULL, 0) == 0);
        while (atomic_load(&page->slot[FAKE_SLOT].work) == UINT32_MAX)
                usleep(1000);
}

static CUfunction get_function(const char *name)
{
        CUfunction function;
        CUmodule module;

        check(cuModuleLoadData(&module, kernels) == CUDA_SUCCESS);
        check(cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
        return function;
}

static void launch(CUfunction add, CUdeviceptr words)
{
        uint64_t n = 256;
        uint32_t value = 1;
        void *parameters[] = { &words, &value, &n };

        check(cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL) == CUDA_SUCCESS);
}

/* What is on the device waits for this thread, which must not wait for it for ever. */
FAKE_TEST(test_work_that_waits_for_the_thread_does_not_stop_it)
{
        struct instance_page *page = fake_guest_start(GIB);
        CUfunction add = get_function("add");
        CUdeviceptr words;
        uint32_t result;

        take_turns(page);
        check(cuMemAlloc_v2(&words, 1024) == CUDA_SUCCESS);
        for (int round = 0; round < 2; round++) { /* also when it has happened before */
                atomic_store(&may_go_on, false);
                check(cuMemsetD32_v2(words, 0, 256) == CUDA_SUCCESS);
                check(cuLaunchHostFunc(NULL, wait_for_the_thread, NULL) == CUDA_SUCCESS);
                for (int i = 0; i < LAUNCHES; i++)
                        launch(add, words);
                atomic_store(&may_go_on, true);
                check(cuCtxSynchronize() == CUDA_SUCCESS);
                check(cuMemcpyDtoH_v2(&result, words, sizeof(result)) == CUDA_SUCCESS);
                check(result == LAUNCHES);
        }
}

static void watch(enum gate_watch how, bool wants_waiting)
{
        const struct gate_watch_message message = {
                .header = { GATE_WIRE_MAGIC, GATE_WIRE_VERSION, GATE_WATCH },
                .watch = how,
                .wants_waiting = wants_waiting,
        };

        check(fake_send(&message, sizeof(message), NULL, 0) == 0);
}

static void *call_driver(void *unused)
{
        int count;

        (void)unused;
        check(cuDeviceGetCount(&count) == CUDA_SUCCESS);
        return NULL;
}

static void wait_for_waiting(void)
{
        union {
                struct gate_header header;
                char bytes[16384];
        } message;
        size_t size = sizeof(message);

        check(fake_receive(&message, &size) == 0);
        check(size == sizeof(struct gate_waiting) && message.header.message == GATE_WAITING);
}

/* Each time that the gate is closed, whether the thread comes before or after that is asked for. */
FAKE_TEST(test_the_first_that_waits_at_the_closed_gate_is_told)
{
        pthread_t threads[2];

        fake_guest_start(GIB);
        watch(GATE_WATCH_REPORT, true);
        for (int round = 0; round < 2; round++) {
                check(fake_close(10000).error == 0);
                check(pthread_create(&threads[0], NULL, call_driver, NULL) == 0);
                wait_for_waiting();
                check(pthread_create(&threads[1], NULL, call_driver, NULL) == 0);
                check(fake_command(GATE_OPEN).error == 0); /* and not a second WAITING */
                for (int i = 0; i < 2; i++)
                        check(pthread_join(threads[i], NULL) == 0);
        }
        check(fake_close(10000).error == 0);
        check(pthread_create(&threads[0], NULL, call_driver, NULL) == 0);
        wait_for_waiting();
        watch(GATE_WATCH_REPORT, true); /* as a manager that has just come */
        wait_for_waiting();
        watch(GATE_WATCH_REPORT, false);
        check(fake_command(GATE_OPEN).error == 0);
        check(pthread_join(threads[0], NULL) == 0);
}

/* Of a process that has just joined, whose vGPU leaves before its gate has been asked for anything. */
FAKE_TEST(test_it_is_asked_for_first_when_the_gate_is_closed)
{
        pthread_t thread;

        fake_guest_start(GIB);
        check(fake_close(10000).error == 0);
        watch(GATE_WATCH_REPORT, true);
        check(pthread_create(&thread, NULL, call_driver, NULL) == 0);
        wait_for_waiting();
        check(fake_command(GATE_OPEN).error == 0);
        check(pthread_join(thread, NULL) == 0);
}

#define LONG_US   1000000
#define STEP_MS   100
#define WINDOW_MS 60000

static void *launch_long(void *busy)
{
        uint64_t us = LONG_US;
        void *parameters[] = { &us };

        fake_context();
        check(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL) == CUDA_SUCCESS);
        return NULL;
}

/* A step that has failed has opened the gate, so who waits at it the next time is told of as well. */
FAKE_TEST(test_who_waits_after_a_step_that_failed_is_told)
{
        struct gate_closed closed;
        pthread_t thread;
        CUfunction busy;

        fake_guest_start(GIB);
        busy = get_function("busy");
        watch(GATE_WATCH_REPORT, true);
        check(fake_close(10000).error == 0);
        check(pthread_create(&thread, NULL, launch_long, busy) == 0);
        wait_for_waiting();
        closed = fake_step(1, WINDOW_MS, STEP_MS);
        check(closed.error == ETIMEDOUT && closed.n_launches == 1);
        check(pthread_join(thread, NULL) == 0);
        check(fake_close(10000).error == 0);
        check(pthread_create(&thread, NULL, call_driver, NULL) == 0);
        wait_for_waiting();
        check(fake_command(GATE_OPEN).error == 0);
        check(pthread_join(thread, NULL) == 0);
}

/* Work that is over before anybody looks has been there. */
FAKE_TEST(test_work_is_counted)
{
        struct instance_page *page = fake_guest_start(GIB);
        struct instance_page_slot *slot = &page->slot[FAKE_SLOT];
        CUdeviceptr words;
        uint32_t before;

        check(cuMemAlloc_v2(&words, 1024) == CUDA_SUCCESS);
        watch(GATE_WATCH_REPORT, false);
        for (int round = 0; round < 2; round++) {
                while (atomic_load(&slot->n_works) == 0 ||
                       atomic_load(&slot->work) != INSTANCE_PAGE_IDLE)
                        usleep(1000);
                before = atomic_load(&slot->n_works);
                check(cuMemsetD32_v2(words, 0, 256) == CUDA_SUCCESS);
                check(cuCtxSynchronize() == CUDA_SUCCESS);
                check(atomic_load(&slot->n_works) > before);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_first_that_waits_at_the_closed_gate_is_told),
                cmocka_unit_test(test_it_is_asked_for_first_when_the_gate_is_closed),
                cmocka_unit_test(test_who_waits_after_a_step_that_failed_is_told),
                cmocka_unit_test(test_work_is_counted),
                cmocka_unit_test(test_work_that_waits_for_the_thread_does_not_stop_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
