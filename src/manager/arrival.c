/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/arrival.h"

#include <errno.h>

#include "base/size.h"
#include "board/kind.h"
#include "manager/copies.h"
#include "manager/departure.h"
#include "manager/gates.h"
#include "manager/guest.h"
#include "manager/instance.h"
#include "manager/manager.h"
#include "manager/operation.h"
#include "manager/publisher.h"
#include "manager/schedule.h"

/*
 * Of a device that shall take a process there must be this much free besides the process' memory,
 * for its context: about 0.5 GiB on an H200, more with large modules. A restore that runs out of
 * memory loses the process, so this errs on the safe side; small (simulated) devices have less.
 */
#define CONTEXT_RESERVE      (768 * MIB)
#define CONTEXT_RESERVE_PART 128 /* of the device's memory, at most */

/* What staging leaves free besides all that, for others on the device. */
#define STAGE_RESERVE      (1024 * MIB)
#define STAGE_RESERVE_PART 16

static uint64_t smaller(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

int arrival_check_promise(const struct operation *operation, struct failure *failure)
{
        const struct instance *instance = operation->instance;
        int r;

        if (instance->frame_buffer > operation->target->memory_total)
                return failure_set(failure, -ENOSPC, "NoRoom", "choose another device",
                                   "device %u is smaller than vGPU %s", operation->target->index,
                                   instance->name);
        r = device_check_room(operation->target, instance->frame_buffer, instance, failure);
        return r < 0 ? r : schedule_check_move(instance, operation->target, failure);
}

/* By what the board says of both, and so as NVML's library answers for their metadata. */
int arrival_check_kind(const struct operation *operation, struct failure *failure)
{
        const struct device *from = operation->instance->device, *to = operation->target;
        const struct board *board = publisher_get_board(from->manager->publisher);
        struct board_kind from_kind, to_kind;
        struct board_device record;

        if (from == to)
                return 0;
        if (board_read_device(board, to->index, &record) && !record.can_migrate)
                return failure_set(failure, -EOPNOTSUPP, "Unsupported", "choose another device",
                                   "vGPU %s cannot move to device %u: no vGPU can move there",
                                   operation->instance->name, to->index);
        if (board_read_kind(board, from->index, &from_kind) &&
            board_read_kind(board, to->index, &to_kind) && board_is_same_kind(&from_kind, &to_kind))
                return 0;
        return failure_set(failure, -EOPNOTSUPP, "Unsupported", "choose a device of the same kind",
                           "vGPU %s cannot move from device %u (%s) to device %u (%s): they are "
                           "not of one kind",
                           operation->instance->name, from->index, from->name, to->index, to->name);
}

static uint64_t needed_bytes(const struct operation *operation)
{
        uint64_t total = operation->target->memory_total;
        uint64_t context = smaller(CONTEXT_RESERVE, total / CONTEXT_RESERVE_PART);
        uint64_t sum = 0;
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                struct page_use use;

                page_read(&operation->instance->page, guest->slot,
                          operation->instance->frame_buffer, &use);
                sum += (guest->n_memory ? guest->memory_bytes : use.movable) + use.fixed + context;
        }
        return sum;
}

static void on_info(struct mover *mover, int error, const struct mover_info *info, void *userdata)
{
        struct operation *operation = userdata;
        uint64_t needed = needed_bytes(operation);
        uint64_t reserve =
                smaller(STAGE_RESERVE, operation->target->memory_total / STAGE_RESERVE_PART);
        char free_text[SIZE_TEXT_MAX], needed_text[SIZE_TEXT_MAX];

        (void)mover;
        if (error == -ECONNRESET) {
                operation_lost_mover(operation);
        } else if (error) {
                operation_fail_errno(operation, error, "asking for free memory");
        } else if (info->memory_free < needed) {
                size_format(free_text, info->memory_free);
                operation_fail(operation, -ENOSPC, "NoRoom",
                               "end or suspend what is there, or choose another device",
                               "device %u has %s free, %s are needed", operation->target->index,
                               free_text, size_format(needed_text, needed));
        } else {
                operation->is_room_known = true;
                operation->stage_bytes = info->memory_free > needed + reserve
                                                 ? info->memory_free - needed - reserve
                                                 : 0;
        }
        operation_end_part(operation);
}

/* Free memory is only known with a context. */
static void on_context(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct operation *operation = userdata;
        int r = done->error ? done->error : mover_info(mover, on_info, operation);

        operation->target->has_context |= done->error == 0;
        if (r == 0)
                return;
        if (r == -ECONNRESET)
                operation_lost_mover(operation);
        else
                operation_fail(operation, r, "DriverFailed", "look at it with nvidia-smi",
                               "device %u cannot be used: %.63s failed with %d",
                               operation->target->index, done->call, done->driver_code);
        operation_end_part(operation);
}

void arrival_check(struct operation *operation)
{
        struct mover *mover;
        int r;

        if (operation->n_processes == 0)
                return;
        r = device_get_mover(operation->target, &mover);
        if (r == 0)
                r = mover_context(mover, true, on_context, operation);
        if (r == 0)
                operation_begin_part(operation);
        else if (r == -ECONNRESET)
                operation_lost_mover(operation);
        else
                operation_fail_errno(operation, r, "starting a mover");
}

void arrival_create(struct operation *operation)
{
        gates_create(operation);
}

/* Memory that was created but not filled is worth nothing. */
void arrival_undo_create(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                for (size_t i = 0; i < guest->n_memory; i++)
                        guest->memory[i].target = fd_close(guest->memory[i].target);
        gates_release(operation);
}

void arrival_copy(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                copies_in(operation, guest);
}

static void end_copies(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                copies_end(operation, guest);
}

void arrival_undo_copy(struct operation *operation)
{
        end_copies(operation);
}

static int record(struct operation *operation)
{
        const struct store_memory nothing = { 0 };
        struct instance *instance = operation->instance;
        struct store *store = instance->manager->store;
        uint32_t state = operation_next_guest(operation, NULL) ? BOARD_RUNNING : BOARD_IDLE;
        struct guest *guest;
        int r = store_begin(store);

        if (r == 0)
                r = store_set_instance(store, instance->id, state, operation->target->uuid);
        operation_for_each_guest(guest, operation)
                if (r == 0)
                        r = store_put_memory(store, instance->id, guest->pid, &nothing);
        if (r == 0)
                r = store_remove_operation(store, instance->id);
        if (r == 0)
                r = store_commit(store);
        if (r == 0) {
                instance->device = operation->target;
                instance->state = state;
        } else {
                store_rollback(store);
        }
        return r;
}

void arrival_record(struct operation *operation)
{
        int r = record(operation);

        if (r < 0)
                operation_fail_errno(operation, r, "recording the end");
}

void arrival_open(struct operation *operation)
{
        gates_open(operation);
}

void arrival_let_go(struct operation *operation)
{
        end_copies(operation);
}

void arrival_drop(struct operation *operation)
{
        struct manager *manager = operation->instance->manager;
        struct guest *guest;

        departure_drop(operation);
        operation_for_each_guest(guest, operation) {
                guest_forget_memory(guest);
                guest->reservation = pool_release(manager->pool, guest->reservation);
        }
}
