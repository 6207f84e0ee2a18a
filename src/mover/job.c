/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/packet.h"
#include "mover/driver.h"

DEFINE_CLEANUP(struct job *, job_unref);

static bool is_one_flag(uint32_t flags)
{
        return flags < 2 * MOVER_JOB_LIVE && (flags & (flags - 1)) == 0;
}

static bool is_sane(const struct mover_job_begin *begin)
{
        return begin->kind >= MOVER_OUT && begin->kind <= MOVER_PEER &&
               begin->n_memories <= JOB_MEMORIES_MAX && begin->n_segments <= JOB_SEGMENTS_MAX &&
               begin->n_hashes <= JOB_HASHES_MAX &&
               (begin->kind == MOVER_OUT || begin->n_hashes == 0) &&
               (begin->kind != MOVER_PEER || begin->n_segments == 0) &&
               (begin->flags == 0 || begin->kind == MOVER_OUT) && is_one_flag(begin->flags) &&
               (begin->flags == MOVER_JOB_REFRESH || begin->flags == MOVER_JOB_LIVE) ==
                       (begin->rate > 0) &&
               (begin->rate == 0 || begin->n_hashes > 0) &&
               memchr(begin->source_uuid, '\0', sizeof(begin->source_uuid));
}

/* One entry more than needed: a job without any is valid, and calloc(0) may be NULL. */
static int memories_init(struct job_memories *memories, size_t n)
{
        memories->sizes = calloc(n + 1, sizeof(*memories->sizes));
        memories->fds = calloc(n + 1, sizeof(*memories->fds));
        return memories->sizes && memories->fds ? 0 : -ENOMEM;
}

static void memories_deinit(struct job_memories *memories)
{
        packet_close_fds(memories->fds, memories->n);
        free(memories->sizes);
        free(memories->fds);
}

int job_new(struct job **ret_job, const struct mover_job_begin *begin, struct slabs *slabs)
{
        CLEANUP(job_unrefp) struct job *job = NULL;
        int r;

        if (!is_sane(begin))
                return -EPROTO;

        job = calloc(1, sizeof(*job));
        if (!job)
                return -ENOMEM;

        pthread_mutex_init(&job->lock, NULL);
        pthread_cond_init(&job->changed, NULL);
        job->n_refs = 1;
        job->id = begin->header.job;
        job->kind = begin->kind;
        job->slabs = slabs;
        job->n_memories = begin->n_memories;
        job->n_segments_max = begin->n_segments;
        job->n_hashes_max = begin->n_hashes;
        job->must_verify = begin->flags & MOVER_JOB_VERIFY;
        job->hands_over = begin->flags & MOVER_JOB_HAND_OVER;
        job->is_live = begin->flags & MOVER_JOB_LIVE;
        job->rate = begin->rate;
        memcpy(job->source_uuid, begin->source_uuid, sizeof(job->source_uuid));

        job->segments = calloc(begin->n_segments + 1, sizeof(*job->segments));
        job->hashes = calloc(begin->n_hashes + 1, sizeof(*job->hashes));
        r = memories_init(&job->source, begin->n_memories);
        if (r == 0)
                r = memories_init(&job->target, begin->n_memories);
        if (r < 0 || !job->segments || !job->hashes)
                return -ENOMEM;

        *ret_job = TAKE(job);
        return 0;
}

static void job_free(struct job *job)
{
        job_release(job);
        memories_deinit(&job->source);
        memories_deinit(&job->target);
        pthread_mutex_destroy(&job->lock);
        pthread_cond_destroy(&job->changed);
        free(job->segments);
        free(job->hashes);
        free(job);
}

struct job *job_ref(struct job *job)
{
        pthread_mutex_lock(&job->lock);
        job->n_refs++;
        pthread_mutex_unlock(&job->lock);
        return job;
}

struct job *job_unref(struct job *job)
{
        bool is_last;

        if (!job)
                return NULL;

        pthread_mutex_lock(&job->lock);
        is_last = --job->n_refs == 0;
        pthread_mutex_unlock(&job->lock);
        if (is_last)
                job_free(job);
        return NULL;
}

/* The messages. */

