/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_RESIDENCY_INTERNAL_H
#define MANAGER_RESIDENCY_INTERNAL_H

/* For residency*.c: when it looks, who has work, and who gets the room of a device. */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "state/device.h"

struct device;
struct guest;
struct instance;
struct manager;

/* What the driver said last of an overcommitted device, while somebody waits there. */
struct residency_look {
        struct residency *residency;
        struct device *device;
        bool is_looking;
        bool is_answered; /* and nothing has been decided by that yet */
        bool is_blind;    /* it could not be asked the last time */
        uint64_t asked_ns,
                not_before_ns; /* when it was asked; after it had no room for its mover: when next */
        uint64_t asked_mark, asked_moves; /* the room's mark; operations under way, and ends */
        uint64_t mark, n_moves;           /* the same of the answer */

        /* What has left a moment ago: the driver may still say that it is not free. */
        uint64_t late_bytes, late_ns;
        uint64_t memory_free,
                free_before; /* as the driver said last, and before those were told to leave */
};

struct residency {
        struct manager *manager;
        sd_event_source *timer;
        sd_event_time_handler_t on_time;
        uint64_t next_ns; /* when it looks again */
        bool is_waited;   /* somebody waits for room, as of the last look */
        uint64_t n_ends;  /* of operations and of processes: what the driver said before is old */
        struct residency_look look[STATE_DEVICES_MAX];
};

/* What moves by itself: residency-move.c. */

/* residency_look_in() - at the latest in @ns from now. */
void residency_look_in(struct residency *residency, uint64_t ns);

/* residency_fail() - its move came to nothing: for a while it is not tried again. */
void residency_fail(struct instance *instance, bool is_leaving, const char *reason);

/* residency_pause() - not for a while, and for longer each time. residency_come_later() - that is no failure of its own. */
void residency_pause(struct instance *instance, bool is_leaving);
void residency_come_later(struct instance *instance);

/* residency_succeed() - what failed before does not count. residency_note_reason() - why it stays; "". */
void residency_succeed(struct instance *instance);
void residency_note_reason(struct instance *instance, const char *reason);

/* residency_leave() - it leaves now; @hands_over: for another one, which may come into its room meanwhile. */
void residency_leave(struct instance *instance, bool hands_over, const char *why);

/* residency_note_lack() - there was not room enough for @part: more must leave for it the next time. */
void residency_note_lack(struct instance *instance, size_t part);

/* Who has work: residency-work.c. */

/* residency_takes_part() - has it a slot where its gate says whether it has work? */
bool residency_takes_part(const struct guest *guest);

/* residency_look_at_work() - note whether it had any since the last look. */
void residency_look_at_work(struct instance *instance, uint64_t now);

/* residency_find_hold() - what cannot leave, "" if there is nothing: the suspend would fail each time. */
void residency_find_hold(const struct instance *instance, char *text, size_t size);

/*
 * residency_look_at_stopped() - is one of its processes stopped? Then that is what cannot leave, and why it stays, until
 * residency_look_whether_it_runs() finds that all run again.
 */
bool residency_look_at_stopped(struct instance *instance);
void residency_look_whether_it_runs(struct instance *instance);

/* residency_awaits_turn() - is it being resumed by hand, which waits for others to leave? */
bool residency_awaits_turn(const struct instance *instance);

/* residency_is_wanted() - does a program wait for it to come in? */
bool residency_is_wanted(const struct instance *instance);

/* Copies that follow idle vGPUs: residency-refresh.c. */

/* residency_may_refresh() - has it a copy that could follow it? Its gates say then whether they have work. */
bool residency_may_refresh(const struct instance *instance);

/* residency_look_at_refresh() - start what is due. Returns when to look again. */
uint64_t residency_look_at_refresh(struct instance *instance, uint64_t now);

/* In the terms of the policy: residency-stay.c. */

struct stay residency_get_stay(const struct instance *instance);

/* residency_is_played() - does the policy look at it? */
bool residency_is_played(const struct instance *instance);

/* residency_get_return() - what it takes of the device of @part to come in and go on. */
uint64_t residency_get_return(const struct instance *instance, size_t part);

/* residency-devices.c. */

/* residency_get_devices() - a bit for each of its devices. */
uint64_t residency_get_devices(const struct instance *instance);

/* residency_is_known() - can it be known what is free on @device? */
bool residency_is_known(const struct residency *residency, const struct device *device);

/* What is free: residency-look.c. */

/* residency_ask_again() - of the devices of @instance: at the next look, however long the last one is ago. */
void residency_ask_again(struct residency *residency, const struct instance *instance);

/* residency_give_room() - to those who wait on @devices, at once or when the driver has said what is free. */
void residency_give_room(struct residency *residency, uint64_t devices, uint64_t now);

/* Who gets the room: residency-room.c. */

/* residency_note_left() - what it had there when it was told to leave is free, or will be in a moment. */
void residency_note_left(struct residency *residency, const struct instance *instance);

/* residency_forget_promises() - of what others have left for it. */
void residency_forget_promises(struct instance *instance);

/* residency_decide() - of the devices in @group, of which @free bytes nobody has and nobody was promised. */
void residency_decide(struct residency *residency, uint64_t group, const int64_t *free,
                      uint64_t now);

/* residency_give_up() - nobody shall wait on @device any longer. */
void residency_give_up(const struct device *device);

/* Why one waits, if that is so at two looks: residency-reason.c. */

/* residency_note_no_reason() - at this look there is none on @part. */
void residency_note_no_reason(struct instance *instance, size_t part);

/* residency_note_leaving() - others are leaving the device of @part for it. */
void residency_note_leaving(struct instance *instance, size_t part);

/* residency_note_later() - others have the device of @part for now. */
void residency_note_later(struct instance *instance, size_t part);

/* residency_note_stuck() - who is in the way for good, if that can be said. @lack: what is missing if all leave that can. */
void residency_note_stuck(struct instance *instance, size_t part, int64_t lack);

#endif
