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
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/paths.h"
#include "base/size.h"
#include "base/test.h"
#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/drain.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/fake-maker.h"
#include "gate/leave.h"
#include "gate/section.h"
#include "gate/ticket.h"

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

static void note(int signal)
{
        (void)signal;
        n_handled++;
}

/* As a thread of the program is with each lock of the gate. */
static void raise_in_section(int signal, unsigned int n_before)
{
        section_begin();
        check(raise(signal) == 0);
        check(n_handled == n_before);
        section_end();
}

FAKE_TEST(test_a_handler_for_one_signal_is_put_off_and_then_gone)
{
        struct sigaction old;

        start(note, SA_RESETHAND);
        raise_in_section(SIGUSR1, 0);
        check(n_handled == 1);
        check(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
        check(sysv_signal(SIGUSR1, note) == SIG_DFL);
        check(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == note);
        check(old.sa_flags & SA_RESETHAND && old.sa_flags & SA_NODEFER);
        check(raise(SIGUSR1) == 0 && n_handled == 2);
        check(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
}

static void raise_again(int signal)
{
        if (n_handled++ == 0)
                check(raise(signal) == 0 && n_handled == 2);
}

FAKE_TEST(test_a_handler_may_interrupt_itself_where_it_says_so)
{
        start(raise_again, SA_NODEFER);
        raise_in_section(SIGUSR1, 0);
        check(n_handled == 2);
}

/* Both are blocked but in the wait, and the first handler asks for the second. */
FAKE_TEST(test_what_a_wait_for_signals_lets_in_its_handlers_let_in)
{
        struct sigaction action = { .sa_handler = note };
        sigset_t both, none;

        start(raise_again, 0);
        check(sigaction(SIGUSR2, &action, NULL) == 0);
        sigemptyset(&none);
        sigemptyset(&both);
        sigaddset(&both, SIGUSR1);
        sigaddset(&both, SIGUSR2);
        check(sigprocmask(SIG_BLOCK, &both, NULL) == 0);
        check(raise(SIGUSR1) == 0 && raise(SIGUSR2) == 0 && n_handled == 0);
        check(sigsuspend(&none) == -1 && n_handled >= 2);
}

FAKE_TEST(test_several_signals_in_a_section_come_at_its_end)
{
        struct sigaction action = { .sa_handler = note };

        start(note, 0);
        check(sigaction(SIGUSR2, &action, NULL) == 0);
        section_begin();
        check(raise(SIGUSR1) == 0 && raise(SIGUSR2) == 0 && raise(SIGUSR2) == 0 && n_handled == 0);
        section_end();
        check(n_handled == 3 || n_handled == 2); /* two equal ones may be one */
}

/* They take what is blocked, in which the gate has no part. */
FAKE_TEST(test_who_waits_for_a_blocked_signal_gets_it)
{
        struct signalfd_siginfo info;
        sigset_t one;
        int fd, signal;

        start(note, 0);
        sigemptyset(&one);
        sigaddset(&one, SIGUSR1);
        check(sigprocmask(SIG_BLOCK, &one, NULL) == 0);
        raise_in_section(SIGUSR1, 0);
        check(sigwait(&one, &signal) == 0 && signal == SIGUSR1);
        raise_in_section(SIGUSR1, 0);
        fd = signalfd(-1, &one, SFD_CLOEXEC);
        check(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == SIGUSR1);
        check(n_handled == 0);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
FAKE_TEST(test_a_held_signal_is_said_to_be_held)
{
        start(note, 0);
        check(sigset(SIGUSR1, SIG_HOLD) == note);
        check(raise(SIGUSR1) == 0 && n_handled == 0);
        check(sigset(SIGUSR1, note) == SIG_HOLD && n_handled == 1);
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

static CUresult initialised;

static void *initialise(void *unused)
{
        (void)unused;
        initialised = cuInit(0);
        is_out = true;
        return NULL;
}

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static char directory[] = "/tmp/gate-leave-XXXXXX";

static void remove_place(void)
{
        unlink(address.sun_path);
        rmdir(directory);
}

/* A manager of a vGPU that is suspended: it is there, and answers later. Returns where it listens; -1: it does not. */
static int start_silent_manager(bool is_listening)
{
        int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        check(mkdtemp(directory) && atexit(remove_place) == 0);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/" PATHS_GATE_SOCKET, directory);
        if (is_listening) {
                check(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
                check(listen(listener, 1) == 0);
        }
        fake_host("1xH200:2G");
        check(setenv("OPENVGPU_VGPU", "11112222-3333-4444-5555-666677778888", 1) == 0);
        check(setenv("OPENVGPU_RUN", directory, 1) == 0);
        return listener;
}

static void handle_with(void (*handler)(int signal))
{
        struct sigaction action = { .sa_handler = handler };

        check(sigaction(SIGUSR1, &action, NULL) == 0);
}

static pthread_t start_thread(void *(*body)(void *unused))
{
        pthread_t thread;

        check(pthread_create(&thread, NULL, body, NULL) == 0);
        return thread;
}

/* Again and again: where it waits is not seen from here. */
static void interrupt(pthread_t thread, unsigned int n)
{
        for (unsigned int before = n_handled, i = 1; i <= n; i++) {
                usleep(20000); /* it waits again */
                check(pthread_kill(thread, SIGUSR1) == 0);
                for (int tries = 0; n_handled < before + i && tries < 5000; tries++)
                        usleep(1000);
                check(n_handled == before + i);
        }
}

FAKE_TEST(test_handlers_run_however_often_while_the_manager_does_not_answer)
{
        int listener = start_silent_manager(true);
        pthread_t first, second;

        handle_with(note);
        first = start_thread(initialise);
        check(accept(listener, NULL, NULL) >= 0);
        second = start_thread(initialise); /* waits for the first */
        interrupt(first, 5);
        interrupt(second, 5);
        remove_place();
}

FAKE_TEST(test_handlers_run_while_there_is_no_manager)
{
        (void)start_silent_manager(false);
        handle_with(note);
        interrupt(start_thread(initialise), 5);
        remove_place();
}

static void initialise_again(int signal)
{
        (void)signal;
        check(cuInit(0) == CUDA_ERROR_SYSTEM_NOT_READY);
        n_handled++;
        siglongjmp(out, 1);
}

static void *initialise_and_jump(void *unused)
{
        if (sigsetjmp(out, 1) == 0)
                return initialise(unused);
        return NULL;
}

FAKE_TEST(test_who_has_left_the_join_by_a_jump_lets_others_join)
{
        int listener = start_silent_manager(true), first, second;
        pthread_t thread;

        handle_with(initialise_again);
        thread = start_thread(initialise_and_jump);
        first = accept(listener, NULL, NULL);
        interrupt(thread, 1);
        check(pthread_join(thread, NULL) == 0);
        start_thread(initialise);
        second = accept(listener, NULL, NULL);
        check(first >= 0 && second >= 0);
        check(read(first, out, 1) >= 0 &&
              read(first, out, 1) == 0); /* what was said, and the end */
        remove_place();
}

static void end_process(int signal)
{
        (void)signal;
        exit(0);
}

static void initialise_at_the_end(void)
{
        check(cuInit(0) == CUDA_ERROR_SYSTEM_NOT_READY);
}

FAKE_TEST(test_a_process_whose_handler_ends_it_need_not_join)
{
        int listener = start_silent_manager(true);
        pthread_t thread;

        handle_with(end_process);
        check(atexit(initialise_at_the_end) == 0);
        thread = start_thread(initialise);
        check(accept(listener, NULL, NULL) >= 0);
        check(pthread_kill(thread, SIGUSR1) == 0);
        for (;;)
                pause();
}

static pthread_t joining;

static void wait_for_thread(void)
{
        check(pthread_join(joining, NULL) == 0);
        check(initialised == CUDA_ERROR_DEINITIALIZED);
}

FAKE_TEST(test_who_waits_for_the_manager_is_told_that_the_process_ends)
{
        int listener = start_silent_manager(true);

        check(atexit(wait_for_thread) == 0);
        joining = start_thread(initialise);
        check(accept(listener, NULL, NULL) >= 0);
        exit(0);
}

/* Memory of another process, for which the manager has to be asked. */

static CUresult import_piece(void)
{
        CUmemGenericAllocationHandle handle;
        struct gate_ticket ticket;
        CUresult result;
        int fd;

        fake_maker_identify(&ticket, FAKE_PIECE_NAME);
        ticket.size = FAKE_PIECE;
        fd = ticket_to_fd(&ticket);
        check(fd >= 0);
        result = cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        close(fd);
        return result;
}

static _Atomic unsigned int n_imported;

static void *import_in_thread(void *unused)
{
        (void)unused;
        if (sigsetjmp(out, 1) == 0)
                check_answer(import_piece(), CUDA_SUCCESS);
        pthread_testcancel();
        n_imported++;
        return NULL;
}

static struct gate_import receive_question(void)
{
        union {
                struct gate_header header;
                struct gate_import import;
                char bytes[PACKET_SIZE_MAX];
        } message;
        size_t size;

        do
                check(fake_receive(&message, &size) == 0);
        while (message.header.message != GATE_IMPORT);
        return message.import;
}

static pthread_t start_import(void (*handler)(int signal), struct gate_import *ret_question)
{
        pthread_t thread;

        start(handler, 0);
        fake_maker_start(0);
        thread = start_thread(import_in_thread);
        *ret_question = receive_question();
        return thread;
}

/* The manager may have been told what memory we have, and has not read it. */
static void check_that_no_import_counts(void)
{
        uint32_t entry;

        check(!caller_find_busy(&entry) && caller_count_waiting() == 0 && !leave_is_any());
}

static void check_that_imports_work(void)
{
        pthread_t thread = start_thread(import_in_thread);
        struct gate_import question = receive_question();

        fake_maker_answer(&question);
        check(pthread_join(thread, NULL) == 0);
        check_that_no_import_counts();
}

FAKE_TEST(test_handlers_run_while_an_import_waits)
{
        struct gate_import question;
        pthread_t thread = start_import(note, &question), second;

        second = start_thread(import_in_thread); /* waits for the first */
        interrupt(thread, 5);
        interrupt(second, 5);
        fake_maker_answer(&question);
        question = receive_question();
        fake_maker_answer(&question);
        check(pthread_join(thread, NULL) == 0 && pthread_join(second, NULL) == 0);
        check(n_imported == 2);
        check_that_no_import_counts();
}

static void import_in_handler(int signal)
{
        (void)signal;
        check_answer(import_piece(), CUDA_SUCCESS);
        check(cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT); /* the thread has none */
        n_handled++;
}

FAKE_TEST(test_a_handler_in_an_import_may_import)
{
        struct gate_import question, of_handler;
        pthread_t thread = start_import(import_in_handler, &question);

        check(pthread_kill(thread, SIGUSR1) == 0);
        of_handler = receive_question();
        fake_maker_answer(&question); /* too late */
        fake_maker_answer(&of_handler);
        question = receive_question();
        check(n_handled == 1);
        fake_maker_answer(&question);
        check(pthread_join(thread, NULL) == 0);
        check_that_imports_work();
}

FAKE_TEST(test_an_import_that_was_left_by_a_jump_is_asked_for_no_more)
{
        struct gate_import question;
        pthread_t thread = start_import(jump_out, &question);

        check(pthread_kill(thread, SIGUSR1) == 0);
        check(pthread_join(thread, NULL) == 0 && n_handled == 1);
        fake_maker_answer(&question);
        check_that_imports_work();
}

static void end_thread(int signal)
{
        (void)signal;
        pthread_exit(NULL);
}

FAKE_TEST(test_so_is_one_of_a_thread_that_has_ended)
{
        struct gate_import question;
        pthread_t thread = start_import(end_thread, &question);

        check(pthread_kill(thread, SIGUSR1) == 0);
        check(pthread_join(thread, NULL) == 0 && n_imported == 0);
        check_that_imports_work();
}

static void use_stack(void *unused)
{
        char bytes[16384];

        (void)unused;
        memset(bytes, 0xff, sizeof(bytes));
        __asm__ volatile("" : : "r"(bytes) : "memory");
}

static void *import_and_clean_up(void *unused)
{
        pthread_cleanup_push(use_stack, NULL);
        (void)import_in_thread(unused);
        pthread_cleanup_pop(0);
        return NULL;
}

/* What was on its stack is overwritten by what runs at its end. */
FAKE_TEST(test_also_of_one_that_cleans_up)
{
        pthread_t thread;

        start(end_thread, 0);
        fake_maker_start(0);
        thread = start_thread(import_and_clean_up);
        (void)receive_question();
        check(pthread_kill(thread, SIGUSR1) == 0);
        check(pthread_join(thread, NULL) == 0 && n_imported == 0);
        check_that_imports_work();
}

FAKE_TEST(test_a_cancelled_thread_ends_behind_its_import)
{
        struct gate_import question;
        pthread_t thread = start_import(note, &question);
        void *result;

        check(pthread_cancel(thread) == 0);
        fake_maker_answer(&question);
        check(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        check_that_imports_work();
}

FAKE_TEST(test_a_process_whose_handler_ends_it_in_an_import_ends)
{
        struct gate_import question;
        pthread_t thread = start_import(end_process, &question);

        check(pthread_kill(thread, SIGUSR1) == 0);
        for (;;)
                pause();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_program_is_told_of_the_handlers_that_it_has_set),
                cmocka_unit_test(test_a_handler_for_one_signal_is_put_off_and_then_gone),
                cmocka_unit_test(test_a_handler_may_interrupt_itself_where_it_says_so),
                cmocka_unit_test(test_what_a_wait_for_signals_lets_in_its_handlers_let_in),
                cmocka_unit_test(test_several_signals_in_a_section_come_at_its_end),
                cmocka_unit_test(test_who_waits_for_a_blocked_signal_gets_it),
                cmocka_unit_test(test_a_held_signal_is_said_to_be_held),
                cmocka_unit_test(test_a_call_that_was_left_by_a_jump_does_not_count),
                cmocka_unit_test(test_so_it_is_from_a_stack_for_handlers),
                cmocka_unit_test(test_a_jump_within_a_handler_leaves_no_call),
                cmocka_unit_test(test_nor_does_one_on_a_stack_for_handlers),
                cmocka_unit_test(test_a_wait_that_was_left_by_a_jump_does_not_count),
                cmocka_unit_test(
                        test_a_handler_that_calls_the_driver_waits_until_the_gate_holds_nothing),
                cmocka_unit_test(test_a_handler_in_a_wait_for_room_does_not_pass_the_closed_gate),
                cmocka_unit_test(test_handlers_run_however_often_while_the_manager_does_not_answer),
                cmocka_unit_test(test_handlers_run_while_there_is_no_manager),
                cmocka_unit_test(test_who_has_left_the_join_by_a_jump_lets_others_join),
                cmocka_unit_test(test_a_process_whose_handler_ends_it_need_not_join),
                cmocka_unit_test(test_who_waits_for_the_manager_is_told_that_the_process_ends),
                cmocka_unit_test(test_handlers_run_while_an_import_waits),
                cmocka_unit_test(test_a_handler_in_an_import_may_import),
                cmocka_unit_test(test_an_import_that_was_left_by_a_jump_is_asked_for_no_more),
                cmocka_unit_test(test_so_is_one_of_a_thread_that_has_ended),
                cmocka_unit_test(test_also_of_one_that_cleans_up),
                cmocka_unit_test(test_a_cancelled_thread_ends_behind_its_import),
                cmocka_unit_test(test_a_process_whose_handler_ends_it_in_an_import_ends),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
