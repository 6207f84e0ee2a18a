/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/scrape.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "exporter/facts.h"
#include "exporter/sensors.h"
#include "exporter/state.h"

/* Prometheus gives up after 10 seconds. */
#define SENSORS_TIMEOUT_MS 1000

/* What the page shows that changes slowly. */
#define SLOW_MS 1000

/* A new sample of the history is told as long, in case that a reader misses a change. */
#define NEWS_MS 3000

/* What one scrape has been told; all of it may be NULL. */
struct answers {
        struct facts *facts;
        struct vgpu_device_sensors **sensors; /* of @n_sensors devices */
        size_t n_sensors;
        struct xid_count *xids;
        size_t n_xids;
};

struct scrape {
        pthread_mutex_t lock;
        struct metrics_options options;
        struct facts_reader *reader;
        struct sensors *sensors;
        struct xid *xid;
        char hostname[65];
        bool was_told; /* that vgpud says nothing */
        struct history *history;
        struct turns *turns;

        /* Of the page. */
        uint64_t n_states;
        struct state_base *base; /* the last state that was told; NULL: none */
        struct answers slow;     /* what is asked once a second: without facts */
        uint64_t slow_ms;        /* when; 0: never */
};

DEFINE_CLEANUP(struct scrape *, scrape_free);

static void answers_deinit(struct answers *answers)
{
        for (size_t i = 0; answers->sensors && i < answers->n_sensors; i++)
                (void)vgpu_free(answers->sensors[i]);
        free(answers->sensors);
        free(answers->xids);
        (void)facts_free(answers->facts);
        *answers = (struct answers){ 0 };
}

int scrape_new(struct scrape **ret_scrape, const struct metrics_options *options)
{
        CLEANUP(scrape_freep) struct scrape *scrape = calloc(1, sizeof(*scrape));
        int r;

        if (!scrape)
                return -ENOMEM;
        (void)pthread_mutex_init(&scrape->lock, NULL);
        scrape->options = *options;
        (void)gethostname(scrape->hostname, sizeof(scrape->hostname) - 1);
        r = facts_reader_new(&scrape->reader);
        if (r == 0)
                r = history_new(&scrape->history);
        if (r == 0)
                r = turns_new(&scrape->turns);
        if (r == 0)
                r = sensors_new(&scrape->sensors);
        if (r == 0)
                r = xid_new(&scrape->xid);
        if (r < 0)
                return r;
        *ret_scrape = TAKE(scrape);
        return 0;
}

struct scrape *scrape_free(struct scrape *scrape)
{
        if (!scrape)
                return NULL;
        scrape->reader = facts_reader_free(scrape->reader);
        scrape->sensors = sensors_free(scrape->sensors);
        scrape->xid = xid_free(scrape->xid);
        scrape->history = history_free(scrape->history);
        scrape->turns = turns_free(scrape->turns);
        scrape->base = state_base_free(scrape->base);
        answers_deinit(&scrape->slow);
        (void)pthread_mutex_destroy(&scrape->lock);
        free(scrape);
        return NULL;
}

/* Once, until it is back: scrapes come for ever. */
static void tell(struct scrape *scrape, int error)
{
        if (error < 0 && !scrape->was_told)
                fprintf(stderr, "vgpu-exporter: openvgpu_up is 0: %s\n", facts_explain(error));
        else if (error == 0 && scrape->was_told)
                fprintf(stderr, "vgpu-exporter: openvgpu_up is 1: vgpud is back\n");
        scrape->was_told = error < 0;
}

static int read_facts(struct scrape *scrape, bool has_processes, struct facts **ret_facts)
{
        int r = facts_read(scrape->reader, has_processes, ret_facts);

        tell(scrape, r);
        if (r == 0)
                history_add(scrape->history, &(*ret_facts)->snapshot,
                            clock_now(CLOCK_REALTIME) / NS_PER_MS);
        return r;
}

static void ask_sensors(struct scrape *scrape, const struct vgpu_usage_snapshot *snapshot,
                        struct answers *answers)
{
        size_t n = snapshot->n_devices;
        CLEANUP(freep) const char **uuids = calloc(n + 1, sizeof(*uuids));

        answers->sensors = calloc(n + 1, sizeof(struct vgpu_device_sensors *));
        if (!uuids || !answers->sensors)
                return;
        answers->n_sensors = n;
        for (size_t i = 0; i < n; i++)
                uuids[i] = snapshot->devices[i]->uuid;
        (void)sensors_read(scrape->sensors, uuids, n, SENSORS_TIMEOUT_MS, answers->sensors);
}

static const struct vgpu_device_sensors *const *get_sensors(const struct answers *answers)
{
        return (const struct vgpu_device_sensors *const *)answers->sensors;
}

/* With the lock held. */
static void ask(struct scrape *scrape, bool has_processes, struct answers *answers,
                struct metrics_input *input)
{
        uint64_t began_ns = clock_now(CLOCK_MONOTONIC);

