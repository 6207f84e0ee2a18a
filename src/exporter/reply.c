/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/reply.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openvgpu/event.h>
#include <openvgpu/instance.h>
#include <openvgpu/operation.h>
#include <openvgpu/time-sharing.h>
#include <openvgpu/usage.h>

#include "base/cleanup.h"
#include "base/text.h"

#define DAY_SECONDS  86400.0
#define STEP_SECONDS 1800.0 /* of the history of a day */
#define STEPS        48
#define EVENTS_MAX   200

enum status {
        STATUS_OK = 200,
        STATUS_FORBIDDEN = 403,
        STATUS_NOT_FOUND = 404,
        STATUS_CONFLICT = 409,
        STATUS_AWAY = 503
};

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);
DEFINE_CLEANUP(struct vgpu_event_list *, vgpu_event_list_free);
DEFINE_CLEANUP(struct vgpu_usage_list *, vgpu_usage_list_free);
DEFINE_CLEANUP(struct vgpu_usage_snapshot *, vgpu_usage_snapshot_free);
DEFINE_CLEANUP(struct vgpu_operation_report *, vgpu_operation_report_free);

/* Takes @object. */
static void reply_json(struct reply *reply, unsigned int status, json_t *object)
{
        reply->status = status;
        reply->text = object ? json_dumps(object, JSON_COMPACT) : NULL;
        json_decref(object);
}

static unsigned int get_status(enum vgpu_error_kind kind)
{
        switch (kind) {
        case VGPU_ERROR_PERMISSION_DENIED:
                return STATUS_FORBIDDEN;
        case VGPU_ERROR_NO_SUCH_VGPU:
                return STATUS_NOT_FOUND;
        case VGPU_ERROR_NO_MANAGER:
                return STATUS_AWAY;
        default:
                return STATUS_CONFLICT;
        }
}

static void reply_error(struct reply *reply, const struct vgpu_client *client)
{
        const struct vgpu_error *error = vgpu_client_get_error(client);

        reply_json(reply, get_status(error->kind),
                   json_pack("{ss, ss}", "message", error->message, "hint", error->hint));
}

/* One vGPU. */

/* A program chooses its name: what is no UTF-8 is shown as '?'. */
static json_t *make_text(const char *text)
{
        char clean[256];

        return json_string(text_clean(clean, sizeof(clean), text));
}

/* One that the host has no name for keeps its number. */
static json_t *make_user(uint32_t id)
{
        struct passwd entry, *found = NULL;
        char space[4096], number[32];

        if (getpwuid_r(id, &entry, space, sizeof(space), &found) == 0 && found)
                return make_text(found->pw_name);
        snprintf(number, sizeof(number), "user %" PRIu32, id);
        return json_string(number);
}

static json_t *describe_processes(const struct vgpu_instance *instance)
{
        json_t *array = json_array();

        for (size_t i = 0; i < instance->n_processes; i++) {
                const struct vgpu_process *process = instance->processes[i];

                (void)json_array_append_new(
                        array, json_pack("{si, so, sI, sI, sI}", "pid", (int)process->pid, "name",
                                         make_text(process->name), "memory",
                                         (json_int_t)process->memory_used, "movable",
                                         (json_int_t)process->memory_movable, "launches",
                                         (json_int_t)process->n_launches));
        }
        return array;
}

static json_t *describe_events(struct vgpu_client *client, const char *uuid)
{
        CLEANUP(vgpu_event_list_freep) struct vgpu_event_list *list = NULL;
        struct vgpu_event_options options = VGPU_EVENT_OPTIONS_INIT;
        json_t *array = json_array();

        options.name = uuid;
        if (vgpu_event_lookup(client, &options, &list) < 0)
                return array;
        for (size_t i = list->n_events > EVENTS_MAX ? list->n_events - EVENTS_MAX : 0;
             i < list->n_events; i++) {
                const struct vgpu_event *event = list->events[i];

                (void)json_array_append_new(
                        array,
                        json_pack("{sf, ss, so, si, sI, sf, sf, sf, sf}", "time", event->time,
                                  "event", event->event, "message", make_text(event->message),
                                  "device", (int)event->device, "bytes", (json_int_t)event->bytes,
                                  "seconds", event->seconds, "drain", event->drain_seconds, "copy",
                                  event->copy_seconds, "context", event->context_seconds));
        }
        return array;
}

static json_t *describe_step(struct vgpu_client *client, const char *uuid, double since)
{
        CLEANUP(vgpu_usage_list_freep) struct vgpu_usage_list *list = NULL;
        struct vgpu_usage_options options = VGPU_USAGE_OPTIONS_INIT;
        double seconds = 0, held = 0;

        options.since = since;
        options.until = since + STEP_SECONDS;
        if (vgpu_usage_lookup(client, &options, &list) < 0)
                return NULL;
        for (size_t i = 0; i < list->n_rows; i++)
                if (strcmp(list->rows[i]->vgpu_uuid, uuid) == 0) {
                        seconds += list->rows[i]->seconds->gpu;
                        held += list->rows[i]->used_gib_hours;
                }
        return json_pack("{sf, sf, sf}", "from", since, "percent", 100 * seconds / STEP_SECONDS,
                         "gib", held * 3600 / STEP_SECONDS);
}

