/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/undo-release.h"

#include <errno.h>
#include <inttypes.h>

#include "abi/cuda.h"
#include "base/cleanup.h"
#include "daemon/log.h"
#include "manager/guests/guest-request.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/policy.h"
#include "manager/model/recovery.h"
#include "manager/operation/broadcast.h"
#include "manager/operation/copies.h"
#include "manager/operation/handover.h"
#include "manager/operation/lack.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

static bool is_away(const struct guest_memory *memory)
{
        return memory->source >= 0 || memory->is_parked;
}

static size_t first_away(const struct guest *guest)
{
        size_t i = 0;

        while (i < guest->n_memory && !is_away(&guest->memory[i]))
                i++;
        return i;
}

/* The end of the guest's part. */
static void end(struct guest *guest)
{
        operation_end_part(guest->instance->operation);
}

/* True: that was the end of it, whether it has failed or nobody needs it any more. */
static bool is_over(struct guest *guest, const struct guest_answer *answer)
{
        if (broadcast_failed(guest->instance->operation, guest, answer))
                broadcast_fail(guest->instance->operation, guest, answer);
        else if (!guest_is_dead(guest) && answer->error == 0)
                return false;
        end(guest);
        return true;
}

/* In parts. */

static void next_part(struct guest *guest);

/* Those of one device that are all exported, or all parked, and no more than last had room. */
static size_t part_size(const struct guest *guest, size_t first)
{
        const struct guest_memory *memory = guest->memory + first;
        size_t n = 1;

        while (n < guest->participant->return_width && first + n < guest->n_memory &&
               is_away(&memory[n]) && memory[n].is_parked == memory->is_parked &&
               memory[n].part == memory->part)
                n++;
        return n;
}

static void on_parked(struct guest *guest, bool is_done)
{
        struct operation *operation = guest->instance->operation;
        int r = is_done ? recovery_put_parked(guest, guest->participant->copy.first,
                                              guest->participant->copy.n)
                        : 0;

        if (r < 0) {
                operation_fail_errno(operation, r, "keeping what waits in the pool");
                operation_leave_guest(operation, guest);
        }
        if (r < 0 || !is_done) {
                end(guest);
                return;
        }
        handover_expect_guest_back(operation,
                                   guest); /* nobody shall take what is about to be free */
        for (size_t i = guest->participant->copy.first;
             i < guest->participant->copy.first + guest->participant->copy.n; i++)
                guest_close_source(guest, &guest->memory[i]);
        operation_pass(operation, "parked");
        next_part(guest);
}

/* For all of it, as everywhere; a suspend has that already, but what others hold is not to be written to. */
static int reserve(struct guest *guest)
{
        struct pool *pool = guest->instance->manager->pool;
        char owner[POOL_OWNER_MAX];
        int r = 0;

        if (guest->reservation && !pool_is_lone(pool, guest->reservation) &&
            handover_has_parked(guest))
                return -EBUSY; /* it has all that there is of what was handed over */
        if (guest->reservation && !pool_is_lone(pool, guest->reservation))
                guest->reservation = pool_release(pool, guest->reservation);
        policy_name_owner(guest->instance, owner);
        if (!guest->reservation)
                r = pool_reserve_in(pool, &guest->reservation, owner, guest->instance->uuid,
                                    guest->instance->operation->source.device[0]->index,
                                    guest->memory_bytes);
        if (r == 0)
                r = recovery_put_slabs(guest);
        if (r < 0)
                return r;
        r = recovery_store_memory(guest);
        if (r < 0)
                operation_fail_store(guest->instance->operation, r,
                                     "noting what waits in the pool");
        return r;
}

static void park(struct guest *guest, size_t first)
{
        struct operation *operation = guest->instance->operation;
        int r = reserve(guest);

        if (r == 0) {
                log_event_of(guest->payer, LOG_LEVEL_INFO, "memory goes back through the pool",
                             "vgpu=%s pid=%d bytes=%" PRIu64, operation->instance->name,
                             (int)guest->pid, guest->memory[first].size);
                copies_park(guest, first, 1, on_parked);
                return;
        }
        if (r == -ENOSPC)
                lack_fail_return(operation, operation->source.device[0], guest);
        else
                operation_fail_errno(operation, r, "reserving memory of the pool");
        operation_leave_guest(operation, guest);
        end(guest);
}

