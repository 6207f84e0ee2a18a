/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a job have an order, that of its pieces. Staging copies them from
 * the first on, one after another, into one memory. The run then copies what is
 * staged within the device, and the rest from where it is.
 *
 * The memories of a job lie in one range of addresses, so neighbours are joined
 * into one copy, whatever the number of allocations that they came from.
 */

#include "mover/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/size.h"
#include "mover/answer.h"
#include "mover/copy.h"
#include "mover/difference.h"
#include "mover/driver.h"
#include "mover/trickle.h"

/* Often enough for a person's eyes. */
#define PROGRESS_INTERVAL_NS 20000000u

/* The driver's granularity of memory, on all devices that we know. */
#define STAGING_ALIGN (2 * MIB)

struct transfer {
        struct job *job;
        struct device *device;
        const struct mover_header *request;
        struct mover_done *done;
        uint64_t n_before;       /* bytes that were copied before: staged */
        uint64_t n_unchanged;    /* bytes that the slabs had */
        uint64_t *offsets;       /* of the memories in the target's range */
        struct copy_part *parts; /* what copy_run() does */
        size_t n_parts, n_parts_max;
        struct difference difference; /* OUT */
        struct {                      /* what HAND_OVER has done so far */
                size_t part;          /* the first of @parts that is not copied */
                uint64_t before;      /* bytes of those before it */
                size_t memory;        /* the first memory that is not in the slabs */
                uint64_t end;         /* where it begins, in the target's range */
                bool is_off;
        } passed;
};

static void transfer_deinit(struct transfer *transfer)
{
        free(transfer->offsets);
        free(transfer->parts);
}

/* Where the bytes are outside of the target: the job's pieces. */

static int add_segment(struct job *job, const struct mover_segment *segment)
{
        struct job_piece *piece = &job->pieces[job->n_pieces];
        int r;

        if (segment->memory >= job->n_memories || segment->length == 0 ||
            __builtin_add_overflow(job->n_bytes, segment->length, &job->n_bytes))
                return -EINVAL;

        r = slab_hold(job->slabs, segment->slab, segment->slab_offset, segment->length,
                      &piece->host);
        if (r < 0)
                return r == -ERANGE ? -EINVAL : r;
        job->n_held++;
        job->n_pieces++;
        piece->slab = segment->slab;
        piece->memory = segment->memory;
        piece->memory_offset = segment->memory_offset;
        piece->length = segment->length;
        return 0;
}

static int find_segments(struct transfer *transfer)
{
        struct job *job = transfer->job;
        int r = 0;

        job->pieces = calloc(job->n_segments + 1, sizeof(*job->pieces));
        if (!job->pieces)
                return -ENOMEM;
        for (size_t i = 0; i < job->n_segments && r == 0; i++)
                r = add_segment(job, &job->segments[i]);
        return r;
}

/* Else the driver copies by way of the host, between contexts: there must be one on each device. */
static int find_access(struct transfer *transfer, CUdevice source, bool *ret_has_access)
{
        struct job *job = transfer->job;
        int can = 1, r = 0;

        if (source != transfer->device->id)
                r = DRIVER_CALL(transfer->done, cuDeviceCanAccessPeer, &can, transfer->device->id,
                                source);
        if (r == 0 && !can && !job->source_context)
                r = DRIVER_CALL(transfer->done, cuDevicePrimaryCtxRetain, &job->source_context,
                                source);
        job->source_device = source;
        *ret_has_access = can;
        return r;
}

/*
 * Access for both devices, where there is any: that is what makes the driver copy directly; peer
 * contexts need not be.
 */
static int import_source(struct transfer *transfer)
{
        struct job *job = transfer->job;
        CUdevice source, ids[2];
        bool has_access = false;
        int r;

        r = device_find(&source, job->source_uuid, transfer->done);
        if (r == 0)
                r = find_access(transfer, source, &has_access);
        if (r == 0)
                r = mapping_import(&job->source_mapping, job->source.sizes, job->source.fds,
                                   job->source.n, transfer->done);
        ids[0] = source;
        ids[1] = transfer->device->id;
        if (r == 0)
                r = mapping_map(&job->source_mapping, job->source.sizes, ids,
                                has_access && ids[0] != ids[1] ? 2 : 1, transfer->done);
        return r;
}

