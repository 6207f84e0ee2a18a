/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

/* The terminal of vgpu top. */

#include <stdbool.h>

#include "cli/top-graph.h"
#include "cli/top-view.h"

/* top_screen_open() - Errors: -ENOTTY, the terminal cannot do what is needed. */
int top_screen_open(void);
void top_screen_close(void);

/* top_screen_get_width() - columns that a line may have. */
size_t top_screen_get_width(void);

struct top_screen {
        const struct top_view *view; /* NULL: nothing is known yet */
        enum top_order order;
        size_t chosen; /* line */
        size_t *first; /* line at the top, kept so that the chosen one is seen */
        bool is_old;   /* no manager answers: what is shown was */
        bool shows_help;
        const struct top_graph *graph; /* of the chosen vGPU, instead of the lines; or NULL */
        const char *status;            /* for the last row; "": what the keys are */
};

void top_screen_draw(const struct top_screen *screen);

enum top_key {
        TOP_KEY_NONE, /* no further one is there */
        TOP_KEY_OTHER,
        TOP_KEY_UP,
        TOP_KEY_DOWN,
        TOP_KEY_PAGE_UP,
        TOP_KEY_PAGE_DOWN,
        TOP_KEY_RESIZED,
        TOP_KEY_LETTER, /* and those behind it: TOP_KEY_LETTER + the letter */
};

/* top_screen_read() - the next key that was pressed; does not wait. */
int top_screen_read(void);

/* top_screen_page() - how many lines are seen. */
size_t top_screen_page(const struct top_view *view);

#endif
