/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/process.h"

#include <signal.h>
#include <unistd.h>

struct process process = { .lock = PTHREAD_MUTEX_INITIALIZER,
                           .changed = PTHREAD_COND_INITIALIZER,
                           .next_id = 1 };

static atomic_bool is_started;

bool process_is_started(void)
{
        return atomic_load_explicit(&is_started, memory_order_acquire);
}

void process_set_started(void)
{
        atomic_store_explicit(&is_started, true, memory_order_release);
}

struct device *process_device(CUdevice device)
{
        return device >= 0 && device < process.n_devices ? &process.device[device] : NULL;
}

void process_die(void)
{
        (void)signal(SIGSEGV, SIG_DFL);
        (void)kill(getpid(), SIGSEGV);
        for (;;)
                (void)pause();
}
