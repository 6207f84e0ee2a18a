/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_STATE_H
#define EXPORTER_STATE_H

/* What the page shows, as JSON (src/exporter/page.js reads it). */

#include "exporter/history.h"
#include "exporter/metrics.h"

/*
 * state_write() - one line, to be freed by the caller; NULL: no memory
 * @history:  what was before; NULL: the reader has it
 * @number:   a later state has a larger one
 */
char *state_write(const struct metrics_input *input, const struct history *history, uint64_t number,
                  uint64_t now_ms);

#endif
