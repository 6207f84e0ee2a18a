/* SPDX-License-Identifier: Apache-2.0 */
/* What steps are made of: guests that take part, parts, fault points. */
#include "manager/operation/operation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "daemon/log.h"
#include "manager/model/device.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/place-text.h"
#include "manager/operation/operation-internal.h"
#include "manager/operation/participant.h"

size_t operation_find_step(const struct operation_kind *kind, enum operation_step_flag flag)
{
        size_t i = 0;

        while (i < kind->n_steps && !(kind->steps[i].flags & flag))
                i++;
        return i;
}

struct guest *operation_next_guest(const struct operation *operation, struct guest *after)
{
        struct list *head = &operation->instance->guests;
        struct list *link = after ? after->link.next : head->next;

        for (; link != head; link = link->next) {
                struct guest *guest = list_entry(link, struct guest, link);

                if (guest->participant && !guest_is_dead(guest) && !guest->participant->is_stuck &&
                    guest->presence == operation->kind->guests)
                        return guest;
        }
        return NULL;
}

void operation_leave_guest(struct operation *operation, struct guest *guest)
{
        bool is_tried_again = operation->has_lost_peer && !operation->was_retried;

        guest->participant->is_stuck = operation->is_undoing && !is_tried_again;
}

/* @user: who fills the log by it. */
static void let_go(struct operation *operation, struct guest *guest, uid_t user, const char *why)
{
        char name[LOG_QUOTED_MAX], reason[LOG_QUOTED_MAX];

        log_event_of(user, LOG_LEVEL_WARNING, "let a process go",
                     "vgpu=%s pid=%d name=%s operation=%s reason=%s", operation->instance->name,
                     (int)guest->pid, log_quote(name, guest->name), operation->kind->name,
                     log_quote(reason, why));
        snprintf(guest->let_go_reason, sizeof(guest->let_go_reason), "%s", why);
        guest_leave(guest);
}

void operation_let_go_guest(struct operation *operation, struct guest *guest, const char *why)
{
        let_go(operation, guest, guest->payer, why);
}

void operation_lose_guest(struct operation *operation, struct guest *guest)
{
        size_t at = strlen(operation->lost);

        snprintf(operation->lost + at, sizeof(operation->lost) - at, "%sprocess %d (%.40s) is lost",
                 at > 0 ? ", " : "", (int)guest->pid, guest->name);
        /* That is always told. */
        let_go(operation, guest, 0, "it is lost: the driver could not restore it");
}

int operation_persist(const struct operation *operation, const char *step)
{
        struct store_operation stored = {
                .instance = operation->instance->id,
                .keep_context = operation->request.keep_context,
        };

        snprintf(stored.kind, sizeof(stored.kind), "%s", operation->kind->name);
        snprintf(stored.step, sizeof(stored.step), "%s", step);
        place_format(&operation->source, stored.source);
        place_format(&operation->target, stored.target);
        return store_put_operation(operation->instance->manager->store, &stored);
}

int operation_store_undone(const struct operation *operation)
{
        return operation_persist(
                operation,
                operation->step > 0 ? operation->kind->steps[operation->step - 1].name : "");
}

void operation_pass(struct operation *operation, const char *point)
{
        char name[64];

        snprintf(name, sizeof(name), "%s.%s", operation->kind->name, point);
        if (fault_point(name))
                operation_fail(operation, -EIO, "Failed", "", "told to fail at %s", name);
}

void operation_wake(struct operation *operation)
{
        if (operation->n_parts == 0)
                (void)sd_event_source_set_enabled(operation->advance, SD_EVENT_ONESHOT);
}

void operation_wake_all(struct manager *manager)
{
        struct instance *instance;

        list_for_each(instance, &manager->instances, link)
                if (instance->operation)
                        operation_wake(instance->operation);
}

bool operation_is_at(const struct operation *operation, const struct device *device)
{
        return place_has(&operation->source, device) || place_has(&operation->target, device);
}

void operation_begin_part(struct operation *operation)
{
        operation->n_parts++;
}

void operation_end_part(struct operation *operation)
{
        operation->n_parts--;
        operation_wake(operation);
}
