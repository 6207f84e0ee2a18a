/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_SCRAPE_H
#define EXPORTER_SCRAPE_H

/*
 * A scrape: read what vgpud says on the state page, ask the devices, and write it. vgpud has no work with it;
 * the devices are not asked while nobody scrapes.
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
 * That vgpud does not run is no error: openvgpu_up says so, and whoever scrapes next asks again.
 */
int scrape_take(struct scrape *scrape, bool is_open_metrics, struct text *ret_text);

/* What the page shows (state.h); to be freed by the caller. */
struct scrape_news {
        char *state;  /* NULL: the one before holds, with the change */
        char *change; /* NULL: there is nothing to add, or no memory */
};

/*
 * scrape_take_news() - as of now
 * @is_first:  there was nothing before, so that there is a state
 */
void scrape_take_news(struct scrape *scrape, bool is_first, struct scrape_news *ret_news);

/* scrape_take_past() - what was before, as far as it is known. NULL: no memory */
char *scrape_take_past(struct scrape *scrape);

#endif
