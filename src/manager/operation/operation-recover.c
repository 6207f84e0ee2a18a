/* SPDX-License-Identifier: Apache-2.0 */
/* What was left half done: by a former manager, or by an undoing that failed. */
#include <errno.h>
#include <string.h>

#include "daemon/log.h"
#include "manager/guests/guest-request.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance-life.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/place-text.h"
#include "manager/model/silence.h"
#include "manager/operation/admission.h"
#include "manager/operation/gate-wait.h"
#include "manager/operation/handover.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation-internal.h"
#include "manager/operation/operation.h"

/* What a request gets that no client has set a time for. */
#define RECOVERY_TIMEOUT_MS 10000

static const struct operation_kind *const kinds[] = { &operation_suspend, &operation_resume,
                                                      &operation_migrate, &operation_catch_up };

static const struct operation_kind *find_kind(const char *name)
{
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (strcmp(kinds[i]->name, name) == 0)
                        return kinds[i];
        return NULL;
}

/* The one after the last that is complete: it may have begun. */
static size_t first_to_undo(const struct operation_kind *kind, const char *complete)
{
        size_t i;

        for (i = 0; !(kind->steps[i].flags & OPERATION_RECORDS); i++)
                if (strcmp(kind->steps[i].name, complete) == 0)
                        return i + 1;
        return 0;
}

static enum state_instance_state settled_state(const struct operation *operation)
{
        if (operation->kind->number == OPERATION_RESUME && operation->request.keep_context)
                return STATE_EVICTED;
        return operation->kind->settled_state;
}

/* Before anybody else asks for that room. */
static void expect_back(struct operation *operation)
{
        struct guest *guest;

        if (operation->kind->number == OPERATION_RESUME)
                return;
        handover_expect_back(operation);
        operation_for_each_guest(guest, operation) {
                if (guest->context.state == GUEST_CONTEXT_RUNNING &&
                    place_is_equal(&guest->context.place, &operation->source))
                        continue;
                for (size_t i = 0; i < operation->instance->n_parts; i++)
                        admission_expect_back(operation, guest, i);
        }
}

int operation_recover(struct instance *instance, const struct store_operation *stored)
{
        const struct operation_kind *kind = find_kind(stored->kind);
        struct operation *operation = kind ? operation_new(instance, kind) : NULL;
        struct place source = place_parse(instance->manager, stored->source);
        struct place target = place_parse(instance->manager, stored->target);

        if (!kind) {
                log_event(LOG_LEVEL_ERROR,
                          "this vgpud does not know how to undo it: end the processes",
                          "vgpu=%s operation=%s step=%s", instance->name, stored->kind,
                          stored->step);
                instance->state = STATE_FAILED;
                return 0;
        }
        if (!operation)
                return -ENOMEM;
        log_event(LOG_LEVEL_NOTICE, "undoing an incomplete operation",
                  "vgpu=%s operation=%s step=%s", instance->name, stored->kind, stored->step);
        if (place_count(&source) == instance->n_parts)
                operation->source = source;
        if (place_count(&target) == instance->n_parts)
                operation->target = target;
        operation->request.keep_context = stored->keep_context;
        operation->request.timeout_ms = RECOVERY_TIMEOUT_MS;
        operation->is_recovery = true;
        operation->step = first_to_undo(kind, stored->step);
        expect_back(operation);
        if (operation->former_state == STATE_FAILED)
                operation->former_state = settled_state(operation);
        operation_begin(operation);
        operation_start_undoing(operation);
        return 0;
}

static void on_opened(struct guest *guest, const struct guest_answer *answer_, void *userdata)
{
        (void)userdata;
        if (guest->instance->operation)
                operation_wake(guest->instance->operation);
        if (answer_->error && answer_->error != -ESRCH)
                log_event_of(guest->payer, LOG_LEVEL_ERROR,
                             "a process that returned could not continue",
                             "vgpu=%s pid=%d error=\"%s\"", guest->instance->name, (int)guest->pid,
                             strerror(-answer_->error));
}

