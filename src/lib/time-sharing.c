/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/time-sharing.h>

#include "lib/result.h"

struct vgpu_time_sharing *vgpu_time_sharing_free(struct vgpu_time_sharing *turns)
{
        return result_free(turns);
}

struct vgpu_time_sharing_log *vgpu_time_sharing_log_free(struct vgpu_time_sharing_log *log)
{
        return result_free(log);
}

int vgpu_time_sharing_lookup(struct vgpu_client *client, const char *device,
                             struct vgpu_time_sharing **ret_turns)
{
        static const struct call call = { .method = "GetScheduler", .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_add_text(client, parameters, "device", device);
        if (r < 0)
                return r;
        return result_call(client, &call, parameters, &record_turns, ret_turns);
}

int vgpu_time_sharing_lookup_log(struct vgpu_client *client, const char *device, uint64_t from,
                                 struct vgpu_time_sharing_log **ret_log)
{
        static const struct call call = { .method = "GetSchedulerLog", .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_add_text(client, parameters, "device", device);
        if (r == 0 && from > 0)
                r = client_add(client, parameters, "from", json_integer((json_int_t)from));
        if (r < 0)
                return r;
        return result_call(client, &call, parameters, &record_turns_log, ret_log);
}

static int add_settings(struct vgpu_client *client, json_t *parameters,
                        const struct vgpu_time_sharing_settings *settings)
{
        const struct {
                const char *name;
                uint32_t value;
        } numbers[] = { { "averaging_factor", settings->average_factor },
                        { "frequency", settings->frequency_hz },
                        { "time_slice", settings->timeslice_ns } };
        int r = client_add(client, parameters, "policy", json_integer(settings->policy));

        if (r == 0 && settings->arr != VGPU_SCHEDULER_ARR_DEFAULT)
                r = client_add(client, parameters, "arr",
                               json_boolean(settings->arr == VGPU_SCHEDULER_ARR_ENABLED));
        for (size_t i = 0; r == 0 && i < sizeof(numbers) / sizeof(numbers[0]); i++)
                if (numbers[i].value)
                        r = client_add(client, parameters, numbers[i].name,
                                       json_integer(numbers[i].value));
        return r;
}

int vgpu_time_sharing_set(struct vgpu_client *client, const char *device,
                          const struct vgpu_time_sharing_settings *settings)
{
        static const struct call call = { .method = "SetScheduler", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        struct vgpu_time_sharing_settings copy;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_copy_options(client, &copy, sizeof(copy), settings, settings->size);
        if (r == 0)
                r = client_add_text(client, parameters, "device", device);
        if (r == 0)
                r = add_settings(client, parameters, &copy);
        return r < 0 ? r : client_call(client, &call, parameters, &answer);
}

int vgpu_time_sharing_set_share(struct vgpu_client *client, const char *name, uint32_t percent)
{
        static const struct call call = { .method = "SetVgpuShare", .kind = CALL_CHANGES };
        CLEANUP(json_decrefp) json_t *parameters = NULL, *answer = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_add_text(client, parameters, "name", name);
        if (r == 0)
                r = client_add(client, parameters, "percent", json_integer(percent));
        return r < 0 ? r : client_call(client, &call, parameters, &answer);
}
