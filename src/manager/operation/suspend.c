/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspend: the memory goes to the pool, the context into the guest's own host
 * memory by the driver's checkpoint, both at the same time; then nothing of the
 * vGPU is left on the device. With keep_context the checkpoint is left out.
 */
#include <errno.h>

#include "base/clock.h"
#include "manager/model/clean-copy.h"
#include "manager/model/device-mover.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/policy.h"
#include "manager/model/recovery.h"
#include "manager/operation/ahead.h"
#include "manager/operation/contexts.h"
#include "manager/operation/copies.h"
#include "manager/operation/group.h"
#include "manager/operation/handover.h"
#include "manager/operation/lack.h"
#include "manager/operation/leaving.h"
#include "manager/operation/make-room.h"
#include "manager/operation/operation.h"
#include "manager/operation/shared.h"

/* A program that has been started in it and has not called CUDA yet is seen in it, but is no guest. */
static int refuse_empty(const struct instance *instance, struct failure *failure)
{
        if (!list_is_empty(&instance->launches))
                return failure_set(failure, -ENOENT, "WrongState", "wait until a program uses CUDA",
                                   "the programs in vGPU %s have not called CUDA yet: nothing of "
                                   "them is on the device",
                                   instance->name);
        return failure_set(failure, -ENOENT, "WrongState", "start a program in it with vgpu run",
                           "vGPU %s has no processes: nothing of it is on the device",
                           instance->name);
}

static int check(struct operation *operation, struct failure *failure)
{
        const struct instance *instance = operation->instance;

        if (instance->state == STATE_RUNNING)
                return shared_check(operation, failure);
        if (instance->state == STATE_IDLE)
                return refuse_empty(instance, failure);
        return failure_set(failure, -EALREADY, "WrongState", "vgpu resume brings it back",
                           "vGPU %s is %s already", instance->name,
                           instance_state_name(instance->state));
}

/* The pool. */

/* One guest's reservation is brought to @bytes, which are not 0. */
static int reserve(struct operation *operation, struct guest *guest, uint64_t bytes)
{
        struct pool *pool = operation->instance->manager->pool;
        struct failure failure = { 0 };
        char owner[POOL_OWNER_MAX];
        int r;

        if (pool_get_length(guest->reservation) == bytes && pool_is_lone(pool, guest->reservation))
                return 0;
        guest->reservation = pool_release(pool, guest->reservation);
        policy_name_owner(operation->instance, owner);
        r = policy_check_pool(operation->instance, owner, bytes, &failure);
        if (r == 0)
                r = pool_reserve_in(pool, &guest->reservation, owner, operation->instance->uuid,
                                    operation->source.device[0]->index, bytes);
        if (r == -ENOSPC)
                lack_fail_pool(operation, bytes, NULL);
        else if (r < 0)
                operation_fail_errno(operation, r, "reserving memory of the pool");
        return r;
}

static uint64_t movable_bytes(const struct guest *guest)
{
        struct page_use use;

        guest_get_use(guest, &use);
        return use.movable;
}

static uint64_t claimed_bytes(const struct operation *operation)
{
        struct guest *guest;
        uint64_t sum = 0;

        operation_for_each_guest(guest, operation)
                sum += movable_bytes(guest);
        return sum;
}

static void reserve_claimed(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest,
                                 operation) /* before a reservation can cost another its own */
                if (!guest->reservation)
                        (void)clean_copy_take(guest, movable_bytes(guest));
        operation_for_each_guest(guest, operation) {
                uint64_t bytes = movable_bytes(guest);

                if (bytes > 0 && reserve(operation, guest, bytes) < 0)
                        return;
        }
}

/* What would fail without a context is better not begun: the way back from a full device is not sure. */
static void ask_context(struct operation *operation);

static void note_context(struct operation *operation, struct device *device,
                         const struct mover_done *done)
{
        device->has_context |= done->error == 0;
        if (done->error == -ECONNRESET)
                operation_lost_mover(operation, device);
        else if (done->error == -ENOMEM)
                lack_fail_mover(operation, device);
        else if (done->error)
                operation_fail(operation, done->error, "DriverFailed", "look at it with nvidia-smi",
                               "device %u cannot be used: %.63s failed with %d", device->index,
                               done->call, done->driver_code);
}

static void on_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct operation *operation = userdata;
        size_t part = operation->n_contexts++; /* they were asked for one after another */

        (void)mover;
        note_context(operation, operation->source.device[part], done);
        if (operation->error == 0)
                ask_context(operation);
        operation_end_part(operation);
}

/*
 * Host memory is pinned while the programs come to rest. Not sooner: with new pages coming in its address space the driver
 * needs four times as long for a context.
 */
static void begin_pinning(const struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->reservation)
                        pool_begin(operation->instance->manager->pool, guest->reservation,
                                   operation->source.device[0]->index);
}

