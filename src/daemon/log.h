/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

/*
 * The manager's log: one line on stderr for each event, first a message, then its fields:
 *
 *     vgpud: suspended vgpu=train bytes=34145828864 seconds=0.668
 *
 * When stderr is the journal, each line starts with its level as "<N>". Callers pass the fields as
 * finished text: values that may contain spaces or come from a guest go through log_quote(). For machines an event is
 * an object, see log-json.h.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum log_level {
        LOG_LEVEL_ERROR = 3,
        LOG_LEVEL_WARNING,
        LOG_LEVEL_NOTICE,
        LOG_LEVEL_INFO,
        LOG_LEVEL_DEBUG
};

/* log_init() - show @level and more severe events, as JSON or text. Before: LOG_LEVEL_INFO as text. */
void log_init(enum log_level level, bool is_json);

/* log_level_parse() - find the level called "error" ... "debug". Errors: -EINVAL. */
int log_level_parse(enum log_level *ret_level, const char *name);

/* log_event() - log one event. @fields is a format as for printf(): "key=value key=value ...", or "". */
__attribute__((format(printf, 3, 4))) void log_event(enum log_level level, const char *message,
                                                     const char *fields, ...);

/*
 * log_event_of() - log an event that @user caused. Only root and our own user can fill the log
 * (daemon/log-limit.h).
 */
__attribute__((format(printf, 4, 5))) void
log_event_of(uid_t user, enum log_level level, const char *message, const char *fields, ...);

/* A vGPU, one program of which has done something by itself: no client asked for it. */
struct log_program {
        uid_t user;
        uint32_t vgpu;    /* number of the vGPU */
        const char *name; /* of the vGPU */
};

/*
 * log_event_of_program() - log an event that a program caused. No program can fill the log: where its user has no
 * limit, the programs of a vGPU have the one that a user has.
 */
__attribute__((format(printf, 4, 5))) void log_event_of_program(const struct log_program *program,
                                                                enum log_level level,
                                                                const char *message,
                                                                const char *fields, ...);

#define LOG_QUOTED_MAX 128

/* log_quote() - put @text into quotes, and replace its control characters and quotes. Returns @quoted. */
const char *log_quote(char quoted[LOG_QUOTED_MAX], const char *text);

#endif
