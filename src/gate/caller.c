/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/caller.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gate/child.h"
#include "gate/wait.h"
#include "gate/wake.h"

static_assert(sizeof(struct caller) == CALLER_SIZE, "the stubs rely on it");
static_assert(offsetof(struct caller, top) == CALLER_TOP, "the stubs rely on it");
static_assert(offsetof(struct caller, launches) == CALLER_LAUNCHES, "the stubs rely on it");
static_assert(offsetof(struct caller, frame) == CALLER_FRAMES, "the stubs rely on it");
static_assert(sizeof(struct caller_frame) == FRAME_SIZE, "the stubs rely on it");
static_assert(offsetof(struct caller_frame, return_address) == FRAME_RETURN, "see above");
static_assert(offsetof(struct caller_frame, rbx) == FRAME_RBX, "see above");
static_assert(offsetof(struct caller_frame, entry) == FRAME_ENTRY, "see above");
static_assert(offsetof(struct caller_frame, stack) == FRAME_STACK, "see above");

/* Full from the start, so that one test in the stubs finds both a full record and none at all. */
static struct caller no_caller = { .top = (struct caller_frame *)(&no_caller + 1) };

/* The stubs read it with two instructions: the initial-exec model, as we are loaded at start. */
__thread struct caller *caller_self = &no_caller;

_Atomic uint32_t gate_closed;

static struct {
        pthread_mutex_t lock;
        struct caller *first;
        pthread_key_t key; /* its destructor takes the record of a thread that ends */
        bool has_key;
        void (*ended)(struct caller *caller);
} callers = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void unlink_locked(const struct caller *caller)
{
        struct caller **link = &callers.first;

        while (*link && *link != caller)
                link = &(*link)->next;
        if (*link)
                *link = caller->next;
}

static void thread_ends(void *value)
{
        struct caller *caller = value;

        caller_self = &no_caller; /* first: a mark in a record of no list would be seen by nobody */
        pthread_mutex_lock(&callers.lock);
        unlink_locked(caller);
        pthread_mutex_unlock(&callers.lock);
        callers.ended(caller);
        free(caller);
}

void caller_watch_ends(void (*ended)(struct caller *caller))
{
        callers.ended = ended;
        callers.has_key = pthread_key_create(&callers.key, thread_ends) == 0;
}

static struct caller *caller_new(void)
{
        struct caller *caller = aligned_alloc(CALLER_SIZE, CALLER_SIZE);

        if (!caller)
                return NULL;
        memset(caller, 0, sizeof(*caller));
        atomic_store(&caller->top, caller->frame);
        if (callers.has_key)
                (void)pthread_setspecific(callers.key, caller); /* else it is never recycled */
        return caller;
}

bool caller_register(void)
{
        struct caller *caller = caller_new();

        if (!caller)
                return false;
        pthread_mutex_lock(&callers.lock);
        caller->next = callers.first;
        callers.first = caller;
        pthread_mutex_unlock(&callers.lock);
        caller_self = caller;
        return true;
}

bool caller_is_registered(void)
{
        return caller_self != &no_caller;
}

/*
 * The stubs' protocol in C: first the mark, then the look at the flag. Who closes the gate runs
 * membarrier(2) between its own two steps, but here both are ordered anyway.
 */
bool caller_begin(uint32_t entry)
{
        struct caller *caller = caller_self;
        struct caller_frame *frame = atomic_load(&caller->top);
        bool was_inside = frame != caller->frame;

        if (((uintptr_t)frame & (CALLER_SIZE - 1)) == 0)
                return false; /* no record, or no room in it */
        atomic_store(&frame->entry, entry);
        frame->stack = (uintptr_t)__builtin_frame_address(0);
        atomic_store(&caller->top, frame + 1);
        if (was_inside || !atomic_load(&gate_closed))
                return true;
        atomic_store(&caller->top, frame);
        return false;
}

void caller_end(void)
{
        atomic_store(&caller_self->top, atomic_load(&caller_self->top) - 1);
}

void caller_leave(const struct leave_jump *jump)
{
        while (caller_is_registered() && caller_is_inside(caller_self) &&
               leave_is_left(jump, (atomic_load(&caller_self->top) - 1)->stack))
                caller_end();
}

static void wait_no_longer(struct leave *leave)
{
        (void)leave;
        atomic_fetch_sub(&caller_self->n_waits, 1);
}

/* @may_go is a pointer to what caller_wait() was given. */
static bool may_pass(void *may_go)
{
        bool (*or_so)(void) = *(bool (**)(void))may_go;

        return atomic_load(&gate_closed) == GATE_IS_OPEN || (or_so && or_so());
}

