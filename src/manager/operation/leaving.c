/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/leaving.h"

#include "base/clock.h"
#include "manager/model/clean-copy.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"
#include "manager/model/recovery.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/operation.h"
#include "manager/operation/rest.h"
#include "manager/operation/shared.h"
#include "manager/operation/undo-release.h"

void leaving_close(struct operation *operation)
{
        if (operation->measured.closing_ns == 0)
                operation->measured.closing_ns = clock_now(CLOCK_MONOTONIC);
        rest_begin(operation);
}

void leaving_undo_close(struct operation *operation)
{
        broadcast_open(operation);
}

void leaving_ask_shared(struct operation *operation)
{
        if (broadcast_expect(operation, GATE_STATE_CLOSED))
                shared_ask(operation);
}

void leaving_export(struct operation *operation)
{
        if (operation->measured.drained_ns == 0)
                operation->measured.drained_ns = clock_now(CLOCK_MONOTONIC);
        broadcast_export(operation);
        if (operation->request.hands_over)
                observer_tell_instance(&operation->instance->manager->observers,
                                       operation->instance, INSTANCE_MAKES_WAY);
}

void leaving_undo_export(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (!guest->is_remembered)
                        guest_forget_memory(guest);
        broadcast_take(operation); /* who made it has it again */
}

void leaving_keep(struct operation *operation)
{
        struct store *store = operation->instance->manager->store;
        struct guest *guest;
        int r = store_begin(store);

        operation->measured.bytes = 0;
        operation_for_each_guest(guest, operation) {
                operation->measured.bytes += guest->memory_bytes;
                if (r == 0)
                        r = recovery_put_memory(guest);
        }
        if (r == 0)
                r = store_commit(store);
        if (r < 0) {
                store_rollback(store);
                operation_fail_store(operation, r, "keeping the exported memory");
                return;
        }
        operation_for_each_guest(guest, operation)
                guest->is_remembered = true;
}

static int forget(struct operation *operation)
{
        const struct store_memory nothing = { 0 };
        struct store *store = operation->instance->manager->store;
        struct guest *guest;
        int r = store_begin(store);

        operation_for_each_guest(guest, operation)
                if (r == 0)
                        r = store_put_memory(store, operation->instance->id, guest->pid, &nothing);
        if (r == 0)
                r = operation_store_undone(operation);
        if (r == 0)
                r = store_commit(store);
        if (r < 0)
                store_rollback(store);
        return r;
}

/*
 * The store first, and with it that all before this is undone: a next manager that knew of the memory
 * but had it not, or the other way round, would take from a guest what it has mapped again. What the
 * store does not forget is kept, and so is all while a guest is stuck; the guests go on meanwhile.
 */
void leaving_undo_keep(struct operation *operation)
{
        struct guest *guest;

        if (operation->has_failed_undo || forget(operation) < 0)
                return;
        operation_for_each_guest(guest, operation) {
                guest->is_remembered = false;
                recovery_drop_memory(guest);
                clean_copy_put_back_unlisted(guest);
        }
}

void leaving_release(struct operation *operation)
{
        if (broadcast_expect(operation, GATE_STATE_CLOSED))
                broadcast_release(operation);
}

bool leaving_may_checkpoint(struct operation *operation)
{
        struct guest *guest;

        if (!broadcast_expect(operation, GATE_STATE_RELEASED))
                return false;
        if (operation->request.keep_context || !operation->instance->course.gives_up_stopped)
                return true;
        operation_for_each_guest(guest, operation)
                if (process_is_stopped(guest->pid)) {
                        broadcast_fail_stopped(operation, guest);
                        return false;
                }
        return true;
}

void leaving_undo_release(struct operation *operation)
{
        undo_release(operation);
}

void leaving_drop(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                recovery_drop_sources(guest);
}
