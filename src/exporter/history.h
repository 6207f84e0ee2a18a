/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_HISTORY_H
#define EXPORTER_HISTORY_H

/*
 * History: how much of its GPU each vGPU got in the last minutes, as far as somebody looked: a sample is
 * taken when vgpud is asked anyway, at most one a second. It is in memory only.
 */

#include <openvgpu/usage.h>

#define HISTORY_SAMPLES 120

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

/* history_get_percents() - of a vGPU: fills @percents, one for each sample. */
void history_get_percents(const struct history *history, const char *uuid, uint8_t *percents);

#endif