static int find_source(struct transfer *transfer)
{
        struct job *job = transfer->job;
        CUdeviceptr source;
        int r;

        r = import_source(transfer);
        if (r < 0)
                return r;

        job->pieces = calloc(job->source.n + 1, sizeof(*job->pieces));
        if (!job->pieces)
                return -ENOMEM;
        source = job->source_mapping.base;
        for (size_t i = 0; i < job->source.n; i++) {
                job->pieces[i] = (struct job_piece){ .memory = (uint32_t)i,
                                                     .length = job->source.sizes[i],
                                                     .source = source };
                source += job->source.sizes[i];
        }
        job->n_pieces = job->source.n;
        job->n_bytes = job->source_mapping.size;
        return 0;
}

/* Once a job: by staging, or else by the run. */
static int find_pieces(struct transfer *transfer)
{
        struct job *job = transfer->job;

        if (job->pieces)
                return 0;
        if (job->kind != MOVER_PEER)
                return find_segments(transfer);
        if (!job_is_complete(job, &job->source))
                return -EPROTO;
        return find_source(transfer);
}

/* Parts to copy. */

static bool continues(const struct copy_part *part, const struct copy_part *next)
{
        return part->region == next->region && part->device + part->length == next->device &&
               (part->host ? part->host + part->length == next->host
                           : !next->host && part->from + part->length == next->from);
}

static int add_part(struct transfer *transfer, const struct copy_part *part)
{
        if (transfer->n_parts > 0 && continues(&transfer->parts[transfer->n_parts - 1], part)) {
                transfer->parts[transfer->n_parts - 1].length += part->length;
                return 0;
        }
        if (transfer->n_parts == transfer->n_parts_max) {
                size_t n = transfer->n_parts_max > 0 ? 2 * transfer->n_parts_max : 64;
                struct copy_part *parts = reallocarray(transfer->parts, n, sizeof(*parts));

                if (!parts)
                        return -ENOMEM;
                transfer->parts = parts;
                transfer->n_parts_max = n;
        }
        transfer->parts[transfer->n_parts++] = *part;
        return 0;
}

/* @n bytes of @piece from @skip on, between its place outside and @device. */
static int add_piece(struct transfer *transfer, const struct job_piece *piece, uint64_t skip,
                     uint64_t n, CUdeviceptr device)
{
        const struct copy_part part = { .region = piece->slab,
                                        .device = device,
                                        .host = piece->host ? piece->host + skip : NULL,
                                        .from = piece->host ? 0 : piece->source + skip,
                                        .length = n };

        return add_part(transfer, &part);
}

