/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_CLIENT_H
#define LIB_CLIENT_H

/*
 * The inside of a client: it makes one call of the control protocol, from its parameters to its answer.
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
        bool is_found; /* the library chose it: nobody named the run directory */
        unsigned int timeout_ms;
        struct connection connection;
        struct error error;
};

/* Kinds of calls. The message about a broken connection says what remains unknown, by this kind. */
enum call_kind {
        CALL_READS,   /* changes nothing */
        CALL_CHANGES, /* changes something at once */
        CALL_OPERATES /* takes long, and tells its progress if the caller asks */
};

struct call {
        const char *method; /* without the prefix */
        enum call_kind kind;
        void (*progress)(const json_t *parameters, void *userdata); /* CALL_OPERATES; or NULL */
        void *userdata;
};

/*
 * client_call() - make @call and wait for its answer
 * @parameters:      a JSON object, which stays the caller's
 * @ret_parameters:  gets the parameters of the answer, a JSON object; the caller owns it
 */
int client_call(struct vgpu_client *client, const struct call *call, const json_t *parameters,
                json_t **ret_parameters);

/* What makes of the text of an answer what its caller wants; false: it is for client_call() to read. */
typedef bool (*client_read_fn)(const char *text, size_t size, void *userdata);

/* client_call_quick() - the same, but @read is asked first; if it is true there are no @ret_parameters. */
int client_call_quick(struct vgpu_client *client, const struct call *call, const json_t *parameters,
                      client_read_fn read, void *userdata, json_t **ret_parameters);

/*
 * client_is_trusted() - does root answer, or the user of this program? Both may have our programs do
 * anything already. An answer from anybody else may not name code to load.
 */
bool client_is_trusted(const struct vgpu_client *client);

/* client_call_with() - make a call that has one parameter, a text (client_add_text()). */
int client_call_with(struct vgpu_client *client, const struct call *call, const char *key,
                     const char *text, json_t **ret_parameters);

/* client_begin() - forget the last error and make an object for parameters, which the caller owns. */
int client_begin(struct vgpu_client *client, json_t **ret_parameters);

/* client_add_text() - add a parameter, and check @text, which comes from the program's user. */
int client_add_text(struct vgpu_client *client, json_t *parameters, const char *key,
                    const char *text);

/* client_add_time() - add a time since the epoch, and check it. */
int client_add_time(struct vgpu_client *client, json_t *parameters, const char *key, double time);

/* client_add() - add a parameter. Takes the reference @value; NULL means that no memory was left. */
int client_add(struct vgpu_client *client, json_t *parameters, const char *key, json_t *value);

/* client_copy_options() - call error_copy_options() with the error of a client. */
int client_copy_options(struct vgpu_client *client, void *to, size_t to_size, const void *from,
                        size_t from_size);

/* client_read() - call record_read() for an answer to @method. */
int client_read(struct vgpu_client *client, const char *method, const struct record *record,
                const json_t *json, void *object, struct record_memory *memory);

/* client_set_bad_answer() - set the error that the answer to @method lacks @what. */
int client_set_bad_answer(struct vgpu_client *client, const char *method, const char *what);

#endif
