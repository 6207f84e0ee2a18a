/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_USAGE_H
#define LIB_USAGE_H

/* Shared by the three kinds of usage. */

#include <openvgpu/usage.h>

#include "lib/client.h"

/*
 * For tables of fields. What is decoded into is a struct of the library: the caller's as @value,
 * and behind it @percents and @seconds, to which it points.
 */
#define USAGE_OPTIONAL(type_, struct_, member_, name_)                           \
        {                                                                        \
                .name = (name_), .type = JSON_FIELD_##type_,                     \
                .offset = offsetof(struct struct_, member_), .is_optional = true \
        }
#define USAGE_PERCENTS(struct_)                                        \
        JSON_FIELD(U32, struct_, percents.gpu, "gpu"),                 \
                JSON_FIELD(U32, struct_, percents.memory, "memory"),   \
                JSON_FIELD(U32, struct_, percents.encoder, "encoder"), \
                JSON_FIELD(U32, struct_, percents.decoder, "decoder"), \
                JSON_FIELD(U32, struct_, percents.jpeg, "jpeg"),       \
                JSON_FIELD(U32, struct_, percents.ofa, "ofa")
#define USAGE_SECONDS(struct_)                                                    \
        JSON_FIELD(SECONDS, struct_, seconds.gpu, "gpu_seconds"),                 \
                JSON_FIELD(SECONDS, struct_, seconds.memory, "memory_seconds"),   \
                JSON_FIELD(SECONDS, struct_, seconds.encoder, "encoder_seconds"), \
                JSON_FIELD(SECONDS, struct_, seconds.decoder, "decoder_seconds"), \
                JSON_FIELD(SECONDS, struct_, seconds.jpeg, "jpeg_seconds"),       \
                JSON_FIELD(SECONDS, struct_, seconds.ofa, "ofa_seconds")

#define USAGE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * usage_decode_array() - the objects of @array as structs of @size bytes each
 * @ret_pointers:  to the structs, in one piece with them for free(); never NULL on success
 * Sets @ret_n to how many.
 */
int usage_decode_array(struct vgpu_client *client, const char *method, const char *what,
                       const json_t *array, const struct json_field *fields, size_t n_fields,
                       size_t size, void ***ret_pointers, size_t *ret_n);

/* What the caller sees of a list, and behind it what it points to. */
struct usage_box {
        union {
                struct vgpu_usage_list rows;
                struct vgpu_usage_account_list accounts;
        } list;
        json_t *json; /* has the texts */
        void **pointers;
        size_t n;
};

/*
 * usage_collect() - make @call again and again, each time with the offset of what there is, until
 * the answer has no "more"
 * @parameters:  without the offset
 * @what:        the key of what it answers, objects for usage_decode_array()
 */
int usage_collect(struct vgpu_client *client, const struct call *call, json_t *parameters,
                  const char *what, const struct json_field *fields, size_t n_fields, size_t size,
                  struct usage_box **ret_box);

/* usage_box_free() - returns NULL. */
struct usage_box *usage_box_free(struct usage_box *box);

#endif
