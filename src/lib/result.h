/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_RESULT_H
#define LIB_RESULT_H

/* A result: a struct that the caller gets, and hidden before it all that it points to. */

#include "lib/client.h"

/*
 * result_new() - a struct of @record, read from @json
 * @method:      that @json is an answer to
 * @json:        an object, or the error says that the answer has no @what; result_new() takes a
 *               reference of its own, for the texts
 * @ret_object:  pointer to a pointer to the struct; the caller owns it
 */
int result_new(struct vgpu_client *client, const char *method, const struct record *record,
               json_t *json, const char *what, void *ret_object);

/* result_free() - NULL is fine. Returns NULL. */
void *result_free(void *object);

/* result_call() - make @call, and a struct of @record from all that it answers. */
int result_call(struct vgpu_client *client, const struct call *call, const json_t *parameters,
                const struct record *record, void *ret_object);

#endif
