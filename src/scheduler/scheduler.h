/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_SCHEDULER_H
#define SCHEDULER_SCHEDULER_H

/*
 * The scheduler of one device: decides who has the device when.
 *
 * The scheduler uses no hardware, no clock and no heap. Its caller says what time it is and who has
 * work; the scheduler answers whose turn it is and until when. The caller then switches the
 * hardware and says when the switch was done, so that the time of a switch belongs to the turn
 * before it:
 *
 *     scheduler_set_work(..);
 *     if (scheduler_decide(scheduler, now, &order)) {
 *             ... let order.member run and nobody else that has work ...
 *             scheduler_begin(scheduler, &order, now);
 *     }
 *     ... wait until order.until_ns or until somebody's work changes ...
 *
 * Members are vGPUs: a share belongs to the vGPU, whatever the number of its processes. A vGPU
 * without work needs no turn, and may be left alone.
 *
 * Times are nanoseconds of one clock that should not go backward; when it does, or jumps, shares
 * are inexact for a moment and nothing worse. Not thread-safe.
 */

#include "base/list.h"
#include "scheduler/settings.h"

#define SCHEDULER_LOG_MAX   200
#define SCHEDULER_WHOLE     1000000u /* parts of the device */
#define SCHEDULER_UNLIMITED UINT64_MAX

/* More than that nobody is charged for one turn: then the clock has jumped. */
#define SCHEDULER_RUN_MAX 10000000000ull

struct scheduler_member {
        struct list link;
        uint32_t id;
        uint32_t share;     /* percent of the device, at most 100; 0: none was given */
        uint32_t portion;   /* parts of the device under fixed share, where no share was given */
        uint32_t weight;    /* parts: what it is entitled to among those that count just now */
        bool has_work;      /* by scheduler_set_work() */
        bool has_woken;     /* and has had no turn since */
        bool was_early;     /* has had its turn of this round already */
        bool is_in;         /* takes turns */
        uint64_t received;  /* ns in turns, and alone */
        uint64_t overshoot; /* ns that it ran too long and that were not taken off yet */
        uint64_t preempted; /* ns, sum of all that it ran too long */
        uint64_t progress;  /* received over weight, since it came in: who has least is behind */
};

struct scheduler_turn { /* the log */
        uint64_t end;
        uint64_t run, run_total;
        uint64_t target;
        uint64_t preempted;
        uint32_t id;
        uint32_t weight;
};

enum scheduler_mode {
        SCHEDULER_FREE = 0, /* nothing to enforce: everybody runs */
        SCHEDULER_TURN,     /* one member runs, and who has no work */
        SCHEDULER_PAUSE,    /* fixed share: this time is nobody's */
};

struct scheduler_order {
        enum scheduler_mode mode;
        struct scheduler_member
                *owner; /* whose time it is; FREE: the only one with work, or NULL */
        struct scheduler_member *member; /* the same where it runs; NULL: it has no work */
        uint64_t target;                 /* ns */
        uint32_t weight;                 /* of the owner when it was decided */
        uint64_t until_ns;               /* SCHEDULER_UNLIMITED: until something changes */
};

struct scheduler {
        struct list members;
        uint32_t n_members;
        struct scheduler_settings settings; /* complete */
        struct scheduler_settings asked;    /* with 0 for defaults */

        struct scheduler_order order;  /* in force */
        uint64_t start_ns;             /* of it */
        struct scheduler_member *last; /* in the order of turns */
        struct scheduler_member rest;  /* fixed share: what is left of the whole */
        bool has_jumped_queue;         /* the turn before went to one that had woken */
        bool has_changed;              /* what is in force was decided on other grounds */

        struct scheduler_turn log[SCHEDULER_LOG_MAX];
        uint64_t n_logged; /* for ever; the last one is log[(n_logged - 1) % SCHEDULER_LOG_MAX] */
};

/* scheduler_init() - best effort, no members. */
void scheduler_init(struct scheduler *scheduler);

/* scheduler_configure() - settings within the ranges of the device. */
void scheduler_configure(struct scheduler *scheduler, const struct scheduler_settings *settings);

/* scheduler_add() - @member, with its id, share and portion set; it starts without work. */
void scheduler_add(struct scheduler *scheduler, struct scheduler_member *member);

/* scheduler_remove() - also in the middle of its turn, which is then neither charged nor logged. */
void scheduler_remove(struct scheduler *scheduler, struct scheduler_member *member);

/* scheduler_set_share() - @share percent, or none. */
void scheduler_set_share(struct scheduler *scheduler, struct scheduler_member *member,
                         uint32_t share);

void scheduler_set_work(struct scheduler *scheduler, struct scheduler_member *member,
                        bool has_work);

/*
 * scheduler_decide() - what shall be at @now; @ret_order is always set
 * Returns whether that is something new, which the caller must bring about and scheduler_begin().
 */
bool scheduler_decide(struct scheduler *scheduler, uint64_t now, struct scheduler_order *ret_order);

/*
 * scheduler_void() - what was decided last has not been brought about, and will not be: the next
 * scheduler_decide() says what shall be, whatever was in force.
 */
void scheduler_void(struct scheduler *scheduler);

/* scheduler_begin() - what was decided is so since @now; the turn before is charged and logged. */
void scheduler_begin(struct scheduler *scheduler, struct scheduler_order *order, uint64_t now);

/* scheduler_is_enforcing() - is there anything to enforce, whoever has work? */
bool scheduler_is_enforcing(const struct scheduler *scheduler);

/* scheduler_get_received() - with what it has had of the turn under way. */
uint64_t scheduler_get_received(const struct scheduler *scheduler,
                                const struct scheduler_member *member, uint64_t now);

/* scheduler_get_entitled() - of @member when all have work, in parts of the device. */
uint32_t scheduler_get_entitled(const struct scheduler *scheduler,
                                const struct scheduler_member *member);

#endif
