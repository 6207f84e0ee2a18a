/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/group.h"

#include <errno.h>

#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/operation-internal.h"
#include "manager/operation/operation.h"

bool group_has(const struct operation *operation, const struct instance *other)
{
        return operation->request.group && other->operation &&
               other->operation->request.group == operation->request.group;
}

struct operation *group_next(const struct operation *operation, const struct operation *after)
{
        struct instance *instance;
        bool is_behind = !after;

        list_for_each(instance, &operation->instance->manager->instances, link) {
                if (is_behind &&
                    (instance->operation == operation || group_has(operation, instance)))
                        return instance->operation;
                is_behind |= after && instance->operation == after;
        }
        return NULL;
}

static bool is_there(const struct operation *operation, const struct operation *other)
{
        if (operation->is_undoing)
                return other->is_undoing && other->step <= operation->step;
        return other->is_undoing || other->step >= operation->step;
}

bool group_must_wait(const struct operation *operation)
{
        uint32_t flag = operation->is_undoing ? OPERATION_MEETS_BACK : OPERATION_MEETS;
        const struct operation *other = NULL;

        if (!operation->request.group || operation->phase == OPERATION_RUNS ||
            operation->step >= operation->kind->n_steps ||
            !(operation->kind->steps[operation->step].flags & flag))
                return false;
        while ((other = group_next(operation, other)))
                if (!is_there(operation, other))
                        return true;
        return false;
}

/* Who has failed breaks the others, and none of them comes as far as this. */
static bool goes_back(const struct operation *operation)
{
        const struct operation *member = NULL;

        while ((member = group_next(operation, member)))
                if (member->is_undoing)
                        return true;
        return false;
}

static int put_all(struct operation *operation, int (*put)(struct operation *operation))
{
        struct store *store = operation->instance->manager->store;
        struct operation *member = NULL;
        int r = store_begin(store);

        while (r == 0 && (member = group_next(operation, member)))
                r = put(member);
        if (r == 0)
                r = store_commit(store);
        if (r < 0)
                store_rollback(store);
        return r;
}

void group_record(struct operation *operation, int (*put)(struct operation *operation),
                  void (*settle)(struct operation *operation))
{
        struct operation *member = NULL;
        int r;

        if (operation->standing.fate == GROUP_RECORDED)
                return;
        if (goes_back(operation)) {
                operation_fail(operation, -ECANCELED, "Failed", "try again",
                               "another vGPU of the group is going back");
                return;
        }
        r = put_all(operation, put);
        if (r < 0) {
                operation_fail_store(operation, r, "recording the end");
                return;
        }
        while ((member = group_next(operation, member))) {
                settle(member);
                member->standing.fate = GROUP_RECORDED;
        }
}

void group_break_one(struct operation *operation, const struct failure *why)
{
        if (operation->standing.fate != GROUP_TOGETHER)
                return;
        operation->standing.fate = GROUP_BROKEN;
        operation->standing.broken_by = *why;
}

void group_break(const struct operation *operation)
{
        struct operation *other = NULL;

        if (!operation->request.group)
                return;
        while ((other = group_next(operation, other))) {
                if (other == operation || other->is_undoing)
                        continue;
                group_break_one(other, &operation->failure);
                operation_wake(other);
        }
}

void group_wake(const struct operation *operation)
{
        struct operation *other = NULL;

        if (!operation->request.group)
                return;
        while ((other = group_next(operation, other)))
                if (other != operation)
                        operation_wake(other);
}
