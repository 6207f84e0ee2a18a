/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/remap.h"

#include <errno.h>

#include "base/cleanup.h"
#include "manager/copies.h"
#include "manager/gates.h"
#include "manager/guest.h"
#include "manager/log.h"
#include "manager/manager.h"
#include "manager/operation.h"

static bool is_refused(const struct guest_answer *answer)
{
        return answer->error && answer->error != -ESRCH; /* a dead guest needs no memory */
}

static void on_created(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        if (is_refused(answer)) {
                gates_fail(operation, guest, answer);
        } else if (guest->is_unfilled) {
                operation_pass(operation, "remapping");
                copies_back(operation, guest);
        }
        operation_end_part(operation);
}

static void create(struct operation *operation, struct guest *guest)
{
        for (size_t i = 0; i < guest->n_memory; i++)
                guest->memory[i].target = fd_close(guest->memory[i].target);
        guest_request(guest, GATE_CREATE, GATES_ANSWER_MS, on_created, operation);
}

/* When the driver refused, the gate is as before and connected. */
static void on_mapped(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        if (is_refused(answer) && answer->driver_code && guest->gate) {
                log_event(LOG_LEVEL_INFO, "copying memory back that cannot be mapped again",
                          "pid=%d call=%.63s code=%d", (int)guest->pid, answer->call,
                          answer->driver_code);
                create(operation, guest);
                return;
        }
        if (is_refused(answer))
                gates_fail(operation, guest, answer);
        operation_end_part(operation);
}

static void map(struct operation *operation, struct guest *guest)
{
        guest_request(guest, GATE_MAP, GATES_ANSWER_MS, on_mapped, operation);
}

/* Memory of which nobody knows whether the copy came about is worth nothing. */
static void on_released(struct guest *guest, const struct guest_answer *answer, void *userdata)
{
        struct operation *operation = userdata;

        if (answer->error == 0) {
                map(operation, guest);
                return;
        }
        if (is_refused(answer))
                gates_fail(operation, guest, answer);
        operation_end_part(operation);
}

/* What we hold is dropped after the last copy only: if something is missing, all were done. */
static bool has_all_sources(const struct guest *guest)
{
        for (size_t i = 0; i < guest->n_memory; i++)
                if (guest->memory[i].source < 0)
                        return false;
        return guest->n_memory > 0;
}

static void remap(struct operation *operation, struct guest *guest)
{
        if (guest->state == GATE_STATE_RELEASED) {
                operation_begin_part(operation);
                map(operation, guest);
        } else if (guest->is_unfilled && has_all_sources(guest)) {
                operation_begin_part(operation);
                guest_request(guest, GATE_RELEASE, GATES_ANSWER_MS, on_released, operation);
        } else {
                guest->is_unfilled = false;
        }
}

void remap_memory(struct operation *operation)
{
        struct guest *guest;

        operation_for_each_guest(guest, operation)
                if (guest->context == GUEST_CONTEXT_RUNNING)
                        remap(operation, guest);
}
