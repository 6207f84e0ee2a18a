/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHEDULER_STAY_H
#define SCHEDULER_STAY_H

/*
 * How long a vGPU stays on its device: when it leaves by itself, which one comes in when there is not room for
 * all that have work, and which ones leave for it. Arithmetic only: the caller has the clock, and acts.
 *
 * A vGPU leaves when it has had no work for the time that its owner set. Before that it may leave for
 * another one that has work and finds no room: first those without work, the least recently used of them
 * at once. Where vGPUs take turns (a device that is overcommitted), one with work leaves, too, when
 * its turn is over: the batch class first, the longest stay first.
 *
 * No vGPU with work leaves within its guaranteed stay, which is a multiple of what its last swap (out and in
 * again) took; of the batch class none at all. So swapping takes no more than a part of the time, whatever
 * the programs do. An idle vGPU of the interactive class may leave for another interactive one at any time: each
 * such swap serves one that waits. Any vGPU may that has had no work for STAY_PATIENCE: one swap that took a minute,
 * on a busy host, must not keep the others waiting for minutes.
 *
 * One that had work when it left counts as batch until it has had none for a moment, on the device or off it.
 *
 * vGPUs come in in the order of waiting, the interactive class first; but when the batch class had nothing on
 * the device for STAY_PATIENCE, all are equal. None passes by one that others make room for, so none waits
 * for ever.
 *
 * A vGPU of several devices is on all of them or on none. So devices that such vGPUs join, also by way of others, are
 * decided together, and there is one order of all that wait on them. In this order each is given, or kept, what it
 * needs on all of its devices, or nothing:
 *
 *   - It comes when there is room on all of them.
 *   - Others leave for it on all devices where it lacks room, at once, as soon as enough may leave on each of them.
 *     Until then none leaves for it, and on these devices no other comes in, and none leaves for another:
 *     so stays there only get older, and the time comes. What is free on its other devices is kept for it.
 *   - One that is behind another on one of its devices keeps nothing on the others.
 *
 * There is no circle of two that each have what the other needs: the first in the order is never kept waiting by
 * one behind it, which leaves for it from all of its devices. A vGPU that waits gets ahead of all that come later, so
 * each is first once. An allocation is of one device: it waits for that one alone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A vGPU that leaves early has had no work for this part of its time (not where vGPUs take turns), and for so long: not between
 * two kernels.
 */
#define STAY_EARLY_PART 10
#define STAY_EARLY_MIN  100000000ull

/* The shortest turn of one that has work, and how long the interactive class may shut out the other one. */
#define STAY_TURN_MIN 500000000ull
#define STAY_PATIENCE 10000000000ull

#define STAY_NEVER UINT64_MAX

#define STAY_DEVICES_MAX 64
#define STAY_PARTS_MAX   8 /* devices of one vGPU */

enum stay_class {
        STAY_BATCH = 0,
        STAY_INTERACTIVE,
};

enum stay_place {
        STAY_HERE = 0, /* on the device */
        STAY_LEAVING,  /* what it has will be free */
        STAY_COMING,   /* what it takes is not free any more */
        STAY_AWAY,
};

enum stay_verdict {
        STAY_NOTHING = 0, /* it waits for nothing, or may not be tried yet */
        STAY_COMES,       /* there is room */
        STAY_HELD,        /* others leave for it; the room that they free is for it */
        STAY_LATER,       /* others will be able to */
        STAY_STUCK,       /* all that may ever leave are not enough */
};

/* A vGPU's part of one device, and what it lacks there. */
struct stay_part {
        uint32_t device;           /* less than STAY_DEVICES_MAX */
        uint64_t bytes;            /* that the device has to give when it has left */
        uint64_t needs;            /* bytes: to come in; HERE: more than it has */
        bool is_content;           /* HERE: it waits for nothing of this device */
        enum stay_verdict verdict; /* by stay_decide(), of one that waits */
};

/* All times are in nanoseconds, of one clock. */
struct stay {
        uint64_t after;      /* without work, then it leaves; 0: it never leaves by itself */
        uint64_t last_work;  /* when it had work last */
        uint64_t since;      /* when it came to the device; AWAY: when it left */
        uint64_t guaranteed; /* from then on: stay_get_guaranteed() */
        uint64_t not_before; /* after a failure: when to try again */
        bool is_held;        /* what it holds there cannot leave */
        bool takes_turns; /* it leaves for others also when it has work, or its owner set no time */
        enum stay_class class; /* how it waits, and leaves */
        uint32_t weight;       /* of its turns; not 0 */
        enum stay_place place;
        uint64_t wants; /* since when it waits for room; 0: it does not */
        struct stay_part part[STAY_PARTS_MAX];
        size_t n_more;  /* parts, beside the first */
        bool is_modest; /* none leaves for it: it could not come in when there was room */

        bool was_cut; /* it had work when it left last, and since; kept by stay_decide() */

        bool is_chosen;            /* by stay_decide(): it is to leave */
        enum stay_verdict verdict; /* by it, too: the worst of its parts */
        uint64_t end, rank;        /* private */
        size_t order;              /* private */
};

/*
 * stay_get_cost() - of a move that took @took, of which it waited @waited for host memory, that is pinned once, so the
 * next move does not wait for it, and for others to leave, which is their turn: a stay is not longer for that.
 */
uint64_t stay_get_cost(uint64_t took, uint64_t waited);

/* stay_get_guaranteed() - after a swap that took @cost, if swapping may take @percent of the time, 1 to 100. */
uint64_t stay_get_guaranteed(uint64_t cost, uint32_t percent);

/* stay_get_end() - when it leaves if no work comes; STAY_NEVER. */
uint64_t stay_get_end(const struct stay *stay);

/* All that want a device at the same time, as they bear on the length of a turn. */
struct stay_contest {
        uint64_t turn;   /* of the least weight */
        uint32_t weight; /* the least */
};

/* stay_get_contest() - of those that have work on @device, or wait for it. */
struct stay_contest stay_get_contest(struct stay *const *stays, size_t n, uint32_t device,
                                     uint64_t now);

/* stay_get_end_for() - from when on it may leave for @coming, on the device of @contest; STAY_NEVER. */
uint64_t stay_get_end_for(const struct stay *stay, const struct stay *coming,
                          const struct stay_contest *contest);

/*
 * stay_decide() - which ones come and which ones leave at @now
 * @free:  of each of the first @n_devices devices the bytes that none has and none was promised
 *
 * Sets is_chosen and the verdicts in each of @stays, and changes their order. Returns when to ask again if nothing
 * happens; STAY_NEVER.
 */
uint64_t stay_decide(struct stay **stays, size_t n, const int64_t *free, size_t n_devices,
                     uint64_t now);

#endif