/* The last step is under way. What cannot be had ends it: a vgpud that is slow is asked for no more. */
static json_t *describe_day(struct vgpu_client *client, const char *uuid)
{
        double now = (double)time(NULL), first;
        json_t *array = json_array(), *step;

        first = now - DAY_SECONDS - (double)((uint64_t)now % (uint64_t)STEP_SECONDS) + STEP_SECONDS;
        for (int i = 0; i < STEPS; i++) {
                step = describe_step(client, uuid, first + i * STEP_SECONDS);
                if (!step)
                        break;
                (void)json_array_append_new(array, step);
        }
        return array;
}

static json_t *describe_parts(const struct vgpu_instance *instance)
{
        json_t *array = json_array();

        for (size_t i = 0; i < instance->n_parts; i++) {
                const struct vgpu_instance_part *part = instance->parts[i];

                (void)json_array_append_new(
                        array,
                        json_pack("{sI, si, sI, sf}", "id", (json_int_t)part->id, "device",
                                  (int)part->device, "used", (json_int_t)part->frame_buffer_used,
                                  "gpu_seconds", part->gpu_seconds_total));
        }
        return array;
}

static json_t *describe_vgpu(const struct vgpu_instance *instance)
{
        return json_pack(
                "{ss, ss, so, sI, so, si, ss, sI, sI, sI, si, sI, sf}", "name", instance->name,
                "uuid", instance->uuid, "parts", describe_parts(instance), "owner",
                (json_int_t)instance->owner, "owner_name", make_user(instance->owner), "device",
                (int)instance->device, "state", vgpu_instance_state_get_name(instance->state),
                "quota", (json_int_t)instance->frame_buffer, "used",
                (json_int_t)instance->frame_buffer_used, "created",
                (json_int_t)instance->created_seconds, "share", (int)instance->share, "host_memory",
                (json_int_t)instance->host_memory, "idle_after", instance->idle_after);
}

static const struct vgpu_usage_instance *find_usage(const struct vgpu_usage_snapshot *snapshot,
                                                    const char *uuid)
{
        for (size_t i = 0; i < snapshot->n_instances; i++)
                if (strcmp(snapshot->instances[i]->uuid, uuid) == 0)
                        return snapshot->instances[i];
        return NULL;
}

/* The name that its engine gave it in the last day, or its id. */
static json_t *name_container(struct vgpu_client *client, const char *container)
{
        CLEANUP(vgpu_usage_list_freep) struct vgpu_usage_list *list = NULL;
        struct vgpu_usage_options options = VGPU_USAGE_OPTIONS_INIT;

        options.since = (double)time(NULL) - DAY_SECONDS;
        options.group = VGPU_USAGE_BY_CONTAINER;
        if (vgpu_usage_lookup(client, &options, &list) < 0)
                return make_text(container);
        for (size_t i = 0; i < list->n_rows; i++)
                if (strcmp(list->rows[i]->container, container) == 0)
                        return make_text(list->rows[i]->container_name);
        return make_text(container);
}

/* "": its programs are in none, or in different ones. */
static json_t *describe_container(struct vgpu_client *client, const char *uuid)
{
        CLEANUP(vgpu_usage_snapshot_freep) struct vgpu_usage_snapshot *snapshot = NULL;
        struct vgpu_usage_snapshot_options options = VGPU_USAGE_SNAPSHOT_OPTIONS_INIT;
        const struct vgpu_usage_instance *instance;

        options.is_without_processes = true;
        if (vgpu_usage_take_snapshot_with(client, &options, &snapshot) < 0)
                return json_string("");
        instance = find_usage(snapshot, uuid);
        if (!instance || !*instance->container)
                return json_string("");
        return name_container(client, instance->container);
}

static void reply_vgpu(struct reply *reply, struct vgpu_client *client,
                       const struct question *question)
{
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        json_t *root;

        if (vgpu_instance_lookup(client, question->vgpu, &instance) < 0) {
                reply_error(reply, client);
                return;
        }
        root = json_pack("{so, so}", "vgpu", describe_vgpu(instance), "processes",
                         describe_processes(instance));
        if (root && question->has_token) {
                (void)json_object_set_new(root, "events", describe_events(client, question->vgpu));
                (void)json_object_set_new(root, "container",
                                          describe_container(client, question->vgpu));
                (void)json_object_set_new(root, "day", describe_day(client, question->vgpu));
        }
        reply_json(reply, STATUS_OK, root);
}

/* Usage. */

