/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_HISTORY_H
#define EXPORTER_HISTORY_H

/*
 * History: how much of its GPU each vGPU got in the last hour, as far as somebody looked: a sample is taken when
 * vgpud is asked anyway, and at most one in a quarter of a minute. It is in memory only.
 *
 * A sample is the mean since the sample before, by how long the vGPU has used its GPU in all: however seldom somebody
 * looks, nothing is missed between two looks.
 */

#include <openvgpu/usage.h>

/* An hour, where somebody looks all the time. */
#define HISTORY_SAMPLES     260
#define HISTORY_INTERVAL_MS 14000
#define HISTORY_MS          3600000

/* What a vGPU has where it was not there. */
#define HISTORY_NONE UINT8_MAX

struct history;

int history_new(struct history **ret_history);
struct history *history_free(struct history *history);

/* history_add() - a sample of all vGPUs at @now_ms, unless the last one is too young. */
void history_add(struct history *history, const struct vgpu_usage_snapshot *snapshot,
                 uint64_t now_ms);

/* history_count() - how many samples there are. history_get_time() - of the @i-th, the oldest first. */
size_t history_count(const struct history *history);
uint64_t history_get_time(const struct history *history, size_t i);

/* history_get_uuid() - of the @i-th vGPU of which there is a sample; NULL: there are no more. Borrowed. */
const char *history_get_uuid(const struct history *history, size_t i);

/* history_get_percents() - of the @i-th vGPU: fills @percents, one for each sample. */
void history_get_percents(const struct history *history, size_t i, uint8_t *percents);

#endif