static void ask_context(struct operation *operation)
{
        struct device *device;
        struct mover *mover;
        int r;

        if (operation->n_contexts == operation->instance->n_parts) {
                begin_pinning(operation);
                return;
        }
        device = operation->source.device[operation->n_contexts];
        r = device_get_mover(device, &mover);
        if (r == 0)
                r = mover_context(mover, on_context, operation);
        if (r == -ECONNRESET)
                operation_lost_mover(operation, device);
        else if (r < 0)
                operation_fail_errno(operation, r, "asking for a context");
        else
                operation_begin_part(operation);
}

static void go_on_reserving(struct operation *operation)
{
        reserve_claimed(operation);
        operation->n_contexts = 0;
        if (operation->error == 0)
                ask_context(operation);
}

/* Before anybody is stopped: would it fit? What the guests claim now is close to what they export. */
static void reserve_all(struct operation *operation)
{
        make_room(operation, claimed_bytes(operation), go_on_reserving);
}

static void give_back(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                clean_copy_put_back_unlisted(guest);
}

/* Now the sizes are exact. */
static void reserve_exported(struct operation *operation)
{
        struct pool *pool = operation->instance->manager->pool;
        struct guest *guest;
        int r = 0;

        operation_for_each_guest(guest, operation) {
                if (guest->memory_bytes == 0) {
                        guest->reservation = pool_release(pool, guest->reservation);
                        continue;
                }
                if (reserve(operation, guest, guest->memory_bytes) < 0)
                        return;
                r = recovery_put_slabs(guest);
                if (r < 0) {
                        operation_fail_errno(operation, r, "keeping the slabs");
                        return;
                }
        }
        leaving_keep(operation);
}

/* Moving. */

static void move_out(struct operation *operation)
{
        struct guest *guest;

        if (!leaving_may_checkpoint(operation))
                return;
        operation_for_each_guest(guest, operation) {
                copies_out(operation, guest);
                if (!operation->request.keep_context)
                        contexts_move(operation, guest, &place_nowhere);
        }
}

static void move_back(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                copies_end(operation, guest);
                contexts_move(operation, guest, &operation->source);
        }
}

static uint32_t state_after(const struct operation *operation)
{
        return operation->request.keep_context ? STATE_EVICTED : STATE_SUSPENDED;
}

static int put(struct operation *operation)
{
        struct instance *instance = operation->instance;
        struct store *store = instance->manager->store;
        int r = recovery_put_state(instance, state_after(operation), &operation->source);

        if (r == 0)
                r = store_remove_operation(store, instance->id);
        if (r == 0)
                r = residency_record_put_left(&instance->residency, store, instance->id,
                                              operation->request.is_by_itself);
        return r;
}

static void settle(struct operation *operation)
{
        struct instance *instance = operation->instance;

        instance->state = state_after(operation);
        instance->off_since_ns = clock_now(CLOCK_MONOTONIC);
        instance->still_since_ns = operation->measured.closing_ns;
        instance->residency.has_left = operation->request.is_by_itself;
        handover_end(operation);
}

static void record_end(struct operation *operation)
{
        group_record(operation, put, settle);
}

static const struct operation_step steps[] = {
        { "reserved", "draining", reserve_all, give_back, 0 },
        { "ahead", "running", ahead_run, NULL, 0 },
        { "closed", "draining", leaving_close, leaving_undo_close,
          OPERATION_MEETS | OPERATION_MEETS_BACK },
        { "asked", "draining", leaving_ask_shared, NULL, OPERATION_MEETS },
        { "exported", "draining", leaving_export, leaving_undo_export,
          OPERATION_MEETS | OPERATION_MEETS_BACK },
        { "kept", "copying", reserve_exported, leaving_undo_keep, 0 },
        { "released", "copying", leaving_release, leaving_undo_release, 0 },
        { "moved", "copying", move_out, move_back, OPERATION_COPIES },
        { "recorded", "finishing", record_end, NULL, OPERATION_RECORDS | OPERATION_MEETS },
        { "dropped", "finishing", leaving_drop, NULL, OPERATION_ANSWERS | OPERATION_MEETS },
};

const struct operation_kind operation_suspend = {
        .number = OPERATION_SUSPEND,
        .takes = OPERATION_KEEPS_CONTEXT | OPERATION_VERIFIES | OPERATION_DETACHES |
                 OPERATION_PRE_COPIES | OPERATION_BY_ITSELF | OPERATION_HANDS_OVER |
                 OPERATION_IN_GROUP,
        .name = "suspend",
        .past = "suspended",
        .steps = steps,
        .n_steps = sizeof(steps) / sizeof(steps[0]),
        .busy_state = STATE_SUSPENDING,
        .settled_state = STATE_RUNNING,
        .check = check,
};
