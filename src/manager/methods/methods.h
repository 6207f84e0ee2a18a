/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METHODS_H
#define MANAGER_METHODS_H

/* The methods of docs/control-protocol.md: one table. */

struct control_pending;

/* methods_call() - find it, check its parameters, do it; @pending is answered now or later. */
void methods_call(struct control_pending *pending);

#endif
