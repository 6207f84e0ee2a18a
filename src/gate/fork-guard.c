/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/fork-guard.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "gate/section.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
/*
 * Should the driver watch forks only after us, its locks may be held by who waits here, and wanted by
 * who is within. Better a child that holds memory than two threads that wait for each other.
 */
#define PATIENCE_S 1

static _Thread_local bool is_held; /* by this thread, which forks */
static pthread_once_t once = PTHREAD_ONCE_INIT;

void fork_guard_enter(void)
{
        pthread_mutex_lock(&guard);
}

void fork_guard_leave(void)
{
        pthread_mutex_unlock(&guard);
}

static void before_fork(void)
{
        struct timespec end;

        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += PATIENCE_S;
        is_held = section_lock_until(&guard, &end) == 0;
}

static void in_parent(void)
{
        if (is_held)
                fork_guard_leave();
}

static void in_child(void)
{
        pthread_mutex_init(&guard, NULL);
        if (is_held)
                section_end();
}

static void watch(void)
{
        (void)pthread_atfork(before_fork, in_parent, in_child);
}

void fork_guard_start(void)
{
        pthread_once(&once, watch);
}
