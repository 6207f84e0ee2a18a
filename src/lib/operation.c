/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <openvgpu/operation.h>

#include "lib/client.h"
#include "lib/instance.h"

/* What the caller sees, and behind it what it points to. */
struct box {
        struct vgpu_operation_report report;
        struct vgpu_instance *instance;
        char *lost;
};

DEFINE_CLEANUP(struct vgpu_operation_report *, vgpu_operation_report_free);

static const struct json_field report_fields[] = {
        JSON_FIELD(U64, vgpu_operation_report, bytes, "bytes"),
        JSON_FIELD(SECONDS, vgpu_operation_report, seconds, "seconds"),
        JSON_FIELD(SECONDS, vgpu_operation_report, copy_seconds, "copy_seconds"),
        JSON_FIELD(SECONDS, vgpu_operation_report, context_seconds, "context_seconds"),
        JSON_FIELD(SECONDS, vgpu_operation_report, drain_seconds, "drain_seconds"),
        { .name = "pool_seconds",
          .type = JSON_FIELD_SECONDS,
          .offset = offsetof(struct vgpu_operation_report, pool_seconds),
          .is_optional = true },
        JSON_FIELD(U32, vgpu_operation_report, n_processes, "processes"),
        JSON_FIELD(U32, vgpu_operation_report, from_device, "from_device"),
        JSON_FIELD(U32, vgpu_operation_report, to_device, "to_device"),
};

static const struct json_field progress_fields[] = {
        JSON_FIELD(TEXT, vgpu_operation_progress, stage, "stage"),
        JSON_FIELD(U64, vgpu_operation_progress, bytes_done, "bytes_done"),
        JSON_FIELD(U64, vgpu_operation_progress, bytes_total, "bytes_total"),
};

#define N_REPORT_FIELDS   (sizeof(report_fields) / sizeof(report_fields[0]))
#define N_PROGRESS_FIELDS (sizeof(progress_fields) / sizeof(progress_fields[0]))

/* Progress is a courtesy: what cannot be understood is not told, and the operation goes on. */
static void tell_progress(const json_t *parameters, void *userdata)
{
        const struct vgpu_operation_options *options = userdata;
        struct vgpu_operation_progress progress = { 0 };

        if (!json_decode(&progress, parameters, progress_fields, N_PROGRESS_FIELDS))
                options->progress(&progress, options->userdata);
}

static int decode_report(struct vgpu_client *client, const char *method, const json_t *answer,
                         struct vgpu_operation_report **ret_report)
{
        CLEANUP(vgpu_operation_report_freep) struct vgpu_operation_report *report = NULL;
        const char *lost = json_string_value(json_object_get(answer, "lost"));
        struct box *box;
        int r;

        box = calloc(1, sizeof(*box));
        if (!box)
                return error_set_no_memory(&client->error);
        report = &box->report;

        r = client_decode(client, method, report, answer, report_fields, N_REPORT_FIELDS);
        if (r < 0)
                return r;
        r = instance_decode(client, method, json_object_get(answer, "vgpu"), &box->instance);
        if (r < 0)
                return r;
        report->instance = box->instance;
        box->lost = strdup(lost ? lost : "");
        if (!box->lost)
                return error_set_no_memory(&client->error);
        report->lost = box->lost;

        *ret_report = TAKE(report);
        return 0;
}

struct vgpu_operation_report *vgpu_operation_report_free(struct vgpu_operation_report *report)
{
        struct box *box = (struct box *)report;

        if (!box)
                return NULL;

        vgpu_instance_free(box->instance);
        free(box->lost);
        free(box);
        return NULL;
}

static int add_options(struct vgpu_client *client, json_t *parameters, const char *name,
                       const struct vgpu_operation_options *options)
{
        int r;

        r = client_add_text(client, parameters, "name", name);
        if (r < 0)
                return r;
        if (!(options->timeout_seconds >= 0 && options->timeout_seconds < 1e9))
                return error_set_parameter(&client->error, "timeout",
                                           "%g is no time to wait for, in seconds",
                                           options->timeout_seconds);
        if (options->timeout_seconds > 0)
                r = client_add(client, parameters, "timeout", json_real(options->timeout_seconds));
        if (r == 0 && options->keep_context)
                r = client_add(client, parameters, "keep_context", json_true());
        return r;
}

/* Makes the call with what all operations have; @parameters has the rest. */
static int operate(struct vgpu_client *client, const char *method, json_t *parameters,
                   const char *name, const struct vgpu_operation_options *options,
                   struct vgpu_operation_report **ret_report)
{
        struct vgpu_operation_options copy = VGPU_OPERATION_OPTIONS_INIT;
        struct call call = { .method = method, .kind = CALL_OPERATES, .userdata = &copy };
        CLEANUP(json_decrefp) json_t *answer = NULL;
        int r = 0;

        if (options)
                r = client_copy_options(client, &copy, sizeof(copy), options, options->size);
        if (r < 0)
                return r;
        r = add_options(client, parameters, name, &copy);
        if (r < 0)
                return r;

        call.progress = copy.progress ? tell_progress : NULL;
        r = client_call(client, &call, parameters, &answer);
        if (r < 0 || !ret_report)
                return r;
        return decode_report(client, method, answer, ret_report);
}

int vgpu_operation_suspend(struct vgpu_client *client, const char *name,
                           const struct vgpu_operation_options *options,
                           struct vgpu_operation_report **ret_report)
{
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r;

        r = client_begin(client, &parameters);
        if (r < 0)
                return r;
        return operate(client, "SuspendVgpu", parameters, name, options, ret_report);
}

int vgpu_operation_resume(struct vgpu_client *client, const char *name, const char *device,
                          const struct vgpu_operation_options *options,
                          struct vgpu_operation_report **ret_report)
{
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r;

        r = client_begin(client, &parameters);
        if (r == 0 && device)
                r = client_add_text(client, parameters, "device", device);
        if (r < 0)
                return r;
        return operate(client, "ResumeVgpu", parameters, name, options, ret_report);
}

int vgpu_operation_migrate(struct vgpu_client *client, const char *name, const char *device,
                           const struct vgpu_operation_options *options,
                           struct vgpu_operation_report **ret_report)
{
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r;

        r = client_begin(client, &parameters);
        if (r == 0)
                r = client_add_text(client, parameters, "device", device);
        if (r < 0)
                return r;
        return operate(client, "MigrateVgpu", parameters, name, options, ret_report);
}
