/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "helper/mover-internal.h"

/* Requests. */

int mover_info(struct mover *mover, mover_info_fn done, void *userdata)
{
        struct mover_header message = mover_make_header(MOVER_INFO, 0, 0);

        return mover_request(mover, &message, sizeof(message), NULL, 0,
                             (struct pending){ .info = done, .userdata = userdata });
}

int mover_key(struct mover *mover, int fd, mover_done_fn done, void *userdata)
{
        struct mover_header message = mover_make_header(MOVER_KEY, 0, 0);

        if (fd < 0)
                return -EBADF;
        return mover_request(mover, &message, sizeof(message), &fd, 1,
                             (struct pending){ .done = done, .userdata = userdata });
}

int mover_context(struct mover *mover, mover_done_fn done, void *userdata)
{
        struct mover_header message = mover_make_header(MOVER_CONTEXT, 0, 0);

        return mover_request(mover, &message, sizeof(message), NULL, 0,
                             (struct pending){ .done = done, .userdata = userdata });
}

static int request_slab(struct mover *mover, enum mover_message what, uint32_t slab, uint64_t size,
                        int fd, mover_done_fn done, void *userdata)
{
        struct mover_slab message = { .header = mover_make_header(what, 0, 0),
                                      .slab = slab,
                                      .size = size };

        return mover_request(mover, &message, sizeof(message), &fd, fd >= 0,
                             (struct pending){ .done = done, .userdata = userdata });
}

int mover_slab_add(struct mover *mover, uint32_t slab, int fd, uint64_t size, mover_done_fn done,
                   void *userdata)
{
        if (fd < 0)
                return -EBADF;
        return request_slab(mover, MOVER_SLAB_ADD, slab, size, fd, done, userdata);
}

int mover_slab_zero(struct mover *mover, uint32_t slab, mover_done_fn done, void *userdata)
{
        return request_slab(mover, MOVER_SLAB_ZERO, slab, 0, -1, done, userdata);
}

int mover_slab_remove(struct mover *mover, uint32_t slab, mover_done_fn done, void *userdata)
{
        return request_slab(mover, MOVER_SLAB_REMOVE, slab, 0, -1, done, userdata);
}

int mover_checkpoint(struct mover *mover, pid_t pid, int pidfd, enum mover_checkpoint_action action,
                     const struct mover_checkpoint_options *options, mover_done_fn done,
                     void *userdata)
{
        struct mover_checkpoint message = { .header = mover_make_header(MOVER_CHECKPOINT, 0, 0),
                                            .pid = pid,
                                            .action = action,
                                            .timeout_ms = options->timeout_ms,
                                            .n_pairs = (uint32_t)options->n_pairs,
                                            .bytes = options->bytes,
                                            .call_ms = options->call_ms };
        size_t n = options->n_pairs;

        if (n > MOVER_PAIRS_MAX || (n > 0 && action != MOVER_CHECKPOINT_RESUME))
                return -EINVAL;
        if (n > 0)
                memcpy(message.pair, options->pairs, n * sizeof(message.pair[0]));
        return mover_request(mover, &message, sizeof(message), &pidfd, 1,
                             (struct pending){ .done = done, .userdata = userdata });
}

int mover_hold(struct mover *mover, pid_t pid, uint64_t bytes, mover_done_fn done, void *userdata)
{
        struct mover_hold message = { .header = mover_make_header(MOVER_HOLD, 0, 0),
                                      .pid = pid,
                                      .bytes = bytes };

        return mover_request(mover, &message, sizeof(message), NULL, 0,
                             (struct pending){ .done = done, .userdata = userdata });
}

static int request_lend(struct mover *mover, enum mover_message what, pid_t pid,
                        enum mover_call call, uint64_t bytes, mover_done_fn done, void *userdata)
{
        struct mover_lend message = {
                .header = mover_make_header(what, 0, 0), .pid = pid, .call = call, .bytes = bytes
        };

        return mover_request(mover, &message, sizeof(message), NULL, 0,
                             (struct pending){ .done = done, .userdata = userdata });
}

