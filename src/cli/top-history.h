/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TOP_HISTORY_H
#define CLI_TOP_HISTORY_H

/* What each vGPU received of its GPU's time while vgpu top ran: a sample of each update, the latest ones. */

#include <openvgpu/usage.h>

#define TOP_HISTORY_SAMPLES 300

/* Instead of a percentage: the vGPU was not there, or not on a GPU, or nobody answered. */
#define TOP_HISTORY_NONE UINT8_MAX

/* Zeroed, it is empty. */
struct top_history {
        size_t n, room;
        struct top_past *pasts;
};

/* top_history_add() - one update; @snapshot NULL: there was no answer. Without memory, nothing is kept of some. */
void top_history_add(struct top_history *history, const struct vgpu_usage_snapshot *snapshot);

/* top_history_get() - of a vGPU, the oldest first: fills @percents, TOP_HISTORY_SAMPLES of them. */
void top_history_get(const struct top_history *history, const char *uuid, uint8_t *percents);

void top_history_deinit(struct top_history *history);

#endif