static uint64_t min(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* Staging takes the bytes of the job as they come. */
static int plan_staging(struct transfer *transfer)
{
        struct job *job = transfer->job;
        uint64_t room = min(job->staging.size, job->n_bytes), n_planned = 0;
        int r = 0;

        for (size_t i = 0; i < job->n_pieces && n_planned < room && r == 0; i++) {
                uint64_t n = min(job->pieces[i].length, room - n_planned);

                r = add_piece(transfer, &job->pieces[i], 0, n, job->staging.base + n_planned);
                n_planned += n;
        }
        return r;
}

static CUdeviceptr target_of(const struct transfer *transfer, const struct job_piece *piece)
{
        return transfer->job->target_mapping.base + transfer->offsets[piece->memory] +
               piece->memory_offset;
}

/* From staging to the target: the first job->n_staged bytes. */
static int plan_staged(struct transfer *transfer)
{
        struct job *job = transfer->job;
        uint64_t n_planned = 0;
        int r = 0;

        for (size_t i = 0; i < job->n_pieces && n_planned < job->n_staged && r == 0; i++) {
                struct copy_part part = { .device = target_of(transfer, &job->pieces[i]),
                                          .from = job->staging.base + n_planned,
                                          .length = min(job->pieces[i].length,
                                                        job->n_staged - n_planned) };

                r = add_part(transfer, &part);
                n_planned += part.length;
        }
        return r;
}

/* Of the bytes of @piece from @skip on, those in blocks that are in the slabs already, or the others. */
static int add_blocks(struct transfer *transfer, const struct job_piece *piece, uint64_t skip,
                      bool are_skipped)
{
        CUdeviceptr device = target_of(transfer, piece);
        uint64_t in_mapping = device - transfer->job->target_mapping.base;
        int r = 0;

        while (skip < piece->length && r == 0) {
                uint64_t offset = in_mapping + skip;
                uint64_t n = min(piece->length - skip, HASH_BLOCK - offset % HASH_BLOCK);

                if (difference_skips(&transfer->difference, offset) == are_skipped)
                        r = add_piece(transfer, piece, skip, n, device + skip);
                skip += n;
        }
        return r;
}

static int plan_skipped(struct transfer *transfer)
{
        struct job *job = transfer->job;
        int r = 0;

        transfer->n_parts = 0;
        for (size_t i = 0; i < job->n_pieces && r == 0; i++)
                r = add_blocks(transfer, &job->pieces[i], 0, true);
        return r;
}

/* The others, between their own place and the target. */
static int plan_rest(struct transfer *transfer)
{
        struct job *job = transfer->job;
        uint64_t to_skip = job->n_staged;
        int r = 0;

        transfer->n_parts = 0;
        for (size_t i = 0; i < job->n_pieces && r == 0; i++) {
                const struct job_piece *piece = &job->pieces[i];
                uint64_t skip = min(to_skip, piece->length);

                to_skip -= skip;
                r = add_blocks(transfer, piece, skip, false);
        }
        return r;
}

/* Handing over: memory that is in the slabs is let go while the rest is copied. */

/* A part of the job at a time: each costs the bus a moment, and whoever waits for the memory another. */
#define HAND_OVER_PARTS 32

static bool are_in_order(const struct transfer *transfer)
{
        for (size_t i = 1; i < transfer->n_parts; i++)
                if (transfer->parts[i].device <= transfer->parts[i - 1].device)
                        return false;
        return true;
}

/* All before it in the target's range is in the slabs, once the first @bytes_done bytes of the parts are. */
static uint64_t find_position(struct transfer *transfer, uint64_t bytes_done)
{
        CUdeviceptr base = transfer->job->target_mapping.base;
        const struct copy_part *part;

        while (transfer->passed.part < transfer->n_parts) {
                part = &transfer->parts[transfer->passed.part];
                if (bytes_done - transfer->passed.before < part->length)
                        return part->device - base + bytes_done - transfer->passed.before;
                transfer->passed.before += part->length;
                transfer->passed.part++;
        }
        return transfer->job->target_mapping.size;
}

/* The hashes are of all memory: they come first. A failure is none of the copy: the job keeps what it has. */
static void pass(struct transfer *transfer, size_t n)
{
        struct mover_done failure = { 0 };
        struct job *job = transfer->job;

        difference_wait(&transfer->difference);
        transfer->passed.is_off =
                mapping_pass(&job->target_mapping, job->target.sizes, n, &failure) < 0;
        if (transfer->passed.is_off)
                return;
        answer_passed(transfer->request, n);
        (void)fault_point("mover.passed"); /* to kill or to wait; it cannot fail */
}

/* @bytes_done: of the parts, in their order. */
static void hand_over(struct transfer *transfer, uint64_t bytes_done)
{
        struct job *job = transfer->job;
        uint64_t position, end = transfer->passed.end;
        size_t n = transfer->passed.memory;

        if (!job->hands_over || transfer->passed.is_off)
                return;
        position = find_position(transfer, bytes_done);
        while (n < job->n_memories && end + job->target.sizes[n] <= position)
                end += job->target.sizes[n++];
        if (n == transfer->passed.memory ||
            (n < job->n_memories &&
             end - transfer->passed.end < job->target_mapping.size / HAND_OVER_PARTS))
                return;
        transfer->passed.memory = n;
        transfer->passed.end = end;
        pass(transfer, n);
}

/* Copying. */

static int on_progress(uint64_t bytes_done, void *userdata)
{
        struct transfer *transfer = userdata;
        struct job *job = transfer->job;
        uint64_t now = clock_now(CLOCK_MONOTONIC);

        hand_over(transfer, bytes_done);
        bytes_done += transfer->n_before;
        if (bytes_done == job->n_bytes || now - job->told_ns >= PROGRESS_INTERVAL_NS) {
                job->told_ns = now;
                answer_progress(transfer->request, bytes_done, job->n_bytes);
        }
        if (job->is_half_passed || bytes_done < job->n_bytes / 2)
                return 0;
        job->is_half_passed = true;
        return driver_fault_point(transfer->done, "mover.copy-half");
}

static int copy(struct transfer *transfer, const atomic_bool *stop, uint64_t *ret_copied)
{
        static const enum copy_direction directions[] = { [MOVER_OUT] = COPY_TO_HOST,
                                                          [MOVER_IN] = COPY_TO_DEVICE,
                                                          [MOVER_PEER] = COPY_BETWEEN_DEVICES };
        const struct copy_control control = { .progress = on_progress,
                                              .userdata = transfer,
                                              .stop = stop,
                                              .to_context = transfer->device->context,
                                              .from_context = transfer->job->source_context };

        return copy_run(directions[transfer->job->kind], transfer->parts, transfer->n_parts,
                        &control, ret_copied, transfer->done);
}

/* Staging. */

static int create_staging(struct transfer *transfer, uint64_t limit)
{
        struct job *job = transfer->job;
        uint64_t wanted = (job->n_bytes + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
        uint64_t size = min(wanted, limit / STAGING_ALIGN * STAGING_ALIGN);
        int r;

        if (size == 0)
                return -ENOMEM;

        r = mapping_create(&job->staging, transfer->device->id, size, transfer->done);
        if (r == 0)
                r = mapping_map(&job->staging, &size, &transfer->device->id, 1, transfer->done);
        if (r < 0)
                mapping_deinit(&job->staging);
        return r;
}

static int stage(struct transfer *transfer, uint64_t limit)
{
        struct job *job = transfer->job;
        uint64_t start;
        int r;

        r = device_enter(transfer->device, transfer->done);
        if (r == 0)
                r = find_pieces(transfer);
        if (r < 0)
                return r;

        r = create_staging(transfer, limit);
        if (r < 0)
                return r == -ENOMEM ? 0 : r;

        r = plan_staging(transfer);
        start = clock_now(CLOCK_MONOTONIC);
        if (r == 0)
                r = copy(transfer, &job->stop_staging, &job->n_staged);
        job->stage_ns = clock_now(CLOCK_MONOTONIC) - start;
        if (r == 0)
                r = driver_fault_point(transfer->done, "mover.staged");
        return r;
}

void transfer_stage(struct job *job, struct device *device, const struct mover_header *request,
                    uint64_t limit)
{
        CLEANUP(transfer_deinit)
        struct transfer transfer = {
                .job = job, .device = device, .request = request, .done = &job->stage_done
        };

        if (!job_enter(job, &job->stage))
                return;
        job->stage_error = stage(&transfer, limit);
        job_leave(job, &job->stage);
}

/* The run. */

/* While staging still works: it knows nothing of the target. */
static int import_target(struct transfer *transfer)
{
        struct job *job = transfer->job;
        struct job_memories *target = &job->target;
        uint64_t offset = 0;
        int r;

        transfer->offsets = calloc(target->n + 1, sizeof(*transfer->offsets));
        if (!transfer->offsets)
                return -ENOMEM;
        for (size_t i = 0; i < target->n; i++) {
                transfer->offsets[i] = offset;
                offset += target->sizes[i];
        }

        r = mapping_import(&job->target_mapping, target->sizes, target->fds, target->n,
                           transfer->done);
        if (r == 0)
                r = mapping_map(&job->target_mapping, target->sizes, &transfer->device->id, 1,
                                transfer->done);
        if (r == 0)
                r = driver_fault_point(transfer->done, "mover.job-imported");
        return r;
}

static int check_pieces(const struct job *job)
{
        if (job->n_hashes > 0 && job->n_hashes * HASH_BLOCK != job->target_mapping.size)
                return -EINVAL;
        for (size_t i = 0; i < job->n_pieces; i++) {
                const struct job_piece *piece = &job->pieces[i];
                uint64_t size = job->target.sizes[piece->memory];

                if (piece->memory_offset > size || piece->length > size - piece->memory_offset ||
                    (job->kind == MOVER_PEER && piece->length != size))
                        return -EINVAL;
        }
        return 0;
}

static int prepare(struct transfer *transfer)
{
        struct job *job = transfer->job;
        int r;

        r = device_enter(transfer->device, transfer->done);
        if (r == 0)
                r = import_target(transfer);
        job_stop_staging(job);
        if (r == 0 && job->stage_error < 0) {
                *transfer->done = job->stage_done;
                r = job->stage_error;
        }
        if (r == 0)
                r = find_pieces(transfer);
        if (r == 0)
                r = check_pieces(job);
        return r;
}

/* What is staged, queued on a stream of its own: it runs beside the copy of the rest. */
static int start_unstaging(struct transfer *transfer, CUstream *ret_stream)
{
        int r;

        if (transfer->job->n_staged == 0)
                return 0;

        r = DRIVER_CALL(transfer->done, cuStreamCreate, ret_stream, CU_STREAM_NON_BLOCKING);
        if (r == 0)
                r = plan_staged(transfer);
        for (size_t i = 0; i < transfer->n_parts && r == 0; i++)
                r = DRIVER_CALL(transfer->done, cuMemcpyDtoDAsync_v2, transfer->parts[i].device,
                                transfer->parts[i].from, transfer->parts[i].length, *ret_stream);
        return r;
}

static int finish_unstaging(CUstream stream, struct mover_done *done)
{
        int r;

        if (!stream)
                return 0;

        r = DRIVER_CALL(done, cuStreamSynchronize, stream);
        driver.cuStreamDestroy_v2(stream);
        return r;
}

static int verify(struct transfer *transfer)
{
        int r = plan_skipped(transfer);

        return r < 0 ? r : difference_verify(transfer->parts, transfer->n_parts, transfer->done);
}

static void log_no_hashes(const struct difference *difference)
{
        const struct mover_done *failure = &difference->failure;

        fprintf(stderr, "mover: event=not-hashed call=%s code=%d error=\"%s\"\n",
                failure->call[0] ? failure->call : "-", failure->driver_code,
                strerrordesc_np(-difference->error));
}

/* The hashes go before the end of the job, which makes them count. */
static void tell_hashes(struct transfer *transfer)
{
        struct difference *difference = &transfer->difference;
        struct job *job = transfer->job;

        difference_end(difference);
        transfer->done->hash_error = difference->error;
        transfer->done->hash_ns = difference->wait_ns;
        transfer->done->unchanged = transfer->n_unchanged;
        if (difference->error < 0)
                log_no_hashes(difference);
        else if (job->n_hashes > 0)
                answer_hashes(transfer->request, job->hashes, job->n_hashes);
}

static int copy_changed(struct transfer *transfer)
{
        struct difference *difference = &transfer->difference;
        struct job *job = transfer->job;
        uint64_t n_copied;
        int r;

        difference_begin(difference, job, transfer->device);
        difference_find(difference);
        transfer->n_unchanged = transfer->n_before = difference->n_unchanged * HASH_BLOCK;
        r = plan_rest(transfer);
        transfer->passed.is_off = !are_in_order(transfer);
        if (r == 0)
                r = copy(transfer, &job->is_cancelled, &n_copied);
        if (r == 0 && job->is_cancelled)
                r = -ECANCELED;
        if (r == 0 && job->must_verify)
                r = verify(transfer);
        if (r == 0) /* where nothing was copied, too */
                hand_over(transfer, n_copied);
        if (r == 0)
                r = driver_fault_point(transfer->done, "mover.job-copied");
        if (r == 0)
                tell_hashes(transfer);
        /* Who has failed lets the memory go next, which the device reads. */
        difference_deinit(difference);
        return r;
}

/* Refreshing: what has changed is copied beside other work, as far as that comes. */

/* How much of each block was copied, if the first @n_copied bytes of the parts were. */
static int count_copied(const struct transfer *transfer, uint64_t n_copied, uint32_t **ret_counts)
{
        CLEANUP(freep) uint32_t *counts = calloc(transfer->job->n_hashes, sizeof(*counts));

        if (!counts)
                return -ENOMEM;
        for (size_t i = 0; i < transfer->n_parts && n_copied > 0; i++) {
                const struct copy_part *part = &transfer->parts[i];
                uint64_t offset = part->device - transfer->job->target_mapping.base;
                uint64_t rest = min(part->length, n_copied);

                n_copied -= rest;
                while (rest > 0) {
                        uint64_t n = min(rest, HASH_BLOCK - offset % HASH_BLOCK);

                        counts[offset / HASH_BLOCK] += (uint32_t)n;
                        offset += n;
                        rest -= n;
                }
        }
        *ret_counts = TAKE(counts);
        return 0;
}

/* What the slabs have now. Of what was not reached they have what they had. */
static int note_copied(struct transfer *transfer, uint64_t n_copied)
{
        CLEANUP(freep) uint32_t *counts = NULL;
        struct job *job = transfer->job;
        int r = count_copied(transfer, n_copied, &counts);

        for (size_t i = 0; i < job->n_hashes && r == 0; i++)
                if (counts[i] == HASH_BLOCK)
                        job->hashes[i] = transfer->difference.hashing.values[i];
                else if (counts[i] > 0)
                        job->hashes[i] = HASH_UNKNOWN;
        return r;
}

static int refresh_found(struct transfer *transfer)
{
        struct mover_done *done = transfer->done;
        struct job *job = transfer->job;
        uint64_t n_copied = 0;
        int r = plan_rest(transfer);

        if (r == 0)
                r = driver_fault_point(done, "mover.refreshing");
        done->is_torn = r == 0;
        if (r == 0)
                r = trickle_run(transfer->parts, transfer->n_parts, job, &n_copied, done);
        if (r == 0 && job->is_cancelled)
                r = -ECANCELED;
        if (r == 0)
                r = note_copied(transfer, n_copied);
        if (r == 0)
                answer_hashes(transfer->request, job->hashes, job->n_hashes);
        done->unchanged = transfer->difference.n_unchanged * HASH_BLOCK;
        done->bytes = done->unchanged + n_copied;
        return r;
}

static int refresh(struct transfer *transfer)
{
        struct difference *difference = &transfer->difference;
        int r;

        difference_begin(difference, transfer->job, transfer->device);
        difference_find(difference);
        difference_wait(difference); /* where no block was known */
        r = difference->error;
        if (r < 0) {
                *transfer->done = difference->failure;
                log_no_hashes(difference);
        }
        transfer->done->hash_ns = difference->wait_ns;
        if (r == 0)
                r = refresh_found(transfer);
        difference_deinit(difference);
        return r;
}

static int copy_everything(struct transfer *transfer)
{
        struct job *job = transfer->job;
        struct mover_done unstaged = { 0 };
        CUstream stream = NULL;
        uint64_t n_copied;
        int r, end;

        transfer->n_before = job->n_staged;
        r = start_unstaging(transfer, &stream);
        if (r == 0)
                r = plan_rest(transfer);
        if (r == 0)
                r = copy(transfer, &job->is_cancelled, &n_copied);
        end = finish_unstaging(stream, &unstaged);
        if (r == 0 && end < 0) { /* what failed first is told */
                *transfer->done = unstaged;
                r = end;
        }
        if (r == 0 && job->is_cancelled)
                r = -ECANCELED;
        if (r == 0)
                r = driver_fault_point(transfer->done, "mover.job-copied");
        return r;
}

static int copy_out(struct transfer *transfer)
{
        return transfer->job->rate > 0 ? refresh(transfer) : copy_changed(transfer);
}

static int run_transfer(struct transfer *transfer)
{
        struct mover_done *done = transfer->done;
        struct job *job = transfer->job;
        uint64_t start = clock_now(CLOCK_MONOTONIC), prepared;
        int r;

        r = prepare(transfer);
        prepared = clock_now(CLOCK_MONOTONIC);
        if (r == 0)
                r = job->kind == MOVER_OUT ? copy_out(transfer) : copy_everything(transfer);
        done->prepare_ns = prepared - start;
        done->copy_ns = job->stage_ns + clock_now(CLOCK_MONOTONIC) - prepared;
        if (r == 0 && job->rate == 0)
                done->bytes = job->n_bytes;
        if (r < 0)
                job_release(job);
        return r;
}

int transfer_run(struct job *job, struct device *device, const struct mover_header *request,
                 struct mover_done *done)
{
        CLEANUP(transfer_deinit)
        struct transfer transfer = {
                .job = job, .device = device, .request = request, .done = done
        };
        int r;

        if (!job_is_complete(job, &job->target))
                return -EPROTO;
        if (!job_enter(job, &job->run))
                return -ECANCELED;
        r = run_transfer(&transfer);
        job_leave(job, &job->run);
        return r;
}
