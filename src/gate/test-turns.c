/* SPDX-License-Identifier: Apache-2.0 */
/* Turns at the gate, as the threads of a guest see them. */
#include <stdatomic.h>
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_work_that_waits_for_the_thread_does_not_stop_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