int mover_lend(struct mover *mover, pid_t pid, enum mover_call call, mover_done_fn done,
               void *userdata)
{
        return request_lend(mover, MOVER_LEND, pid, call, 0, done, userdata);
}

int mover_lend_end(struct mover *mover, pid_t pid, enum mover_call call, uint64_t bytes,
                   mover_done_fn done, void *userdata)
{
        return request_lend(mover, MOVER_LEND_END, pid, call, bytes, done, userdata);
}

/* Jobs. */

struct open_job **mover_find_job(struct mover *mover, uint32_t id)
{
        struct open_job **job = &mover->jobs;

        while (*job && (*job)->id != id)
                job = &(*job)->next;
        return job;
}

static size_t min(size_t a, size_t b)
{
        return a < b ? a : b;
}

static int send_memories(struct mover *mover, enum mover_message what, const struct open_job *job,
                         const uint64_t *sizes, const int *fds)
{
        int r = 0;

        for (size_t first = 0; first < job->n_memories && r == 0; first += MOVER_MEMORY_MAX) {
                size_t count = min(job->n_memories - first, MOVER_MEMORY_MAX);
                struct mover_memory message = { .header = mover_make_header(what, 0, job->id),
                                                .first = (uint32_t)first,
                                                .count = (uint32_t)count };

                memcpy(message.size, sizes + first, count * sizeof(*sizes));
                r = mover_send(mover, &message, sizeof(message), fds + first, count);
        }
        return r;
}

static int send_segments(struct mover *mover, uint32_t id, const struct mover_segment *segments,
                         size_t n)
{
        int r = 0;

        for (size_t first = 0; first < n && r == 0; first += MOVER_SEGMENT_MAX) {
                size_t count = min(n - first, MOVER_SEGMENT_MAX);
                struct mover_segments message = { .header = mover_make_header(MOVER_JOB_SEGMENTS, 0,
                                                                              id),
                                                  .count = (uint32_t)count };

                memcpy(message.segment, segments + first, count * sizeof(*segments));
                r = mover_send(mover, &message, sizeof(message), NULL, 0);
        }
        return r;
}

static int send_hashes(struct mover *mover, const struct open_job *job)
{
        int r = 0;

        for (size_t first = 0; first < job->n_hashes && r == 0; first += MOVER_HASH_MAX) {
                size_t count = min(job->n_hashes - first, MOVER_HASH_MAX);
                struct mover_hashes message = { .header = mover_make_header(MOVER_JOB_HASHES, 0,
                                                                            job->id),
                                                .first = (uint32_t)first,
                                                .count = (uint32_t)count };

                memcpy(message.hash, job->hashes + first, count * sizeof(message.hash[0]));
                r = mover_send(mover, &message, sizeof(message), NULL, 0);
        }
        return r;
}

static bool is_whole(const struct mover_job *job)
{
        bool has_source = job->source_uuid && job->source_sizes && job->source_fds;

        if (job->n_memories > UINT32_MAX || job->n_segments > UINT32_MAX ||
            job->n_hashes > UINT32_MAX || (job->n_hashes > 0 && job->kind != MOVER_OUT) ||
            (job->n_hashes > 0) != (job->hashes != NULL) ||
            (job->passed && job->kind != MOVER_OUT) || (job->is_live && job->rate == 0) ||
            (job->rate > 0 && (job->n_hashes == 0 || job->must_verify || job->passed)))
                return false;
        if (job->kind == MOVER_PEER)
                return has_source && strlen(job->source_uuid) < MOVER_UUID_MAX &&
                       job->n_segments == 0;
        return (job->kind == MOVER_OUT || job->kind == MOVER_IN) && !job->source_uuid &&
               !job->source_fds;
}

