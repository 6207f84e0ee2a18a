/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/leave.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "gate/caller.h"
#include "gate/section.h"

static __attribute__((tls_model("initial-exec"))) __thread struct leave *innermost;

void leave_begin(struct leave *leave, void (*undo)(struct leave *leave))
{
        leave->undo = undo;
        leave->outer = innermost;
        innermost = leave;
}

void leave_end(struct leave *leave)
{
        if (innermost == leave)
                innermost = leave->outer;
}

/* The stacks from which the thread jumps, and to which. */
struct jump {
        uintptr_t target;
        uintptr_t handlers, handlers_end; /* the stack of handlers, if it is in use */
};

static struct jump jump_to(uintptr_t target)
{
        struct jump jump = { .target = target };
        stack_t stack;

        if (sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK) {
                jump.handlers = (uintptr_t)stack.ss_sp;
                jump.handlers_end = jump.handlers + stack.ss_size;
        }
        return jump;
}

static bool is_of_handlers(const struct jump *jump, uintptr_t address)
{
        return address - jump->handlers < jump->handlers_end - jump->handlers;
}

/* What lies on the stack of handlers is left with that stack, and only what lies there by a jump within it. */
static bool is_left(const struct jump *jump, uintptr_t address)
{
        bool is_there = is_of_handlers(jump, address);

        if (is_there != is_of_handlers(jump, jump->target))
                return is_there;
        return address < jump->target;
}

static void leave_waits(const struct jump *jump)
{
        while (innermost && is_left(jump, (uintptr_t)innermost)) {
                struct leave *leave = innermost;

                innermost = leave->outer;
                leave->undo(leave);
        }
}

static void leave_calls(const struct jump *jump)
{
        uintptr_t stack;

        while (caller_get_innermost(&stack) && is_left(jump, stack))
                caller_end();
}

void leave_jump(uintptr_t target)
{
        struct jump jump;

        if (!innermost && !(caller_is_registered() && caller_is_inside(caller_self)))
                return;
        section_begin();
        jump = jump_to(target);
        leave_waits(&jump);
        leave_calls(&jump);
        section_end();
}
