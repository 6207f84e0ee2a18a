/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_MEMBER_H
#define SCHEDULER_MEMBER_H

/* The members of a scheduler, the turn in force, and the log of the turns before. */

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "scheduler/settings.h"

#define SCHEDULER_LOG_MAX   200
#define SCHEDULER_WHOLE     1000000u /* parts of the device */
#define SCHEDULER_UNLIMITED UINT64_MAX

/* No member is charged more than that for one turn: then the clock has jumped. */
#define SCHEDULER_RUN_MAX 10000000000ull

struct scheduler_member {
        struct list link;
        uint32_t id;
        uint32_t share;   /* percent of the device, at most 100; 0: none was given */
        uint32_t portion; /* parts of the device under fixed share, where no share was given */
        uint32_t weight;  /* parts: what it is entitled to among those that count just now */
        uint32_t
                entitled; /* parts: the same when all have work; of when members or settings changed */
        bool has_work;    /* by scheduler_set_work() */
        bool has_woken;                 /* and has had no turn since */
        bool was_early;                 /* has had its turn of this round already */
        bool is_in;                     /* takes turns */
        bool is_interactive, is_urgent; /* credit.h, as the next one */
        uint64_t credit;                /* ns */
        uint64_t received;              /* ns in turns, and alone */
        uint64_t overshoot; /* ns that it ran too long and that were not taken off yet */
        uint64_t preempted; /* ns, sum of all that it ran too long */
        uint64_t
                progress; /* received over weight, since it came in: the member that has least is behind */

        uint64_t
                devices; /* those of the scheduler that it has, a bit each; where all are alike it does not matter */
        /* These are joint.h's. */
        bool is_chosen, is_running, is_settled;
        uint32_t base; /* parts: what it wants of each of its devices */
        uint32_t fair, run_weight;
        uint64_t last_turn;
};

struct scheduler_turn { /* the log */
        uint64_t end;
        uint64_t run, run_total;
        uint64_t target;
        uint64_t preempted;
        uint32_t id;
        uint32_t weight;
        uint64_t devices; /* the member's */
};

enum scheduler_mode {
        SCHEDULER_FREE = 0, /* nothing to enforce: all run */
        SCHEDULER_TURN,     /* one member runs, and all that have no work */
        SCHEDULER_PAUSE,    /* fixed share: this time stays unused */
};

struct scheduler_order {
        enum scheduler_mode mode;
        struct scheduler_member *owner;  /* of the turn; FREE: the only one with work, or NULL */
        struct scheduler_member *member; /* the same where it runs; NULL: it has no work */
        uint64_t target;                 /* ns */
        uint32_t weight;                 /* of the owner when it was decided */
        uint64_t until_ns;               /* SCHEDULER_UNLIMITED: until something changes */
        bool is_joint; /* of several devices: the members that are chosen run, @member is the first */
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
        struct scheduler_member *cut;  /* its turn has been cut short for an urgent one; NULL */
        uint64_t cut_left;             /* ns, of that turn */
        uint64_t accrued_ns;           /* up to when credit is reckoned */
        bool has_jumped_queue;         /* the turn before went to one that had woken */
        bool has_lent;                 /* or to one with a part too small for it */
        bool has_changed;              /* what is in force was decided on other grounds */
        bool is_joint;                 /* joint.h decides */

        struct scheduler_turn log[SCHEDULER_LOG_MAX];
        uint64_t n_logged; /* for ever; the last one is log[(n_logged - 1) % SCHEDULER_LOG_MAX] */
};

#endif
