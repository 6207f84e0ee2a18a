/* SPDX-License-Identifier: Apache-2.0 */
/* Signal handlers of the program that interrupt the gate: they call the driver, or leave by longjmp(). */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/drain.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"

static sigjmp_buf out;
static _Atomic unsigned int n_handled;
static _Atomic bool is_out, is_in_driver;

static void start(void (*handler)(int signal), int flags)
{
        struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

        fake_guest_start(GIB);
        check(sigaction(SIGUSR1, &action, NULL) == 0);
}

static void stand_in(entry_function *where, entry_function function)
{
        memcpy(where, &function, sizeof(function));
}

static void check_that_no_call_counts(void)
{
        uint32_t entry;

        check(!caller_find_busy(&entry));
        fake_guest_close();
        fake_guest_command(GATE_OPEN);
}

static void jump_out(int signal)
{
        (void)signal;
        n_handled++;
        siglongjmp(out, 1);
}

FAKE_TEST(test_a_program_is_told_of_the_handlers_that_it_has_set)
{
        struct sigaction old;

        start(jump_out, SA_RESTART);
        check(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == jump_out);
        check(!(old.sa_flags & SA_SIGINFO) && old.sa_flags & SA_RESTART);
        check(signal(SIGUSR1, SIG_IGN) == jump_out && signal(SIGUSR1, SIG_DFL) == SIG_IGN);
}

static CUresult interrupted(void)
{
        check(raise(SIGUSR1) == 0);
        return CUDA_SUCCESS;
}

FAKE_TEST(test_a_call_that_was_left_by_a_jump_does_not_count)
{
        start(jump_out, 0);
        stand_in(&entry_target[ENTRY_cuCtxSynchronize], (entry_function)interrupted);
        for (volatile int i = 0; i < 100; i++) /* more than there are frames */
                if (sigsetjmp(out, 1) == 0)
                        check(cuCtxSynchronize() != CUDA_SUCCESS); /* does not return */
        check(n_handled == 100);
        check_that_no_call_counts();
}

FAKE_TEST(test_so_it_is_from_a_stack_for_handlers)
{
        stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

        start(jump_out, SA_ONSTACK);
        check(sigaltstack(&stack, NULL) == 0);
        stand_in(&entry_target[ENTRY_cuCtxSynchronize], (entry_function)interrupted);
        if (sigsetjmp(out, 1) == 0)
                check(cuCtxSynchronize() != CUDA_SUCCESS);
        check_that_no_call_counts();
}

static void jump_within(int signal)
{
        jmp_buf within;

        (void)signal;
        if (setjmp(within) == 0)
                longjmp(within, 1);
        n_handled++;
}

static CUresult still_counts(void)
{
        uint32_t entry;

        check(raise(SIGUSR1) == 0 && n_handled == 1);
        check(caller_find_busy(&entry) && entry == ENTRY_cuCtxSynchronize);
        return CUDA_SUCCESS;
}

static void check_a_jump_within(int flags)
{
        start(jump_within, flags);
        stand_in(&entry_target[ENTRY_cuCtxSynchronize], (entry_function)still_counts);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check_that_no_call_counts();
}

FAKE_TEST(test_a_jump_within_a_handler_leaves_no_call)
{
        check_a_jump_within(0);
}

/* That stack may lie above the one that was interrupted. */
FAKE_TEST(test_nor_does_one_on_a_stack_for_handlers)
{
        char place[1 << 16];
        stack_t stack = { .ss_sp = place, .ss_size = sizeof(place) };

        check(sigaltstack(&stack, NULL) == 0);
        check_a_jump_within(SA_ONSTACK);
}

static void *wait_at_the_gate(void *unused)
{
        CUcontext context;

        (void)unused;
        if (sigsetjmp(out, 1) == 0)
                (void)cuCtxGetCurrent(&context);
        is_out = true;
        return NULL;
}

FAKE_TEST(test_a_wait_that_was_left_by_a_jump_does_not_count)
{
        pthread_t thread;

        start(jump_out, 0);
        fake_guest_close();
        check(pthread_create(&thread, NULL, wait_at_the_gate, NULL) == 0);
        while (caller_count_waiting() == 0)
                usleep(100);
        check(pthread_kill(thread, SIGUSR1) == 0);
        while (!is_out)
                usleep(100);
        check(caller_count_waiting() == 0);
        check(pthread_join(thread, NULL) == 0);
        fake_guest_command(GATE_OPEN);
}

static CUstream captured;

static void end_capture(int signal)
{
        CUgraph graph;

        (void)signal;
        check(!is_in_driver);
        check(cuStreamEndCapture(captured, &graph) == CUDA_SUCCESS);
        n_handled++;
}

