/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_QUESTION_H
#define EXPORTER_QUESTION_H

/* What a browser may ask of the page's server, and what it may ask for to be done: strangers' text to structs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUESTION_NAME_MAX   64
#define QUESTION_DEVICE_MAX 384 /* the UUIDs of as many as a vGPU may have */
#define QUESTION_BODY_MAX   1024

enum question_kind {
        QUESTION_VGPU, /* one vGPU: its processes; with the token its day and what happened to it */
        QUESTION_USAGE, /* of a month, by tenant */
        QUESTION_ACT,   /* do something with a vGPU */
};

enum question_action { ACTION_SUSPEND, ACTION_RESUME, ACTION_MIGRATE, ACTION_SHARE, ACTIONS };

struct question {
        enum question_kind kind;
        bool has_token; /* whoever asks has shown it */
        bool is_csv;
        double since, until;              /* of a month, since the epoch */
        char vgpu[QUESTION_NAME_MAX];     /* UUID */
        char device[QUESTION_DEVICE_MAX]; /* indices or UUIDs, with commas; "": none was named */
        enum question_action action;
        uint32_t percent;
};

/* question_parse_uuid() - 36 characters, hexadecimal and dashes. False: it is none, or NULL. */
bool question_parse_uuid(struct question *question, const char *text);

/* question_parse_month() - "2026-11", in the time zone of this machine. False: it is none, or NULL. */
bool question_parse_month(struct question *question, const char *text);

/*
 * question_parse_action() - {"action": "migrate", "vgpu": UUID, "device": "1"}
 *
 * NULL: it is one; else what is wrong with it.
 */
const char *question_parse_action(struct question *question, const char *body, size_t size);

/* question_get_action_name() - "suspend", "resume", "migrate", "share". */
const char *question_get_action_name(enum question_action action);

#endif
