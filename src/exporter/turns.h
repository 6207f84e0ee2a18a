/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_TURNS_H
#define EXPORTER_TURNS_H

/*
 * Turns: who had each device in the last minute, second by second, and who left it or came to it; for the page, while
 * somebody looks. It is in memory only.
 *
 * The scheduler's log has the last 200 turns, which may be a fifth of a second. Each of its entries also says how long
 * its vGPU has run in all, so that what a second gives to whom is exact although turns are missed. Where no turns are
 * taken, the meter's percentage stands for the second.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/time-sharing.h>
#include <openvgpu/usage.h>

#define TURNS_SLICES 60

/* Of the latest turns, so many are shown one by one. */
#define TURNS_LAST_MAX 100

/* What a vGPU had of a slice. */
struct turns_part {
        uint32_t id; /* of the vGPU */
        uint32_t permille;
};

enum turns_move { TURNS_CAME, TURNS_LEFT };

struct turns_mark {
        uint32_t id;
        enum turns_move move;
};

struct turns_slice {
        uint64_t from_ms, until_ms; /* since the epoch */
        bool is_of_turns;           /* false: nobody took turns */
        size_t n_parts, n_marks;
        struct turns_part *parts;
        struct turns_mark *marks;
};

/* A turn, before the end of the last one. */
struct turns_turn {
        uint32_t id;
        uint32_t start_us; /* before that end */
        uint32_t run_us;
};

struct turns_device {
        char uuid[48];
        uint64_t next; /* number of the first turn that is not known */
        size_t n_slices;
        struct turns_slice slices[TURNS_SLICES]; /* the oldest first */
        size_t n_last;
        struct turns_turn last[TURNS_LAST_MAX]; /* of the last slice, the oldest first */
        size_t n_totals;
        struct turns_total *totals;
};

struct turns;

int turns_new(struct turns **ret_turns);
struct turns *turns_free(struct turns *turns);

/* turns_is_due() - has the last slice been long enough? */
bool turns_is_due(const struct turns *turns, uint64_t now_ms);

/*
 * turns_add() - one slice of each device of @snapshot
 * @logs:  of each of these devices, from turns_get_next() on; NULL, and NULL among them: not known
 */
void turns_add(struct turns *turns, const struct vgpu_usage_snapshot *snapshot,
               struct vgpu_time_sharing_log *const *logs, uint64_t now_ms);

/* turns_find() - NULL: no such device so far. Borrowed, until the next turns_add(). */
const struct turns_device *turns_find(const struct turns *turns, const char *uuid);

/* turns_get() - the @i-th device, likewise; NULL: there are no more. */
const struct turns_device *turns_get(const struct turns *turns, size_t i);

/* turns_get_next() - from which turn on to ask for the device's log. */
uint64_t turns_get_next(const struct turns *turns, const char *uuid);

#endif
