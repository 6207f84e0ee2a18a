/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/gates.h"

#include <errno.h>
#include <string.h>

#include "manager/guest.h"
#include "manager/instance.h"
#include "manager/operation.h"

/* Gates connect again within a second; one that is stopped or hangs must not hold up the others. */
#define GATHER_MS 10000

static void fail_close(struct operation *operation, struct guest *guest,
                       const struct guest_answer *answer)
{
        if (answer->error == -ETIMEDOUT && process_is_stopped(guest->pid))
                operation_fail(operation, -ETIMEDOUT, "TimedOut",
                               "let it go on (kill -CONT), or end it, and try again",
                               "process %d (%.40s) is stopped", (int)guest->pid, guest->name);
        else if (answer->error == -ETIMEDOUT)
                operation_fail(operation, -ETIMEDOUT, "TimedOut",
                               "it runs on; try again with a longer --timeout",
                               "process %d (%.40s) did not come to rest within %u ms%s%.63s",
                               (int)guest->pid, guest->name, operation->timeout_ms,
                               answer->call[0] ? ": it is in " : "", answer->call);
        else
                operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                               "it runs on; what it holds there cannot be moved",
                               "process %d (%.40s) cannot be suspended: %.63s", (int)guest->pid,
                               guest->name, answer->call[0] ? answer->call : "it is busy");
}

void gates_fail(struct operation *operation, struct guest *guest, const struct guest_answer *answer)
{
        if (answer->driver_code)
                operation_fail_driver(operation, guest, answer->call, answer->driver_code,
                                      answer->error);
        else
                operation_fail(operation, answer->error, "GuestLost",
                               "the log of vgpud has more; is the process stopped?",
                               "the gate of process %d (%.40s) failed: %s", (int)guest->pid,
                               guest->name, strerror(-answer->error));
        operation_leave_guest(operation, guest);
}

/* Closed it has; but the driver's checkpoint would fail, or lose the process. */
static void check_holds(struct operation *operation, struct guest *guest, uint32_t holds)
{
        if (holds == 0 || operation->keep_context)
                return;
        operation_fail(operation, -EOPNOTSUPP, "NotMovable",
                       operation->kind == &operation_suspend
                               ? "it runs on; --keep-context evicts what can be moved"
                               : "it runs on",
                       "process %d (%.40s) holds %s, which the driver cannot checkpoint",
                       (int)guest->pid, guest->name,
                       holds & GATE_HOLDS_MANAGED ? "managed memory (cuMemAllocManaged)"
                                                  : "memory of another process");
}

static void on_closed(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        if (answer->error == -ETIMEDOUT || answer->error == -EBUSY)
                fail_close(operation, guest, answer);
        else if (answer->error && answer->error != -ESRCH)
                gates_fail(operation, guest, answer);
        else
                check_holds(operation, guest, answer->holds);
        operation_end_part(operation);
}

static void on_done(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        if (answer->error && answer->error != -ESRCH)
                gates_fail(operation, guest, answer);
        operation_end_part(operation);
}

static void ask(struct operation *operation, struct guest *guest, enum gate_message message)
{
        bool is_close = message == GATE_CLOSE;

        operation_begin_part(operation);
        guest_request(guest, message, is_close ? operation->timeout_ms : GATES_ANSWER_MS,
                      is_close ? on_closed : on_done, operation);
}

bool gates_expect(struct operation *operation, enum gate_state state)
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

void gates_close(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->state == GATE_STATE_OPEN)
                        ask(operation, guest, GATE_CLOSE);
}

void gates_export(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                guest_forget_memory(guest);
                ask(operation, guest, GATE_EXPORT);
        }
}

void gates_release(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->state == GATE_STATE_CLOSED)
                        ask(operation, guest, GATE_RELEASE);
}

void gates_create(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->state == GATE_STATE_RELEASED)
                        ask(operation, guest, GATE_CREATE);
}

void gates_open(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->state == GATE_STATE_CLOSED && !guest->is_unfilled)
                        ask(operation, guest, GATE_OPEN);
}

static void on_gathered(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        if (answer->error && answer->error != -ESRCH)
                gates_fail(operation, guest, answer);
        operation_end_part(operation);
}

void gates_gather(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation) {
                if (guest->gate || !guest->must_stay)
                        continue;
                operation_begin_part(operation);
                guest_request(guest, 0, GATHER_MS, on_gathered, operation);
        }
}