static int send_begin(struct mover *mover, const struct open_job *open, const struct mover_job *job)
{
        struct mover_job_begin message = { .header =
                                                   mover_make_header(MOVER_JOB_BEGIN, 0, open->id),
                                           .kind = job->kind,
                                           .n_memories = (uint32_t)job->n_memories,
                                           .n_segments = (uint32_t)job->n_segments,
                                           .n_hashes = (uint32_t)job->n_hashes,
                                           .flags = job->must_verify ? MOVER_JOB_VERIFY
                                                    : job->passed    ? MOVER_JOB_HAND_OVER
                                                    : job->is_live   ? MOVER_JOB_LIVE
                                                    : job->rate > 0  ? MOVER_JOB_REFRESH
                                                                     : 0,
                                           .rate = job->rate };
        int r;

        if (job->source_uuid)
                memcpy(message.source_uuid, job->source_uuid, strlen(job->source_uuid) + 1);
        r = mover_send(mover, &message, sizeof(message), NULL, 0);
        if (r == 0 && job->kind == MOVER_PEER)
                r = send_memories(mover, MOVER_JOB_SOURCE, open, job->source_sizes,
                                  job->source_fds);
        if (r == 0)
                r = send_segments(mover, open->id, job->segments, job->n_segments);
        if (r == 0)
                r = send_hashes(mover, open);
        return r;
}

int mover_job_begin(struct mover *mover, uint32_t *ret_id, const struct mover_job *job)
{
        CLEANUP(freep) struct open_job *open = NULL;
        int r;

        if (!is_whole(job))
                return -EINVAL;

        open = malloc(sizeof(*open));
        if (!open)
                return -ENOMEM;

        *open = (struct open_job){ .next = mover->jobs,
                                   .id = ++mover->last_job,
                                   .kind = job->kind,
                                   .n_memories = job->n_memories,
                                   .hashes = job->hashes,
                                   .n_hashes = job->n_hashes,
                                   .progress = job->progress,
                                   .passed = job->passed,
                                   .userdata = job->userdata };
        r = send_begin(mover, open, job);
        if (r < 0) { /* the mover knows a part of it: without an end it would keep that */
                struct mover_header end =
                        mover_make_header(MOVER_JOB_END, ++mover->last_id, open->id);

                (void)mover_request(mover, &end, sizeof(end), NULL, 0, (struct pending){ 0 });
                return r;
        }

        *ret_id = open->id;
        mover->jobs = TAKE(open);
        return 0;
}

int mover_job_stage(struct mover *mover, uint32_t id, uint64_t limit)
{
        struct mover_stage message = { .header = mover_make_header(MOVER_JOB_STAGE, 0, id),
                                       .limit = limit };

        if (!*mover_find_job(mover, id))
                return mover->socket < 0 ? -ECONNRESET : -EINVAL;
        return mover_send(mover, &message, sizeof(message), NULL, 0);
}

int mover_job_run(struct mover *mover, uint32_t id, const uint64_t *sizes, const int *fds,
                  mover_done_fn done, void *userdata)
{
        struct mover_header message = mover_make_header(MOVER_JOB_RUN, 0, id);
        const struct open_job *job = *mover_find_job(mover, id);
        int r;

        if (!job)
                return mover->socket < 0 ? -ECONNRESET : -EINVAL;
        r = send_memories(mover, MOVER_JOB_MEMORY, job, sizes, fds);
        if (r < 0)
                return r;
        return mover_request(mover, &message, sizeof(message), NULL, 0,
                             (struct pending){ .done = done, .userdata = userdata });
}

int mover_job_stop(struct mover *mover, uint32_t id)
{
        struct mover_header message = mover_make_header(MOVER_JOB_STOP, 0, id);

        if (!*mover_find_job(mover, id))
                return mover->socket < 0 ? -ECONNRESET : -EINVAL;
        return mover_send(mover, &message, sizeof(message), NULL, 0);
}

int mover_job_end(struct mover *mover, uint32_t id, mover_done_fn done, void *userdata)
{
        struct mover_header message = mover_make_header(MOVER_JOB_END, 0, id);
        struct open_job **place = mover_find_job(mover, id);
        struct open_job *job = *place;

        if (!job)
                return mover->socket < 0 ? -ECONNRESET : -EINVAL;
        *place = job->next;
        free(job);
        return mover_request(mover, &message, sizeof(message), NULL, 0,
                             (struct pending){ .done = done, .userdata = userdata });
}
