/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GATE_WAIT_H
#define MANAGER_GATE_WAIT_H

/*
 * A call that has come before the gates were back at a new manager, which does not know yet who shares memory, nor
 * which devices their drivers have seen. It waits for them and is then made again.
 */

#include <stdint.h>

struct control_pending;
struct failure;
struct guest;
struct instance;

/* Whom it waits for; NULL: all are back. */
typedef const struct guest *(*gate_wait_find)(const struct instance *instance);

/*
 * gate_wait_begin() - @find has found one. 0: @pending will be made again, when it finds none, or answered; one call for a
 * vGPU at a time.
 */
int gate_wait_begin(struct instance *instance, gate_wait_find find, struct control_pending *pending,
                    uint32_t timeout_ms, struct failure *failure);

/* gate_wait_end_removed() - @instance is no vGPU any more: who waits is told so. */
void gate_wait_end_removed(struct instance *instance);

/* gate_wait_drop() - @instance is about to be freed. */
void gate_wait_drop(struct instance *instance);

#endif
