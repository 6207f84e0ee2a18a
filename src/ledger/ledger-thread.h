/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LEDGER_LEDGER_THREAD_H
#define LEDGER_LEDGER_THREAD_H

/*
 * The thread that owns the ledger. A disk that is slow, full or gone, or a query about a year, must
 * not keep the manager's thread from its guests.
 *
 * New entries are gathered in a batch, which the thread takes as a whole. A batch that cannot be
 * written stays in memory and is tried again each second, with the entries that have come since. A
 * damaged ledger is renamed, not changed, and a new one is begun. The log says once when writing
 * fails, why, and what to do, and says when it works again.
 */

#include <systemd/sd-event.h>

#include "ledger/ledger.h"

struct ledger_thread;

struct ledger_thread_options {
        const char *path, *boot_id;          /* copied */
        const struct ledger_device *devices; /* borrowed */
        size_t n_devices;
        uint32_t keep_days; /* 0: for ever */
};

/* ledger_thread_new() - start the thread. It takes over @ledger, or opens the ledger itself if that is NULL. */
int ledger_thread_new(struct ledger_thread **ret_thread, sd_event *event, struct ledger *ledger,
                      const struct ledger_thread_options *options);

/* ledger_thread_free() - try once more to write all entries, and end the thread. Returns NULL. */
struct ledger_thread *ledger_thread_free(struct ledger_thread *thread);

/* ledger_thread_begin() - get the batch to add to. The thread does not see it until ledger_thread_end(). */
struct ledger_batch *ledger_thread_begin(struct ledger_thread *thread);
void ledger_thread_end(struct ledger_thread *thread, bool is_to_be_written);

/* ledger_thread_get_cost() - get the processor time of the last write, in nanoseconds. */
uint64_t ledger_thread_get_cost(struct ledger_thread *thread);

/* ledger_thread_is_failing() - did the last write fail? The batch is kept, and tried again. */
bool ledger_thread_is_failing(struct ledger_thread *thread);

struct ledger_answer {
        int error;
        struct ledger_row *rows;
        size_t n_rows;
};

/* Gets the answer, which is valid until the function returns. */
typedef void (*ledger_answer_fn)(const struct ledger_answer *answer, void *userdata);

/*
 * ledger_thread_ask() - sum up usage, including all entries that were handed over before
 * @done:  the event loop calls it once, also with an error; ledger_thread_free() calls it with
 *         -ECANCELED if there is no answer yet
 */
int ledger_thread_ask(struct ledger_thread *thread, const struct ledger_query *query,
                      ledger_answer_fn done, void *userdata);

/* ledger_explain() - say what an error of the ledger means, and what to do. */
const char *ledger_explain(int error, const char **ret_hint);

#endif
