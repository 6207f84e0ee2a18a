/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_OPERATION_H
#define MANAGER_OPERATION_H

/*
 * Suspend, resume and migrate.
 *
 * An operation is a table of steps, each with what undoes it. A step works on all
 * guests of the instance at once and is complete when the last of its parts is.
 * When one fails, the steps so far are undone, from the last to the first; so a
 * failed operation is one that did not happen.
 *
 * Steps, and what undoes them, look at how far each guest really is (its gate's
 * state, its context, the memory that we hold) and do what is missing. That makes
 * them repeatable: a step whose mover died runs again, and a new manager undoes
 * what it finds half done by running all the undoing, without having been there.
 *
 * One step is the point of no return: it writes the new state of the instance to
 * the store and removes the operation from it. Before it, the next manager undoes;
 * after it, it only cleans up.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "daemon/failure.h"
#include "manager/model/place.h"
#include "manager/model/rest-record.h"
#include "manager/model/room.h"
#include "manager/operation/operation-record.h"
#include "store/store.h"

struct control_pending;
struct device;
struct guest;
struct guest_memory;
struct instance;
struct manager;
struct operation;

#define OPERATION_STORE_HINT "free room on the disk of vgpud's state directory; its log says more"

enum operation_step_flag {
        OPERATION_RECORDS = 1 << 0, /* the point of no return: from here on nothing is undone */
        OPERATION_ANSWERS = 1 << 1, /* the caller has what he asked for; then we tidy up */
        OPERATION_MEETS = 1 << 2,   /* begins when all of its group are there: group.h */
        OPERATION_MEETS_BACK =
                1 << 3,            /* is undone when all of its group have undone what follows */
        OPERATION_COPIES = 1 << 4, /* memory leaves the device in it: handover.h */
};

struct operation_step {
        const char *name;  /* fault point KIND.NAME after it; in the store as the last complete */
        const char *stage; /* of the progress messages */
        void (*run)(struct operation *operation);
        void (*undo)(struct operation *operation); /* NULL: nothing to undo */
        uint32_t flags;                            /* enum operation_step_flag */
};

/* How one may be asked for: what a kind does not take is refused. docs/recovery.md has the table. */
enum operation_condition {
        OPERATION_KEEPS_CONTEXT = 1 << 0,
        OPERATION_VERIFIES = 1 << 1,
        OPERATION_DETACHES = 1 << 2,
        OPERATION_PRE_COPIES = 1 << 3,
        OPERATION_BY_ITSELF = 1 << 4,
        OPERATION_HANDS_OVER = 1 << 5,
        OPERATION_EARLY = 1 << 6,
        OPERATION_IN_GROUP = 1 << 7,
};

enum operation_number {
        OPERATION_SUSPEND = 1,
        OPERATION_RESUME,
        OPERATION_MIGRATE,
        OPERATION_CATCH_UP,
};

struct operation_kind {
        enum operation_number number;
        uint32_t takes;          /* enum operation_condition */
        const char *name, *past; /* "suspend", "suspended" */
        const struct operation_step *steps;
        size_t n_steps;
        uint32_t busy_state; /* enum state_instance_state while it runs */
        bool is_from_pool;   /* what comes to the device is in the pool; else what was exported */
        bool may_leave_behind; /* a guest that hangs, before the point of no return: the others go on */
        uint32_t guests;       /* enum guest_presence: those of the instance that take part */
        uint32_t settled_state; /* that of an instance for which it was undone */
        /* Is the instance in the right state for it? Sets the target. */
        int (*check)(struct operation *operation, struct failure *failure);
        void (*undone)(
                struct instance *instance); /* it is over, and was undone; NULL: nothing follows */
};

extern const struct operation_kind operation_suspend, operation_resume, operation_migrate,
        operation_catch_up;

struct operation_request {
        struct place target; /* nowhere: where it is */
        bool keep_context;
        bool must_verify; /* compare byte by byte what would not be copied */
        bool will_detach; /* its processes are to be made anew from an image */
        bool pre_copies;  /* ahead.h */
        uint32_t timeout_ms;
        bool is_by_itself;               /* nobody asked for it: residency.h */
        bool hands_over, is_early;       /* handover.h */
        uint64_t group;                  /* of other vGPUs' operations; 0: none */
        struct control_pending *pending; /* is answered at the end; NULL: nobody waits for that */
};

/* Who comes takes what another one leaves (handover.h). */
struct operation_taker {
        /* @memory of @giver becomes that of an allocation of @operation's guests. False: it fits none. */
        bool (*take)(struct operation *operation, struct guest *giver, struct guest_memory *memory);
        void (*go_on)(struct operation *operation); /* that was all for now */
};

struct operation {
        struct instance *instance;
        const struct operation_kind *kind;
        /*
         * Equal for suspend. The movers of the target do the work, each for its part; but for the checkpoint,
         * which is one for a process with all its devices: the mover of the first part calls the driver.
         */
        struct place source, target;
        struct operation_request request;    /* as it was made */
        uid_t asker;                         /* the owner, or another */
        const struct operation_taker *taker; /* while its memory comes in parts: arrival.c */
        struct group_standing standing;      /* among those of its group */
        uint32_t former_state;               /* of the instance, to go back to */

