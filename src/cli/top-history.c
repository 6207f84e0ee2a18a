/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top-history.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID_MAX_ 64

struct top_past {
        char uuid[UUID_MAX_];
        bool is_seen; /* in this update */
        uint8_t percents[TOP_HISTORY_SAMPLES];
};

static struct top_past *find(const struct top_history *history, const char *uuid)
{
        for (size_t i = 0; i < history->n; i++)
                if (strcmp(history->pasts[i].uuid, uuid) == 0)
                        return &history->pasts[i];
        return NULL;
}

static struct top_past *add(struct top_history *history, const char *uuid)
{
        if (history->n == history->room) {
                size_t room = 2 * history->room + 8;
                struct top_past *pasts =
                        reallocarray(history->pasts, room, sizeof(*history->pasts));

                if (!pasts)
                        return NULL;
                history->pasts = pasts;
                history->room = room;
        }
        memset(&history->pasts[history->n], 0xff, sizeof(*history->pasts)); /* none */
        (void)snprintf(history->pasts[history->n].uuid, UUID_MAX_, "%s", uuid);
        return &history->pasts[history->n++];
}

static bool is_on_gpu(const struct vgpu_usage_instance *instance)
{
        return instance->state != VGPU_INSTANCE_SUSPENDED &&
               instance->state != VGPU_INSTANCE_EVICTED;
}

static void add_sample(struct top_history *history, const struct vgpu_usage_instance *instance)
{
        struct top_past *past = find(history, instance->uuid);
        uint32_t percent = instance->percents->gpu;

        if (!past)
                past = add(history, instance->uuid);
        if (!past)
                return;
        past->is_seen = true;
        if (is_on_gpu(instance))
                past->percents[TOP_HISTORY_SAMPLES - 1] = (uint8_t)(percent < 100 ? percent : 100);
}

/* Those that are gone, and of which nothing is left to be shown. */
static bool is_over(const struct top_past *past)
{
        for (size_t i = 0; i < TOP_HISTORY_SAMPLES; i++)
                if (past->percents[i] != TOP_HISTORY_NONE)
                        return false;
        return !past->is_seen;
}

void top_history_add(struct top_history *history, const struct vgpu_usage_snapshot *snapshot)
{
        for (size_t i = 0; i < history->n; i++) {
                struct top_past *past = &history->pasts[i];

                memmove(past->percents, past->percents + 1, TOP_HISTORY_SAMPLES - 1);
                past->percents[TOP_HISTORY_SAMPLES - 1] = TOP_HISTORY_NONE;
                past->is_seen = false;
        }
        for (size_t i = 0; snapshot && i < snapshot->n_instances; i++)
                add_sample(history, snapshot->instances[i]);
        for (size_t i = history->n; i-- > 0;)
                if (is_over(&history->pasts[i]))
                        history->pasts[i] = history->pasts[--history->n];
}

void top_history_get(const struct top_history *history, const char *uuid, uint8_t *percents)
{
        const struct top_past *past = find(history, uuid);

        if (past)
                memcpy(percents, past->percents, TOP_HISTORY_SAMPLES);
        else
                memset(percents, TOP_HISTORY_NONE, TOP_HISTORY_SAMPLES);
}

void top_history_deinit(struct top_history *history)
{
        free(history->pasts);
        *history = (struct top_history){ 0 };
}