static void wait_begin(struct leave *leave)
{
        atomic_fetch_add(&caller_self->n_waits, 1);
        leave_begin(leave, wait_no_longer);
        wake_agent(); /* the manager may want to know */
}

static void wait_end(struct leave *leave)
{
        leave_end(leave);
        wait_no_longer(leave);
}

bool caller_wait(bool (*may_go)(void))
{
        struct leave leave;
        bool goes_on;

        wait_begin(&leave);
        goes_on = wait_until(may_pass, &may_go);
        wait_end(&leave);
        return goes_on;
}

unsigned int caller_count_waiting(void)
{
        unsigned int n = 0;

        pthread_mutex_lock(&callers.lock);
        for (const struct caller *caller = callers.first; caller; caller = caller->next)
                n += atomic_load(&caller->n_waits) > 0;
        pthread_mutex_unlock(&callers.lock);
        return n;
}

/* The stubs' protocol once more: the mark, and then a look at the flag. */
void caller_step_back(void)
{
        bool (*nothing)(void) = NULL;
        struct leave leave;

        for (;;) {
                atomic_store(&caller_self->aside, NULL);
                if (!atomic_load(&gate_closed))
                        return;
                caller_step_aside();
                wait_begin(&leave);
                wait_until_surely(may_pass, &nothing); /* it is within a call, which goes on */
                wait_end(&leave);
        }
}

void caller_step_aside(void)
{
        atomic_store(&caller_self->aside, atomic_load(&caller_self->top));
}

static void come_back(struct leave *leave)
{
        (void)leave;
        atomic_store(&caller_self->aside, NULL);
}

void caller_nap_aside(long ns)
{
        struct leave leave;

        leave_begin(&leave, come_back);
        caller_step_aside();
        (void)wait_nap(ns);
        caller_step_back();
        leave_end(&leave);
}

/* The outermost call of a thread, or the last one. */
static uint32_t get_call(const struct caller *caller)
{
        return (uint32_t)atomic_load(&caller->frame[0].entry);
}

uint32_t caller_get_call(void)
{
        return get_call(caller_self);
}

static bool find(bool (*fits)(const struct caller *caller), uint32_t *ret_entry)
{
        bool found = false;

        pthread_mutex_lock(&callers.lock);
        for (const struct caller *caller = callers.first; caller && !found; caller = caller->next) {
                found = fits(caller);
                if (found)
                        *ret_entry = get_call(caller);
        }
        pthread_mutex_unlock(&callers.lock);
        return found;
}

static bool is_busy(const struct caller *caller)
{
        return caller_is_inside(caller) && !caller_is_aside(caller);
}

static bool waits_for_work(const struct caller *caller)
{
        enum entry_kind kind = entry_get_kind(get_call(caller));

        return atomic_load(&caller->n_waits) > 0 &&
               (kind == ENTRY_IS_wait || kind == ENTRY_IS_waited);
}

static bool has_launched(const struct caller *caller)
{
        return entry_get_kind(get_call(caller)) == ENTRY_IS_launch;
}

static bool has_submitted(const struct caller *caller)
{
        return entry_get_kind(get_call(caller)) == ENTRY_IS_submit;
}

bool caller_find_busy(uint32_t *ret_entry)
{
        return find(is_busy, ret_entry);
}

bool caller_find_work(uint32_t *ret_entry)
{
        return find(waits_for_work, ret_entry) || find(has_launched, ret_entry) ||
               find(has_submitted, ret_entry);
}

unsigned int caller_count(void)
{
        unsigned int n = 0;

        pthread_mutex_lock(&callers.lock);
        for (const struct caller *caller = callers.first; caller; caller = caller->next)
                n++;
        pthread_mutex_unlock(&callers.lock);
        return n;
}

uint64_t caller_take_launches(void)
{
        uint64_t n = 0;

        pthread_mutex_lock(&callers.lock);
        for (struct caller *caller = callers.first; caller; caller = caller->next)
                n += atomic_exchange(&caller->launches, 0);
        pthread_mutex_unlock(&callers.lock);
        return n;
}

/* A record with one frame in use that is in no list: inside a call for ever, and nobody waits. */
void caller_exempt(void)
{
        struct caller *caller = caller_new();

        if (!caller)
                return;
        atomic_store(&caller->top, caller->frame + 1);
        caller_self = caller;
}

const void *caller_self_get(void)
{
        return caller_self;
}

void caller_forget(void)
{
        pthread_mutex_init(&callers.lock, NULL);
        callers.first = caller_self == &no_caller ? NULL : caller_self;
        if (callers.first) {
                callers.first->next = NULL;
                atomic_store(&callers.first->launches, 0);
                atomic_store(&callers.first->n_waits, 0);
        }
        atomic_store(&gate_closed, 0);
}
