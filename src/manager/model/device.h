/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_DEVICE_H
#define MANAGER_DEVICE_H

/* A device, and what its vGPUs were promised of it. Its mover: device-mover.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/list.h"
#include "daemon/failure.h"
#include "helper/mover.h"
#include "manager/model/ceiling-record.h"
#include "manager/model/meter-record.h"
#include "manager/model/room.h"
#include "state/state-page.h"

struct guest;
struct manager;
struct schedule;

/* What its mover, if it has one, is there for. */
enum device_mover_use {
        DEVICE_MOVER_WORKS,
        DEVICE_MOVER_STANDS_BY, /* it has not been asked for anything yet */
        DEVICE_MOVER_RETIRES    /* it goes when it has answered all that it was asked */
};

struct device {
        struct manager *manager;
        uint32_t index;
        char uuid[MOVER_UUID_MAX]; /* "GPU-..." */
        uint8_t uuid_bytes[16];
        char pci_bus_id[32];
        char name[96];
        uint64_t memory_total;
        uint64_t peers;            /* a bit for each device, by index, whose memory it can use */
        uint64_t virtual_promised; /* to the vGPUs of a scenario */
        uint64_t virtual_used;     /* by them */
        uint32_t n_virtual;
        struct state_sample virtual_load; /* percent */
        uint32_t driver_version;
        struct mover *mover;  /* NULL: not running */
        bool is_mover_stored; /* else the next manager does not wait for its end */
        uint32_t generation;  /* which of its movers that is, from 1 */
        enum device_mover_use mover_use;
        bool has_context;                 /* it has one, so free memory is known at once */
        bool asks_context;                /* it was asked to make one, ahead of need */
        struct room_promise context_room; /* until it has it */
        struct guest *refreshing;         /* operation/refresh.h; NULL: nobody is */
        unsigned int n_ahead;         /* operation/ahead.h: vGPUs that are copied while they run */
        struct list errands;          /* what the pool waits for */
        struct room room;             /* who was promised its memory */
        struct ceiling ceiling;       /* for those who run there: ceiling.h */
        struct list admissions;       /* operations that wait for a promise, the first first */
        uint64_t rest_until_us;       /* CLOCK_MONOTONIC: after a loss no mover is started ahead */
        uint64_t no_context_until_us; /* the same clock: it had no room for one */
        uint64_t wanted;              /* bytes of the pool that were asked to be ready here */
        bool wants_all; /* the rest of it was asked to be ready, too: vgpud --pin-ahead */
        struct meter_device meter;
        struct schedule *schedule;
};

/*
 * device_find() - by index, UUID, or the unique beginning of a UUID (with or without "GPU-").
 * NULL with a reason: NoSuchDevice.
 */
struct device *device_find(struct manager *manager, const char *text, struct failure *failure);

/* device_find_uuid() - exactly; NULL for none. */
struct device *device_find_uuid(struct manager *manager, const char *uuid);

/* device_get_used() - what the vGPUs on it hold, in bytes. */
uint64_t device_get_used(const struct device *device);

#endif
