/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_RECOVERY_LOAD_H
#define MANAGER_RECOVERY_LOAD_H

struct manager;

/* recovery_load() - at start: all instances, their processes and memory, the pool. */
int recovery_load(struct manager *manager);

#endif
