/* SPDX-License-Identifier: Apache-2.0 */
/* How the thread of a device's turns waits, between two looks. */
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "manager/schedule/schedule-internal.h"

/* Where the kernel cannot tell that work of a vGPU of the class interactive has changed. */
#define LOOK_EAGER_NS 1000000

/* And where it can: not sooner after the end of the last look. */
#define LOOK_LEAST_NS 100000

static void wait_add(struct schedule_wait *wait, _Atomic uint32_t *word, uint32_t flags)
{
        if (wait->n == FUTEX_WAITV_MAX)
                return;
        wait->on[wait->n++] = (struct futex_waitv){ .val = atomic_load(word),
                                                    .uaddr = (uintptr_t)word,
                                                    .flags = FUTEX_32 | flags };
}

void schedule_wait_begin(struct schedule_wait *wait, struct schedule *schedule)
{
        const struct schedule_vgpu *vgpu;

        wait->n = wait->n_eager = 0;
        wait_add(wait, &schedule->n_wakes, FUTEX_PRIVATE_FLAG);
        list_for_each(vgpu, &schedule->vgpus, link)
                if (vgpu->member.is_interactive && !vgpu->is_held && vgpu->n_guests > 0) {
                        wait_add(wait, &vgpu->page->n_changes, 0);
                        wait->n_eager++;
                }
}

/* Before Linux 5.16, and where it is forbidden (seccomp), only for schedule_wake(), and so not for long. */
static void wait_plainly(const struct schedule_wait *wait, struct schedule *schedule, uint64_t ns)
{
        uint64_t most = clock_now(CLOCK_MONOTONIC) + LOOK_EAGER_NS;
        const struct timespec until = clock_timespec(wait->n_eager > 0 && most < ns ? most : ns);

        syscall(SYS_futex, &schedule->n_wakes, FUTEX_WAIT_BITSET_PRIVATE, (uint32_t)wait->on[0].val,
                &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

/*
 * One that changes its mind all the time does not keep the thread busy, nor the lock from the others, however long a look
 * takes.
 */
static void wait_a_little(void)
{
        const struct timespec pause = clock_timespec(LOOK_LEAST_NS);

        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static bool can_wait_again(int error)
{
        return error == EAGAIN || error == ETIMEDOUT || error == EINTR;
}

void schedule_wait_until(const struct schedule_wait *wait, struct schedule *schedule, uint64_t ns)
{
        const struct timespec until = clock_timespec(ns);

        pthread_mutex_unlock(&schedule->lock);
        if (wait->n_eager > 0)
                wait_a_little();
        if (syscall(SYS_futex_waitv, wait->on, wait->n, 0, &until, CLOCK_MONOTONIC) < 0 &&
            !can_wait_again(errno))
                wait_plainly(wait, schedule, ns);
        pthread_mutex_lock(&schedule->lock);
}

void schedule_wake(struct schedule *schedule)
{
        atomic_fetch_add(&schedule->n_wakes, 1);
        syscall(SYS_futex, &schedule->n_wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
