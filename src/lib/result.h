/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_RESULT_H
#define LIB_RESULT_H

/* A result is a struct that the caller gets. Everything that it points to is hidden before it. */

#include "lib/client.h"

/*
 * result_new() - make a struct of @record from @json
 * @method:      the method that @json answers
 * @json:        an object; otherwise the error says that the answer has no @what. result_new() takes a
 *               reference of its own, for the texts
 * @ret_object:  points to a pointer that gets the struct, which the caller owns; NULL: the caller does not
 *               want it
 */
int result_new(struct vgpu_client *client, const char *method, const struct record *record,
               json_t *json, const char *what, void *ret_object);

/* result_free() - free a result, or NULL. Returns NULL. */
void *result_free(void *object);

/* result_call() - make @call, and a struct of @record from the whole answer. */
int result_call(struct vgpu_client *client, const struct call *call, const json_t *parameters,
                const struct record *record, void *ret_object);

#endif
