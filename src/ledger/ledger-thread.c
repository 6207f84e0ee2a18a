/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/ledger-thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/paths.h"
#include "daemon/log.h"

#define RETRY_SECONDS 1
#define PRUNE_SECONDS 3600

/* All usage is looked at then, which may be a gigabyte. */
#define PRUNE_VGPUS_SECONDS 86400

#define MINUTES_A_DAY 1440u

struct question {
        struct list link;
        uint64_t round; /* in which it is answered, see line_up() */
        struct ledger_query query;
        struct ledger_answer answer;
        ledger_answer_fn done;
        void *userdata;
};

struct ledger_thread {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
        sd_event_source *source; /* of the eventfd by which the thread says that it has answers */
        int answered;

        /* With the lock held. */
        struct ledger_batch next;
        bool is_to_be_written, must_end;
        uint64_t cost_ns; /* of writing the last batch: processor time */
        bool is_failing;  /* the last try to write it */
        struct list asked, done;
        uint64_t round; /* of the last question */

        /* The thread's own. */
        struct ledger *ledger;
        struct ledger_batch batch;
        struct ledger_vgpu *vgpus; /* that are there and written: a new ledger needs them too */
        size_t n_vgpus;
        int error; /* of the last try; 0: it is written */
        time_t prune_at, prune_vgpus_at;

        char path[PATHS_MAX], boot_id[64];
        const struct ledger_device *devices;
        size_t n_devices;
        uint32_t keep_days;
};

static const struct {
        int error;
        const char *what, *hint;
} explanations[] = {
        { -EBUSY, "it is locked by another process",
          "find out who has it open (fuser) and end that process" },
        { -ENOSPC, "its disk is full", "make room on it" },
        { -EUCLEAN, "it is damaged", "the damaged one is kept beside the new one" },
        { -EPROTO, "it is the database of another program",
          "move the file away or choose another --state-dir" },
        { -EPROTONOSUPPORT, "it was written by a newer vgpud",
          "install that version again, or move the file away" },
        { -EACCES, "it cannot be opened for writing",
          "make the state directory writable for the user of vgpud" },
        { -ENOMEM, "there is no memory for it", "end something" },
};

const char *ledger_explain(int error, const char **ret_hint)
{
        for (size_t i = 0; i < sizeof(explanations) / sizeof(explanations[0]); i++)
                if (explanations[i].error == error) {
                        *ret_hint = explanations[i].hint;
                        return explanations[i].what;
                }
        *ret_hint = "look at its disk";
        return "writing it failed";
}

static time_t steady_seconds(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec;
}

static uint64_t wall_ms(void)
{
        return clock_now(CLOCK_REALTIME) / 1000000;
}

/* In the thread. */

static void report(struct ledger_thread *thread, int error)
{
        const char *what, *hint;

        if (error == thread->error)
                return;
        if (error == 0)
                log_event(LOG_LEVEL_NOTICE, "the ledger is written again", "path=%s", thread->path);
        else {
                what = ledger_explain(error, &hint);
                log_event(LOG_LEVEL_ERROR,
                          "the ledger cannot be written; usage is kept in memory until it can",
                          "path=%s reason=\"%s\" hint=\"%s\" detail=\"%s\"", thread->path, what,
                          hint, thread->ledger ? ledger_get_error(thread->ledger) : "");
        }
        thread->error = error;
}

static struct ledger_vgpu *find_vgpu(struct ledger_vgpu *vgpus, size_t n, uint64_t serial)
{
        for (size_t i = 0; i < n; i++)
                if (vgpus[i].serial == serial)
                        return &vgpus[i];
        return NULL;
}

static int remember_vgpu(struct ledger_thread *thread, const struct ledger_vgpu *vgpu)
{
        struct ledger_vgpu *vgpus, *known = find_vgpu(thread->vgpus, thread->n_vgpus, vgpu->serial);

        if (known) {
                *known = *vgpu;
                return 0;
        }
        vgpus = reallocarray(thread->vgpus, thread->n_vgpus + 1, sizeof(*vgpus));
        if (!vgpus)
                return -ENOMEM;
        thread->vgpus = vgpus;
        thread->vgpus[thread->n_vgpus++] = *vgpu;
        return 0;
}

static void forget_vgpu(struct ledger_thread *thread, uint64_t serial)
{
        struct ledger_vgpu *known = find_vgpu(thread->vgpus, thread->n_vgpus, serial);

        if (known)
                *known = thread->vgpus[--thread->n_vgpus];
}

