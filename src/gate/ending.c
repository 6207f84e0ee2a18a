/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/ending.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "gate/fork-guard.h"
#include "gate/wait.h"

/* For all calls together. A swap for another vGPU is over by then. */
#define WAIT_NS 2000000000u

/* Of the C++ ABI: what atexit() is made of. The last registers under a name, the first runs all of a name and forgets them. */
void __cxa_finalize(void *name);
int __cxa_atexit(void (*function)(void *argument), void *argument, void *name);

static char name; /* its address is one */
static __thread bool is_forgetting;

static void begin(void *unused)
{
        (void)unused;
        if (is_forgetting)
                return;
        wait_end_at(clock_now(CLOCK_MONOTONIC) + WAIT_NS);
}

/* The list of handlers has a lock that a child of a fork would find locked. */
void ending_watch(void)
{
        fork_guard_enter();
        is_forgetting = true;
        __cxa_finalize(&name);
        is_forgetting = false;
        (void)__cxa_atexit(begin, NULL, &name);
        fork_guard_leave();
}