static void on_filled(struct guest *guest, bool is_done)
{
        if (!is_done) {
                end(guest);
                return;
        }
        recovery_drop_part(guest, guest->participant->copy.first, guest->participant->copy.n);
        for (size_t i = guest->participant->copy.first;
             i < guest->participant->copy.first + guest->participant->copy.n; i++) {
                struct guest_memory *memory = &guest->memory[i];

                guest_close_source(guest, memory);
                guest_close_target(guest, memory);
                memory->is_parked = false;
        }
        handover_expect_guest_back(guest->instance->operation, guest);
        operation_pass(guest->instance->operation, "release-undone");
        next_part(guest);
}

/* True: the part is made smaller, or goes through the pool. */
static bool makes_do(struct guest *guest, const struct guest_answer *answer)
{
        size_t first = first_away(guest), n = part_size(guest, first);

        if (answer->driver_code != CUDA_ERROR_OUT_OF_MEMORY || guest_is_dead(guest) || !guest->gate)
                return false;
        if (n == 1 && guest->memory[first].is_parked)
                return false;
        if (n == 1) {
                park(guest, first);
                return true;
        }
        guest->participant->return_width = n / 2;
        next_part(guest);
        return true;
}

static void on_created(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        size_t first = first_away(guest);

        (void)userdata;
        if ((answer->error && makes_do(guest, answer)) || is_over(guest, answer))
                return;
        operation_pass(guest->instance->operation, "undoing-release");
        copies_back(guest, first, part_size(guest, first), on_filled);
}

static void next_part(struct guest *guest)
{
        size_t first = first_away(guest), last;

        if (guest_is_dead(guest) || first == guest->n_memory) {
                guest->is_unfilled = false;
                end(guest);
                return;
        }
        last = first + part_size(guest, first) - 1;
        for (size_t i = first; i <= last; i++)
                guest_close_target(guest, &guest->memory[i]);
        guest_request_range(
                guest, GATE_CREATE,
                (struct gate_range){ guest->memory[first].address,
                                     guest->memory[last].address + guest->memory[last].size },
                BROADCAST_ANSWER_MS, on_created, NULL);
}

static void on_ready(struct guest *guest, bool is_done)
{
        if (is_done)
                next_part(guest);
        else
                end(guest);
}

static void on_released(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        (void)userdata;
        if (!is_over(guest, answer))
                copies_ready(guest, on_ready);
}

/* What is created and not filled is worth nothing. */
static void begin_parts(struct guest *guest)
{
        guest->participant->return_width = GATE_BATCH_MAX;
        guest_request_range(
                guest, GATE_RELEASE,
                (struct gate_range){ guest->memory[first_away(guest)].address, UINT64_MAX },
                BROADCAST_ANSWER_MS, on_released, NULL);
}

/* At once. */

/* When the driver refused, the gate is as before and connected. */
static void on_mapped(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        bool is_connected = guest->gate && !guest_is_dead(guest);

        (void)userdata;
        if (answer->error && is_connected && answer->fate == GATE_FATE_STAYS &&
            first_away(guest) < guest->n_memory) {
                log_event_of(guest->payer, LOG_LEVEL_INFO,
                             "copying memory back that cannot be mapped again",
                             "vgpu=%s pid=%d error=%d call=%.63s code=%d", guest->instance->name,
                             (int)guest->pid, -answer->error, answer->call, answer->driver_code);
                begin_parts(guest);
        } else if (!is_over(guest, answer)) {
                end(guest);
        }
}

/* Its gate says that some is missing, and we know of none: it is lost. */
static void lose(struct operation *operation, struct guest *guest)
{
        operation_fail(operation, -EIO, "GuestLost", "end it",
                       "the memory of process %d (%.40s) is not here any more", (int)guest->pid,
                       guest->name);
        operation_leave_guest(operation, guest);
        end(guest);
}

static void bring_back(struct operation *operation, struct guest *guest)
{
        bool is_released = guest->state == GATE_STATE_RELEASED;

        if (!is_released && (!guest->is_unfilled || first_away(guest) == guest->n_memory)) {
                guest->is_unfilled = false;
                return;
        }
        operation_begin_part(operation);
        if (is_released && (guest->n_memory == 0 || !guest_lacks_sources(guest)))
                guest_request(guest, GATE_MAP, BROADCAST_ANSWER_MS, on_mapped, NULL);
        else if (first_away(guest) < guest->n_memory)
                begin_parts(guest);
        else
                lose(operation, guest);
}

void undo_release(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->context.state == GUEST_CONTEXT_RUNNING)
                        bring_back(operation, guest);
}
