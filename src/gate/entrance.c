/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/entrance.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "gate/caller.h"
#include "gate/capture.h"
#include "gate/child.h"
#include "gate/entry.h"
#include "gate/pool-import.h"
#include "gate/pool.h"
#include "gate/quota.h"
#include "gate/section.h"
#include "gate/settings.h"
#include "gate/step.h"
#include "gate/turns.h"

static CUresult out_of_memory(void)
{
        return CUDA_ERROR_OUT_OF_MEMORY;
}

/* As a driver whose own exit handler has run. */
static CUresult deinitialized(void)
{
        return CUDA_ERROR_DEINITIALIZED;
}

static void flush(struct caller *caller)
{
        uint32_t launches = atomic_exchange(&caller->launches, 0);

        if (launches > 0)
                quota_count_launches(launches);
}

static void thread_ended(struct caller *caller)
{
        flush(caller);
        capture_drop_thread(caller);
        pool_drop_stream(caller);
        pool_import_drop_stream(caller);
}

static void start_once(void)
{
        caller_watch_ends(thread_ended);
        settings_read();
        entry_open();
        child_watch();
}

static bool begin_thread(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        bool is_registered;

        section_begin(); /* all other threads wait for the first */
        pthread_once(&once, start_once);
        is_registered = caller_is_registered() || caller_register();
        section_end();
        return is_registered;
}

static bool may_step(void)
{
        return step_may_take() && caller_self->step != step_number();
}

/* As the stubs do it: the mark, and then a look whether the call may be made. */
static bool enter_in_step(uint32_t entry)
{
        struct caller_frame *frame = caller_self->frame;
        uint32_t number = step_number();

        if (!may_step())
                return false;
        atomic_store(&frame->entry, entry);
        frame->stack = (uintptr_t)__builtin_frame_address(0);
        atomic_store(&caller_self->top, frame + 1);
        if (!step_take(entry)) {
                atomic_store(&caller_self->top, frame);
                caller_self->step = number;
                return false;
        }
        if (step_is_launch(entry))
                atomic_fetch_add(&caller_self->launches, 1);
        return true;
}

/* Not so in a handler that has interrupted a wait outside of the driver: there the gate may be closed. */
static entry_function within(uint32_t entry)
{
        if (!caller_is_aside(caller_self))
                return entry_target[entry];
        return caller_wait(NULL) ? stub_address[entry] : (entry_function)deinitialized;
}

/*
 * A call from within a call (the driver calls itself, or calls the guest back) never waits: the
 * drain waits for the outer one. It needs no mark of its own either.
 */
static entry_function where_to(uint32_t entry)
{
        if (entry & ENTRY_WATCHED) {
                entry -= ENTRY_WATCHED;
                if (!caller_is_inside(caller_self) && caller_is_registered()) {
                        atomic_store(&caller_self->frame->entry, entry);
                        turns_submit();
                }
                return stub_past_watch[entry];
        }
        if (!caller_is_registered())
                return begin_thread() ? stub_address[entry] : (entry_function)out_of_memory;
        if (atomic_load(&caller_self->launches) > 0)
                flush(caller_self);
        else if (caller_is_inside(caller_self))
                return within(entry);
        else if (enter_in_step(entry))
                return stub_marked;
        else if (!caller_wait(may_step))
                return (entry_function)deinitialized;
        return stub_address[entry];
}

void *entrance_enter(uint32_t entry)
{
        int saved_errno = errno;
        entry_function function = where_to(entry);
        void *address;

        memcpy(&address, &function, sizeof(address));
        errno = saved_errno;
        return address;
}
