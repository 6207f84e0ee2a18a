/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resume: the mover fills memory of its own ahead while the driver restores the
 * context; then the guest creates its memory, which gets what was staged and the
 * rest of the pool's.
 */
#include <errno.h>

#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/coming.h"
#include "manager/operation/contexts.h"
#include "manager/operation/copies.h"
#include "manager/operation/copy-check.h"
#include "manager/operation/fetching.h"
#include "manager/operation/operation.h"
#include "manager/operation/shared.h"

static int check(struct operation *operation, struct failure *failure)
{
        const struct instance *instance = operation->instance;
        struct guest *guest;
        int r;

        if (!instance_is_off(instance))
                return failure_set(failure, -EALREADY, "WrongState",
                                   "only a suspended vGPU can be resumed", "vGPU %s is %s",
                                   instance->name, instance_state_name(instance->state));
        operation->request.keep_context = instance->state == STATE_EVICTED;
        operation_for_each_guest(guest, operation) {
                operation->measured.bytes += guest->memory_bytes;
                r = copy_check(guest, failure);
                if (r < 0)
                        return r;
        }
        r = shared_check(operation, failure);
        if (r == 0)
                r = coming_check_fit(operation, failure);
        operation->measured.closing_ns = instance->still_since_ns;
        return r < 0 ? r : coming_check_promise(operation, failure);
}

/*
 * The driver would try for long, and in vain: whatever the operation's time is, it waits for a process that is stopped.
 * False: one of them cannot be left behind.
 */
static bool leave_stopped(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                if (!process_is_stopped(guest->pid) || operation_leave_behind(operation, guest))
                        continue;
                broadcast_fail_stopped(operation, guest);
                return false;
        }
        return true;
}

static void restore(struct operation *operation)
{
        struct guest *guest;

        if (!broadcast_expect(operation, GATE_STATE_RELEASED) || !leave_stopped(operation))
                return;
        /* Staging has its memory before the first restore, during which the mover takes none. */
        operation_for_each_guest(guest, operation)
                if (!operation->request.is_early)
                        copies_stage(operation, guest);
        operation_for_each_guest(guest, operation)
                contexts_move(operation, guest, &operation->target);
}

static void undo_restore(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                copies_end(operation, guest);
                contexts_move(operation, guest,
                              operation->request.keep_context ? &operation->source
                                                              : &place_nowhere);
        }
}

/*
 * Whoever waits for room on the device holds none of the pool: who leaves for him may need it. A vgpud that fetched
 * before that may have died while it restored, after `checked`.
 */
static const struct operation_step steps[] = {
        { "checked", "context", coming_check, NULL, 0 },
        { "fetched", "reading", fetching_run, undo_restore, 0 },
        { "restored", "context", restore, undo_restore, 0 },
        { "created", "copying", coming_create, coming_undo_create, 0 },
        { "copied", "copying", coming_copy, coming_undo_copy, OPERATION_MEETS },
        { "recorded", "finishing", coming_record, NULL, OPERATION_RECORDS | OPERATION_MEETS },
        { "opened", "finishing", coming_open, NULL, OPERATION_ANSWERS | OPERATION_MEETS },
        { "let-go", "finishing", coming_let_go, NULL, 0 },
        { "dropped", "finishing", coming_drop, NULL, 0 },
};

const struct operation_kind operation_resume = {
        .number = OPERATION_RESUME,
        .takes = OPERATION_BY_ITSELF | OPERATION_EARLY | OPERATION_IN_GROUP,
        .name = "resume",
        .past = "resumed",
        .steps = steps,
        .n_steps = sizeof(steps) / sizeof(steps[0]),
        .is_from_pool = true,
        .may_leave_behind = true,
        .busy_state = STATE_RESUMING,
        .settled_state = STATE_SUSPENDED,
        .check = check,
};
