/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/context-moment.h"

#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/recovery.h"
#include "manager/model/restore-room.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

/* From what the store says, would the next manager, who undoes the same, do what we are about to do? */
static bool is_foreseen(const struct guest *guest, enum context_action action,
                        const struct place *target)
{
        struct context_plan next =
                context_plan(guest->context.stored.state, &guest->context.stored.place,
                             &guest->context.stored.target, &guest->participant->context.wanted);

        return next.action == action && place_is_equal(&next.from, &guest->context.place) &&
               place_is_equal(&next.to, target);
}

int context_enter(struct guest *guest, enum guest_context state, const struct place *target)
{
        struct operation *operation = guest->instance->operation;
        int r;

        guest->participant->context.before.context = guest->context.state;
        guest->participant->context.before.target = guest->context.target;
        context_become(&guest->context, state, target);
        r = recovery_store_process(guest);
        if (r == 0 ||
            (operation->is_undoing &&
             is_foreseen(guest,
                         place_is_nowhere(target) ? CONTEXT_ACTION_SUSPEND : CONTEXT_ACTION_RESUME,
                         target)))
                return 0;
        operation_fail_store(operation, r, "noting what the driver is asked for");
        return r;
}

void context_step_back(struct guest *guest)
{
        context_become(&guest->context, guest->participant->context.before.context,
                       &guest->participant->context.before.target);
        if (guest->context.state != GUEST_CONTEXT_RESUMING)
                restore_room_forget(guest);
        (void)recovery_store_process(guest);
}

void context_settle(struct guest *guest, enum guest_context state, struct place place)
{
        /* After that the driver answers imports with 3. */
        guest->takes_no_gifts |= !place_is_equal(&guest->context.place, &place);
        context_become(&guest->context, state, &place_nowhere);
        guest->context.place = place;
        restore_room_forget(guest);
        (void)recovery_store_process(guest); /* if not, the next manager does the call again */
}