/* Those that are gone need no row in a ledger that is begun later. */
static int note_written_vgpus(struct ledger_thread *thread)
{
        const struct ledger_batch *batch = &thread->batch;
        int r = 0;

        for (size_t i = 0; r == 0 && i < batch->n_vgpus; i++)
                if (!batch->vgpus[i].is_gone)
                        r = remember_vgpu(thread, &batch->vgpus[i]);
        for (size_t i = 0; r == 0 && i < batch->n_vgpus; i++)
                if (batch->vgpus[i].is_gone)
                        forget_vgpu(thread, batch->vgpus[i].serial);
        return r;
}

static int open_ledger(struct ledger_thread *thread)
{
        struct ledger_batch *batch = &thread->batch;
        int r = ledger_open(&thread->ledger, thread->path, thread->boot_id, thread->devices,
                            thread->n_devices);

        for (size_t i = 0; r == 0 && i < thread->n_vgpus; i++)
                if (!find_vgpu(batch->vgpus, batch->n_vgpus, thread->vgpus[i].serial))
                        r = ledger_batch_add_vgpu(batch, &thread->vgpus[i]);
        return r;
}

static void set_aside(struct ledger_thread *thread)
{
        char kept[PATHS_MAX] = "";
        int r;

        report(thread, -EUCLEAN);
        thread->ledger = ledger_close(thread->ledger);
        r = ledger_set_aside(thread->path, wall_ms(), kept);
        if (r < 0)
                log_event(LOG_LEVEL_ERROR, "the damaged ledger cannot be renamed",
                          "path=%s error=\"%s\"", thread->path, strerror(-r));
        else
                log_event(LOG_LEVEL_WARNING, "a new ledger is begun; the damaged one is kept",
                          "path=%s kept=%s", thread->path, kept);
}

static int try_to_write(struct ledger_thread *thread)
{
        int r = thread->ledger ? 0 : open_ledger(thread);

        return r < 0 ? r : ledger_write(thread->ledger, &thread->batch);
}

static bool has_batch(const struct ledger_thread *thread)
{
        const struct ledger_batch *batch = &thread->batch;

        return batch->minutes.n > 0 || batch->n_processes > 0 || batch->n_vgpus > 0 ||
               batch->n_clearings > 0;
}

static uint64_t get_processor_time(void)
{
        return clock_now(CLOCK_THREAD_CPUTIME_ID);
}

static void write_batch(struct ledger_thread *thread)
{
        size_t n_vgpus;
        int r = try_to_write(thread);

        if (r == -EUCLEAN) {
                set_aside(thread);
                r = try_to_write(thread);
        }
        report(thread, r);
        if (r < 0)
                return;
        r = note_written_vgpus(thread);
        n_vgpus = r < 0 ? thread->batch.n_vgpus : 0; /* again: that does no harm */
        ledger_batch_clear(&thread->batch);
        thread->batch.n_vgpus = n_vgpus;
}

/* A part at a time; the next part is due at once if there is one. */
static void prune_usage(struct ledger_thread *thread)
{
        uint64_t now = wall_ms() / MS_PER_MINUTE;
        uint64_t kept = (uint64_t)thread->keep_days * MINUTES_A_DAY;
        time_t seconds = steady_seconds();
        int r;

        if (thread->keep_days == 0 || !thread->ledger || seconds < thread->prune_at || now <= kept)
                return;
        r = ledger_prune(thread->ledger, now - kept);
        thread->prune_at = seconds + (r > 0 ? 0 : r < 0 ? RETRY_SECONDS : PRUNE_SECONDS);
}

static void prune(struct ledger_thread *thread)
{
        time_t seconds = steady_seconds();
        int r;

        prune_usage(thread);
        if (!thread->ledger || seconds < thread->prune_vgpus_at)
                return;
        r = ledger_prune_vgpus(thread->ledger, thread->vgpus, thread->n_vgpus);
        thread->prune_vgpus_at = seconds + (r < 0 ? RETRY_SECONDS : PRUNE_VGPUS_SECONDS);
}

static int add_row(const struct ledger_row *row, void *userdata)
{
        struct ledger_answer *answer = userdata;
        struct ledger_row *rows =
                reallocarray(answer->rows, answer->n_rows + 1, sizeof(*answer->rows));

        if (!rows)
                return -ENOMEM;
        answer->rows = rows;
        answer->rows[answer->n_rows++] = *row;
        return 0;
}

