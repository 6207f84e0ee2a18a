/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/drain.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/entry.h"
#include "gate/finish.h"
#include "gate/idle.h"
#include "gate/import.h"
#include "gate/quota.h"
#include "gate/step.h"
#include "gate/wait.h"

/* Between two looks at the marks: short at first, as most calls return within microseconds. */
#define NAP_FIRST_NS 10000
#define NAP_LAST_NS  1000000

static int barrier_command; /* of membarrier(2), as far as it is there */

static int membarrier(int command)
{
        return (int)syscall(SYS_membarrier, command, 0, 0);
}

int drain_prepare(void)
{
        if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0)
                barrier_command = MEMBARRIER_CMD_PRIVATE_EXPEDITED;
        else if (membarrier(MEMBARRIER_CMD_QUERY) > 0)
                barrier_command = MEMBARRIER_CMD_GLOBAL; /* milliseconds instead of one */
        else
                return -ENOTSUP;
        return 0;
}

/* Sleeps a little longer each time; false: the deadline has passed. */
static bool nap(uint64_t deadline_ns, long *nap_ns)
{
        const struct timespec interval = { .tv_nsec = *nap_ns };

        if (clock_now(CLOCK_MONOTONIC) >= deadline_ns)
                return false;
        nanosleep(&interval, NULL);
        if (*nap_ns < NAP_LAST_NS)
                *nap_ns *= 2;
        return true;
}

static bool wait_for_captures(uint64_t deadline_ns)
{
        long nap_ns = NAP_FIRST_NS;

        while (capture_is_active())
                if (!nap(deadline_ns, &nap_ns))
                        return false;
        return true;
}

/* The other half of the stubs' protocol: flag, barrier in all threads, and only then the marks. */
static int shut(void)
{
        atomic_store(&gate_closed, GATE_IS_CLOSED);
        if (membarrier(barrier_command) < 0)
                return -errno;
        import_withdraw();
        return 0;
}

/*
 * Who is waited for may itself wait for a thread at the closed gate: a host function that needs a lock
 * which that thread holds (Python's, say) never ends, nor does whoever synchronizes behind it. So a long
 * wait is interrupted: the gate opens for a moment, for those who wait there, and closes again. Each time
 * it takes twice as long until then, as the wait may be for a long kernel, and those who are let through
 * bring more work.
 */
#define PATIENCE_NS 250000000u

/* Until those who waited have gone through, and then for a part of the patience. */
#define OPEN_LAST_NS 100000000u
#define OPEN_PART    128

struct patience {
        uint64_t deadline_ns;
        uint64_t step_ns, next_ns; /* when to look who waits at the gate */
        uint32_t n_idle_steps;
};

static uint64_t get_until(const struct patience *patience)
{
        return patience->next_ns < patience->deadline_ns ? patience->next_ns
                                                         : patience->deadline_ns;
}

/* After a wait up to then. 0: wait on; -EAGAIN: let those through who wait; -ETIMEDOUT. */
static int reconsider(struct patience *patience)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (now_ns >= patience->deadline_ns)
                return -ETIMEDOUT;
        patience->next_ns = now_ns + patience->step_ns;
        return caller_count_waiting() > 0 ? -EAGAIN : 0;
}

/* The gate is open. */
static void let_through(struct patience *patience)
{
        uint64_t until_ns = clock_now(CLOCK_MONOTONIC) + OPEN_LAST_NS;
        const struct timespec moment = { .tv_nsec = (long)(patience->step_ns / OPEN_PART %
                                                           1000000000u) };
        long nap_ns = NAP_FIRST_NS;

        while (caller_count_waiting() > 0 && nap(until_ns, &nap_ns))
                ;
        nanosleep(&moment, NULL);
        patience->step_ns *= 2;
        patience->next_ns = clock_now(CLOCK_MONOTONIC) + patience->step_ns;
}

static int wait_for_callers(struct patience *patience, const char **ret_call)
{
        long nap_ns = NAP_FIRST_NS;
        uint32_t entry;
        int r = 0;

        while (r == 0 && caller_find_busy(&entry)) {
                *ret_call = entry_name(entry);
                if (!nap(get_until(patience), &nap_ns))
                        r = reconsider(patience);
        }
        return r;
}

