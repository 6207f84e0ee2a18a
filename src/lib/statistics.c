/* SPDX-License-Identifier: Apache-2.0 */
#include <openvgpu/statistics.h>

#include "lib/client.h"

#define METHOD "GetStatistics"

/* What the caller sees, and behind it what it points to. */
struct box {
        struct vgpu_statistics statistics;
        json_t *json; /* has the texts */
        double *bounds;
        uint64_t *byte_bounds;
        struct vgpu_statistics_operation *operations;
        const struct vgpu_statistics_operation **pointers; /* to them */
        uint64_t *buckets;                                 /* of all of them */
};

DEFINE_CLEANUP(struct vgpu_statistics *, vgpu_statistics_free);

#define FIELD(type_, struct_, member_, name_)               \
        {                                                   \
                .name = (name_), .type = RECORD_##type_,    \
                .offset = offsetof(struct struct_, member_) \
        }

/* An older vgpud does not tell it. */
#define LATER(type_, struct_, member_, name_)                                    \
        {                                                                        \
                .name = (name_), .type = RECORD_##type_,                         \
                .offset = offsetof(struct struct_, member_), .is_optional = true \
        }

/* By hand: half of what is answered are lists of numbers, which no record has. */
static const struct record_field fields[] = {
        FIELD(SECONDS, vgpu_statistics, started, "started"),
};

static const struct record_field ledger_fields[] = {
        FIELD(BOOL, vgpu_statistics, is_ledger_fine, "working"),
};

static const struct record_field operation_fields[] = {
        FIELD(TEXT, vgpu_statistics_operation, operation, "operation"),
        FIELD(TEXT, vgpu_statistics_operation, result, "result"),
        FIELD(U64, vgpu_statistics_operation, count, "count"),
        FIELD(SECONDS, vgpu_statistics_operation, seconds, "seconds"),
        FIELD(U64, vgpu_statistics_operation, bytes, "bytes"),
        LATER(TEXT, vgpu_statistics_operation, last_vgpu, "last_vgpu"),
        LATER(SECONDS, vgpu_statistics_operation, last_seconds, "last_seconds"),
        LATER(SECONDS, vgpu_statistics_operation, last_time, "last_time"),
        LATER(U64, vgpu_statistics_operation, last_bytes, "last_bytes"),
        LATER(U64, vgpu_statistics_operation, n_pre_copies, "pre_copies"),
        LATER(U64, vgpu_statistics_operation, n_pre_copy_rounds, "pre_copy_rounds"),
        LATER(U64, vgpu_statistics_operation, pre_copy_bytes, "pre_copy_bytes"),
        LATER(SECONDS, vgpu_statistics_operation, pre_copy_seconds, "pre_copy_seconds"),
        LATER(SECONDS, vgpu_statistics_operation, pre_copy_stopped_seconds,
              "pre_copy_stopped_seconds"),
};

#define RECORD(struct_, fields_) \
        ((struct record){ sizeof(struct struct_), fields_, sizeof(fields_) / sizeof((fields_)[0]) })

/* The members that are no lists. */
static int read_scalars(struct vgpu_client *client, const struct record *record, const json_t *json,
                        void *object)
{
        struct record_memory memory = { 0 };

        return client_read(client, METHOD, record, json, object, &memory);
}

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

/* @n whole numbers that are not negative. */
static int fill_integers(struct vgpu_client *client, uint64_t *to, const json_t *array, size_t n,
                         const char *name)
{
        if (!json_is_array(array) || json_array_size(array) != n)
                return client_set_bad_answer(client, METHOD, name);
        for (size_t i = 0; i < n; i++) {
                const json_t *number = json_array_get(array, i);

                if (!json_is_integer(number) || json_integer_value(number) < 0)
                        return client_set_bad_answer(client, METHOD, name);
                to[i] = (uint64_t)json_integer_value(number);
        }
        return 0;
}

/* An older vgpud does not tell of bytes: then there are none. */
static int fill_byte_bounds(struct vgpu_client *client, struct box *box)
{
        const json_t *array = json_object_get(box->json, "byte_buckets");
        size_t n = json_array_size(array);
        int r;

        box->byte_bounds = calloc(n + 1, sizeof(*box->byte_bounds));
        if (!box->byte_bounds)
                return error_set_no_memory(&client->error);
        r = array ? fill_integers(client, box->byte_bounds, array, n, "byte_buckets") : 0;
        if (r < 0)
                return r;
        for (size_t i = 1; i < n; i++)
                if (box->byte_bounds[i] <= box->byte_bounds[i - 1])
                        return client_set_bad_answer(client, METHOD, "byte_buckets");
        box->statistics.n_byte_bounds = n;
        box->statistics.byte_bounds = box->byte_bounds;
        return 0;
}

/* As many as there are bounds. */
static int fill_buckets(struct vgpu_client *client, const struct box *box, const json_t *json,
                        size_t i)
{
        size_t n = box->statistics.n_bounds, n_bytes = box->statistics.n_byte_bounds;
        uint64_t *buckets = box->buckets + i * (n + n_bytes);
        int r;

        box->operations[i].buckets = buckets;
        box->operations[i].byte_buckets = buckets + n;
        r = fill_integers(client, buckets, json_object_get(json, "buckets"), n, "buckets");
        if (r == 0 && n_bytes > 0)
                r = fill_integers(client, buckets + n, json_object_get(json, "byte_buckets"),
                                  n_bytes, "byte_buckets");
        return r;
}

static int fill_operation(struct vgpu_client *client, struct box *box, const json_t *json, size_t i)
{
        const struct record record = RECORD(vgpu_statistics_operation, operation_fields);
        int r = read_scalars(client, &record, json, &box->operations[i]);

        box->pointers[i] = &box->operations[i];
        return r < 0 ? r : fill_buckets(client, box, json, i);
}

static int fill_operations(struct vgpu_client *client, struct box *box)
{
        const json_t *array = json_object_get(box->json, "operations");
        size_t n = json_array_size(array);
        size_t n_buckets = box->statistics.n_bounds + box->statistics.n_byte_bounds;
        int r = 0;

        if (!json_is_array(array))
                return client_set_bad_answer(client, METHOD, "operations");
        box->operations = calloc(n + 1, sizeof(*box->operations));
        box->pointers = calloc(n + 1, sizeof(*box->pointers));
        box->buckets = calloc(n * n_buckets + 1, sizeof(*box->buckets));
        if (!box->operations || !box->pointers || !box->buckets)
                return error_set_no_memory(&client->error);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = fill_operation(client, box, json_array_get(array, i), i);
        box->statistics.n_operations = n;
        box->statistics.operations = box->pointers;
        return r;
}

static int fill(struct vgpu_client *client, struct box *box)
{
        const struct record record = RECORD(vgpu_statistics, fields);
        const struct record ledger = RECORD(vgpu_statistics, ledger_fields);
        int r = read_scalars(client, &record, box->json, &box->statistics);

        if (r == 0)
                r = read_scalars(client, &ledger, json_object_get(box->json, "ledger"),
                                 &box->statistics);
        if (r == 0)
                r = fill_bounds(client, box);
        if (r == 0)
                r = fill_byte_bounds(client, box);
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
        free(box->byte_bounds);
        free(box->operations);
        free(box->pointers);
        free(box->buckets);
        json_decref(box->json);
        free(box);
        return NULL;
}
