/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/context.h"

#include <assert.h>

struct context_plan context_plan(enum guest_context state, const struct place *place,
                                 const struct place *target, const struct place *wanted)
{
        bool is_there = place_is_equal(wanted, place);

        switch (state) {
        case GUEST_CONTEXT_RUNNING:
                return (struct context_plan){ is_there ? CONTEXT_ACTION_NOTHING
                                                       : CONTEXT_ACTION_SUSPEND,
                                              *place, place_nowhere };
        case GUEST_CONTEXT_SUSPENDING:
                return is_there ? (struct context_plan){ CONTEXT_ACTION_RESUME, *place, *wanted }
                                : (struct context_plan){ CONTEXT_ACTION_SUSPEND, *place,
                                                         place_nowhere };
        case GUEST_CONTEXT_SUSPENDED:
                return (struct context_plan){ place_is_nowhere(wanted) ? CONTEXT_ACTION_NOTHING
                                                                       : CONTEXT_ACTION_RESUME,
                                              *place, *wanted };
        case GUEST_CONTEXT_RESUMING:
                return (struct context_plan){ place_is_nowhere(target) ? CONTEXT_ACTION_GIVE_UP
                                                                       : CONTEXT_ACTION_RESUME,
                                              *place, *target };
        case GUEST_CONTEXT_LOST:
                break;
        }
        return (struct context_plan){ CONTEXT_ACTION_GIVE_UP, *place, place_nowhere };
}

#define BIT(state) (1u << GUEST_CONTEXT_##state)

/* A call of the driver is noted before it is made, and what it came to, or that it was not made, behind it. */
static const uint32_t transitions[] = {
        [GUEST_CONTEXT_RUNNING] = BIT(SUSPENDING),
        [GUEST_CONTEXT_SUSPENDING] =
                BIT(RUNNING) | BIT(SUSPENDING) | BIT(SUSPENDED) | BIT(RESUMING) | BIT(LOST),
        [GUEST_CONTEXT_SUSPENDED] = BIT(RESUMING),
        [GUEST_CONTEXT_RESUMING] =
                BIT(RUNNING) | BIT(SUSPENDING) | BIT(SUSPENDED) | BIT(RESUMING) | BIT(LOST),
        [GUEST_CONTEXT_LOST] = 0,
};

bool context_may_become(enum guest_context from, enum guest_context to)
{
        return from <= GUEST_CONTEXT_LOST && transitions[from] & 1u << to;
}

void context_become(struct context *context, enum guest_context state, const struct place *target)
{
        assert(context_may_become(context->state, state));
        context->state = state;
        context->target = *target;
}

bool context_is_valid(const struct context *context)
{
        return context->state <= GUEST_CONTEXT_LOST &&
               (context->state == GUEST_CONTEXT_RESUMING || place_is_nowhere(&context->target));
}