        *input = (struct metrics_input){ .hostname = scrape->hostname };
        if (read_facts(scrape, has_processes, &answers->facts) == 0) {
                ask_sensors(scrape, &answers->facts->snapshot, answers);
                (void)xid_read(scrape->xid, &answers->xids, &answers->n_xids);
                input->snapshot = &answers->facts->snapshot;
                input->manager = &answers->facts->manager;
                input->statistics = &answers->facts->statistics;
                input->sensors = get_sensors(answers);
                input->xids = answers->xids;
                input->n_xids = answers->n_xids;
        }
        input->collect_seconds = (double)(clock_now(CLOCK_MONOTONIC) - began_ns) / NS_PER_S;
        input->cpu_seconds = (double)clock_now(CLOCK_PROCESS_CPUTIME_ID) / NS_PER_S;
}

int scrape_take(struct scrape *scrape, bool is_open_metrics, struct text *ret_text)
{
        CLEANUP(answers_deinit) struct answers answers = { 0 };
        CLEANUP(text_deinitp) struct text text = { .is_open_metrics = is_open_metrics };
        struct metrics_input input;
        int r;

        (void)pthread_mutex_lock(&scrape->lock);
        ask(scrape, scrape->options.has_processes, &answers, &input);
        (void)pthread_mutex_unlock(&scrape->lock);
        metrics_write(&text, &input, &scrape->options);
        r = text_end(&text);
        if (r < 0)
                return r;
        *ret_text = text;
        text = (struct text){ 0 };
        return 0;
}

/* The page. */

/* With the lock held. */
static void add_turns(struct scrape *scrape, const struct vgpu_usage_snapshot *snapshot,
                      uint64_t now_ms)
{
        struct vgpu_time_sharing_log **logs =
                calloc(snapshot->n_devices + 1, sizeof(struct vgpu_time_sharing_log *));

        for (size_t i = 0; logs && i < snapshot->n_devices; i++)
                logs[i] =
                        facts_read_turns(scrape->reader, snapshot->devices[i]->index,
                                         turns_get_next(scrape->turns, snapshot->devices[i]->uuid));
        turns_add(scrape->turns, snapshot, logs, now_ms);
        for (size_t i = 0; logs && i < snapshot->n_devices; i++)
                free(logs[i]);
        free(logs);
}

/* With the lock held: what changes slowly is asked once a second, however often the page is told. */
static bool ask_slow(struct scrape *scrape, const struct vgpu_usage_snapshot *snapshot,
                     uint64_t now_ms)
{
        bool is_due = now_ms < scrape->slow_ms || now_ms - scrape->slow_ms >= SLOW_MS;

        if (!is_due && scrape->slow.n_sensors == snapshot->n_devices)
                return false;
        scrape->slow_ms = now_ms;
        answers_deinit(&scrape->slow);
        ask_sensors(scrape, snapshot, &scrape->slow);
        if (!turns_is_due(scrape->turns, now_ms))
                return false;
        add_turns(scrape, snapshot, now_ms);
        return true;
}

/* With the lock held: is there a sample that not all may have? */
static const struct history *find_news(const struct scrape *scrape, uint64_t now_ms)
{
        size_t n = history_count(scrape->history);

        return n > 0 && now_ms - history_get_time(scrape->history, n - 1) < NEWS_MS
                       ? scrape->history
                       : NULL;
}

/* With the lock held. */
static void write_news(struct scrape *scrape, const struct metrics_input *input,
                       const struct state_extras *extras, struct scrape_news *news)
{
        if (scrape->base)
                news->change = state_write_change(scrape->base, input, extras);
        if (news->change)
                return;
        news->state = state_write(input, extras);
        scrape->base = state_base_free(scrape->base);
        scrape->base = state_base_new(input, extras->number);
        if (scrape->base)
                news->change = state_write_change(scrape->base, input, extras);
}

void scrape_take_news(struct scrape *scrape, bool is_first, struct scrape_news *ret_news)
{
        CLEANUP(answers_deinit) struct answers answers = { 0 };
        struct metrics_input input = { .hostname = scrape->hostname };
        struct state_extras extras = { 0 };

        *ret_news = (struct scrape_news){ 0 };
        (void)pthread_mutex_lock(&scrape->lock);
        extras.number = ++scrape->n_states;
        extras.now_ms = clock_now(CLOCK_REALTIME) / NS_PER_MS;
        if (is_first)
                scrape->base = state_base_free(scrape->base);
        if (read_facts(scrape, false, &answers.facts) == 0) {
                if (ask_slow(scrape, &answers.facts->snapshot, extras.now_ms))
                        extras.turns = scrape->turns;
                extras.history = find_news(scrape, extras.now_ms);
                input.snapshot = &answers.facts->snapshot;
                input.manager = &answers.facts->manager;
                input.sensors = get_sensors(&scrape->slow);
        }
        write_news(scrape, &input, &extras, ret_news);
        (void)pthread_mutex_unlock(&scrape->lock);
}

char *scrape_take_past(struct scrape *scrape)
{
        char *past;

        (void)pthread_mutex_lock(&scrape->lock);
        past = state_write_past(scrape->history, scrape->turns,
                                clock_now(CLOCK_REALTIME) / NS_PER_MS);
        (void)pthread_mutex_unlock(&scrape->lock);
        return past;
}
