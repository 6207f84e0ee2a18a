/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigaction() and signal() as the program finds them, because the gate is loaded before libc. Its handlers are called by
 * way of ours, which puts off what comes in the middle of a section (section.h). What an instruction raises is not put
 * off, and a handler for one signal only (SA_RESETHAND) would be gone when it comes again: these are the program's own.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gate/section.h"

typedef int (*sigaction_function)(int, const struct sigaction *, struct sigaction *);

static struct {
        sigaction_function next;
        sigset_t raised, all; /* all but these */
        struct handler {
                _Atomic(void *) function;
                _Atomic int flags;
                sigset_t mask;
        } of[NSIG];
} handlers;

static void find_next(void)
{
        static const int raised[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
        void *symbol = dlsym(RTLD_NEXT, "sigaction");

        sigfillset(&handlers.all);
        sigemptyset(&handlers.raised);
        for (size_t i = 0; i < sizeof(raised) / sizeof(raised[0]); i++) {
                sigaddset(&handlers.raised, raised[i]);
                sigdelset(&handlers.all, raised[i]);
        }
        memcpy(&handlers.next, &symbol, sizeof(symbol));
}

/* At once: dlsym() is nothing for a signal handler. */
static __attribute__((constructor)) void prepare(void)
{
        find_next();
}

/* All signals are blocked. The handler runs with those blocked that it was to have blocked. */
static void handle(int signal, siginfo_t *info, void *argument)
{
        const struct handler *handler = &handlers.of[signal];
        void *function = atomic_load(&handler->function);
        int flags = atomic_load(&handler->flags);
        ucontext_t *context = argument;
        sigset_t mask = handler->mask;
        size_t i;

        if (section_put_off(info, context, &handlers.all))
                return;
        for (i = 0; i < SIGNALS_SIZE; i++)
                ((unsigned char *)&mask)[i] |= ((const unsigned char *)&context->uc_sigmask)[i];
        if (!(flags & SA_NODEFER))
                sigaddset(&mask, signal);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        if (flags & SA_SIGINFO) {
                void (*with_info)(int, siginfo_t *, void *);

                memcpy(&with_info, &function, sizeof(function));
                with_info(signal, info, context);
        } else {
                void (*plain)(int);

                memcpy(&plain, &function, sizeof(function));
                plain(signal);
        }
}

static bool is_ours(int signal, const struct sigaction *action)
{
        return signal > 0 && signal < NSIG && !sigismember(&handlers.raised, signal) &&
               !(action->sa_flags & SA_RESETHAND) && action->sa_handler != SIG_DFL &&
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

        if (!handlers.next) /* from a constructor before ours */
                find_next();
        if (signal <= 0 || signal >= NSIG)
                return handlers.next(signal, action, ret_old);
        known = get(&handlers.of[signal]);
        if (action && is_ours(signal, action)) {
                passed = (struct sigaction){ .sa_sigaction = handle,
                                             .sa_mask = handlers.all,
                                             .sa_flags = action->sa_flags | SA_SIGINFO };
                set(&handlers.of[signal], action);
                action = &passed;
        }
        r = handlers.next(signal, action, &old);
        if (r < 0 && action == &passed)
                set(&handlers.of[signal], &known);
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

/* As of BSD, which is what the C library has under this name. */
__attribute__((visibility("default"))) __sighandler_t signal(int signal, __sighandler_t function)
{
        struct sigaction action = { .sa_handler = function, .sa_flags = SA_RESTART }, old;

        sigemptyset(&action.sa_mask);
        sigaddset(&action.sa_mask, signal);
        return act(signal, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}