/* An engine chooses their names, or who starts them. */
static json_t *describe_containers(struct vgpu_client *client, double since, double until)
{
        CLEANUP(vgpu_usage_list_freep) struct vgpu_usage_list *list = NULL;
        struct vgpu_usage_options options = VGPU_USAGE_OPTIONS_INIT;
        json_t *array = json_array();

        options.since = since;
        options.until = until;
        options.group = VGPU_USAGE_BY_CONTAINER;
        if (vgpu_usage_lookup(client, &options, &list) < 0)
                return array;
        for (size_t i = 0; i < list->n_rows; i++) {
                const struct vgpu_usage_row *row = list->rows[i];

                (void)json_array_append_new(
                        array,
                        json_pack("{so, so, sI, so, sf, sf}", "container",
                                  make_text(row->container), "name", make_text(row->container_name),
                                  "tenant", (json_int_t)row->tenant, "tenant_name",
                                  make_user(row->tenant), "gpu_seconds", row->seconds->gpu,
                                  "used_gib_hours", row->used_gib_hours));
        }
        return array;
}

static json_t *describe_rows(const struct vgpu_usage_list *list)
{
        json_t *array = json_array();

        for (size_t i = 0; i < list->n_rows; i++) {
                const struct vgpu_usage_row *row = list->rows[i];

                (void)json_array_append_new(
                        array, json_pack("{sI, so, sf, sf, sf}", "tenant", (json_int_t)row->tenant,
                                         "tenant_name", make_user(row->tenant), "gpu_seconds",
                                         row->seconds->gpu, "quota_gib_hours", row->quota_gib_hours,
                                         "used_gib_hours", row->used_gib_hours));
        }
        return array;
}

static void reply_csv(struct reply *reply, const struct vgpu_usage_list *list)
{
        size_t size;
        FILE *file = open_memstream(&reply->text, &size);

        reply->status = STATUS_OK;
        reply->is_csv = true;
        if (!file)
                return;
        fputs("tenant,gpu_seconds,quota_gib_hours,used_gib_hours\r\n", file);
        for (size_t i = 0; i < list->n_rows; i++)
                fprintf(file, "%u,%.3f,%.6f,%.6f\r\n", list->rows[i]->tenant,
                        list->rows[i]->seconds->gpu, list->rows[i]->quota_gib_hours,
                        list->rows[i]->used_gib_hours);
        if (fclose(file) != 0) {
                free(reply->text);
                reply->text = NULL;
        }
}

static void reply_usage(struct reply *reply, struct vgpu_client *client,
                        const struct question *question)
{
        CLEANUP(vgpu_usage_list_freep) struct vgpu_usage_list *list = NULL;
        struct vgpu_usage_options options = VGPU_USAGE_OPTIONS_INIT;

        options.since = question->since;
        options.until = question->until;
        options.group = VGPU_USAGE_BY_TENANT;
        if (vgpu_usage_lookup(client, &options, &list) < 0)
                reply_error(reply, client);
        else if (question->is_csv)
                reply_csv(reply, list);
        else
                reply_json(
                        reply, STATUS_OK,
                        json_pack("{sf, sf, so, so}", "since", question->since, "until",
                                  question->until, "rows", describe_rows(list), "containers",
                                  describe_containers(client, question->since, question->until)));
}

/* Actions. */

static int act(struct vgpu_client *client, const struct question *question,
               struct vgpu_operation_report **report)
{
        const char *device = *question->device ? question->device : NULL;

        switch (question->action) {
        case ACTION_SUSPEND:
                return vgpu_operation_suspend(client, question->vgpu, NULL, report);
        case ACTION_RESUME:
                return vgpu_operation_resume(client, question->vgpu, device, NULL, report);
        case ACTION_MIGRATE:
                return vgpu_operation_migrate(client, question->vgpu, device, NULL, report);
        default:
                return vgpu_time_sharing_set_share(client, question->vgpu, question->percent);
        }
}

static json_t *describe_report(const struct vgpu_operation_report *report)
{
        return json_pack("{sI, sf, sf, sf, sf}", "bytes", (json_int_t)report->bytes, "seconds",
                         report->seconds, "drain_seconds", report->drain_seconds, "copy_seconds",
                         report->copy_seconds, "context_seconds", report->context_seconds);
}

/* Of what was asked for, and how it ended: the log says it too. */
static void reply_act(struct reply *reply, struct vgpu_client *client,
                      const struct question *question)
{
        CLEANUP(vgpu_operation_report_freep) struct vgpu_operation_report *report = NULL;
        const char *name = question_get_action_name(question->action);
        char clean[256];

        if (act(client, question, &report) < 0) {
                reply_error(reply, client);
                fprintf(stderr, "vgpu-exporter: %s of vGPU %s was refused or failed: %s\n", name,
                        question->vgpu,
                        text_clean(clean, sizeof(clean), vgpu_client_get_error(client)->message));
                return;
        }
        fprintf(stderr, "vgpu-exporter: %s of vGPU %s was asked for on the page: done\n", name,
                question->vgpu);
        reply_json(reply, STATUS_OK, report ? describe_report(report) : json_object());
}

void reply_make(struct reply *ret_reply, const struct question *question)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;

        *ret_reply = (struct reply){ .status = STATUS_AWAY };
        if (vgpu_client_new(&client, NULL) < 0)
                return;
        if (question->kind == QUESTION_VGPU)
                reply_vgpu(ret_reply, client, question);
        else if (question->kind == QUESTION_USAGE)
                reply_usage(ret_reply, client, question);
        else
                reply_act(ret_reply, client, question);
}
