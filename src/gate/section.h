/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_SECTION_H
#define GATE_SECTION_H

/*
 * No signal handler of the program runs in the middle of a section. A handler that calls the driver while its thread has one of
 * the gate's locks would wait for itself, and one that leaves by longjmp() would leave the lock locked for ever.
 *
 * Whoever has a mutex is in a section: the linker puts functions of section.c in the place of those that lock and unlock
 * (as in uncancelled.c). Sections are short. What waits for long does so outside of them, and says what is to be undone
 * when it is left: leave.h.
 *
 * To block signals would cost two system calls for each lock: an allocation took ten times as long. So a section is a
 * count, and a signal that comes in one is put off until its end: signal.c is called before the handler.
 */

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <ucontext.h>

/* Of the kernel's set of signals, which is all that a ucontext_t of its has room for. */
#define SIGNALS_SIZE (_NSIG / 8)

/* section_begin() - begin a section, or go one deeper. section_end() - when the outermost ends, what was put off is handled. */
void section_begin(void);
void section_end(void);

/*
 * section_pause() - let handlers run in the middle of a section, for a wait that may be long while something is locked.
 * Returns how deep the thread was in, for section_resume().
 */
unsigned int section_pause(void);
void section_resume(unsigned int depth);

/* section_may_put_off() - not what an instruction raises. */
bool section_may_put_off(int signal);

/*
 * section_put_off() - the signal of @info has interrupted @context: shall it be handled only later? Then it comes again at the end of
 * the section, and until then the thread gets no other.
 */
bool section_put_off(const siginfo_t *info, ucontext_t *context);

/* What else locks a mutex: pthread_mutex_trylock() and pthread_mutex_clocklock() of CLOCK_MONOTONIC. */
int section_try_lock(pthread_mutex_t *mutex);
int section_lock_until(pthread_mutex_t *mutex, const struct timespec *until);

#endif
