/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_STATE_H
#define EXPORTER_STATE_H

/*
 * What the page shows, as JSON (src/exporter/page.js reads it): a state has all of it, and a change has what is
 * different from a state, by the places that vGPUs and devices have in it:
 *
 *     {"base": 7, "number": 9, "time": MS,
 *      "vgpus": [[PLACE, "running", DEVICE, USED, SHARE, ENTITLED, GPU, PROGRAMS, PARTS], ...],
 *      "devices": [[PLACE, PROMISED, USED, GPU, CELSIUS or null, WATTS or null, TURNS or null], ...],
 *      "pool": [USED, LIMIT], "history": {"times": [MS, ...], "gpu": {UUID: [PERCENT or null, ...]}}}
 *
 * PARTS are those of a vGPU of several devices, [[DEVICE, USED, ENTITLED, GPU], ...], if they have changed. They are
 * left out of others.
 *
 * A reader who is slow may leave out any change: the next one has all of it again.
 */

#include <stdbool.h>

#include "exporter/history.h"
#include "exporter/metrics.h"
#include "exporter/turns.h"

struct state_extras {
        const struct history *history; /* its latest samples; NULL: none are new */
        const struct turns *turns;     /* the latest slices; NULL: none are new */
        uint64_t number;               /* a later state or change has a larger one */
        uint64_t now_ms;
};

/* state_write() - one line, to be freed by the caller; NULL: no memory */
char *state_write(const struct metrics_input *input, const struct state_extras *extras);

/* state_write_past() - for who begins to look: all of the history, and of the last minute's turns */
char *state_write_past(const struct history *history, const struct turns *turns, uint64_t now_ms);

/* A state, as far as it can change without becoming another one. */
struct state_base;

/* state_base_new() - of what state_write() was told; NULL: no memory, or @input has no snapshot */
struct state_base *state_base_new(const struct metrics_input *input, uint64_t number);
struct state_base *state_base_free(struct state_base *base);

/* state_write_change() - as above; NULL: it has become another state, or no memory */
char *state_write_change(const struct state_base *base, const struct metrics_input *input,
                         const struct state_extras *extras);

#endif
