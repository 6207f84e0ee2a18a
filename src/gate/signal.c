/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigaction(), signal() and its relatives as the program finds them, because the gate is loaded before libc. Its handlers are
 * called by way of ours, which puts off what comes in the middle of a section (section.h). Ours is set with the flags and the mask that
 * the program has given, so all else is the kernel's doing: what is blocked in a handler, SA_NODEFER, sigsuspend(). Only a handler for
 * one signal (SA_RESETHAND) would be gone when what was put off comes again: so it is reset here, when it runs. What an
 * instruction raises is not put off: those handlers are the program's own.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gate/section.h"

typedef int (*sigaction_function)(int, const struct sigaction *, struct sigaction *);

static sigaction_function next_sigaction;

static struct handler {
        _Atomic(void *) function;
        _Atomic int flags;
        sigset_t mask;
} handlers[NSIG];

static void find_next(void)
{
        void *symbol = dlsym(RTLD_NEXT, "sigaction");

        memcpy(&next_sigaction, &symbol, sizeof(symbol));
}

/* At once: dlsym() is nothing for a signal handler. */
static __attribute__((constructor)) void prepare(void)
{
        find_next();
}

/* NULL: in another thread it runs already, and this signal gets what the kernel does by default. */
static void *take_once(int signal)
{
        const struct sigaction none = { .sa_handler = SIG_DFL };
        void *function = atomic_exchange(&handlers[signal].function, NULL);

        (void)next_sigaction(signal, &none, NULL);
        if (!function)
                (void)raise(signal);
        return function;
}

static void handle(int signal, siginfo_t *info, void *argument)
{
        int flags = atomic_load(&handlers[signal].flags);
        void *function;

        if (section_put_off(info, argument))
                return;
        function =
                flags & SA_RESETHAND ? take_once(signal) : atomic_load(&handlers[signal].function);
        if (!function)
                return;
        if (flags & SA_SIGINFO) {
                void (*with_info)(int, siginfo_t *, void *);

                memcpy(&with_info, &function, sizeof(function));
                with_info(signal, info, argument);
        } else {
                void (*plain)(int);

                memcpy(&plain, &function, sizeof(function));
                plain(signal);
        }
}

static bool is_ours(int signal, const struct sigaction *action)
{
        return section_may_put_off(signal) && action->sa_handler != SIG_DFL &&
               action->sa_handler != SIG_IGN && action->sa_handler != SIG_ERR;
}

static struct sigaction get(const struct handler *handler)
{
        void *function = atomic_load(&handler->function);
        struct sigaction action = { .sa_mask = handler->mask,
                                    .sa_flags = atomic_load(&handler->flags) };

        memcpy(&action.sa_handler, &function, sizeof(function));
        return action;
}

static void set(struct handler *handler, const struct sigaction *action)
{
        void *function;

        memcpy(&function, &action->sa_handler, sizeof(function));
        handler->mask = action->sa_mask;
        atomic_store(&handler->flags, action->sa_flags);
        atomic_store(&handler->function, function);
}

static int act(int signal, const struct sigaction *action, struct sigaction *ret_old)
{
        struct sigaction old, known, passed;
        int r;

        if (!next_sigaction) /* from a constructor before ours */
                find_next();
        if (signal <= 0 || signal >= NSIG)
                return next_sigaction(signal, action, ret_old);
        known = get(&handlers[signal]);
        if (action && is_ours(signal, action)) {
                passed = (struct sigaction){ .sa_sigaction = handle,
                                             .sa_mask = action->sa_mask,
                                             .sa_flags = (action->sa_flags & ~SA_RESETHAND) |
                                                         SA_SIGINFO };
                set(&handlers[signal], action);
                action = &passed;
        }
        r = next_sigaction(signal, action, &old);
        if (r < 0 && action == &passed)
                set(&handlers[signal], &known);
        if (r == 0 && ret_old)
                *ret_old = old.sa_flags & SA_SIGINFO && old.sa_sigaction == handle ? known : old;
        return r;
}

/* In the kernel's structure the restorer is the C library's. */
__attribute__((visibility("default"))) int sigaction(int signal, const struct sigaction *action,
                                                     struct sigaction *ret_old)
{
        return act(signal, action, ret_old);
}

static __sighandler_t set_with(int signal, __sighandler_t function, int flags)
{
        struct sigaction action = { .sa_handler = function, .sa_flags = flags }, old;

        sigemptyset(&action.sa_mask);
        return act(signal, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

#define OF_BSD  SA_RESTART
#define OF_SYSV (SA_RESETHAND | SA_NODEFER)

/* @name in the C library is that of @flags; a strict program has __sysv_signal() for signal(). */
#define SIGNAL(name, flags)                                                                  \
        __attribute__((visibility("default"))) __sighandler_t name(int signal,               \
                                                                   __sighandler_t function); \
        __sighandler_t name(int signal, __sighandler_t function)                             \
        {                                                                                    \
                return set_with(signal, function, flags);                                    \
        }

SIGNAL(signal, OF_BSD)
SIGNAL(bsd_signal, OF_BSD)
SIGNAL(ssignal, OF_BSD)
SIGNAL(sysv_signal, OF_SYSV)
SIGNAL(__sysv_signal, OF_SYSV)

/* The handler as of System V's other interface, with the signal blocked in it; SIG_HOLD blocks it instead. */
__attribute__((visibility("default"))) __sighandler_t sigset(int signal, __sighandler_t function)
{
        __sighandler_t old = SIG_ERR;
        struct sigaction known;
        sigset_t one, blocked;

        sigemptyset(&one);
        if (sigaddset(&one, signal) < 0 || act(signal, NULL, &known) < 0)
                return SIG_ERR;
        old = function == SIG_HOLD ? known.sa_handler : set_with(signal, function, 0);
        if (old == SIG_ERR ||
            sigprocmask(function == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &one, &blocked) < 0)
                return SIG_ERR;
        return sigismember(&blocked, signal) ? SIG_HOLD : old;
}