static void answer(struct ledger_thread *thread, struct question *question)
{
        int r = thread->ledger ? 0 : open_ledger(thread);

        if (r == 0)
                r = ledger_sum(thread->ledger, &question->query, add_row, &question->answer);
        question->answer.error = r;
}

/* But what came in meanwhile is written first: the next questions are to see it. */
static void answer_all(struct ledger_thread *thread)
{
        while (!list_is_empty(&thread->asked) && !thread->is_to_be_written) {
                struct question *question = list_entry(thread->asked.next, struct question, link);

                list_remove(&question->link);
                thread->round = question->round;
                (void)pthread_mutex_unlock(&thread->lock);
                answer(thread, question);
                (void)pthread_mutex_lock(&thread->lock);
                list_append(&thread->done, &question->link);
                (void)eventfd_write(thread->answered, 1);
        }
}

/* With the lock held: until there is something to do. */
static void wait_for_work(struct ledger_thread *thread)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += RETRY_SECONDS;
        while (!thread->is_to_be_written && !thread->must_end && list_is_empty(&thread->asked)) {
                if (!has_batch(thread))
                        (void)pthread_cond_wait(&thread->wake, &thread->lock);
                else if (pthread_cond_timedwait(&thread->wake, &thread->lock, &until) == ETIMEDOUT)
                        return;
        }
}

static void *run_ledger(void *userdata)
{
        struct ledger_thread *thread = userdata;
        uint64_t cost_ns;
        bool is_last;

        (void)pthread_mutex_lock(&thread->lock);
        do {
                wait_for_work(thread);
                is_last = thread->must_end;
                if (thread->is_to_be_written || is_last)
                        (void)ledger_batch_move(&thread->batch, &thread->next);
                thread->is_to_be_written = false;
                (void)pthread_mutex_unlock(&thread->lock);
                cost_ns = get_processor_time();
                if (has_batch(thread))
                        write_batch(thread);
                cost_ns = get_processor_time() - cost_ns;
                prune(thread);
                (void)pthread_mutex_lock(&thread->lock);
                thread->cost_ns = cost_ns;
                thread->is_failing = thread->error != 0;
                if (!is_last)
                        answer_all(thread);
        } while (!is_last);
        (void)pthread_mutex_unlock(&thread->lock);
        return NULL;
}

/* In the manager's thread. */

static struct question *question_free(struct question *question)
{
        free(question->answer.rows);
        free(question);
        return NULL;
}

static void finish(struct question *question)
{
        list_remove(&question->link);
        question->done(&question->answer, question->userdata);
        (void)question_free(question);
}

static struct question *take_answered(struct ledger_thread *thread, bool *ret_is_last)
{
        struct question *question = NULL;

        (void)pthread_mutex_lock(&thread->lock);
        if (!list_is_empty(&thread->done)) {
                question = list_entry(thread->done.next, struct question, link);
                list_remove(&question->link);
        }
        *ret_is_last = list_is_empty(&thread->done);
        (void)pthread_mutex_unlock(&thread->lock);
        return question;
}

/* One at a time: an answer has up to a thousand rows, and there may be a thousand answers. */
static int on_answered(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct ledger_thread *thread = userdata;
        struct question *question;
        bool is_last;
        eventfd_t n;

        (void)source, (void)events;
        (void)eventfd_read(fd, &n);
        question = take_answered(thread, &is_last);
        if (!is_last)
                (void)eventfd_write(fd, 1);
        if (question)
                finish(question);
        return 0;
}

static int start(struct ledger_thread *thread, sd_event *event)
{
        pthread_condattr_t attributes;
        int r;

        thread->answered = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (thread->answered < 0)
                return -errno;
        r = sd_event_add_io(event, &thread->source, thread->answered, EPOLLIN, on_answered, thread);
        if (r < 0)
                return r;
        (void)pthread_condattr_init(&attributes);
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&thread->wake, &attributes);
        (void)pthread_condattr_destroy(&attributes);
        (void)pthread_mutex_init(&thread->lock, NULL);
        return -pthread_create(&thread->thread, NULL, run_ledger, thread);
}

