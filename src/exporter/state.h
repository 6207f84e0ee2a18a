/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_STATE_H
#define EXPORTER_STATE_H

/* What the page shows, as JSON (src/exporter/page.js reads it). */

#include "exporter/history.h"
#include "exporter/metrics.h"
#include "exporter/turns.h"

struct state_extras {
        const struct history *history; /* what was before; NULL: the reader has it */
        const struct turns *turns;     /* NULL: none */
        uint64_t number;               /* a later state has a larger one */
        uint64_t now_ms;
};

/* state_write() - one line, to be freed by the caller; NULL: no memory */
char *state_write(const struct metrics_input *input, const struct state_extras *extras);

#endif
