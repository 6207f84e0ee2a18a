/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/operation/group-start.h"

#include <errno.h>

#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/sharing.h"
#include "manager/operation/gate-wait.h"
#include "manager/operation/group.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation-internal.h"
#include "manager/operation/operation.h"
#include "manager/operation/shared.h"

/* A vGPU whose processes share memory with more than so many others is refused. */
#define MEMBERS_MAX 64

struct members {
        struct instance *instance[MEMBERS_MAX];
        size_t n;
};

static bool is_member(const struct members *members, const struct instance *instance)
{
        for (size_t i = 0; i < members->n; i++)
                if (members->instance[i] == instance)
                        return true;
        return false;
}

static int add_partner(struct guest *partner, void *userdata)
{
        struct members *members = userdata;

        if (is_member(members, partner->instance))
                return 0;
        if (members->n == MEMBERS_MAX)
                return -E2BIG;
        members->instance[members->n++] = partner->instance;
        return 0;
}

static int find_members(struct members *members, struct instance *instance, struct failure *failure)
{
        struct guest *guest;
        int r = 0;

        members->instance[0] = instance;
        members->n = 1;
        for (size_t i = 0; i < members->n; i++)
                list_for_each(guest, &members->instance[i]->guests, link)
                        if (r == 0 && !guest_is_dead(guest))
                                r = sharing_each_partner(guest, add_partner, members);
        if (r == 0)
                return 0;
        return failure_set(
                failure, r, "NotMovable", "end some of their programs",
                "the processes of vGPU %s share memory with those of more than %d others",
                instance->name, MEMBERS_MAX - 1);
}

/* What has begun has not done anything yet. */
static void take_back(const struct members *members, uint64_t group, const struct failure *why)
{
        for (size_t i = 0; i < members->n; i++) {
                struct operation *operation = members->instance[i]->operation;

                if (!group || !operation || operation->request.group != group)
                        continue;
                group_break_one(operation, why);
                operation_wake(operation);
        }
}

static bool is_where_it_goes(const struct instance *instance, const struct operation_kind *kind)
{
        return instance_is_off(instance) == (kind->number == OPERATION_SUSPEND);
}

/* All but the one that was named, which has the caller. */
static int start_others(const struct members *members, const struct operation_kind *kind,
                        const struct operation_request *request, struct failure *failure)
{
        struct operation_request quiet = *request;
        int r = 0;

        quiet.pending = NULL;
        for (size_t i = 1; i < members->n && r == 0; i++)
                if (!is_where_it_goes(members->instance[i], kind))
                        r = operation_start(members->instance[i], kind, &quiet, failure);
        return r;
}

int group_start(struct instance *instance, const struct operation_kind *kind,
                struct operation_request *request, struct failure *failure)
{
        static uint64_t last_group;
        struct members members;
        int r;

        /* A manager that has just started does not know who shares memory until the gates are back. */
        if (shared_find_untold(instance))
                return gate_wait_begin(instance, shared_find_untold, request->pending,
                                       request->timeout_ms, failure);
        r = find_members(&members, instance, failure);
        if (r < 0)
                return r;
        for (size_t i = 0; i < members.n; i++)
                if (operation_call_after(members.instance[i], request->pending))
                        return 0;
        request->group = members.n > 1 ? ++last_group : 0;
        r = start_others(&members, kind, request, failure);
        if (r == 0) /* last: the caller is told if another cannot begin */
                r = operation_start(instance, kind, request, failure);
        if (r < 0)
                take_back(&members, request->group, failure);
        return r;
}
