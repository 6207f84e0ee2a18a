/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/statistics.h>

#include "lib/usage.h"

#define METHOD "GetStatistics"

/* What the caller sees, and behind it what it points to. */
struct box {
        struct vgpu_statistics statistics;
        json_t *json; /* has the texts */
        double *bounds;
        void **operations;
        uint64_t *buckets; /* of all of them */
};

DEFINE_CLEANUP(struct vgpu_statistics *, vgpu_statistics_free);

static const struct json_field fields[] = {
        JSON_FIELD(SECONDS, vgpu_statistics, started, "started"),
};

static const struct json_field ledger_fields[] = {
        JSON_FIELD(BOOL, vgpu_statistics, is_ledger_fine, "working"),
};

static const struct json_field operation_fields[] = {
        JSON_FIELD(TEXT, vgpu_statistics_operation, operation, "operation"),
        JSON_FIELD(TEXT, vgpu_statistics_operation, result, "result"),
        JSON_FIELD(U64, vgpu_statistics_operation, count, "count"),
        JSON_FIELD(SECONDS, vgpu_statistics_operation, seconds, "seconds"),
        JSON_FIELD(U64, vgpu_statistics_operation, bytes, "bytes"),
};

static int fill_bounds(struct vgpu_client *client, struct box *box)
{
        const json_t *array = json_object_get(box->json, "buckets");
        size_t n = json_array_size(array);

        if (!json_is_array(array))
                return client_set_bad_answer(client, METHOD, "buckets");
        box->bounds = calloc(n + 1, sizeof(*box->bounds));
        if (!box->bounds)
                return error_set_no_memory(&client->error);
        for (size_t i = 0; i < n; i++) {
                const json_t *bound = json_array_get(array, i);

                box->bounds[i] = json_number_value(bound);
                if (!json_is_number(bound) || (i > 0 && box->bounds[i] <= box->bounds[i - 1]))
                        return client_set_bad_answer(client, METHOD, "buckets");
        }
        box->statistics.n_bounds = n;
        box->statistics.bounds = box->bounds;
        return 0;
}

/* As many as there are bounds. */
static int fill_buckets(struct vgpu_client *client, const struct box *box, uint64_t *buckets,
                        const json_t *array)
{
        size_t n = box->statistics.n_bounds;

        if (!json_is_array(array) || json_array_size(array) != n)
                return client_set_bad_answer(client, METHOD, "buckets");
        for (size_t i = 0; i < n; i++) {
                const json_t *count = json_array_get(array, i);

                if (!json_is_integer(count) || json_integer_value(count) < 0)
                        return client_set_bad_answer(client, METHOD, "buckets");
                buckets[i] = (uint64_t)json_integer_value(count);
        }
        return 0;
}

static int fill_operations(struct vgpu_client *client, struct box *box)
{
        const json_t *array = json_object_get(box->json, "operations");
        size_t n_bounds = box->statistics.n_bounds, n;
        int r;

        r = usage_decode_array(client, METHOD, "operations", array, operation_fields,
                               USAGE_COUNT(operation_fields),
                               sizeof(struct vgpu_statistics_operation), &box->operations, &n);
        if (r < 0)
                return r;
        box->buckets = calloc(n * n_bounds + 1, sizeof(*box->buckets));
        if (!box->buckets)
                return error_set_no_memory(&client->error);
        for (size_t i = 0; r == 0 && i < n; i++) {
                struct vgpu_statistics_operation *operation = box->operations[i];

                operation->buckets = box->buckets + i * n_bounds;
                r = fill_buckets(client, box, box->buckets + i * n_bounds,
                                 json_object_get(json_array_get(array, i), "buckets"));
        }
        box->statistics.n_operations = n;
        box->statistics.operations = (const void *)box->operations;
        return r;
}

static int fill(struct vgpu_client *client, struct box *box)
{
        int r = client_decode(client, METHOD, &box->statistics, box->json, fields,
                              USAGE_COUNT(fields));

        if (r == 0)
                r = client_decode(client, METHOD, &box->statistics,
                                  json_object_get(box->json, "ledger"), ledger_fields,
                                  USAGE_COUNT(ledger_fields));
        if (r == 0)
                r = fill_bounds(client, box);
        return r < 0 ? r : fill_operations(client, box);
}

int vgpu_statistics_lookup(struct vgpu_client *client, struct vgpu_statistics **ret_statistics)
{
        static const struct call call = { .method = METHOD, .kind = CALL_READS };
        CLEANUP(vgpu_statistics_freep) struct vgpu_statistics *statistics = NULL;
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        struct box *box;
        int r;

        r = client_begin(client, &parameters);
        if (r < 0)
                return r;
        box = calloc(1, sizeof(*box));
        if (!box)
                return error_set_no_memory(&client->error);
        statistics = &box->statistics;
        r = client_call(client, &call, parameters, &box->json);
        if (r == 0)
                r = fill(client, box);
        if (r < 0)
                return r;
        *ret_statistics = TAKE(statistics);
        return 0;
}

struct vgpu_statistics *vgpu_statistics_free(struct vgpu_statistics *statistics)
{
        struct box *box = (struct box *)statistics;

        if (!box)
                return NULL;
        free(box->bounds);
        free(box->operations);
        free(box->buckets);
        json_decref(box->json);
        free(box);
        return NULL;
}
