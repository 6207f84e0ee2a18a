/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CONTROL_CALL_H
#define DAEMON_CONTROL_CALL_H

/*
 * Turns the bytes of a control connection into a checked call (the framing and
 * shapes of docs/control-protocol.md). There is no socket here, so that a fuzzer
 * can try everything that a client may send.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "daemon/failure.h"

#define CONTROL_MESSAGE_MAX (1024 * 1024)

/*
 * Of one message, at all depths: parsing 60,000 members takes 35 ms, which others would wait for.
 * The largest call, ReplaceMemory, has two members a process and three values an allocation.
 */
#define CONTROL_MEMBERS_MAX 1024
#define CONTROL_VALUES_MAX  100000
#define CONTROL_PREFIX      "org.openvgpu."

static inline void json_decref_pointer(json_t **json)
{
        json_decref(*json);
}
#define CLEANUP_JSON CLEANUP(json_decref_pointer)

/* Bytes that arrived, up to the first message that is not complete. */
struct control_buffer {
        char *bytes;
        size_t size, room;
        size_t taken;    /* of a message that was handed out */
        size_t searched; /* no message ends in so much */
};

void control_buffer_deinit(struct control_buffer *buffer);

/* control_buffer_append() - Errors: -EMSGSIZE, the message in the making is too long. */
int control_buffer_append(struct control_buffer *buffer, const char *bytes, size_t n);

/* control_buffer_next() - the next complete message as a string, borrowed until the next call. */
const char *control_buffer_next(struct control_buffer *buffer, size_t *ret_size);

struct control_call {
        json_t *message;     /* owns the two below */
        const char *method;  /* without the prefix */
        json_t *parameters;  /* an object; new reference */
        bool wants_progress; /* "more" */
};

/*
 * control_call_parse() - Errors: -EINVAL, the message is no call: the connection has no sense;
 * -E2BIG, it has too many members or values.
 */
int control_call_parse(struct control_call *ret_call, const char *text, size_t size);
void control_call_deinit(struct control_call *call);

enum control_type {
        CONTROL_TEXT,
        CONTROL_SIZE,
        CONTROL_SECONDS,
        CONTROL_BOOL,
        CONTROL_NUMBER,
        CONTROL_TIME,
        CONTROL_LIST
};

/* Of CONTROL_TIME, seconds since the epoch. */
#define CONTROL_TIME_MAX 1e11

struct control_parameter {
        const char *name; /* NULL ends a table */
        enum control_type type;
        bool is_required;
};

/* control_call_check() - only known parameters, of the right types, and all that are required. */
int control_call_check(const struct control_call *call, const struct control_parameter *table,
                       struct failure *failure);

/* The parameters of a checked call. */
const char *control_call_text(const struct control_call *call, const char *name);
bool control_call_bool(const struct control_call *call, const char *name);
uint64_t control_call_size(const struct control_call *call, const char *name);
uint32_t control_call_number(const struct control_call *call, const char *name, uint32_t otherwise);
bool control_call_has(const struct control_call *call, const char *name);
double control_call_seconds(const struct control_call *call, const char *name, double otherwise);

/* control_error_json() - an error answer; a new reference, NULL when out of memory. */
json_t *control_error_json(const struct failure *failure);

#endif
