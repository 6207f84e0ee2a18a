/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "gate/bell.h"
#include "gate/child.h"
#include "gate/section.h"

static _Atomic uint32_t n_wakes; /* the futex on which all sleep: these waits are rare, and few */
static _Atomic uint64_t end_ns;  /* of all waiting; 0: the process does not end */
static struct bell end = BELL_INIT; /* rung from then on */

uint64_t wait_get_deadline(void)
{
        return atomic_load(&end_ns);
}

bool wait_is_allowed(void)
{
        uint64_t deadline_ns = wait_get_deadline();

        return deadline_ns == 0 || clock_now(CLOCK_MONOTONIC) < deadline_ns;
}

/* @turn was read before it was looked for what is waited for. */
static void sleep_until(uint32_t turn, uint64_t deadline_ns)
{
        const struct timespec until = clock_timespec(deadline_ns);

        syscall(SYS_futex, &n_wakes, FUTEX_WAIT_BITSET_PRIVATE, turn, deadline_ns ? &until : NULL,
                NULL, FUTEX_BITSET_MATCH_ANY);
}

static bool sleep_while_not(bool (*is_over)(void *userdata), void *userdata, bool is_bounded)
{
        unsigned int depth = section_pause();
        uint32_t turn = atomic_load(&n_wakes);
        bool goes_on;

        while (!(goes_on = is_over(userdata)) && (!is_bounded || wait_is_allowed())) {
                sleep_until(turn, is_bounded ? wait_get_deadline() : 0);
                turn = atomic_load(&n_wakes);
        }
        section_resume(depth);
        return goes_on;
}

bool wait_until(bool (*is_over)(void *userdata), void *userdata)
{
        return sleep_while_not(is_over, userdata, true);
}

void wait_until_surely(bool (*is_over)(void *userdata), void *userdata)
{
        (void)sleep_while_not(is_over, userdata, false);
}

void wait_wake(void)
{
        atomic_fetch_add(&n_wakes, 1);
        syscall(SYS_futex, &n_wakes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void wait_end_at(uint64_t deadline_ns)
{
        atomic_store(&end_ns, deadline_ns);
        wait_wake();
        bell_ring(&end);
}

/* How long to sleep for a message, as poll() takes it. */
static int get_sleep(uint64_t until_ns)
{
        uint64_t deadline_ns = wait_get_deadline(), now_ns = clock_now(CLOCK_MONOTONIC);

        if (deadline_ns && deadline_ns < until_ns)
                until_ns = deadline_ns;
        if (until_ns == UINT64_MAX)
                return -1;
        return until_ns > now_ns ? (int)((until_ns - now_ns) / NS_PER_MS + 1) : 0;
}

struct message_wait {
        struct pollfd fd[2]; /* the socket, and what wakes when the process ends */
        uint64_t until_ns;
};

static bool look(struct message_wait *wait)
{
        if (poll(wait->fd, 2, get_sleep(wait->until_ns)) <= 0)
                return false;
        if (wait->fd[1]
                    .revents) /* once is enough; and the program may have closed it and opened something else */
                wait->fd[1].fd = -1;
        return wait->fd[0].revents != 0;
}

int wait_for_message(int socket, int timeout_ms)
{
        struct message_wait wait = { .fd = { { .fd = socket, .events = POLLIN },
                                             { .fd = bell_open(&end), .events = POLLIN } },
                                     .until_ns = UINT64_MAX };
        unsigned int depth = section_pause();
        int r = 0;

        if (timeout_ms >= 0)
                wait.until_ns = clock_now(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * NS_PER_MS;
        while (!look(&wait) && r == 0) {
                if (!wait_is_allowed())
                        r = -ECANCELED;
                else if (clock_now(CLOCK_MONOTONIC) >= wait.until_ns)
                        r = -ETIMEDOUT;
        }
        section_resume(depth);
        return r;
}

/* Not on the futex: others may wake that all the time. */
bool wait_nap(long ns)
{
        const struct timespec nap = { .tv_nsec = ns };
        unsigned int depth = section_pause();

        nanosleep(&nap, NULL);
        section_resume(depth);
        return wait_is_allowed();
}

/* Locks. */

static __attribute__((
        tls_model("initial-exec"))) __thread char self; /* its address is the thread's */

static bool lock_take(void *lock)
{
        const void *none = NULL;

        return atomic_compare_exchange_strong(&((struct wait_lock *)lock)->owner, &none, &self);
}

static bool lock_give(struct wait_lock *lock)
{
        const void *owner = &self;

        return atomic_compare_exchange_strong(&lock->owner, &owner, NULL);
}

/* The section was paused. */
static void lock_leave(struct leave *leave)
{
        if (lock_give(((struct wait_hold *)leave)->lock))
                wait_wake();
}

int wait_lock(struct wait_lock *lock, struct wait_hold *hold)
{
        if (atomic_load(&lock->owner) == &self)
                return -EDEADLK;
        hold->lock = lock;
        section_begin();
        leave_begin(&hold->leave, lock_leave);
        if (wait_until(lock_take, lock))
                return 0;
        leave_end(&hold->leave);
        section_end();
        return -ECANCELED;
}

void wait_unlock(struct wait_hold *hold)
{
        (void)lock_give(hold->lock);
        leave_end(&hold->leave);
        wait_wake();
        section_end();
}

void wait_forget(void)
{
        atomic_store(&end_ns, 0);
        bell_forget(&end);
}
