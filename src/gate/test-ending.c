/* SPDX-License-Identifier: Apache-2.0 */
/* A process that ends while its gate is closed ends. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/caller.h"
#include "gate/fake-guest.h"
#include "gate/wait.h"

static CUdeviceptr pointer;
static pthread_t waiting;
static CUresult waited;

/* check() ends the process with another status. */
static void expect_all_to_be_told(void)
{
        check(wait_get_deadline() != 0);
        check(cuMemFree_v2(pointer) == CUDA_ERROR_DEINITIALIZED);
        check(clock_now(CLOCK_MONOTONIC) >= wait_get_deadline());
        check(cuMemAlloc_v2(&pointer, MIB) == CUDA_ERROR_DEINITIALIZED); /* at once: that was all */
        if (waiting) {
                check(pthread_join(waiting, NULL) == 0);
                check(waited == CUDA_ERROR_DEINITIALIZED);
        }
}

FAKE_TEST(test_what_an_exit_handler_asks_is_refused_after_a_moment)
{
        (void)fake_guest_start(GIB);
        check(cuMemAlloc_v2(&pointer, MIB) == CUDA_SUCCESS);
        check(atexit(expect_all_to_be_told) == 0);
        fake_guest_close();
        exit(0);
}

static void *wait_at_the_gate(void *unused)
{
        (void)unused;
        waited = cuMemsetD8_v2(pointer, 1, MIB);
        return NULL;
}

FAKE_TEST(test_whoever_waits_already_is_told_as_well)
{
        (void)fake_guest_start(GIB);
        check(cuMemAlloc_v2(&pointer, MIB) == CUDA_SUCCESS);
        check(atexit(expect_all_to_be_told) == 0);
        fake_guest_close();
        check(pthread_create(&waiting, NULL, wait_at_the_gate, NULL) == 0);
        while (caller_count_waiting() == 0)
                usleep(100);
        exit(0);
}

static void expect_an_answer(void)
{
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

/* Also one that is registered between two times that it closes, and of all times only the last counts. */
FAKE_TEST(test_what_an_exit_handler_asks_of_an_open_gate_is_answered)
{
        (void)fake_guest_start(GIB);
        check(cuMemAlloc_v2(&pointer, MIB) == CUDA_SUCCESS);
        fake_guest_close();
        fake_guest_command(GATE_OPEN);
        check(atexit(expect_an_answer) == 0);
        fake_guest_close();
        fake_guest_command(GATE_OPEN);
        check(wait_get_deadline() == 0);
        exit(0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_an_exit_handler_asks_is_refused_after_a_moment),
                cmocka_unit_test(test_whoever_waits_already_is_told_as_well),
                cmocka_unit_test(test_what_an_exit_handler_asks_of_an_open_gate_is_answered),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
