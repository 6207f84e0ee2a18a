/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_OPERATION_INTERNAL_H
#define MANAGER_OPERATION_INTERNAL_H

/* For operation*.c: the engine, what it says, and how it begins where a former manager stopped. */

#include "manager/operation.h"

/* operation_new() - nothing has begun yet. NULL: no memory. */
struct operation *operation_new(struct instance *instance, const struct operation_kind *kind);

/* operation_begin() - it is what @operation->instance is busy with from now on. */
void operation_begin(struct operation *operation);

/* operation_start_undoing() - from @operation->step on. */
void operation_start_undoing(struct operation *operation);

/* operation_wake() - see, when this event has been dealt with, whether it can go on. */
void operation_wake(struct operation *operation);

/* operation_report_progress() - to the caller, now. */
void operation_report_progress(struct operation *operation);

/* operation_report_moment() - to the log, for who tunes it: where the time goes. */
void operation_report_moment(const struct operation *operation, const char *moment);

/* operation_report_end() - to the log and to the caller, who waits for nothing more. */
void operation_report_end(struct operation *operation, bool has_succeeded);

#endif
