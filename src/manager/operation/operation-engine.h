/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_OPERATION_ENGINE_H
#define MANAGER_OPERATION_ENGINE_H

/* The engine: takes the steps of operation.h, and undoes them. */

#include <jansson.h>
#include <stdbool.h>

#include "daemon/failure.h"
#include "store/store.h"

struct control_pending;
struct instance;
struct manager;
struct operation_kind;
struct operation_request;

/* operation_start() - 0: @request->pending will be answered. */
int operation_start(struct instance *instance, const struct operation_kind *kind,
                    const struct operation_request *request, struct failure *failure);

/*
 * operation_call_after() - make the call again when the operation of the vGPU has ended
 *
 * Only after an operation that nobody waits for: its caller has been answered and it tidies up, or the vGPU leaves
 * or comes back by itself. One that waits for room gives up. False: there is no such operation, or another call
 * waits for its end already.
 */
bool operation_call_after(struct instance *instance, struct control_pending *pending);

/* operation_report_left() - what a suspend answers for @instance, which has left by itself before. */
json_t *operation_report_left(struct instance *instance);

/* operation_recover() - undo what a former manager left of @stored. */
int operation_recover(struct instance *instance, const struct store_operation *stored);

/* operation_subscribe() - once: to what those of @manager wait for, or must go on after. */
void operation_subscribe(struct manager *manager);

#endif
