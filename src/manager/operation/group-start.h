/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_GROUP_START_H
#define MANAGER_GROUP_START_H

/* The beginning of an operation on several vGPUs whose processes share memory (group.h). */

struct failure;
struct instance;
struct operation_kind;
struct operation_request;

/*
 * group_start() - operation_start() for @instance and all vGPUs with which its processes share memory,
 * directly or by way of others. All begin, or none.
 */
int group_start(struct instance *instance, const struct operation_kind *kind,
                struct operation_request *request, struct failure *failure);

#endif