static int add_memories(struct job *job, struct job_memories *memories,
                        const struct mover_memory *memory, int *fds, size_t n_fds)
{
        size_t n = memory->count;

        if (n > MOVER_MEMORY_MAX || n > job->n_memories - memories->n ||
            memory->first != memories->n || n_fds != n)
                return -EPROTO;

        for (size_t i = 0; i < n; i++) {
                memories->sizes[memories->n] = memory->size[i];
                memories->fds[memories->n++] = TAKE_FD(fds[i]);
        }
        return 0;
}

int job_add_source(struct job *job, const struct mover_memory *memory, int *fds, size_t n_fds)
{
        if (job->kind != MOVER_PEER)
                return -EPROTO;
        return add_memories(job, &job->source, memory, fds, n_fds);
}

int job_add_memory(struct job *job, const struct mover_memory *memory, int *fds, size_t n_fds)
{
        return add_memories(job, &job->target, memory, fds, n_fds);
}

int job_add_segments(struct job *job, const struct mover_segments *segments)
{
        size_t n = segments->count;

        if (n > MOVER_SEGMENT_MAX || n > job->n_segments_max - job->n_segments)
                return -EPROTO;

        memcpy(job->segments + job->n_segments, segments->segment,
               n * sizeof(segments->segment[0]));
        job->n_segments += n;
        return 0;
}

int job_add_hashes(struct job *job, const struct mover_hashes *hashes)
{
        size_t n = hashes->count;

        if (n > MOVER_HASH_MAX || hashes->first != job->n_hashes ||
            n > job->n_hashes_max - job->n_hashes)
                return -EPROTO;
        memcpy(job->hashes + job->n_hashes, hashes->hash, n * sizeof(hashes->hash[0]));
        job->n_hashes += n;
        return 0;
}

bool job_is_complete(const struct job *job, const struct job_memories *memories)
{
        return memories->n == job->n_memories && job->n_segments == job->n_segments_max &&
               job->n_hashes == job->n_hashes_max;
}

/* The thread that works on it. */

bool job_enter(struct job *job, enum job_phase *phase)
{
        bool may;

        pthread_mutex_lock(&job->lock);
        may = *phase == JOB_QUEUED && !job->is_cancelled;
        *phase = may ? JOB_RUNNING : JOB_FINISHED;
        pthread_mutex_unlock(&job->lock);
        return may;
}

void job_leave(struct job *job, enum job_phase *phase)
{
        pthread_mutex_lock(&job->lock);
        *phase = JOB_FINISHED;
        pthread_cond_broadcast(&job->changed);
        pthread_mutex_unlock(&job->lock);
}

void job_stop_staging(struct job *job)
{
        pthread_mutex_lock(&job->lock);
        job->stop_staging = true;
        if (job->stage == JOB_QUEUED)
                job->stage = JOB_FINISHED;
        slabs_wake(job->slabs);
        while (job->stage == JOB_RUNNING)
                pthread_cond_wait(&job->changed, &job->lock);
        pthread_mutex_unlock(&job->lock);
}

void job_stop(struct job *job)
{
        pthread_mutex_lock(&job->lock);
        job->must_stop = true;
        pthread_cond_broadcast(&job->changed);
        pthread_mutex_unlock(&job->lock);
}

void job_rest(struct job *job, uint64_t until_ns)
{
        const struct timespec until = clock_timespec(until_ns);
        int r = 0;

        pthread_mutex_lock(&job->lock);
        while (!job->must_stop && r == 0)
                r = pthread_cond_clockwait(&job->changed, &job->lock, CLOCK_MONOTONIC, &until);
        pthread_mutex_unlock(&job->lock);
}

void job_end(struct job *job)
{
        pthread_mutex_lock(&job->lock);
        job->is_cancelled = job->must_stop = job->stop_staging = true;
        pthread_cond_broadcast(&job->changed);
        slabs_wake(job->slabs);
        while (job->stage == JOB_RUNNING || job->run == JOB_RUNNING)
                pthread_cond_wait(&job->changed, &job->lock);
        pthread_mutex_unlock(&job->lock);
        job_release(job);
}

void job_release(struct job *job)
{
        mapping_deinit(&job->staging);
        mapping_deinit(&job->target_mapping);
        mapping_deinit(&job->source_mapping);
        if (job->source_context)
                driver.cuDevicePrimaryCtxRelease_v2(job->source_device);
        job->source_context = NULL;
        while (job->n_held > 0)
                slab_release(job->slabs, job->segments[--job->n_held].slab);
        free(TAKE(job->pieces));
        job->n_pieces = 0;
}
