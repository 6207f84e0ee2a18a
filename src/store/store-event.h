/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_STORE_EVENT_H
#define STORE_STORE_EVENT_H

/*
 * Events: what happened to vGPUs, for people to read; of each owner the latest STORE_EVENTS_MAX.
 *
 * They outlive their vGPU, vgpud and the machine's boot. Nothing else depends on them: a failure to
 * write them is no failure of what they tell, and the fault point store.write does not see them.
 */

#include "store/store.h"

#define STORE_EVENTS_MAX        2048
#define STORE_EVENT_OWNERS_MAX  128 /* of the owners, those to whose vGPUs something happened last */
#define STORE_EVENT_TEXT_MAX    320
#define STORE_EVENT_DEVICES_MAX 96

struct store_event {
        uint64_t id;      /* rises; never used again */
        uint64_t time_ms; /* CLOCK_REALTIME */
        uid_t owner;
        char uuid[STORE_UUID_MAX];
        char name[STORE_NAME_MAX]; /* that the vGPU had then */
        char word[STORE_WORD_MAX]; /* what it was, for programs */
        uint32_t device;           /* index, when it was over */
        char devices
                [STORE_EVENT_DEVICES_MAX]; /* of a vGPU of several, all of them: "0,1"; "": the one */
        pid_t pid;                         /* 0: it was about no process */
        uint64_t bytes, duration_ms;
        uint64_t drain_ms, copy_ms,
                context_ms;              /* parts of the duration; the last two at the same time */
        char text[STORE_EVENT_TEXT_MAX]; /* the same for people */
};

/* store_add_events() - all or none, in this order; the ids are made here. Not in a transaction. */
int store_add_events(struct store *store, const struct store_event *events, size_t n);

#define STORE_ANY_OWNER (-1)

/*
 * store_find_event_vgpu() - the UUID of the vGPU to which something happened last while @name was its
 * name or UUID, among those of @owner (or STORE_ANY_OWNER). Errors: -ENOENT.
 */
int store_find_event_vgpu(struct store *store, const char *name, int64_t owner,
                          char ret_uuid[STORE_UUID_MAX]);

struct store_event_query {
        const char *uuid; /* NULL: of all vGPUs */
        int64_t owner;    /* STORE_ANY_OWNER: of all owners */
        uint64_t after;   /* only events with a greater id */
        uint64_t since_ms;
        uint64_t limit;
};

/* store_each_event() - the earliest first. */
typedef int (*store_event_fn)(const struct store_event *event, void *userdata);
int store_each_event(struct store *store, const struct store_event_query *query,
                     store_event_fn each, void *userdata);

#endif
