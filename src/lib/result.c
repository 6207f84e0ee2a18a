/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/result.h"

#include <stdlib.h>
#include <string.h>

struct result {
        json_t *json; /* has the texts, */
        char *text;   /* or this */
        struct record_memory memory;
        max_align_t object[]; /* what the caller sees */
};

static struct result *get_result(void *object)
{
        return (struct result *)((char *)object - offsetof(struct result, object));
}

void *result_free(void *object)
{
        struct result *result;

        if (!object)
                return NULL;

        result = get_result(object);
        record_memory_deinit(&result->memory);
        json_decref(result->json);
        free(result->text);
        free(result);
        return NULL;
}

int result_new(struct vgpu_client *client, const char *method, const struct record *record,
               json_t *json, const char *what, void *ret_object)
{
        struct result *result;
        void *object;
        int r;

        if (!json_is_object(json))
                return client_set_bad_answer(client, method, what);
        if (!ret_object)
                return 0;
        result = calloc(1, sizeof(*result) + record->size);
        if (!result)
                return error_set_no_memory(&client->error);
        result->json = json_incref(json);
        object = result->object;

        r = client_read(client, method, record, json, object, &result->memory);
        if (r < 0) {
                result_free(object);
                return r;
        }
        memcpy(ret_object, &object, sizeof(object));
        return 0;
}

/* An answer that is read without JSON: made by read_quickly(). */
struct quick_result {
        const struct record *record;
        struct result *result; /* NULL: it is for result_new() to read */
};

static bool read_quickly(const char *text, size_t size, void *userdata)
{
        static const char before[] = "{\"parameters\":", after[] = "}";
        struct quick_result *quick = userdata;
        struct result *result;
        char *at;

        if (strncmp(text, before, strlen(before)) != 0)
                return false;
        result = calloc(1, sizeof(*result) + quick->record->size);
        if (!result)
                return false;
        result->text = at = strndup(text + strlen(before), size - strlen(before));
        if (!at || record_parse(quick->record, &at, result->object, &result->memory) < 0 ||
            strcmp(at, after) != 0) {
                (void)result_free(result->object);
                return false;
        }
        quick->result = result;
        return true;
}

int result_call(struct vgpu_client *client, const struct call *call, const json_t *parameters,
                const struct record *record, void *ret_object)
{
        CLEANUP(json_decrefp) json_t *answer = NULL;
        struct quick_result quick = { .record = record };
        int r = client_call_quick(client, call, parameters, read_quickly, &quick, &answer);
        void *object;

        if (r < 0)
                return r;
        if (!quick.result)
                return result_new(client, call->method, record, answer, "parameters", ret_object);
        object = quick.result->object;
        if (ret_object)
                memcpy(ret_object, &object, sizeof(object));
        else
                (void)result_free(object);
        return 0;
}
