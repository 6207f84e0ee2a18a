/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs' mark and the closing gate: wherever a thread is stopped on its way through a stub, the gate
 * either waits for it, or it does not get into the driver while the gate is closed.
 *
 * A thread goes through a stub with the processor's trap flag set, and so comes to the handler of SIGTRAP
 * after each instruction; at the one of this round it stays there while the gate closes.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "gate/caller.h"
#include "gate/drain.h"
#include "gate/entry.h"
#include "gate/fake-manager.h"
#include "gate/step.h"

#define TRAP_FLAG 0x100

#define SOON_NS    ((uint64_t)1000000)
#define PATIENT_NS ((uint64_t)20000000000)

/* No instruction but the stub's and the driver's is stopped at: the flag is set just before the call. */
extern void call_in_steps(entry_function function);
__asm__(".text\n"
        ".type call_in_steps, @function\n"
        "call_in_steps:\n"
        " subq $8, %rsp\n"
        " movq %rdi, %rax\n"
        " pushfq\n"
        " orq $0x100, (%rsp)\n"
        " popfq\n"
        " call *%rax\n"
        " pushfq\n"
        " andq $-0x101, (%rsp)\n"
        " popfq\n"
        " addq $8, %rsp\n"
        " ret\n"
        ".size call_in_steps, . - call_in_steps\n");

static struct {
        _Atomic unsigned int at, n; /* where it shall stop, and how many steps it has made */
        _Atomic bool is_stopped, may_go_on, is_through;
        _Atomic unsigned int n_in_driver;
} walk;

__attribute__((no_sanitize("thread", "address"))) static void on_step(int signal, siginfo_t *info,
                                                                      void *argument)
{
        ucontext_t *context = argument;

        (void)signal;
        (void)info;
        if (walk.n++ != walk.at)
                return;
        context->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
        walk.is_stopped = true;
        while (!walk.may_go_on)
                (void)sched_yield();
}

__attribute__((no_sanitize("thread", "address"))) static CUresult in_driver(void)
{
        walk.n_in_driver++;
        return CUDA_SUCCESS;
}

static void *go_through(void *argument)
{
        uint32_t entry = *(const uint32_t *)argument;
        int version;

        check(cuDriverGetVersion(&version) == CUDA_SUCCESS); /* the thread has a record */
        call_in_steps(stub_address[entry]);
        walk.is_through = true;
        return NULL;
}

static int close_within(uint64_t ns)
{
        CUresult code = CUDA_SUCCESS;
        const char *call;

        return drain_close(clock_now(CLOCK_MONOTONIC) + ns, &call, &code);
}

static void wait_for(const _Atomic bool *this, const _Atomic bool *or_this)
{
        while (!*this && !*or_this)
                usleep(10);
}

/* A step lets it in, on a way of its own. */
static void check_that_a_step_lets_it_in(void)
{
        static _Atomic bool never;

        if (walk.is_through)
                return;
        step_begin(1, false);
        wait_for(&walk.is_through, &never);
        check(walk.n_in_driver == 1);
        (void)step_end();
}

/* With the gate closed: it comes as far as the gate, or it had nothing more to do. */
static void check_that_it_stays_out(unsigned int n_in_driver)
{
        uint32_t entry;

        walk.may_go_on = true;
        while (!walk.is_through && caller_count_waiting() == 0)
                usleep(10);
        check(!caller_find_busy(&entry));
        check(walk.n_in_driver == n_in_driver);
}

/* False when the thread has gone through without coming to the step. */
static bool try_step(uint32_t entry, unsigned int at)
{
        static _Atomic bool never;
        pthread_t thread;
        uint32_t busy;

        walk.at = at;
        walk.n = walk.n_in_driver = 0;
        walk.is_stopped = walk.may_go_on = walk.is_through = false;
        check(pthread_create(&thread, NULL, go_through, &entry) == 0);
        wait_for(&walk.is_stopped, &walk.is_through);
        if (walk.is_stopped) {
                if (caller_find_busy(&busy)) {
                        check(busy == entry && close_within(SOON_NS) == -ETIMEDOUT);
                } else {
                        check(close_within(PATIENT_NS) == 0);
                        check_that_it_stays_out(walk.n_in_driver);
                        check_that_a_step_lets_it_in();
                        drain_open();
                }
                walk.may_go_on = true;
        }
        wait_for(&walk.is_through, &never);
        check(pthread_join(thread, NULL) == 0);
        check(walk.n_in_driver == 1);
        return walk.is_stopped;
}

static void try_steps(uint32_t entry)
{
        entry_function stand_in = (entry_function)in_driver;
        unsigned int n = 0;

        memcpy(&entry_target[entry], &stand_in, sizeof(stand_in));
        while (try_step(entry, n))
                n++;
        check(n > 20); /* the stub has more */
}

FAKE_TEST(test_a_thread_stopped_anywhere_in_a_stub_is_seen_or_stays_out)
{
        struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };

        fake_host("1xH200:1G");
        check(cuInit(0) == CUDA_SUCCESS);
        check(drain_prepare() == 0);
        check(sigaction(SIGTRAP, &action, NULL) == 0);
        try_steps(ENTRY_cuCtxGetCurrent);  /* forward */
        try_steps(ENTRY_cuMemsetD8Async);  /* submit */
        try_steps(ENTRY_cuLaunchKernel);   /* launch */
        try_steps(ENTRY_cuCtxSynchronize); /* wait */
        try_steps(ENTRY_cuMemAlloc_v2);    /* own */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_thread_stopped_anywhere_in_a_stub_is_seen_or_stays_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
