/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/leave.h"

#include <signal.h>
#include <stddef.h>

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

struct leave_jump leave_jump_to(uintptr_t target)
{
        struct leave_jump jump = { .target = target };
        stack_t stack;

        if (sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK) {
                jump.handlers = (uintptr_t)stack.ss_sp;
                jump.handlers_end = jump.handlers + stack.ss_size;
        }
        return jump;
}

static bool is_of_handlers(const struct leave_jump *jump, uintptr_t address)
{
        return address - jump->handlers < jump->handlers_end - jump->handlers;
}

/* What lies on the stack of handlers is left with that stack, and only what lies there by a jump within it. */
bool leave_is_left(const struct leave_jump *jump, uintptr_t address)
{
        bool is_there = is_of_handlers(jump, address);

        if (is_there != is_of_handlers(jump, jump->target))
                return is_there;
        return address < jump->target;
}

bool leave_is_any(void)
{
        return innermost != NULL;
}

void leave_undo(const struct leave_jump *jump)
{
        while (innermost && leave_is_left(jump, (uintptr_t)innermost)) {
                struct leave *leave = innermost;

                innermost = leave->outer;
                leave->undo(leave);
        }
}
