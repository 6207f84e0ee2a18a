/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/broadcast.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/cuda.h"
#include "manager/guests/guest-request.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/lack.h"
#include "manager/operation/operation.h"

/* Gates connect again within a second; one that is stopped or hangs must not hold up the others. */
#define GATHER_MS 10000

/* Hangs, or has hung up and does not come back. */
static bool is_silent(const struct guest_answer *answer)
{
        return answer->error == -ETIMEDOUT || answer->error == -ENOTCONN;
}

void broadcast_fail_stopped(struct operation *operation, const struct guest *guest)
{
        enum process_halt halt = process_get_halt(guest->pid);

        operation_fail(operation, -ETIMEDOUT, "TimedOut", process_advise_halt(halt),
                       "process %d (%.40s) %s", (int)guest->pid, guest->name,
                       process_describe_halt(halt));
}

static void fail_busy(struct operation *operation, const struct guest *guest, const char *call)
{
        operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                       "it runs on; what it holds there cannot be moved",
                       "process %d (%.40s) cannot be suspended: %.63s", (int)guest->pid,
                       guest->name, call[0] ? call : "it is busy");
}

/* The state of the account is still that of the refusal: it says the same again. */
static void fail_charge(struct operation *operation, struct guest *guest)
{
        const struct account_cost more = { { [ACCOUNT_DESCRIPTORS] = UINT32_MAX } };
        struct account_charge none = { 0 };
        struct failure failure = { 0 };

        (void)account_take(operation->instance->manager->accounts, &none, guest->payer, &more,
                           &failure);
        operation_fail(operation, -EDQUOT, "NoRoom", failure.hint,
                       "process %d (%.40s) has memory in too many pieces: %.400s", (int)guest->pid,
                       guest->name, failure.message);
}

/* Its own gate is connected still. */
static bool is_others_silence(const struct guest *guest, const struct guest_answer *answer)
{
        return answer->error == -ETIMEDOUT && guest->gate && guest->share.silent_maker > 0;
}

static void fail_silent_maker(struct operation *operation, const struct guest *guest)
{
        operation_fail(
                operation, -ETIMEDOUT, "GuestLost", "end it if it hangs; the log of vgpud has more",
                "the gate of process %d, whose memory process %d (%.40s) has, does not answer",
                (int)guest->share.silent_maker, (int)guest->pid, guest->name);
}

void broadcast_fail(struct operation *operation, struct guest *guest,
                    const struct guest_answer *answer)
{
        if (answer->driver_code == CUDA_ERROR_OUT_OF_MEMORY && guest->state == GATE_STATE_RELEASED)
                lack_fail_memory(operation, guest);
        else if (answer->error == -EDQUOT)
                fail_charge(operation, guest);
        else if (answer->driver_code)
                operation_fail_driver(operation, guest, answer->call, answer->driver_code,
                                      answer->error);
        else if (is_others_silence(guest, answer))
                fail_silent_maker(operation, guest);
        else if (is_silent(answer) && process_is_stopped(guest->pid))
                broadcast_fail_stopped(operation, guest);
        else
                operation_fail(operation, answer->error, "GuestLost",
                               "end it if it hangs; the log of vgpud has more",
                               "the gate of process %d (%.40s) %s: %s", (int)guest->pid,
                               guest->name, is_silent(answer) ? "does not answer" : "failed",
                               strerror(-answer->error));
        if (answer->error == -ECONNRESET && operation->is_undoing)
                operation_lost_gate(operation);
        operation_leave_guest(operation, guest);
}

static void fail_broken(struct operation *operation, struct guest *guest,
                        const struct guest_answer *answer)
{
        operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                       "end it: it can do nothing on the device any more",
                       "the CUDA context of process %d (%.40s) is broken: %.63s failed with %d",
                       (int)guest->pid, guest->name, answer->call, answer->driver_code);
}

bool broadcast_failed(struct operation *operation, struct guest *guest,
                      const struct guest_answer *answer)
{
        char why[128];

        if (answer->error == 0 || answer->error == -ESRCH)
                return false;
        if (answer->fate == GATE_FATE_STAYS)
                return true;
        if (answer->fate == GATE_FATE_BEREFT)
                snprintf(why, sizeof(why),
                         "it has lost memory that another process had made, "
                         "which has ended");
        else
                snprintf(why, sizeof(why), "%s: %.63s failed with %d",
                         answer->fate == GATE_FATE_ENDS ? "it is ending"
                                                        : "its CUDA context is broken",
                         answer->call, answer->driver_code);
        operation_let_go_guest(operation, guest, why);
        return false;
}

static const struct {
        uint32_t bit;
        const char *what;
} kept_by[] = {
        { GATE_HOLDS_MANAGED,
          "managed memory (cuMemAllocManaged), which the driver cannot checkpoint" },
        { GATE_HOLDS_IMPORTED,
          "memory of a process without a gate (or with OPENVGPU_NATIVE_IPC=1), which the driver cannot "
          "checkpoint" },
        { GATE_HOLDS_MULTICAST,
          "a multicast object (NVLink SHARP), which cannot be made anew; NCCL does without if "
          "NCCL_NVLS_ENABLE=0 is set" },
        { GATE_HOLDS_REGISTERED,
          "memory of which it has a dma-buf (RDMA): a network card would go on with the old memory" },
        { GATE_HOLDS_FABRIC,
          "memory with a fabric handle, which other machines may use: it cannot be made anew" },
        { GATE_HOLDS_EXPORTED,
          "memory that it has exported by a handle of the driver's own (a pool, or more than a descriptor): who "
          "has imported it would go on with the old memory" },
        { GATE_HOLDS_UNPROVEN,
          "something of which it is not known whether the driver's checkpoint brings it back: memory or "
          "semaphores of another library (cuImportExternalMemory), resources of graphics, EGL or VDPAU, or "
          "memory that is mapped into an array (cuMemMapArrayAsync)" },
        { GATE_HOLDS_MANAGED_POOL,
          "a pool of managed memory (cuMemPoolCreate, cuMemGetMemPool), with which the driver would lose it, "
          "even if the pool is empty" },
        { GATE_HOLDS_HOST_POOL,
          "memory of a pool on the host (cuMemPoolCreate), of which the driver's checkpoint never returns" },
};

