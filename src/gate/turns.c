/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/turns.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/child.h"
#include "gate/idle.h"
#include "gate/leave.h"
#include "gate/log.h"
#include "gate/quota.h"
#include "gate/section.h"
#include "gate/wake.h"
#include "state/instance-page.h"

/* Between two looks, while there is work; in a vGPU of the class interactive, for which others end their turns. */
#define LOOK_MS       2
#define LOOK_EAGER_MS 1

/* Where the driver cannot say whether all is done: so many quiet looks mean that it is. */
#define QUIET_LOOKS_MAX 25

/* A thread that waits for a turn looks again after this: its manager may have died. */
#define TURN_LOOK_NS 20000000

/*
 * Under TURNS, submissions between two marks, as many as are done in about the time below; twice as
 * many are on the device at most.
 */
#define BOUND_MAX     16
#define BOUND_SLOW_NS 2000000
#define BOUND_FAST_NS 500000

#define BOUND_NAP_NS 50000

/*
 * The longest that a thread waits for what is on the device. That may wait for the thread: a host
 * function for a lock that it has, a stream for a value that it is about to write.
 */
#define BOUND_WAIT_NS 500000000

/* The same in a vGPU of several devices, whose kernels may wait for those that the thread is to submit elsewhere. */
#define BOUND_WAIT_SEVERAL_NS 5000000

_Atomic uint32_t gate_watch;

static struct {
        _Atomic uint32_t watch; /* enum gate_watch */
        _Atomic uint32_t work;  /* enum instance_page_work, as last published */
        _Atomic uint32_t n_waiting, n_submitted;

        /* The agent's. */
        bool is_marked;
        uint32_t n_quiet, n_seen;

        pthread_mutex_t bound; /* who waits for the mark before */
        bool is_bound_marked;
        bool is_unbound; /* it has not been reached in time: nobody waits until it is */
        _Atomic uint32_t bound_size;
        uint64_t bound_ns; /* when it was marked */
} turns = { .bound = PTHREAD_MUTEX_INITIALIZER, .bound_size = 1 };

