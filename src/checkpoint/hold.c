/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops threads, outside of the driver if possible.
 *
 * A thread in a loop of short driver calls is outside for some nanoseconds of each microsecond, so
 * it is found there by looking often: run for an instant, stop, look. Sleeping threads that are
 * stopped wake up; the kernel restarts what they slept in, but for a few system calls (epoll_wait(),
 * semop()), which return EINTR as they do for any signal.
 */

#include "checkpoint/hold.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/process-stat.h"
#include "checkpoint/whereabouts.h"

#define THREADS_MAX 4096

/* The run between two looks. */
#define RUN_NS 20000

/*
 * A thread that is found in the driver may be on its way to where it will wait. One that is found
 * there so often, having run so long in between, does not wait.
 */
#define LOOKS_INSIDE 3
#define BETWEEN_NS   UINT64_C(1000000)
#define LOOK_NS      500000

/* So long a thread must have run, or so long it is waited for, to be found harmless. */
#define RUN_ENOUGH_NS UINT64_C(20000000)
#define WAIT_MS       1000

/*
 * Another helper may hold the thread still. If it has seen the process unlocked, it lets go within this
 * time; if it has not, because the process was locked again at once, it will hold it for us.
 */
#define SEIZE_TRIES 1000

DEFINE_CLEANUP(DIR *, closedir);

static uint64_t now_ms(void)
{
        return clock_now(CLOCK_MONOTONIC) / NS_PER_MS;
}

static void pause_ns(long ns)
{
        const struct timespec moment = { .tv_nsec = ns };

        (void)nanosleep(&moment, NULL);
}

/* Who traces @thread; 0: nobody. */
static pid_t get_tracer(pid_t pid, pid_t thread)
{
        char path[64], line[128];
        int tracer = 0;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)thread);
        file = fopen(path, "re");
        if (!file)
                return 0;
        while (fgets(line, sizeof(line), file))
                if (sscanf(line, "TracerPid: %d", &tracer) == 1)
                        break;
        fclose(file);
        return tracer;
}

static bool is_helper(pid_t pid)
{
        char path[32], other[PATHS_MAX], own[PATHS_MAX];
        ssize_t n, n_own = readlink("/proc/self/exe", own, sizeof(own));

        snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
        n = readlink(path, other, sizeof(other));
        return n > 0 && n == n_own && memcmp(own, other, (size_t)n) == 0;
}

/* 0: traced by us; 1: held by another helper. */
static int seize(pid_t pid, pid_t thread)
{
        int n_untraced = 0; /* once may be chance: it has just been let go */

        for (int i = 0; i < SEIZE_TRIES; i++) {
                pid_t tracer;

                if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0)
                        return 0;
                if (errno != EPERM)
                        return -errno;
                tracer = get_tracer(pid, thread);
                if (tracer ? !is_helper(tracer) : ++n_untraced > 2)
                        return -EPERM;
                pause_ns(1000000);
        }
        return 1;
}

/* Stops @thread, which we trace. A signal that comes in between is passed on. */
static int stop(pid_t thread)
{
        int status;

        if (ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) < 0)
                return -errno;
        for (;;) {
                if (waitpid(thread, &status, __WALL) < 0)
                        return -errno;
                if (!WIFSTOPPED(status))
                        return -ESRCH;
                if (status >> 16 == PTRACE_EVENT_STOP)
                        return 0;
                if (ptrace(PTRACE_CONT, thread, NULL, (void *)(uintptr_t)WSTOPSIG(status)) < 0)
                        return -errno;
        }
}

static void run_for(pid_t thread, long ns)
{
        if (ptrace(PTRACE_CONT, thread, NULL, NULL) == 0)
                pause_ns(ns);
}

/* The driver's own threads are called cuda-EvtHandlr, cuda00001200005, ... */
static bool is_drivers_own(pid_t pid, pid_t thread)
{
        char path[64], name[32] = "";
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)thread);
        file = thread == pid ? NULL : fopen(path, "re");
        if (!file)
                return false;
        (void)!fgets(name, sizeof(name), file);
        fclose(file);
        return strncmp(name, "cuda", 4) == 0;
}

static bool is_in_state(pid_t thread, char state)
{
        struct process_stat stat;

        return process_stat_read(&stat, thread) == 0 && stat.state == state;
}

/* 1: it is stopped by us; 0: it has ended, sleeps in the driver until the unlock, or is held. */
static int hold_one(const struct whereabouts *where, pid_t pid, pid_t thread,
                    unsigned int timeout_ms)
{
        uint64_t deadline = now_ms() + timeout_ms;
        int r;

        if (is_in_state(thread, 'S') && whereabouts_is_asleep_inside(where, thread))
                return 0;
        r = seize(pid, thread);
        if (r != 0)
                return r == -ESRCH || r == 1 ? 0 : r;
        for (;;) {
                if (stop(thread) < 0)
                        return 0;
                if (!whereabouts_is_inside(where, thread) || now_ms() >= deadline)
                        return 1;
                run_for(thread, RUN_NS);
                if (is_in_state(thread, 'S') && whereabouts_is_asleep_inside(where, thread)) {
                        if (stop(thread) == 0)
                                (void)ptrace(PTRACE_DETACH, thread, NULL, NULL);
                        return 0;
                }
        }
}

