/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_OPERATION_ENGINE_H
#define MANAGER_OPERATION_ENGINE_H

/* The engine: takes the steps of operation.h, and undoes them. */

#include <stdbool.h>

#include "daemon/failure.h"
#include "store/store.h"

struct control_pending;
struct instance;
struct manager;
struct operation_kind;
struct operation_request;

/*
 * operation_start() - 0: @request->pending will be answered. An operation that only tidies up does
 * not stand in the way: the new one begins after it.
 */
int operation_start(struct instance *instance, const struct operation_kind *kind,
                    const struct operation_request *request, struct failure *failure);

/*
 * operation_call_after() - make the call again when what tidies up in the vGPU has ended. False: nothing
 * does, or somebody else waits for it.
 */
bool operation_call_after(struct instance *instance, struct control_pending *pending);

/* operation_recover() - undo what a former manager left of @stored. */
int operation_recover(struct instance *instance, const struct store_operation *stored);

/* operation_subscribe() - once: to what those of @manager wait for, or must go on after. */
void operation_subscribe(struct manager *manager);

#endif
