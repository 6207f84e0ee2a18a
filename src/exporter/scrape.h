/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_SCRAPE_H
#define EXPORTER_SCRAPE_H

/*
 * A scrape: ask vgpud and the devices, and write what they say. Nothing is asked while nobody scrapes.
 *
 * Threads:  any; one asks at a time and the others wait.
 */

#include "exporter/metrics.h"

struct scrape;

/* scrape_new() - opens nothing yet; @options are copied. */
int scrape_new(struct scrape **ret_scrape, const struct metrics_options *options);
struct scrape *scrape_free(struct scrape *scrape);

/*
 * scrape_take() - the metrics of now
 * @ret_text:  the caller frees the bytes with text_deinit()
 *
 * That vgpud does not answer is no error: openvgpu_up says so, and whoever scrapes next asks again.
 */
int scrape_take(struct scrape *scrape, bool is_open_metrics, struct text *ret_text);

/*
 * scrape_take_state() - what the page shows, now: to be freed by the caller; NULL: no memory
 * @has_history:  with the last minutes
 */
char *scrape_take_state(struct scrape *scrape, bool has_history);

#endif
