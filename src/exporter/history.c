/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/history.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define UUID_MAX 48

/* Of UUIDs: they are written as they are. */
#define UUID_LETTERS "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-"

struct track {
        char uuid[UUID_MAX];
        double gpu_seconds; /* that it had used at its last sample, */
        uint64_t seen_ms;   /* which was then */
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

static size_t get_slot(const struct history *history, size_t i)
{
        return (history->next + HISTORY_SAMPLES - history->n + i) % HISTORY_SAMPLES;
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

        if (strlen(uuid) >= UUID_MAX || uuid[strspn(uuid, UUID_LETTERS)])
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
        track->gpu_seconds = -1;
        strcpy(track->uuid, uuid);
        return track;
}

/* vGPUs of which no sample is left. */
static void drop_empty(struct history *history)
{
        size_t n = 0;

        for (size_t i = 0; i < history->n_tracks; i++)
                if (history->tracks[i].seen_ms >= history_get_time(history, 0))
                        history->tracks[n++] = history->tracks[i];
        history->n_tracks = n;
}

/* Of an hour ago. */
static void drop_old(struct history *history, uint64_t now_ms)
{
        while (history->n > 0 && now_ms - history_get_time(history, 0) > HISTORY_MS)
                history->n--;
}

/* The mean since the last sample; of a vGPU that is new, or of a vgpud that is, what it gets now. */
static uint8_t measure(const struct track *track, const struct vgpu_usage_instance *instance,
                       uint64_t since_ms)
{
        double used = instance->gpu_seconds_total - track->gpu_seconds, percent;

        if (track->gpu_seconds < 0 || used < 0 || since_ms == 0)
                percent = instance->percents->gpu;
        else
                percent = 100 * used * MS_PER_S / (double)since_ms;
        return (uint8_t)(percent < 100 ? percent + 0.5 : 100);
}

void history_add(struct history *history, const struct vgpu_usage_snapshot *snapshot,
                 uint64_t now_ms)
{
        size_t last = (history->next + HISTORY_SAMPLES - 1) % HISTORY_SAMPLES;
        uint64_t since_ms;

        if (history->n > 0 && now_ms < history->times_ms[last])
                history->n = 0; /* somebody has set the clock */
        since_ms = history->n > 0 ? now_ms - history->times_ms[last] : 0;
        if (history->n > 0 && since_ms < HISTORY_INTERVAL_MS)
                return;
        for (size_t i = 0; i < history->n_tracks; i++)
                history->tracks[i].percents[history->next] = HISTORY_NONE;
        for (size_t i = 0; i < snapshot->n_instances; i++) {
                const struct vgpu_usage_instance *instance = snapshot->instances[i];
                struct track *track = find(history, instance->uuid, i);

                if (!track)
                        track = add_track(history, instance->uuid);
                if (!track)
                        continue;
                track->percents[history->next] = measure(track, instance, since_ms);
                track->gpu_seconds = instance->gpu_seconds_total;
                track->seen_ms = now_ms;
        }
        history->times_ms[history->next] = now_ms;
        history->next = (history->next + 1) % HISTORY_SAMPLES;
        history->n += history->n < HISTORY_SAMPLES;
        drop_old(history, now_ms);
        drop_empty(history);
}

size_t history_count(const struct history *history)
{
        return history->n;
}

uint64_t history_get_time(const struct history *history, size_t i)
{
        return history->times_ms[get_slot(history, i)];
}

void history_get_percents(const struct history *history, size_t i, uint8_t *percents)
{
        for (size_t k = 0; k < history->n; k++)
                percents[k] = history->tracks[i].percents[get_slot(history, k)];
}

const char *history_get_uuid(const struct history *history, size_t i)
{
        return i < history->n_tracks ? history->tracks[i].uuid : NULL;
}