const char *broadcast_what_keeps(uint32_t holds)
{
        for (size_t i = 0; i < sizeof(kept_by) / sizeof(kept_by[0]); i++)
                if (holds & kept_by[i].bit)
                        return kept_by[i].what;
        return "something that this vgpud does not know";
}

/* Closed it has; but the driver's checkpoint would fail, or lose the process or what it shares. */
static void check_holds(struct operation *operation, struct guest *guest, uint32_t holds)
{
        if ((holds == 0 && !guest->context.is_spoiled) || operation->request.keep_context)
                return;
        if (guest->context.is_spoiled) {
                operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                               operation->kind->number == OPERATION_SUSPEND
                                       ? "it runs on; --keep-context evicts what can be moved"
                                       : "it runs on",
                               "process %d (%.40s) " BROADCAST_SPOILED, (int)guest->pid,
                               guest->name);
                return;
        }
        operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                       operation->kind->number == OPERATION_SUSPEND
                               ? "it runs on; --keep-context evicts what can be moved"
                               : "it runs on",
                       "process %d (%.40s) holds %s", (int)guest->pid, guest->name,
                       broadcast_what_keeps(holds));
}

void broadcast_note_closed(struct operation *operation, struct guest *guest,
                           const struct guest_answer *answer)
{
        if (answer->error == -EBUSY)
                fail_busy(operation, guest, answer->call);
        else if (answer->fate == GATE_FATE_BROKEN)
                fail_broken(operation, guest, answer);
        else if (broadcast_failed(operation, guest, answer))
                broadcast_fail(operation, guest, answer);
        else if (answer->error == 0)
                check_holds(operation, guest, answer->holds);
}

static void on_asked(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        if (answer->error == -EOWNERDEAD)
                operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                               "it runs on; end it, or let it free that memory",
                               "process %d (%.40s) holds memory that another process made and has "
                               "freed, or that has ended: nobody could make it anew",
                               (int)guest->pid, guest->name);
        else if (broadcast_failed(operation, guest, answer))
                broadcast_fail(operation, guest, answer);
        operation_end_part(operation);
}

static void on_done(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        if (broadcast_failed(operation, guest, answer) &&
            !(is_silent(answer) && operation_leave_behind(operation, guest)))
                broadcast_fail(operation, guest, answer);
        operation_end_part(operation);
}

static void ask(struct operation *operation, struct guest *guest, enum gate_message message)
{
        operation_begin_part(operation);
        guest_request(guest, message, BROADCAST_ANSWER_MS, on_done, operation);
}

bool broadcast_expect(struct operation *operation, enum gate_state state)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->state != state) {
                        operation_fail(operation, -ECONNRESET, "GuestLost",
                                       "the log of vgpud has more; try again",
                                       "the gate of process %d (%.40s) lost its connection",
                                       (int)guest->pid, guest->name);
                        return false;
                }
        return true;
}

void broadcast_ask_shared(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                if (guest->sharing.n_imports == 0)
                        continue;
                operation_begin_part(operation);
                guest_request_take(guest, true, BROADCAST_ANSWER_MS, on_asked, operation);
        }
}

void broadcast_take(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                if (guest->sharing.n_imports == 0 || guest->state != GATE_STATE_CLOSED)
                        continue;
                operation_begin_part(operation);
                guest_request_take(guest, false, BROADCAST_ANSWER_MS, on_done, operation);
        }
}

void broadcast_export(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                guest_forget_memory(guest);
                ask(operation, guest, GATE_EXPORT);
        }
}

/* An undo has brought back what it has, and dropped where it came from. */
static bool is_irreplaceable(const struct operation *operation, const struct guest *guest)
{
        return !operation->kind->is_from_pool && guest_lacks_sources(guest);
}

void broadcast_release(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->state == GATE_STATE_CLOSED && !is_irreplaceable(operation, guest))
                        ask(operation, guest, GATE_RELEASE);
}

void broadcast_release_parts(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->state == GATE_STATE_RELEASED && guest->n_memory > 0)
                        ask(operation, guest, GATE_RELEASE);
}

/* The memory of one that comes early is created in parts: arrival.h. */
void broadcast_create(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->state == GATE_STATE_RELEASED &&
                    (!operation->request.is_early || guest->n_memory == 0))
                        ask(operation, guest, GATE_CREATE);
}

/*
 * Whoever is here has its memory: else it is stuck, or its copy has failed. That it is not filled may still
 * have been said by its gate, which knows no better, when it connected anew after the copy.
 */
void broadcast_open(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                guest->is_unfilled = false;
                if (guest->state == GATE_STATE_CLOSED)
                        ask(operation, guest, GATE_OPEN);
        }
}

static void on_gathered(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        if (answer->error && answer->error != -ESRCH)
                broadcast_fail(operation, guest, answer);
        operation_end_part(operation);
}

void broadcast_gather(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                if (guest->gate || !guest->must_stay)
                        continue;
                operation_begin_part(operation);
                guest_request(guest, 0, GATHER_MS, on_gathered, operation);
        }
}
