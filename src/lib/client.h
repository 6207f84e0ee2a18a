/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_CLIENT_H
#define LIB_CLIENT_H

/*
 * The inside of a client: one call of the control protocol, from its parameters to its answer.
 *
 * A function of the library builds parameters, makes a call, and decodes the answer; each of the
 * three leaves its reason in the client when it fails.
 */

#include <stdbool.h>

#include <openvgpu/client.h>

#include "base/paths.h"
#include "lib/connection.h"
#include "lib/error.h"
#include "record/records.h"

struct vgpu_client {
        char run_directory[PATHS_MAX];
        char socket_path[PATHS_MAX];
        bool is_found; /* by us: nobody named the run directory */
        unsigned int timeout_ms;
        struct connection connection;
        struct error error;
};

/* What a broken connection leaves unknown decides what is said about it. */
enum call_kind {
        CALL_READS,   /* changes nothing */
        CALL_CHANGES, /* changes something, at once */
        CALL_OPERATES /* takes its time, and tells its progress if asked */
};

struct call {
        const char *method; /* without the prefix */
        enum call_kind kind;
        void (*progress)(const json_t *parameters, void *userdata); /* CALL_OPERATES; or NULL */
        void *userdata;
};

/*
 * client_call() - make @call and wait for its answer
 * @parameters:      a JSON object; stays the caller's
 * @ret_parameters:  of the answer, a JSON object; the caller owns it
 */
int client_call(struct vgpu_client *client, const struct call *call, const json_t *parameters,
                json_t **ret_parameters);

/*
 * client_is_trusted() - is whoever answers root, or the user himself? They may have our programs do
 * anything already; somebody else's word names no code.
 */
bool client_is_trusted(const struct vgpu_client *client);

/* client_call_with() - the same for a call with one parameter, a text (client_add_text()). */
int client_call_with(struct vgpu_client *client, const struct call *call, const char *key,
                     const char *text, json_t **ret_parameters);

/* client_begin() - forget the last error and make an object for parameters, which the caller owns. */
int client_begin(struct vgpu_client *client, json_t **ret_parameters);

/* client_add_text() - a parameter; @text comes from the program's user, so it is checked. */
int client_add_text(struct vgpu_client *client, json_t *parameters, const char *key,
                    const char *text);

/* client_add() - a parameter; takes the reference @value, which may be NULL: out of memory. */
int client_add(struct vgpu_client *client, json_t *parameters, const char *key, json_t *value);

/* client_copy_options() - error_copy_options() for a client. */
int client_copy_options(struct vgpu_client *client, void *to, size_t to_size, const void *from,
                        size_t from_size);

/* client_read() - record_read() for an answer to @method. */
int client_read(struct vgpu_client *client, const char *method, const struct record *record,
                const json_t *json, void *object, struct record_memory *memory);

/* client_set_bad_answer() - the answer to @method lacks @what. */
int client_set_bad_answer(struct vgpu_client *client, const char *method, const char *what);

#endif
