/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/client.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/trust.h"
#include "lib/starting.h"

#define PREFIX             "org.openvgpu."
#define DEFAULT_TIMEOUT_MS 10000

/* No event says that a socket begins to accept. */
#define STARTING_INTERVAL_NS 10000000

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);

const char *vgpu_get_version(void)
{
        return OPENVGPU_VERSION;
}

static int set_paths(struct vgpu_client *client, const char *run_directory)
{
        int r;

        if (run_directory)
                r = snprintf(client->run_directory, PATHS_MAX, "%s", run_directory) < PATHS_MAX
                            ? 0
                            : -ENAMETOOLONG;
        else
                r = paths_run_client(client->run_directory);
        client->is_found = !run_directory && !paths_run_is_given();
        if (r == 0)
                r = paths_join(client->socket_path, client->run_directory, PATHS_CONTROL_SOCKET);
        if (r == 0 && strlen(client->socket_path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
                r = -ENAMETOOLONG;
        return r;
}

int vgpu_client_new(struct vgpu_client **ret_client, const char *run_directory)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        int r;

        client = calloc(1, sizeof(*client));
        if (!client)
                return -ENOMEM;

        client->connection = CONNECTION_CLOSED;
        client->timeout_ms = DEFAULT_TIMEOUT_MS;
        error_clear(&client->error);
        r = set_paths(client, run_directory);
        if (r < 0)
                return r;

        *ret_client = TAKE(client);
        return 0;
}

struct vgpu_client *vgpu_client_free(struct vgpu_client *client)
{
        if (!client)
                return NULL;

        connection_close(&client->connection);
        free(client);
        return NULL;
}

void vgpu_client_set_timeout_ms(struct vgpu_client *client, unsigned int timeout_ms)
{
        client->timeout_ms = timeout_ms > 0 ? timeout_ms : DEFAULT_TIMEOUT_MS;
}

const char *vgpu_client_get_run_directory(const struct vgpu_client *client)
{
        return client->run_directory;
}

const struct vgpu_error *vgpu_client_get_error(const struct vgpu_client *client)
{
        return &client->error.value;
}

int client_begin(struct vgpu_client *client, json_t **ret_parameters)
{
        json_t *parameters = json_object();

        error_clear(&client->error);
        if (!parameters)
                return error_set_no_memory(&client->error);

        *ret_parameters = parameters;
        return 0;
}

int client_add(struct vgpu_client *client, json_t *parameters, const char *key, json_t *value)
{
        return json_object_set_new(parameters, key, value) < 0 ? error_set_no_memory(&client->error)
                                                               : 0;
}

/* "pool_group" as people say it. */
static int refuse_empty(struct vgpu_client *client, const char *key)
{
        char words[64];
        int r;

        (void)snprintf(words, sizeof(words), "%s", key);
        for (char *c = words; *c; c++)
                if (*c == '_')
                        *c = ' ';
        r = error_set_parameter(&client->error, key, "the %s is empty", words);
        (void)snprintf(client->error.hint, sizeof(client->error.hint),
                       "leave it out, or write what it is to be");
        return r;
}

int client_add_text(struct vgpu_client *client, json_t *parameters, const char *key,
                    const char *text)
{
        if (!text || *text == '\0')
                return refuse_empty(client, key);
        if (json_object_set_new(parameters, key, json_string(text)) < 0)
                return error_set_parameter(&client->error, key, "the %s '%s' is not UTF-8", key,
                                           text);
        return 0;
}

int client_add_time(struct vgpu_client *client, json_t *parameters, const char *key, double time)
{
        if (!(time >= 0 && isfinite(time)))
                return error_set_parameter(&client->error, key, "%s is no time since 1970: %g", key,
                                           time);
        return client_add(client, parameters, key, json_real(time));
}

int client_copy_options(struct vgpu_client *client, void *to, size_t to_size, const void *from,
                        size_t from_size)
{
        return error_copy_options(&client->error, to, to_size, from, from_size);
}

/* "ListDevices" as words, "list devices": who reads the message has never seen the protocol. */
static char *write_as_words(char *words, size_t room, const char *method)
{
        size_t n = 0;

        for (const char *c = method; *c && n + 2 < room; c++) {
                if (n > 0 && *c >= 'A' && *c <= 'Z')
                        words[n++] = ' ';
                words[n++] = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
        }
        words[n] = '\0';
        return words;
}

int client_set_bad_answer(struct vgpu_client *client, const char *method, const char *what)
{
        char words[64];

        return error_set(&client->error, VGPU_ERROR_BAD_ANSWER,
                         "are vgpu and vgpud of the same version? see 'vgpu --version' and "
                         "'vgpud --version'",
                         "vgpud's answer to '%s' has no usable %s",
                         write_as_words(words, sizeof(words), method), what);
}

int client_read(struct vgpu_client *client, const char *method, const struct record *record,
                const json_t *json, void *object, struct record_memory *memory)
{
        const char *bad = NULL;
        int r = record_read(record, json, object, memory, &bad);

        if (r == -EBADMSG)
                return client_set_bad_answer(client, method, bad);
        return r < 0 ? error_set_no_memory(&client->error) : 0;
}

static int set_connect_error(struct vgpu_client *client, int error)
{
        switch (error) {
        case -EACCES:
        case -EPERM:
                return error_set(&client->error, VGPU_ERROR_PERMISSION_DENIED,
                                 "run it as root or as the user of vgpud, or join the group "
                                 "that vgpud was given (--group)",
                                 "no permission to talk to vgpud at %s", client->socket_path);
        case -ECONNREFUSED: /* its socket outlives a manager that was killed */
                return error_set(
                        &client->error, VGPU_ERROR_NO_MANAGER,
                        "its vGPUs are kept and their programs run on: start vgpud again, with the "
                        "options that it had (systemctl start vgpud, where systemd starts it)",
                        "the vgpud at %s has ended", client->socket_path);
        case -ENOENT:
        case -ENOTDIR:
                return error_set(&client->error, VGPU_ERROR_NO_MANAGER,
                                 "start vgpud (to try it without a GPU: vgpud --simulate "
                                 "2xH200), or set OPENVGPU_RUN to the run directory of a running "
                                 "one",
                                 "no vgpud answers at %s", client->socket_path);
        case -ETIMEDOUT:
                return error_set(&client->error, VGPU_ERROR_NO_ANSWER,
                                 "vgpud may be stopped or overloaded: its log has more",
                                 "vgpud accepts no connection at %s", client->socket_path);
        default:
                return error_set(&client->error, VGPU_ERROR_NO_MANAGER, "is vgpud running?",
                                 "cannot connect to %s: %s", client->socket_path,
                                 strerrordesc_np(-error));
        }
}

static int set_untrusted(struct vgpu_client *client)
{
        return error_set(
                &client->error, VGPU_ERROR_PERMISSION_DENIED,
                "if you trust that user as yourself, set OPENVGPU_RUN to that folder",
                "the process that answers at %s belongs neither to root nor to you: it could make your programs do anything",
                client->socket_path);
}

bool client_is_trusted(const struct vgpu_client *client)
{
        struct ucred peer = { .uid = (uid_t)-1 };
        socklen_t size = sizeof(peer);

        return getsockopt(client->connection.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
               trust_user(peer.uid);
}

static int set_lost(struct vgpu_client *client, const struct call *call)
{
        if (call->kind == CALL_READS)
                return error_set(&client->error, VGPU_ERROR_CONNECTION_LOST,
                                 "try again; the log of vgpud says why",
                                 "vgpud went away before it answered");
        return error_set(&client->error, VGPU_ERROR_CONNECTION_LOST,
                         "when vgpud runs again, look with 'vgpu ls'",
                         "vgpud went away before it answered: the outcome is unknown");
}

static int set_silent(struct vgpu_client *client, const struct call *call)
{
        return error_set(&client->error, VGPU_ERROR_NO_ANSWER,
                         call->kind == CALL_READS
                                 ? "vgpud may be stopped or overloaded: its log has more"
                                 : "vgpud may still do it: see 'vgpu ls'",
                         "vgpud did not answer within %g s", client->timeout_ms / 1000.0);
}

/* After a failure in the middle, what comes next could be the answer to this call: hang up. */
static int set_transfer_error(struct vgpu_client *client, const struct call *call, int error)
{
        connection_close(&client->connection);

        switch (error) {
        case -ETIMEDOUT:
                return set_silent(client, call);
        case -ECONNRESET:
                return set_lost(client, call);
        case -ENOMEM:
                return error_set_no_memory(&client->error);
        case -EMSGSIZE:
                return error_set(&client->error, VGPU_ERROR_BAD_ANSWER,
                                 "check that vgpud listens there",
                                 "the answer is longer than a message may be");
        default:
                return error_set(&client->error, VGPU_ERROR_CONNECTION_LOST, "try again",
                                 "the connection to vgpud broke: %s", strerrordesc_np(-error));
        }
}

static int fail_bad_answer(struct vgpu_client *client, const char *why)
{
        connection_close(&client->connection);
        return error_set(&client->error, VGPU_ERROR_BAD_ANSWER, "check that vgpud listens there",
                         "cannot understand the answer: %s", why);
}

static int make_text(struct vgpu_client *client, const struct call *call, const json_t *parameters,
                     char **ret_text)
{
        CLEANUP(json_decrefp) json_t *message = NULL;
        CLEANUP(freep) char *text = NULL;

        message = json_pack("{s:s+, s:O, s:b}", "method", PREFIX, call->method, "parameters",
                            parameters, "more", call->progress != NULL);
        text = message ? json_dumps(message, JSON_COMPACT) : NULL;
        if (!text)
                return error_set_no_memory(&client->error);
        if (strlen(text) >= CONNECTION_MESSAGE_MAX)
                return error_set_parameter(&client->error, "", "the parameters are too long");

        *ret_text = TAKE(text);
        return 0;
}

/* One that was started a moment ago is waited for, as one that is slow to accept. */
static int open_connection(struct vgpu_client *client, int64_t deadline)
{
        const struct timespec interval = { .tv_nsec = STARTING_INTERVAL_NS };
        int r;

        for (;;) {
                r = connection_open(&client->connection, client->socket_path, deadline);
                if ((r != -ENOENT && r != -ECONNREFUSED) ||
                    !starting_is_under_way(client->run_directory))
                        return r;
                (void)nanosleep(&interval, NULL);
        }
}

static int send_call(struct vgpu_client *client, const struct call *call, const json_t *parameters)
{
        int64_t deadline = connection_deadline(client->timeout_ms);
        CLEANUP(freep) char *text = NULL;
        int r;

        r = make_text(client, call, parameters, &text);
        if (r < 0)
                return r;

        if (!connection_is_quiet(&client->connection)) {
                connection_close(&client->connection);
                r = open_connection(client, deadline);
                if (r < 0)
                        return set_connect_error(client, r);
                if (client->is_found && !client_is_trusted(client)) {
                        connection_close(&client->connection);
                        return set_untrusted(client);
                }
        }
        r = connection_send(&client->connection, text, deadline);
        if (r == -ECONNRESET) /* what was said before hanging up says why */
                return 0;
        return r < 0 ? set_transfer_error(client, call, r) : 0;
}

struct quick {
        client_read_fn read; /* or NULL */
        void *userdata;
};

/* *@ret_message stays NULL if it was read already. */
static int receive_message(struct vgpu_client *client, const struct call *call,
                           const struct quick *quick, json_t **ret_message)
{
        int64_t deadline = call->kind == CALL_OPERATES ? CONNECTION_FOREVER
                                                       : connection_deadline(client->timeout_ms);
        CLEANUP(json_decrefp) json_t *message = NULL;
        json_error_t error;
        const char *text;
        size_t size;
        int r;

        r = connection_receive(&client->connection, &text, &size, deadline);
        if (r < 0)
                return set_transfer_error(client, call, r);
        if (quick->read && quick->read(text, size, quick->userdata))
                return 0;

        message = json_loadb(text, size, 0, &error);
        if (!message)
                return fail_bad_answer(client, error.text);
        if (!json_is_object(message))
                return fail_bad_answer(client, "it is not an object");

        *ret_message = TAKE(message);
        return 0;
}

/* Receives one message: progress is passed on, anything else is the answer. */
static int receive_answer(struct vgpu_client *client, const struct call *call,
                          const struct quick *quick, bool *ret_continues, json_t **ret_parameters)
{
        CLEANUP(json_decrefp) json_t *message = NULL;
        json_t *name, *parameters;
        int r;

        r = receive_message(client, call, quick, &message);
        *ret_continues = false;
        if (r < 0 || !message)
                return r;

        name = json_object_get(message, "error");
        parameters = json_object_get(message, "parameters");
        if (json_is_string(name))
                return error_set_answer(&client->error, json_string_value(name), parameters);
        if (!json_is_object(parameters))
                return fail_bad_answer(client, "it has no parameters");

        *ret_continues = json_is_true(json_object_get(message, "continues"));
        if (*ret_continues && !call->progress)
                return fail_bad_answer(client, "it tells progress that nobody asked for");
        if (*ret_continues)
                call->progress(parameters, call->userdata);
        else
                *ret_parameters = json_incref(parameters);
        return 0;
}

int client_call_quick(struct vgpu_client *client, const struct call *call, const json_t *parameters,
                      client_read_fn read, void *userdata, json_t **ret_parameters)
{
        const struct quick quick = { read, userdata };
        bool continues = true;
        int r;

        r = send_call(client, call, parameters);
        while (r == 0 && continues)
                r = receive_answer(client, call, &quick, &continues, ret_parameters);
        return r;
}

int client_call(struct vgpu_client *client, const struct call *call, const json_t *parameters,
                json_t **ret_parameters)
{
        return client_call_quick(client, call, parameters, NULL, NULL, ret_parameters);
}

int client_call_with(struct vgpu_client *client, const struct call *call, const char *key,
                     const char *text, json_t **ret_parameters)
{
        CLEANUP(json_decrefp) json_t *parameters = NULL;
        int r = client_begin(client, &parameters);

        if (r == 0)
                r = client_add_text(client, parameters, key, text);
        return r < 0 ? r : client_call(client, call, parameters, ret_parameters);
}
