/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Migrate a running vGPU: what the guest exported stays where it is until it has
 * been copied from device to device, so the pool is not needed and undoing is only
 * mapping it again. The copy and both ways of the context overlap.
 */
#include <errno.h>

#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/place-text.h"
#include "manager/operation/coming.h"
#include "manager/operation/contexts.h"
#include "manager/operation/copies.h"
#include "manager/operation/leaving.h"
#include "manager/operation/operation.h"
#include "manager/operation/shared.h"

static int check(struct operation *operation, struct failure *failure)
{
        const struct instance *instance = operation->instance;
        char devices[PLACE_TEXT_MAX];
        int r;

        if (place_is_equal(&operation->target, &operation->source))
                return failure_set(failure, -EALREADY, "WrongState", "choose another device",
                                   "vGPU %s is on device%s %s already", instance->name,
                                   instance->n_parts > 1 ? "s" : "",
                                   place_describe(&operation->target, devices));
        r = shared_check(operation, failure);
        if (r == 0)
                r = coming_check_fit(operation, failure);
        return r < 0 ? r : coming_check_promise(operation, failure);
}

static void stage(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                copies_stage(operation, guest);
}

static void leave(struct operation *operation)
{
        struct guest *guest;

        if (!leaving_may_checkpoint(operation))
                return;
        operation_for_each_guest(guest, operation)
                contexts_move(operation, guest, &place_nowhere);
        stage(operation);
}

static void enter(struct operation *operation)
{
        struct guest *guest;

        stage(operation);
        operation_for_each_guest(guest, operation)
                contexts_move(operation, guest, &operation->target);
}

static void go_back(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                copies_end(operation, guest);
                contexts_move(operation, guest, &operation->source);
        }
}

static const struct operation_step steps[] = {
        { "checked", "draining", coming_check, NULL, 0 },
        { "closed", "draining", leaving_close, leaving_undo_close, 0 },
        { "asked", "draining", leaving_ask_shared, NULL, 0 },
        { "exported", "draining", leaving_export, leaving_undo_export, 0 },
        { "kept", "copying", leaving_keep, leaving_undo_keep, 0 },
        { "released", "copying", leaving_release, leaving_undo_release, 0 },
        { "left", "context", leave, go_back, 0 },
        { "measured", "context", coming_check_again, NULL, 0 },
        { "restored", "context", enter, go_back, 0 },
        { "created", "copying", coming_create, coming_undo_create, 0 },
        { "copied", "copying", coming_copy, coming_undo_copy, 0 },
        { "recorded", "finishing", coming_record, NULL, OPERATION_RECORDS },
        { "opened", "finishing", coming_open, NULL, OPERATION_ANSWERS },
        { "let-go", "finishing", coming_let_go, NULL, 0 },
        { "dropped", "finishing", coming_drop, NULL, 0 },
};

const struct operation_kind operation_migrate = {
        .number = OPERATION_MIGRATE,
        .name = "migrate",
        .past = "migrated",
        .steps = steps,
        .n_steps = sizeof(steps) / sizeof(steps[0]),
        .busy_state = STATE_MIGRATING,
        .settled_state = STATE_RUNNING,
        .check = check,
};
