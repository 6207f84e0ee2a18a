/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/history.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define INTERVAL_MS 900
#define UUID_MAX    48

struct track {
        char uuid[UUID_MAX];
        uint8_t percents[HISTORY_SAMPLES];
};

struct history {
        size_t n, next; /* samples; the slot of the next one */
        uint64_t times_ms[HISTORY_SAMPLES];
        struct track *tracks;
        size_t n_tracks, room;
};

int history_new(struct history **ret_history)
{
        *ret_history = calloc(1, sizeof(**ret_history));
        return *ret_history ? 0 : -ENOMEM;
}

struct history *history_free(struct history *history)
{
        if (history)
                free(history->tracks);
        free(history);
        return NULL;
}

/* @hint: where it was before, as vgpud tells them in one order. */
static struct track *find(const struct history *history, const char *uuid, size_t hint)
{
        for (size_t i = 0; i < history->n_tracks; i++) {
                struct track *track = &history->tracks[(hint + i) % history->n_tracks];

                if (strcmp(track->uuid, uuid) == 0)
                        return track;
        }
        return NULL;
}

static struct track *add_track(struct history *history, const char *uuid)
{
        struct track *tracks = history->tracks, *track;

        if (strlen(uuid) >= UUID_MAX)
                return NULL;
        if (history->n_tracks == history->room) {
                size_t room = history->room ? 2 * history->room : 16;

                tracks = reallocarray(history->tracks, room, sizeof(*tracks));
                if (!tracks)
                        return NULL;
                history->tracks = tracks;
                history->room = room;
        }
        track = &tracks[history->n_tracks++];
        memset(track->percents, HISTORY_NONE, sizeof(track->percents));
        strcpy(track->uuid, uuid);
        return track;
}

static bool is_empty(const struct track *track)
{
        for (size_t i = 0; i < HISTORY_SAMPLES; i++)
                if (track->percents[i] != HISTORY_NONE)
                        return false;
        return true;
}

/* vGPUs of which no sample is left. */
static void drop_empty(struct history *history)
{
        size_t n = 0;

        for (size_t i = 0; i < history->n_tracks; i++)
                if (!is_empty(&history->tracks[i]))
                        history->tracks[n++] = history->tracks[i];
        history->n_tracks = n;
}

void history_add(struct history *history, const struct vgpu_usage_snapshot *snapshot,
                 uint64_t now_ms)
{
        size_t last = (history->next + HISTORY_SAMPLES - 1) % HISTORY_SAMPLES;

        if (history->n > 0 && now_ms - history->times_ms[last] < INTERVAL_MS)
                return;
        for (size_t i = 0; i < history->n_tracks; i++)
                history->tracks[i].percents[history->next] = HISTORY_NONE;
        for (size_t i = 0; i < snapshot->n_instances; i++) {
                const struct vgpu_usage_instance *instance = snapshot->instances[i];
                struct track *track = find(history, instance->uuid, i);
                uint32_t percent = instance->percents->gpu;

                if (!track)
                        track = add_track(history, instance->uuid);
                if (track)
                        track->percents[history->next] = (uint8_t)(percent < 100 ? percent : 100);
        }
        history->times_ms[history->next] = now_ms;
        history->next = (history->next + 1) % HISTORY_SAMPLES;
        history->n += history->n < HISTORY_SAMPLES;
        drop_empty(history);
}

static size_t get_slot(const struct history *history, size_t i)
{
        return (history->next + HISTORY_SAMPLES - history->n + i) % HISTORY_SAMPLES;
}

size_t history_count(const struct history *history)
{
        return history->n;
}

uint64_t history_get_time(const struct history *history, size_t i)
{
        return history->times_ms[get_slot(history, i)];
}

void history_get_percents(const struct history *history, const char *uuid, uint8_t *percents)
{
        const struct track *track = find(history, uuid, 0);

        for (size_t i = 0; i < history->n; i++)
                percents[i] = track ? track->percents[get_slot(history, i)] : HISTORY_NONE;
}
