/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/operation.h"

#include "lib/result.h"

/* Progress is a courtesy: what cannot be understood is not told, and the operation goes on. */
static void tell_progress(const json_t *parameters, void *userdata)
{
        const struct vgpu_operation_options *options = userdata;
        struct vgpu_operation_progress progress = { 0 };
        struct record_memory memory = { 0 };
        const char *bad;

        if (record_read(&record_progress, parameters, &progress, &memory, &bad) == 0)
                options->progress(&progress, options->userdata);
        record_memory_deinit(&memory);
}

struct vgpu_operation_report *vgpu_operation_report_free(struct vgpu_operation_report *report)
{
        return result_free(report);
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
        if (r == 0 && options->verify)
                r = client_add(client, parameters, "verify", json_true());
        if (r == 0 && options->pre_copy)
                r = client_add(client, parameters, "pre_copy", json_true());
        if (r == 0 && options->group)
                r = client_add(client, parameters, "group", json_true());
        return r;
}

/* Makes the call with what all operations have; @parameters has the rest. */
static int operate(struct vgpu_client *client, const char *method, json_t *parameters,
                   const char *name, const struct vgpu_operation_options *options,
                   struct vgpu_operation_report **ret_report)
{
        struct vgpu_operation_options copy = VGPU_OPERATION_OPTIONS_INIT;
        struct call call = { .method = method, .kind = CALL_OPERATES, .userdata = &copy };
        int r = 0;

        if (options)
                r = client_copy_options(client, &copy, sizeof(copy), options, options->size);
        if (r < 0)
                return r;
        r = add_options(client, parameters, name, &copy);
        if (r < 0)
                return r;

        call.progress = copy.progress ? tell_progress : NULL;
        return result_call(client, &call, parameters, &record_report, ret_report);
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

int operation_suspend_to_detach(struct vgpu_client *client, const char *name,
                                const struct vgpu_operation_options *options)
{
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r;

        r = client_begin(client, &parameters);
        if (r == 0)
                r = client_add(client, parameters, "detach", json_true());
        if (r < 0)
                return r;
        return operate(client, "SuspendVgpu", parameters, name, options, NULL);
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