static void open_gate(struct guest *guest)
{
        guest_request(guest, GATE_OPEN, RECOVERY_TIMEOUT_MS, on_opened, NULL);
}

/*
 * Those whose gate connected again during an operation that is over, and that nobody has opened: what it was asked may
 * have been lost with its connection.
 */
static void open_returned(struct instance *instance)
{
        struct guest *guest;

        if (!instance_is_usable(instance))
                return;
        list_for_each(guest, &instance->guests, link)
                if (guest->gate && !guest_is_dead(guest) && !guest->request.done &&
                    guest->presence == GUEST_PRESENT && guest->state == GATE_STATE_CLOSED)
                        open_gate(guest);
}

/* To undo what could not be undone: perhaps a process has ended that stood in the way of the others. */
static void try_again(struct instance *instance)
{
        struct store_operation stored;

        if (instance->operation || instance->state != STATE_FAILED || guests_count(instance) == 0)
                return;
        if (store_get_operation(instance->manager->store, instance->id, &stored) == 0)
                (void)operation_recover(instance, &stored);
}

/* Of one that has failed, if the driver answers for its processes again. */
static void retry_answered(struct instance *instance)
{
        bool is_any = false;
        struct guest *guest;

        if (instance->operation)
                return; /* its end comes here */
        list_for_each(guest, &instance->guests, link)
                if (guest->silence.state == SILENCE_OVER) {
                        is_any = true;
                        silence_end(guest);
                }
        if (is_any)
                try_again(instance);
}

/* Does it fit the state of its vGPU? */
static void deal_with_returned(struct guest *guest)
{
        struct instance *instance = guest->instance;

        if (guest->state == GATE_STATE_OPEN && guest_is_away(guest))
                guest_set_presence(guest, GUEST_PRESENT);
        if (instance->operation || guest->request.done)
                return;
        if (instance->state == STATE_FAILED) {
                try_again(instance);
        } else if (operation_start_catching_up(instance)) {
                if (!instance->operation) /* it pauses for another process: this one need not wait */
                        open_returned(instance);
        } else if (instance_is_usable(instance) && guest->state == GATE_STATE_CLOSED) {
                open_gate(guest);
        } else if (instance_is_usable(instance) && guest->state == GATE_STATE_RELEASED) {
                log_event_of(guest->payer, LOG_LEVEL_ERROR,
                             "a process returned whose memory is not here any more",
                             "vgpu=%s pid=%d", instance->name, (int)guest->pid);
                instance_set_state(instance, STATE_FAILED);
        }
}

static void unload(struct instance *instance)
{
        instance->operation = operation_free(instance->operation);
        gate_wait_drop(instance);
}

static void on_free(struct instance *instance)
{
        (void)operation_start_catching_up(instance);
        retry_answered(instance);
}

static void on_instance(struct instance *instance, enum instance_event event, void *userdata)
{
        (void)userdata;
        if (event == INSTANCE_LET_GO)
                open_returned(instance);
        else if (event == INSTANCE_FREE)
                on_free(instance);
        else if (event == INSTANCE_RETRY)
                try_again(instance);
        else if (event == INSTANCE_REMOVED)
                gate_wait_end_removed(instance);
        else if (event == INSTANCE_UNLOADED)
                unload(instance);
}

static void on_guest(struct guest *guest, enum guest_event event, void *userdata)
{
        (void)userdata;
        if (event == GUEST_RETURNED)
                deal_with_returned(guest);
        else if (event == GUEST_ANSWERS)
                retry_answered(guest->instance);
}

static void on_device(struct device *device, enum device_event event, void *userdata)
{
        (void)userdata;
        if (event == DEVICE_MOVER_LOST)
                operation_wake_all(device->manager);
}

static struct observer observer = { .of_instance = on_instance,
                                    .of_guest = on_guest,
                                    .of_device = on_device };

void operation_subscribe(struct manager *manager)
{
        observer_add(&manager->observers, &observer, NULL);
}
