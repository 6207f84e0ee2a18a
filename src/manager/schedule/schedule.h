/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SCHEDULE_H
#define MANAGER_SCHEDULE_H

/*
 * The turns of a device: its scheduler (scheduler/scheduler.h), the hands that hold processes off
 * the device (channels/channels.h), and a thread that does both, so that turns are kept while the
 * manager is busy with something else. The thread runs only while there is something to enforce.
 *
 * All of these are called by the manager's thread. The thread of the turns reads the instance pages
 * of those whom schedule_settle() has told it of.
 *
 * A vGPU of several devices has its turns on all of them at once. Devices that such vGPUs join are in one
 * schedule together, that of the first of them; those of the others are empty then. What is said here of a
 * device is about the schedule in which it is.
 *
 * A process for which a call fails is left alone from then on, on the device, and that is said in the
 * log. Where the calls are not allowed at all, turns are taken at the gates (gate/turns.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"
#include "scheduler/settings.h"

struct state_scheduler;
struct device;
struct instance;
struct manager;
struct schedule;

int schedule_new(struct schedule **ret_schedule, struct device *device);

/* schedule_free() - lets all on the device. Returns NULL. */
struct schedule *schedule_free(struct schedule *schedule);

/* schedule_configure() - as the state page says. */
void schedule_configure(struct device *device, const struct state_scheduler *settings);

/*
 * schedule_settle() - bring the schedule in line with who is on the device, hand what was measured to
 * the meter and the log to the state page. Often: whenever the state page is written.
 */
void schedule_settle(struct device *device);

/* schedule_hold() - let the vGPU on the device and out of the turns: it is about to be moved. */
void schedule_hold(struct instance *instance);

/* schedule_subscribe() - once: whoever leaves its manager leaves the schedules. */
void schedule_subscribe(struct manager *manager);

/* What is shown. */

enum schedule_mode {
        SCHEDULE_OFF = 0, /* nothing to enforce: the driver divides the time */
        SCHEDULE_HARDWARE,
        SCHEDULE_GATE,
};

/* schedule_mode_get_name() - as clients know it. */
const char *schedule_mode_get_name(enum schedule_mode mode);

struct schedule_view {
        enum schedule_mode mode;
        const char *reason; /* why this mode; a whole sentence without its full stop */
        struct scheduler_settings settings;
        uint64_t slice; /* ns */
        uint64_t n_turns;
        bool is_taking_turns; /* just now */
};

void schedule_get(const struct device *device, struct schedule_view *ret_view);

/* schedule_tell_meter() - what was received up to now, so that a sample has no turns of another one. */
void schedule_tell_meter(struct device *device);

struct schedule_share {
        uint32_t entitled; /* parts of a million when all have work */
        uint64_t received; /* ns since it is on the device */
        bool has_work, is_off, is_enforced;
        int error; /* why not, a negative errno */
};

/* schedule_get_share() - false: it is not in the schedule just now. */
bool schedule_get_share(const struct instance *instance, struct schedule_share *ret_share);

/*
 * schedule_get_entitled() - percent of each of its devices that @instance can count on when all that are there have work:
 * what every view shows as that. 0: it is suspended, or on its way.
 */
double schedule_get_entitled(const struct instance *instance);

/* schedule_check_share() - may @instance, or a new vGPU (NULL), have @share percent of @device? */
int schedule_check_share(const struct device *device, const struct instance *instance,
                         uint32_t share, struct failure *failure);

/*
 * A vGPU of several devices knows no policy but best effort, with shares or without.
 * schedule_check_several() - is that the policy of @device? schedule_check_no_several() - may it have another
 * one: does no such vGPU have a part of it? Unsupported.
 */
int schedule_check_several(const struct device *device, struct failure *failure);
int schedule_check_no_several(const struct device *device, struct failure *failure);

/* schedule_check_move() - is what @instance has as a share left on @target? NoRoom. */
int schedule_check_move(const struct instance *instance, const struct device *target,
                        struct failure *failure);

#endif