static __typeof__(&cuStreamBeginCapture_v2) real_begin;

static CUresult begin_interrupted(CUstream stream, int mode)
{
        CUresult result;

        is_in_driver = true;
        check(raise(SIGUSR1) == 0);
        result = real_begin(stream, mode);
        is_in_driver = false;
        return result;
}

/* The handler needs a lock that the interrupted thread has. */
FAKE_TEST(test_a_handler_that_calls_the_driver_waits_until_the_gate_holds_nothing)
{
        start(end_capture, 0);
        check(cuStreamCreate(&captured, 0) == CUDA_SUCCESS);
        real_begin = DRIVER(cuStreamBeginCapture_v2);
        stand_in(&entry_real[ENTRY_cuStreamBeginCapture_v2], (entry_function)begin_interrupted);
        check(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
        check(n_handled == 1 && !capture_is_active());
        check_that_no_call_counts();
}

static _Atomic unsigned int n_in_driver;

static CUresult count(void)
{
        n_in_driver++;
        return CUDA_SUCCESS;
}

static void synchronize(int signal)
{
        (void)signal;
        n_handled++;
        check(cuCtxSynchronize() == CUDA_SUCCESS);
}

static _Atomic bool may_return;

/* As a call that waits for room. */
static CUresult wait_aside(void)
{
        is_out = true;
        while (!may_return)
                caller_nap_aside(1000000);
        return CUDA_SUCCESS;
}

static void *call_and_wait(void *unused)
{
        (void)unused;
        check(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 0) == CUDA_SUCCESS);
        return NULL;
}

FAKE_TEST(test_a_handler_in_a_wait_for_room_does_not_pass_the_closed_gate)
{
        pthread_t thread;

        start(synchronize, 0);
        stand_in(&entry_target[ENTRY_cuCtxSetLimit], (entry_function)wait_aside);
        stand_in(&entry_target[ENTRY_cuCtxSynchronize], (entry_function)count);
        check(pthread_create(&thread, NULL, call_and_wait, NULL) == 0);
        while (!is_out)
                usleep(100);
        fake_guest_close();
        check(pthread_kill(thread, SIGUSR1) == 0);
        while (n_handled == 0 || caller_count_waiting() == 0)
                usleep(100);
        check(n_in_driver == 0);
        may_return = true;
        fake_guest_command(GATE_OPEN);
        check(pthread_join(thread, NULL) == 0 && n_in_driver == 1);
}

static void note(int signal)
{
        (void)signal;
        n_handled++;
}

static void *initialise(void *unused)
{
        (void)unused;
        (void)cuInit(0);
        return NULL;
}

/* As of a vGPU that is suspended: the manager is there, and answers later. */
FAKE_TEST(test_handlers_run_however_often_while_the_manager_does_not_answer)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct sigaction action = { .sa_handler = note };
        char directory[] = "/tmp/gate-leave-XXXXXX";
        pthread_t thread;
        int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), tries = 0;

        check(mkdtemp(directory));
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/" PATHS_GATE_SOCKET, directory);
        check(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
        check(listen(listener, 1) == 0);
        fake_host("1xH200:2G");
        check(setenv("OPENVGPU_VGPU", "11112222-3333-4444-5555-666677778888", 1) == 0);
        check(setenv("OPENVGPU_RUN", directory, 1) == 0);
        check(sigaction(SIGUSR1, &action, NULL) == 0);
        check(pthread_create(&thread, NULL, initialise, NULL) == 0);
        check(accept(listener, NULL, NULL) >= 0);
        for (unsigned int n = 1; n <= 5; n++) {
                usleep(50000); /* it waits again */
                check(pthread_kill(thread, SIGUSR1) == 0);
                while (n_handled < n && tries++ < 1000)
                        usleep(1000);
                check(n_handled == n);
        }
        unlink(address.sun_path);
        rmdir(directory);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_program_is_told_of_the_handlers_that_it_has_set),
                cmocka_unit_test(test_a_call_that_was_left_by_a_jump_does_not_count),
                cmocka_unit_test(test_so_it_is_from_a_stack_for_handlers),
                cmocka_unit_test(test_a_jump_within_a_handler_leaves_no_call),
                cmocka_unit_test(test_nor_does_one_on_a_stack_for_handlers),
                cmocka_unit_test(test_a_wait_that_was_left_by_a_jump_does_not_count),
                cmocka_unit_test(
                        test_a_handler_that_calls_the_driver_waits_until_the_gate_holds_nothing),
                cmocka_unit_test(test_a_handler_in_a_wait_for_room_does_not_pass_the_closed_gate),
                cmocka_unit_test(test_handlers_run_however_often_while_the_manager_does_not_answer),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
