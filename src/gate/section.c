/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/section.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OF_THREAD static __attribute__((tls_model("initial-exec"))) __thread

OF_THREAD volatile unsigned int depth;

/* What came in the section is pending, and blocked as all others are. */
OF_THREAD volatile sig_atomic_t is_put_off;
OF_THREAD sigset_t before; /* blocked when it came */

/* What an instruction raises cannot wait. */
static const int raised[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };

bool section_may_put_off(int signal)
{
        for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++)
                if (raised[i] == signal)
                        return false;
        return true;
}

/* The mask is the program's again: the handler runs before this returns. */
static __attribute__((noinline, cold)) void deliver(void)
{
        int saved_errno = errno;

        is_put_off = 0;
        sigprocmask(SIG_SETMASK, &before, NULL); /* of this thread */
        errno = saved_errno;
}

void section_begin(void)
{
        depth = depth + 1;
        atomic_signal_fence(memory_order_seq_cst);
}

void section_end(void)
{
        atomic_signal_fence(memory_order_seq_cst);
        depth = depth - 1;
        atomic_signal_fence(memory_order_seq_cst);
        if (depth == 0 && is_put_off)
                deliver();
}

unsigned int section_pause(void)
{
        unsigned int n = depth;

        depth = 0;
        if (is_put_off)
                deliver();
        return n;
}

void section_resume(unsigned int n)
{
        depth = n;
}

static void block_all(sigset_t *ret_all)
{
        sigfillset(ret_all);
        for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++)
                sigdelset(ret_all, raised[i]);
        sigprocmask(SIG_SETMASK, ret_all, NULL);
}

/* Another signal may come until all are blocked. It is put off within, so what is noted here comes last and holds. */
bool section_put_off(const siginfo_t *info, ucontext_t *context)
{
        int saved_errno = errno;
        siginfo_t again = *info;
        sigset_t all;

        if (depth == 0)
                return false;
        block_all(&all);
        /* Without what came with it where that is forbidden (seccomp), or too many are under way. */
        if (syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), again.si_signo, &again) <
            0)
                (void)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), again.si_signo);
        sigemptyset(&before);
        memcpy(&before, &context->uc_sigmask, SIGNALS_SIZE);
        memcpy(&context->uc_sigmask, &all, SIGNALS_SIZE);
        is_put_off = 1;
        errno = saved_errno;
        return true;
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

static int end_unless_locked(int r)
{
        if (r != 0)
                section_end();
        return r;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
        section_begin();
        return end_unless_locked(__real_pthread_mutex_lock(mutex));
}

int section_try_lock(pthread_mutex_t *mutex)
{
        section_begin();
        return end_unless_locked(pthread_mutex_trylock(mutex));
}

int section_lock_until(pthread_mutex_t *mutex, const struct timespec *until)
{
        section_begin();
        return end_unless_locked(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, until));
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
        int r = __real_pthread_mutex_unlock(mutex);

        section_end();
        return r;
}
