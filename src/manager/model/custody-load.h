/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_CUSTODY_LOAD_H
#define MANAGER_CUSTODY_LOAD_H

struct manager;

/* custody_load() - at start: all instances, their processes and memory, the pool. */
int custody_load(struct manager *manager);

#endif
