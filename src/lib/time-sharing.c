/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/time-sharing.h>

#include "base/cleanup.h"
#include "lib/client.h"

/* What the caller sees, and behind it what it points to. */
struct box {
        union {
                struct vgpu_time_sharing turns;
                struct vgpu_time_sharing_log log;
        };
        json_t *json; /* has the texts */
        void *items;
        const void **pointers;
};

static const struct json_field fields[] = {
        JSON_FIELD(U32, vgpu_time_sharing, device, "device"),
        JSON_FIELD(TEXT, vgpu_time_sharing, mode, "mode"),
        JSON_FIELD(TEXT, vgpu_time_sharing, reason, "reason"),
        JSON_FIELD(U32, vgpu_time_sharing, policy, "policy"),
        JSON_FIELD(BOOL, vgpu_time_sharing, has_arr, "arr"),
        JSON_FIELD(U32, vgpu_time_sharing, average_factor, "averaging_factor"),
        JSON_FIELD(U32, vgpu_time_sharing, frequency_hz, "frequency"),
        JSON_FIELD(U64, vgpu_time_sharing, timeslice_ns, "time_slice"),
        JSON_FIELD(U64, vgpu_time_sharing, n_turns, "turns"),
        JSON_FIELD(BOOL, vgpu_time_sharing, are_taken, "taking_turns"),
};

static const struct json_field vgpu_fields[] = {
        JSON_FIELD(TEXT, vgpu_time_sharing_vgpu, name, "name"),
        JSON_FIELD(U32, vgpu_time_sharing_vgpu, id, "id"),
        JSON_FIELD(U32, vgpu_time_sharing_vgpu, share, "share"),
        JSON_FIELD(SECONDS, vgpu_time_sharing_vgpu, entitled_percent, "entitled"),
        JSON_FIELD(SECONDS, vgpu_time_sharing_vgpu, received_seconds, "received"),
        JSON_FIELD(BOOL, vgpu_time_sharing_vgpu, has_work, "has_work"),
        JSON_FIELD(BOOL, vgpu_time_sharing_vgpu, waits, "waits"),
        JSON_FIELD(BOOL, vgpu_time_sharing_vgpu, is_enforced, "enforced"),
        JSON_FIELD(TEXT, vgpu_time_sharing_vgpu, error, "error"),
};

static const struct json_field entry_fields[] = {
        JSON_FIELD(U64, vgpu_time_sharing_entry, number, "number"),
        JSON_FIELD(U64, vgpu_time_sharing_entry, timestamp_ns, "timestamp"),
        JSON_FIELD(U32, vgpu_time_sharing_entry, id, "id"),
        JSON_FIELD(TEXT, vgpu_time_sharing_entry, name, "name"),
        JSON_FIELD(U64, vgpu_time_sharing_entry, run_ns, "run"),
        JSON_FIELD(U64, vgpu_time_sharing_entry, run_total_ns, "run_total"),
        JSON_FIELD(U64, vgpu_time_sharing_entry, target_ns, "target"),
        JSON_FIELD(U64, vgpu_time_sharing_entry, preempted_ns, "preempted"),
        JSON_FIELD(U32, vgpu_time_sharing_entry, weight, "weight"),
};

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct box *box_free(struct box *box)
{
        if (!box)
                return NULL;
        free(box->items);
        free(box->pointers);
        json_decref(box->json);
        free(box);
        return NULL;
}
DEFINE_CLEANUP(struct box *, box_free);

struct vgpu_time_sharing *vgpu_time_sharing_free(struct vgpu_time_sharing *turns)
{
        (void)box_free((struct box *)turns);
        return NULL;
}

struct vgpu_time_sharing_log *vgpu_time_sharing_log_free(struct vgpu_time_sharing_log *log)
{
        (void)box_free((struct box *)log);
        return NULL;
}

/* The array @name of the answer, as an array of pointers to structs of @size bytes. */
static int decode_items(struct vgpu_client *client, const char *method, struct box *box,
                        const char *name, size_t size, const struct json_field *item_fields,
                        size_t n_fields)
{
        const json_t *array = json_object_get(box->json, name);
        size_t n = json_array_size(array);

        if (!json_is_array(array))
                return client_set_bad_answer(client, method, name);
        box->items = calloc(n + 1, size);
        box->pointers = calloc(n + 1, sizeof(*box->pointers));
        if (!box->items || !box->pointers)
                return error_set_no_memory(&client->error);
        for (size_t i = 0; i < n; i++) {
                void *item = (char *)box->items + i * size;
                int r = client_decode(client, method, item, json_array_get(array, i), item_fields,
                                      n_fields);

                if (r < 0)
                        return r;
                box->pointers[i] = item;
        }
        return 0;
}

static int call_device(struct vgpu_client *client, const char *method, const char *device,
                       uint64_t from, struct box **ret_box)
{
        const struct call call = { .method = method, .kind = CALL_READS };
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        CLEANUP(box_freep) struct box *box = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_add_text(client, parameters, "device", device);
        if (r == 0 && from > 0)
                r = client_add(client, parameters, "from", json_integer((json_int_t)from));
        if (r < 0)
                return r;
        box = calloc(1, sizeof(*box));
        if (!box)
                return error_set_no_memory(&client->error);
        r = client_call(client, &call, parameters, &box->json);
        if (r < 0)
                return r;
        *ret_box = TAKE(box);
        return 0;
}

int vgpu_time_sharing_lookup(struct vgpu_client *client, const char *device,
                             struct vgpu_time_sharing **ret_turns)
{
        static const char method[] = "GetScheduler";
        CLEANUP(box_freep) struct box *box = NULL;
        int r = call_device(client, method, device, 0, &box);

        if (r == 0)
                r = client_decode(client, method, &box->turns, box->json, fields, N_OF(fields));
        if (r == 0)
                r = decode_items(client, method, box, "vgpus",
                                 sizeof(struct vgpu_time_sharing_vgpu), vgpu_fields,
                                 N_OF(vgpu_fields));
        if (r < 0)
                return r;
        box->turns.n_vgpus = json_array_size(json_object_get(box->json, "vgpus"));
        box->turns.vgpus = (const struct vgpu_time_sharing_vgpu *const *)box->pointers;
        *ret_turns = &box->turns;
        box = NULL;
        return 0;
}

int vgpu_time_sharing_lookup_log(struct vgpu_client *client, const char *device, uint64_t from,
                                 struct vgpu_time_sharing_log **ret_log)
{
        static const char method[] = "GetSchedulerLog";
        CLEANUP(box_freep) struct box *box = NULL;
        int r = call_device(client, method, device, from, &box);

        if (r == 0)
                r = decode_items(client, method, box, "turns",
                                 sizeof(struct vgpu_time_sharing_entry), entry_fields,
                                 N_OF(entry_fields));
        if (r < 0)
                return r;
        box->log.next = (uint64_t)json_integer_value(json_object_get(box->json, "next"));
        box->log.n_entries = json_array_size(json_object_get(box->json, "turns"));
        box->log.entries = (const struct vgpu_time_sharing_entry *const *)box->pointers;
        *ret_log = &box->log;
        box = NULL;
        return 0;
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
        for (size_t i = 0; r == 0 && i < N_OF(numbers); i++)
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
                r = client_add_text(client, parameters, "vgpu", name);
        if (r == 0)
                r = client_add(client, parameters, "percent", json_integer(percent));
        return r < 0 ? r : client_call(client, &call, parameters, &answer);
}
