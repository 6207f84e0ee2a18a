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
 * Limits for one message, at all depths. Parsing 60,000 members takes 35 ms, during which all other
 * clients wait. The largest call, ReplaceMemory, has two members per process and three values per
 * allocation.
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
        size_t taken;    /* size of the message that was handed out */
        size_t searched; /* in this many bytes no message ends */
};

void control_buffer_deinit(struct control_buffer *buffer);

/* control_buffer_append() - add @n bytes. Errors: -EMSGSIZE, the incomplete message is too long. */
int control_buffer_append(struct control_buffer *buffer, const char *bytes, size_t n);

/* control_buffer_next() - get the next complete message as a string, borrowed until the next call. */
const char *control_buffer_next(struct control_buffer *buffer, size_t *ret_size);

struct control_call {
        json_t *message;     /* owns the two below */
        const char *method;  /* without the prefix */
        json_t *parameters;  /* an object; new reference */
        bool wants_progress; /* "more" */
};

/*
 * control_call_parse() - parse one message. Errors: -EINVAL, the message is not a call, so the connection
 * is useless; -E2BIG, the message has too many members or values.
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

/* The greatest CONTROL_TIME, in seconds since the epoch. */
#define CONTROL_TIME_MAX 1e11

struct control_parameter {
        const char *name; /* NULL ends a table */
        enum control_type type;
        bool is_required;
};

/* control_call_check() - check that all parameters are known and of the right type, and none is missing. */
int control_call_check(const struct control_call *call, const struct control_parameter *table,
                       struct failure *failure);

/* These return a parameter of a checked call; @otherwise if the call lacks it. */
const char *control_call_text(const struct control_call *call, const char *name);
bool control_call_bool(const struct control_call *call, const char *name);
uint64_t control_call_size(const struct control_call *call, const char *name);
uint32_t control_call_number(const struct control_call *call, const char *name, uint32_t otherwise);
bool control_call_has(const struct control_call *call, const char *name);
double control_call_seconds(const struct control_call *call, const char *name, double otherwise);

/* control_error_json() - make an error answer. Returns a new reference, or NULL: out of memory. */
json_t *control_error_json(const struct failure *failure);

#endif
