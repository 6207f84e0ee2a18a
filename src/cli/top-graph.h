/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_GRAPH_H
#define CLI_TOP_GRAPH_H

/*
 * The graph of vgpu top: what a vGPU received of its GPU's time in the last minutes, as lines of text.
 *
 *     100% |
 *          |          :#####
 *      50% |-  ------.######---
 *          |         #######
 *       0% |___      #######___
 *           5 min ago         now
 *
 * '-' is what it is entitled to; where nothing is, it was on no GPU. Where its GPU takes turns, two lines below have
 * the latest ones as a strip: '#' is the vGPU's, 'o' another one's.
 */

#include <stddef.h>
#include <stdint.h>

#include <openvgpu/time-sharing.h>

#include "cli/top-history.h"
#include "cli/top-layout.h"

struct top_graph {
        const uint8_t *percents;                   /* TOP_HISTORY_SAMPLES, the oldest first */
        double entitled;                           /* percent */
        double delay;                              /* seconds between two samples */
        const struct vgpu_time_sharing_log *turns; /* of its GPU, the latest ones; NULL: none */
        uint32_t id;                               /* of the vGPU */
};

/* top_graph_make() - @n lines of at most @width columns. */
void top_graph_make(const struct top_graph *graph, char (*lines)[TOP_TEXT_MAX], size_t n,
                    size_t width);

#endif