static bool has_seen(const pid_t *threads, size_t n, pid_t thread)
{
        for (size_t i = 0; i < n; i++)
                if (threads[i] == thread)
                        return true;
        return false;
}

/* The threads of the program that are not in @seen yet are added to it. Returns how many. */
static size_t list_threads(pid_t pid, pid_t *seen, size_t n_seen)
{
        CLEANUP(closedirp) DIR *directory = NULL;
        const struct dirent *entry;
        size_t n = n_seen;
        char path[32];

        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        directory = opendir(path);
        while (directory && (entry = readdir(directory)) && n < THREADS_MAX) {
                pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

                if (thread > 0 && !has_seen(seen, n, thread) && !is_drivers_own(pid, thread))
                        seen[n++] = thread;
        }
        return n - n_seen;
}

/* A thread that runs can start others: until none is new. */
static int hold_all(struct hold *hold, const struct whereabouts *where, unsigned int timeout_ms)
{
        CLEANUP(freep) pid_t *seen = calloc(THREADS_MAX, sizeof(*seen));
        size_t n_seen = 0, n_new;
        int r;

        if (!seen)
                return -ENOMEM;
        while ((n_new = list_threads(hold->pid, seen, n_seen)) > 0) {
                for (size_t i = n_seen; i < n_seen + n_new; i++) {
                        r = hold_one(where, hold->pid, seen[i], timeout_ms);
                        if (r < 0)
                                return r;
                        if (r > 0)
                                hold->thread[hold->n_threads++] = seen[i];
                }
                n_seen += n_new;
        }
        return 0;
}

int hold_begin(struct hold *hold, pid_t pid, unsigned int timeout_ms)
{
        CLEANUP(whereabouts_deinitp) struct whereabouts where = WHEREABOUTS_NONE;
        int r;

        *hold = (struct hold){ .thread = calloc(THREADS_MAX, sizeof(*hold->thread)) };
        if (!hold->thread)
                return -ENOMEM;
        hold->pid = pid;
        r = whereabouts_init(&where, pid);
        if (r == 0)
                r = hold_all(hold, &where, timeout_ms);
        if (r < 0)
                hold_end(hold);
        return r;
}

void hold_end(struct hold *hold)
{
        for (size_t i = 0; i < hold->n_threads; i++)
                (void)ptrace(PTRACE_DETACH, hold->thread[i], NULL, NULL);
        free(hold->thread);
        *hold = (struct hold){ 0 };
}

/* Nanoseconds that @thread has run; 0 if the kernel does not tell. */
static uint64_t get_run_time(pid_t pid, pid_t thread)
{
        uint64_t time = 0;
        char path[64];
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)thread);
        file = fopen(path, "re");
        if (!file)
                return 0;
        if (fscanf(file, "%" SCNu64, &time) != 1)
                time = 0;
        fclose(file);
        return time;
}

/* Of a thread that we trace; leaves it stopped, unless it has ended. */
static bool runs_inside(const struct whereabouts *where, pid_t thread)
{
        uint64_t begin = get_run_time(where->pid, thread), last = begin, time = begin;
        uint64_t deadline = now_ms() + WAIT_MS;
        bool is_asleep = false;
        int n = 0;

        while (stop(thread) == 0) {
                time = get_run_time(where->pid, thread);
                if (time - last >= BETWEEN_NS && whereabouts_is_inside(where, thread)) {
                        last = time;
                        n++;
                }
                if (n == LOOKS_INSIDE)
                        return true;
                if (is_asleep || time - begin >= RUN_ENOUGH_NS || now_ms() >= deadline)
                        return false;
                run_for(thread, LOOK_NS);
                is_asleep = is_in_state(thread, 'S');
        }
        return false;
}

static bool is_seen_inside(const struct whereabouts *where, pid_t thread)
{
        bool is_inside;

        if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) < 0)
                return false;
        is_inside = runs_inside(where, thread);
        (void)ptrace(PTRACE_DETACH, thread, NULL, NULL);
        return is_inside;
}

bool hold_look(pid_t pid)
{
        CLEANUP(whereabouts_deinitp) struct whereabouts where = WHEREABOUTS_NONE;
        CLEANUP(freep) pid_t *threads = calloc(THREADS_MAX, sizeof(*threads));
        size_t n = threads ? list_threads(pid, threads, 0) : 0;

        if (whereabouts_init(&where, pid) < 0)
                return false;
        pause_ns(1000000); /* those that will wait in a call have come to it by then, mostly */
        for (size_t i = 0; i < n; i++)
                if (is_in_state(threads[i], 'R') && is_seen_inside(&where, threads[i]))
                        return true;
        return false;
}
