/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_OPERATION_INTERNAL_H
#define MANAGER_OPERATION_INTERNAL_H

/* For operation*.c: the engine, what it says, and how it begins where a former manager stopped. */

#include <stdbool.h>

struct instance;
struct manager;
struct operation;
struct operation_kind;

/* operation_new() - nothing has begun yet. NULL: no memory. */
struct operation *operation_new(struct instance *instance, const struct operation_kind *kind);

/* operation_free() - in memory only. Returns NULL. */
struct operation *operation_free(struct operation *operation);

/* operation_begin() - it is what @operation->instance is busy with from now on. */
void operation_begin(struct operation *operation);

/* operation_start_undoing() - from @operation->step on. */
void operation_start_undoing(struct operation *operation);

/* operation_wake() - see, when this event has been dealt with, whether it can go on. */
void operation_wake(struct operation *operation);

/* operation_wake_all() - what one of them may have waited for has happened: a mover is gone entirely. */
void operation_wake_all(struct manager *manager);

/* operation_persist() - in the store: @step is the last complete one. */
int operation_persist(const struct operation *operation, const char *step);

/* operation_report_progress() - to the caller, now. */
void operation_report_progress(struct operation *operation);

/* operation_report_moment() - to the log, for who tunes it: where the time goes. */
void operation_report_moment(const struct operation *operation, const char *moment);

/* operation_report_part() - the same of @n allocations from @first on, while @n_beside other parts are copied. */
void operation_report_part(const struct operation *operation, const char *moment, size_t first,
                           size_t n, size_t n_beside);

/* operation_report_early() - to the caller: it has failed, and is undone behind his back. */
void operation_report_early(struct operation *operation, const struct failure *failure);

/* operation_report_end() - to the log and to the caller, who waits for nothing more. */
void operation_report_end(struct operation *operation, bool has_succeeded);

#endif