        size_t step; /* the one that runs, or is undone */
        enum operation_phase phase;
        bool is_undoing, is_recovery;
        bool was_retried; /* this step, with a new mover or a new connection */
        size_t n_parts;   /* of the step, that are under way */
        sd_event_source *advance;
        struct control_pending *next; /* the call that is made again after it; or NULL */

        struct failure failure; /* the first */
        int error;              /* of the step */
        bool has_lost_peer;     /* a mover or a connection: trying again may help */
        bool has_failed_undo;
        /* With room for the database, or on the device or in the pool, an undoing that failed may succeed. */
        bool has_failed_store, has_lacked_room;

        struct operation_measures measured;
        struct ahead ahead;
        size_t n_processes, n_left_behind; /* of them */
        size_t n_contexts;                 /* suspend: of movers that are there */
        char lost[160]; /* what to tell of a process that did not come along; "": all did */
        bool had_left;  /* there was nothing to do: operation_report_left() */

        struct shared_wait shared;
        struct rest *rest; /* while the gates close; of all of its group */
        struct making making;
        bool awaits_reading; /* what is read ahead for it already: fetching.c */

        struct room_promise staging[GATE_DEVICES_MAX]; /* what it may take of the target, by part */
        struct admission admission;
        uint64_t neighbours_bytes; /* what other vGPUs had on the source when its context left */
};

/* For the steps. An operation is started in operation-engine.h. */

/* The guests that take part: @guest runs over them. */
struct guest *operation_next_guest(const struct operation *operation, struct guest *after);
#define operation_for_each_guest(guest, operation)                 \
        for (guest = operation_next_guest(operation, NULL); guest; \
             guest = operation_next_guest(operation, guest))

/* operation_find_step() - the one of @kind with this flag. */
size_t operation_find_step(const struct operation_kind *kind, enum operation_step_flag flag);

/* operation_is_at() - is @device a part of where it comes from, or where it goes to? */
bool operation_is_at(const struct operation *operation, const struct device *device);

/* operation_begin_part() - something was started whose end will be told by operation_end_part(). */
void operation_begin_part(struct operation *operation);
void operation_end_part(struct operation *operation);

/* operation_pass() - a fault point KIND.POINT. */
void operation_pass(struct operation *operation, const char *point);

/* operation_fail() - the step has failed; the first reason counts. */
__attribute__((format(printf, 5, 6))) void operation_fail(struct operation *operation, int error,
                                                          const char *name, const char *hint,
                                                          const char *message, ...);

/* operation_fail_errno() - the same for what has no better words. */
void operation_fail_errno(struct operation *operation, int error, const char *what);

/* operation_fail_silent() - the driver does not answer for @guest: silence.h. */
void operation_fail_silent(struct operation *operation, const struct guest *guest);

/* operation_fail_store() - the store did not accept @what. */
void operation_fail_store(struct operation *operation, int error, const char *what);

/* operation_store_undone() - the step that is being undone is from now on one that never was. */
int operation_store_undone(const struct operation *operation);

/* operation_is_spoiled() - is this answer of the driver the last checkpoint that it tries of a process? */
bool operation_is_spoiled(const char *call, int code);

/* operation_fail_driver() - a driver call for @guest answered @code. */
void operation_fail_driver(struct operation *operation, struct guest *guest, const char *call,
                           int code, int error);

/*
 * operation_leave_guest() - what was tried for @guest has failed. If that was undoing, the guest is
 * left as it is, with all that we hold of it, while the others go on; unless a mover died and a
 * new one will be asked.
 */
void operation_leave_guest(struct operation *operation, struct guest *guest);

/*
 * operation_let_go_guest() - it is no guest any more, though its process may live: the operation goes on
 * without it and drops all that we hold of it at its end. To be called in a part of the operation.
 */
void operation_let_go_guest(struct operation *operation, struct guest *guest, const char *why);

/*
 * operation_leave_behind() - @guest hangs: go on without it, if there are others and this is possible;
 * then operation_start_catching_up() is for when its gate is back, or the operation is over.
 */
bool operation_leave_behind(struct operation *operation, struct guest *guest);

/*
 * operation_describe_left_behind() - "process 42 (train) is stopped and follows after kill -CONT 42" into
 * @text; "": none. Returns @text.
 */
#define OPERATION_LEFT_BEHIND_MAX 240
char *operation_describe_left_behind(const struct operation *operation,
                                     char text[OPERATION_LEFT_BEHIND_MAX]);

bool operation_start_catching_up(struct instance *instance);

/* operation_lose_guest() - the driver has lost its process; the operation goes on without it, likewise. */
void operation_lose_guest(struct operation *operation, struct guest *guest);

/* operation_lost_mover() - the step has failed because the mover of @device died. */
void operation_lost_mover(struct operation *operation, const struct device *device);

/* operation_lost_gate() - or because the connection of a gate broke, which is back. */
void operation_lost_gate(struct operation *operation);

/* operation_add_progress() - @bytes more were copied. */
void operation_add_progress(struct operation *operation, uint64_t bytes);

#endif
