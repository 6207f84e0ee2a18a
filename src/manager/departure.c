/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/departure.h"

#include "base/clock.h"
#include "manager/custody.h"
#include "manager/gates.h"
#include "manager/guest.h"
#include "manager/instance.h"
#include "manager/manager.h"
#include "manager/operation.h"
#include "manager/remap.h"

void departure_close(struct operation *operation)
{
        gates_close(operation);
}

void departure_undo_close(struct operation *operation)
{
        gates_open(operation);
}

void departure_export(struct operation *operation)
{
        if (operation->drained_ns == 0)
                operation->drained_ns = clock_now(CLOCK_MONOTONIC);
        gates_export(operation);
}

void departure_undo_export(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                guest_forget_memory(guest);
}

void departure_keep(struct operation *operation)
{
        struct store *store = operation->instance->manager->store;
        struct guest *guest;
        int r = store_begin(store);

        operation->bytes = 0;
        operation_for_each_guest(guest, operation) {
                operation->bytes += guest->memory_bytes;
                if (r == 0)
                        r = custody_put_memory(guest);
        }
        if (r == 0)
                r = store_commit(store);
        if (r == 0)
                return;
        store_rollback(store);
        operation_fail_errno(operation, r, "keeping the exported memory");
}

void departure_undo_keep(struct operation *operation)
{
        const struct store_memory nothing = { 0 };
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                custody_drop_memory(guest);
                (void)store_put_memory(operation->instance->manager->store, operation->instance->id,
                                       guest->pid, &nothing);
        }
}

void departure_release(struct operation *operation)
{
        if (gates_expect(operation, GATE_STATE_CLOSED))
                gates_release(operation);
}

void departure_undo_release(struct operation *operation)
{
        remap_memory(operation);
}

void departure_drop(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                custody_drop_memory(guest);
                for (size_t i = 0; i < guest->n_memory; i++)
                        guest->memory[i].source = fd_close(guest->memory[i].source);
        }
}