static int finish(struct patience *patience, const char **ret_call, CUresult *ret_code)
{
        int r = 0, error;
        uint32_t entry;

        do {
                error = finish_all(get_until(patience), ret_call, ret_code);
                if (error == -ETIMEDOUT)
                        r = reconsider(patience);
        } while (error == -ETIMEDOUT && r == 0);
        if (error == -ETIMEDOUT && caller_find_work(&entry))
                *ret_call = entry_name(entry);
        return error == -ETIMEDOUT ? r : error;
}

/* A capture that has begun in the step comes to its end in it, if there is time. */
static void wait_for_launches(uint64_t until_ns, uint64_t deadline_ns)
{
        long nap_ns = NAP_FIRST_NS;

        while (!step_is_over() && nap(capture_is_active() ? deadline_ns : until_ns, &nap_ns))
                ;
}

/*
 * The kernels of one context may wait for those of another one that a thread at the gate is about to
 * launch: collectives, whose ranks are threads of this process. So that thread goes on by one launch. What
 * has not helped so often is left to let_through().
 */
#define IDLE_STEPS_MAX    256
#define IDLE_STEP_NS      5000000u
#define IDLE_STEP_REST_NS 2000000u

static bool step_for_idle(struct patience *patience)
{
        if (patience->n_idle_steps == IDLE_STEPS_MAX || capture_is_active() || !idle_look()) {
                patience->n_idle_steps = 0;
                return false;
        }
        patience->n_idle_steps++;
        step_begin(1, true);
        wait_for_launches(clock_now(CLOCK_MONOTONIC) + IDLE_STEP_NS, patience->deadline_ns);
        (void)step_end();
        patience->next_ns = clock_now(CLOCK_MONOTONIC) + IDLE_STEP_REST_NS;
        return true;
}

static int rest(struct patience *patience, const char **ret_call, CUresult *ret_code)
{
        int r = wait_for_callers(patience, ret_call);

        /* A capture that began meanwhile can only end while the gate is open. */
        if (r == 0 && capture_is_active())
                r = -EAGAIN;
        return r == 0 ? finish(patience, ret_call, ret_code) : r;
}

/* The gate is closed. */
static int settle(struct patience *patience, const char **ret_call, CUresult *ret_code)
{
        int r;

        do
                r = rest(patience, ret_call, ret_code);
        while (r == -EAGAIN && step_for_idle(patience));
        if (r < 0)
                drain_open();
        return r;
}

static int try_close(struct patience *patience, const char **ret_call, CUresult *ret_code)
{
        int r;

        if (!wait_for_captures(patience->deadline_ns)) {
                *ret_call = "cuStreamEndCapture";
                return -ETIMEDOUT;
        }
        *ret_call = "membarrier";
        r = shut();
        if (r < 0) {
                drain_open();
                return r;
        }
        return settle(patience, ret_call, ret_code);
}

static struct patience new_patience(uint64_t deadline_ns)
{
        return (struct patience){ .deadline_ns = deadline_ns,
                                  .step_ns = PATIENCE_NS,
                                  .next_ns = clock_now(CLOCK_MONOTONIC) + PATIENCE_NS };
}

/* @r is what the first try came to. */
static int close_in_the_end(struct patience *patience, int r, const char **ret_call,
                            CUresult *ret_code)
{
        while (r == -EAGAIN) {
                let_through(patience);
                r = try_close(patience, ret_call, ret_code);
        }
        if (r == 0)
                quota_count_launches(caller_take_launches());
        return r;
}

int drain_close(uint64_t deadline_ns, const char **ret_call, CUresult *ret_code)
{
        struct patience patience = new_patience(deadline_ns);

        *ret_call = "membarrier";
        if (!barrier_command)
                return -ENOTSUP;
        return close_in_the_end(&patience, try_close(&patience, ret_call, ret_code), ret_call,
                                ret_code);
}

int drain_step(uint32_t n_launches, uint64_t until_ns, uint64_t deadline_ns,
               uint32_t *ret_n_launches, const char **ret_call, CUresult *ret_code)
{
        struct patience patience;

        step_begin(n_launches, false);
        wait_for_launches(until_ns, deadline_ns);
        *ret_n_launches = step_end();
        patience = new_patience(deadline_ns);
        return close_in_the_end(&patience, settle(&patience, ret_call, ret_code), ret_call,
                                ret_code);
}

void drain_open(void)
{
        finish_stop();
        atomic_store(&gate_closed, GATE_IS_OPEN);
        wait_wake();
}
