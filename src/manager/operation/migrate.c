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
#include "manager/operation/arrival.h"
#include "manager/operation/contexts.h"
#include "manager/operation/copies.h"
#include "manager/operation/departure.h"
#include "manager/operation/gates.h"
#include "manager/operation/operation.h"

static int check(struct operation *operation, struct failure *failure)
{
        const struct instance *instance = operation->instance;
        int r;

        if (operation->target == operation->source)
                return failure_set(failure, -EALREADY, "WrongState", "choose another device",
                                   "vGPU %s is on device %u already", instance->name,
                                   operation->target->index);
        r = arrival_check_kind(operation, failure);
        return r < 0 ? r : arrival_check_promise(operation, failure);
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

        if (!gates_expect(operation, GATE_STATE_RELEASED))
                return;
        operation_for_each_guest(guest, operation)
                contexts_move(operation, guest, NULL);
        stage(operation);
}

static void enter(struct operation *operation)
{
        struct guest *guest;

        stage(operation);
        operation_for_each_guest(guest, operation)
                contexts_move(operation, guest, operation->target);
}

static void go_back(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                copies_end(operation, guest);
                contexts_move(operation, guest, operation->source);
        }
}

static const struct operation_step steps[] = {
        { "checked", "draining", arrival_check, NULL, 0 },
        { "closed", "draining", departure_close, departure_undo_close, 0 },
        { "exported", "draining", departure_export, departure_undo_export, 0 },
        { "kept", "copying", departure_keep, departure_undo_keep, 0 },
        { "released", "copying", departure_release, departure_undo_release, 0 },
        { "left", "context", leave, go_back, 0 },
        { "measured", "context", arrival_check_again, NULL, 0 },
        { "restored", "context", enter, go_back, 0 },
        { "created", "copying", arrival_create, arrival_undo_create, 0 },
        { "copied", "copying", arrival_copy, arrival_undo_copy, 0 },
        { "recorded", "finishing", arrival_record, NULL, OPERATION_RECORDS },
        { "opened", "finishing", arrival_open, NULL, OPERATION_ANSWERS },
        { "let-go", "finishing", arrival_let_go, NULL, 0 },
        { "dropped", "finishing", arrival_drop, NULL, 0 },
};

const struct operation_kind operation_migrate = {
        .name = "migrate",
        .past = "migrated",
        .steps = steps,
        .n_steps = sizeof(steps) / sizeof(steps[0]),
        .busy_state = STATE_MIGRATING,
        .settled_state = STATE_RUNNING,
        .check = check,
};
