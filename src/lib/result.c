/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/result.h"

#include <stdlib.h>
#include <string.h>

struct result {
        json_t *json; /* has the texts */
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

int result_call(struct vgpu_client *client, const struct call *call, const json_t *parameters,
                const struct record *record, void *ret_object)
{
        CLEANUP(json_decrefp) json_t *answer = NULL;
        int r = client_call(client, call, parameters, &answer);

        if (r < 0)
                return r;
        return result_new(client, call->method, record, answer, "parameters", ret_object);
}
