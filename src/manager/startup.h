/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_STARTUP_H
#define MANAGER_STARTUP_H

/* The beginning and the end of the manager: here alone all of its parts are known. */

#include "base/cleanup.h"
#include "daemon/failure.h"
#include "daemon/options.h"

struct manager;

/* manager_new() - start up: devices, what the former manager left, sockets. */
int manager_new(struct manager **ret_manager, const struct options *options,
                struct failure *failure);
struct manager *manager_free(struct manager *manager);
DEFINE_CLEANUP(struct manager *, manager_free);

/* manager_serve() - clients, as soon as what a former manager left is in order. */
void manager_serve(struct manager *manager);

/* manager_run() - until SIGTERM or SIGINT. */
int manager_run(struct manager *manager);

#endif