/* A thread that gets work may publish while the agent does, so what was said last is written last. */
static void publish(enum instance_page_work work)
{
        uint32_t slot, said;
        struct instance_page *page;

        if (atomic_exchange(&turns.work, work) == work)
                return;
        page = quota_get_page(&slot);
        if (!page)
                return;
        if (work == INSTANCE_PAGE_WORKING)
                atomic_fetch_add(&page->slot[slot].n_works, 1);
        do {
                said = atomic_load(&turns.work);
                atomic_store(&page->slot[slot].work, said);
        } while (atomic_load(&turns.work) != said);
        if (atomic_load(&page->is_eager) == 0)
                return;
        atomic_fetch_add(&page->n_changes, 1);
        syscall(SYS_futex, &page->n_changes, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int get_look_ms(void)
{
        uint32_t slot;
        struct instance_page *page = quota_get_page(&slot);

        return page && atomic_load(&page->is_eager) ? LOOK_EAGER_MS : LOOK_MS;
}

static void wait_no_longer(struct leave *leave)
{
        (void)leave;
        atomic_fetch_sub(&turns.n_waiting, 1);
}

/* The vGPU's turn, which may be over again when we have seen it: then one submission is late. */
static void wait_for_turn(void)
{
        const struct timespec timeout = { .tv_nsec = TURN_LOOK_NS };
        uint32_t slot;
        struct instance_page *page = quota_get_page(&slot);
        struct leave leave;

        if (!page || atomic_load(&page->turn) != INSTANCE_PAGE_CLOSED)
                return;
        atomic_fetch_add(&turns.n_waiting, 1);
        leave_begin(&leave, wait_no_longer);
        wake_agent(); /* that somebody waits is news, where all else is done */
        while (atomic_load(&turns.watch) == GATE_WATCH_TURNS &&
               atomic_load(&page->turn) == INSTANCE_PAGE_CLOSED)
                syscall(SYS_futex, &page->turn, FUTEX_WAIT, INSTANCE_PAGE_CLOSED, &timeout, NULL,
                        0);
        leave_end(&leave);
        wait_no_longer(&leave);
}

static void adapt_bound(uint64_t ns)
{
        uint32_t size = atomic_load(&turns.bound_size);

        if (ns > BOUND_SLOW_NS && size > 1)
                atomic_store(&turns.bound_size, size / 2);
        else if (ns < BOUND_FAST_NS && size < BOUND_MAX)
                atomic_store(&turns.bound_size, size * 2);
}

static bool is_contended(void)
{
        uint32_t slot;
        struct instance_page *page = quota_get_page(&slot);

        return page && atomic_load(&page->turn) != INSTANCE_PAGE_FREE;
}

/* False: it is not reached in time. */
static bool wait_for_mark(void)
{
        const struct timespec nap = { .tv_nsec = BOUND_NAP_NS };
        uint64_t now = clock_now(CLOCK_MONOTONIC), until = now;

        if (!turns.is_unbound)
                until += quota_has_several() ? BOUND_WAIT_SEVERAL_NS : BOUND_WAIT_NS;
        while (turns.is_bound_marked && !capture_is_active() && !idle_is_reached() &&
               !atomic_load(&gate_closed) && atomic_load(&turns.watch) == GATE_WATCH_TURNS) {
                if (now >= until)
                        return false;
                nanosleep(&nap, NULL);
                now = clock_now(CLOCK_MONOTONIC);
        }
        return true;
}

static void mark_bound(void)
{
        if (turns.is_bound_marked)
                adapt_bound(clock_now(CLOCK_MONOTONIC) - turns.bound_ns);
        turns.bound_ns = clock_now(CLOCK_MONOTONIC);
        turns.is_bound_marked = idle_mark() == 0;
}

/* Wait until what was submitted before the mark is done, and mark anew. */
static void bound(void)
{
        if (section_try_lock(&turns.bound) != 0)
                return; /* another thread of ours does it */
        turns.is_unbound = !wait_for_mark();
        if (!turns.is_unbound)
                mark_bound();
        pthread_mutex_unlock(&turns.bound);
}

void turns_submit(void)
{
        uint32_t before;

        if (atomic_load(&turns.watch) == GATE_WATCH_TURNS) {
                if (atomic_fetch_add(&turns.n_submitted, 1) % atomic_load(&turns.bound_size) == 0 &&
                    is_contended())
                        bound();
                wait_for_turn();
        } else {
                atomic_store(&gate_watch, 0);
        }
        before = atomic_load(&turns.work);
        publish(INSTANCE_PAGE_WORKING);
        if (before != INSTANCE_PAGE_WORKING)
                wake_agent();
}

/* Was something submitted since the last look? */
static bool was_tripped(void)
{
        uint32_t n = atomic_load(&turns.n_submitted);
        bool is_new = n != turns.n_seen;

        turns.n_seen = n;
        if (atomic_load(&turns.watch) == GATE_WATCH_TURNS)
                return is_new;
        return atomic_exchange(&gate_watch, 1) == 0;
}

static bool is_done(void)
{
        int r = 0;

        if (turns.is_marked)
                return idle_is_reached();
        r = idle_mark();
        turns.is_marked = r == 0;
        return (r == -ENOTSUP || r == -EIO) && ++turns.n_quiet >= QUIET_LOOKS_MAX;
}

/* Returns how long to sleep, in milliseconds; -1: until woken. */
static int look(void)
{
        enum instance_page_work work;

        if (atomic_load(&turns.watch) == GATE_WATCH_NOTHING)
                return -1;
        if (was_tripped()) {
                turns.is_marked = false;
                turns.n_quiet = 0;
                publish(INSTANCE_PAGE_WORKING);
                return get_look_ms();
        }
        work = atomic_load(&turns.n_waiting) > 0 ? INSTANCE_PAGE_WAITING : INSTANCE_PAGE_IDLE;
        if (atomic_load(&turns.work) == INSTANCE_PAGE_WORKING) {
                if (capture_is_active() || !is_done())
                        return get_look_ms();
                turns.is_marked = false;
        }
        publish(work);
        if (atomic_load(&turns.watch) == GATE_WATCH_REPORT && atomic_load(&gate_watch) == 0) {
                publish(INSTANCE_PAGE_WORKING); /* it was while we looked */
                return get_look_ms();
        }
        return work == INSTANCE_PAGE_WAITING ? get_look_ms() : -1;
}

bool turns_wait(int socket, bool is_open, int most_ms)
{
        struct pollfd fds[] = { { .fd = socket, .events = POLLIN },
                                { .fd = wake_get_fd(), .events = POLLIN } };
        int timeout_ms = is_open ? look() : -1;
        uint64_t n;

        if (most_ms >= 0 && (timeout_ms < 0 || timeout_ms > most_ms))
                timeout_ms = most_ms;
        if (poll(fds, 2, timeout_ms) > 0 && fds[1].revents)
                if (read(fds[1].fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
                        return true;
        return fds[0].revents != 0;
}

void turns_watch(enum gate_watch watch)
{
        uint32_t slot;
        struct instance_page *page;

        if (watch != GATE_WATCH_NOTHING)
                wake_open();
        turns.is_marked = false;
        atomic_store(&turns.watch, watch);
        atomic_store(&turns.work, UINT32_MAX); /* publish it anew: the page may be */
        publish(INSTANCE_PAGE_WORKING);
        atomic_store(&gate_watch, watch != GATE_WATCH_NOTHING);
        page = quota_get_page(&slot);
        if (page && watch != GATE_WATCH_TURNS)
                syscall(SYS_futex, &page->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        log_write("watch %d", watch);
}

void turns_forget(void)
{
        atomic_store(&gate_watch, 0);
        atomic_store(&turns.watch, GATE_WATCH_NOTHING);
        atomic_store(&turns.n_waiting, 0);
        pthread_mutex_init(&turns.bound, NULL);
        turns.is_marked = turns.is_bound_marked = turns.is_unbound = false;
}