static void free_all(struct ledger_thread *thread)
{
        sd_event_source_disable_unref(thread->source);
        fd_close(thread->answered);
        (void)ledger_close(thread->ledger);
        ledger_batch_deinit(&thread->next);
        ledger_batch_deinit(&thread->batch);
        free(thread->vgpus);
        free(thread);
}

int ledger_thread_new(struct ledger_thread **ret_thread, sd_event *event, struct ledger *ledger,
                      const struct ledger_thread_options *options)
{
        struct ledger_thread *thread = calloc(1, sizeof(*thread));
        int r;

        if (!thread) {
                (void)ledger_close(ledger);
                return -ENOMEM;
        }
        thread->ledger = ledger;
        thread->answered = -1;
        thread->devices = options->devices;
        thread->n_devices = options->n_devices;
        thread->keep_days = options->keep_days;
        snprintf(thread->path, sizeof(thread->path), "%s", options->path);
        snprintf(thread->boot_id, sizeof(thread->boot_id), "%s", options->boot_id);
        list_init(&thread->asked);
        list_init(&thread->done);
        r = start(thread, event);
        if (r < 0) {
                free_all(thread);
                return r;
        }
        *ret_thread = thread;
        return 0;
}

static void cancel_all(struct list *questions)
{
        struct question *question, *after;

        list_for_each_safe(question, after, questions, link) {
                question->answer.error = -ECANCELED;
                finish(question);
        }
}

struct ledger_thread *ledger_thread_free(struct ledger_thread *thread)
{
        if (!thread)
                return NULL;
        (void)pthread_mutex_lock(&thread->lock);
        thread->must_end = true;
        (void)pthread_cond_signal(&thread->wake);
        (void)pthread_mutex_unlock(&thread->lock);
        (void)pthread_join(thread->thread, NULL);
        if (has_batch(thread))
                log_event(LOG_LEVEL_ERROR, "usage is lost that could not be written to the ledger",
                          "path=%s rows=%zu", thread->path, thread->batch.minutes.n);
        cancel_all(&thread->asked);
        cancel_all(&thread->done);
        (void)pthread_mutex_destroy(&thread->lock);
        (void)pthread_cond_destroy(&thread->wake);
        free_all(thread);
        return NULL;
}

struct ledger_batch *ledger_thread_begin(struct ledger_thread *thread)
{
        (void)pthread_mutex_lock(&thread->lock);
        return &thread->next;
}

uint64_t ledger_thread_get_cost(struct ledger_thread *thread)
{
        uint64_t cost_ns;

        (void)pthread_mutex_lock(&thread->lock);
        cost_ns = thread->cost_ns;
        (void)pthread_mutex_unlock(&thread->lock);
        return cost_ns;
}

bool ledger_thread_is_failing(struct ledger_thread *thread)
{
        bool is_failing;

        (void)pthread_mutex_lock(&thread->lock);
        is_failing = thread->is_failing;
        (void)pthread_mutex_unlock(&thread->lock);
        return is_failing;
}

void ledger_thread_end(struct ledger_thread *thread, bool is_to_be_written)
{
        if (is_to_be_written) {
                thread->is_to_be_written = true;
                (void)pthread_cond_signal(&thread->wake);
        }
        (void)pthread_mutex_unlock(&thread->lock);
}

/*
 * Tenants take turns: a question is answered in the round after that of the tenant's question before it,
 * or in the next one. So who has one to ask waits for one, or two, of each of the others.
 */
static void line_up(struct ledger_thread *thread, struct question *question)
{
        struct question *other;

        question->round = thread->round + 1;
        list_for_each(other, &thread->asked, link)
                if (other->query.tenant == question->query.tenant)
                        question->round = other->round + 1;
        list_for_each(other, &thread->asked, link)
                if (other->round > question->round)
                        break;
        list_append(&other->link, &question->link); /* in front of it */
}

int ledger_thread_ask(struct ledger_thread *thread, const struct ledger_query *query,
                      ledger_answer_fn done, void *userdata)
{
        struct question *question = calloc(1, sizeof(*question));

        if (!question)
                return -ENOMEM;
        question->query = *query;
        question->done = done;
        question->userdata = userdata;
        (void)pthread_mutex_lock(&thread->lock);
        line_up(thread, question);
        thread->is_to_be_written = true; /* what was metered so far is to be in the answer */
        (void)pthread_cond_signal(&thread->wake);
        (void)pthread_mutex_unlock(&thread->lock);
        return 0;
}
