/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/step.h"

#include <stdatomic.h>

#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/entry.h"
#include "gate/idle.h"
#include "gate/wait.h"

static struct {
        _Atomic uint32_t n_left; /* launches */
        _Atomic uint32_t number; /* of steps begun */
        _Atomic bool is_for_idle;
        uint32_t n; /* with so many launches it began; the agent's */
} step;

bool step_is_launch(uint32_t entry)
{
        return entry_get_kind(entry) == ENTRY_IS_launch;
}

uint32_t step_number(void)
{
        return atomic_load(&step.number);
}

void step_begin(uint32_t n_launches, bool is_for_idle)
{
        atomic_store(&step.is_for_idle, is_for_idle);
        atomic_fetch_add(&step.number, 1);
        step.n = n_launches;
        atomic_store(&step.n_left, n_launches);
        atomic_store(&gate_closed, GATE_IS_STEPPING);
        wait_wake();
}

bool step_is_over(void)
{
        return atomic_load(&step.n_left) == 0 && !capture_is_active();
}

/*
 * No barrier is needed, unlike in drain.c: a thread that enters in a step marks itself before it looks at
 * gate_closed, in C and in this order. Who has seen the step is seen by the drain.
 */
uint32_t step_end(void)
{
        atomic_store(&gate_closed, GATE_IS_CLOSED);
        return step.n - atomic_exchange(&step.n_left, 0);
}

/* A capture has to come to its end. What is captured is no work of the device, and takes no launch. */
bool step_may_take(void)
{
        return atomic_load(&gate_closed) == GATE_IS_STEPPING &&
               (atomic_load(&step.n_left) > 0 || capture_is_active());
}

static bool is_for_us(void)
{
        CUcontext context = NULL;

        return !atomic_load(&step.is_for_idle) ||
               (DRIVER(cuCtxGetCurrent)(&context) == CUDA_SUCCESS && !idle_was_busy(context));
}

bool step_take(uint32_t entry)
{
        uint32_t n_left = atomic_load(&step.n_left);

        if (!step_may_take())
                return false;
        if (!step_is_launch(entry) || capture_is_active())
                return true;
        if (!is_for_us())
                return false;
        while (n_left > 0)
                if (atomic_compare_exchange_weak(&step.n_left, &n_left, n_left - 1))
                        return true;
        return false;
}
