/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/pieces.h"

#include <errno.h>
#include <stdlib.h>

#include "mover/driver.h"

static int add_segment(struct job *job, const struct mover_segment *segment,
                       struct mover_done *done)
{
        struct job_piece *piece = &job->pieces[job->n_pieces];
        int r;

        if (segment->memory >= job->n_memories || segment->length == 0 ||
            __builtin_add_overflow(job->n_bytes, segment->length, &job->n_bytes))
                return -EINVAL;

        r = slab_hold(job->slabs, segment->slab, segment->slab_offset, segment->length,
                      &piece->host, done);
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

static int find_segments(struct job *job, struct mover_done *done)
{
        int r = 0;

        job->pieces = calloc(job->n_segments + 1, sizeof(*job->pieces));
        if (!job->pieces)
                return -ENOMEM;
        for (size_t i = 0; i < job->n_segments && r == 0; i++)
                r = add_segment(job, &job->segments[i], done);
        return r;
}

/* Else the driver copies by way of the host, between contexts: there must be one on each device. */
static int find_access(struct job *job, const struct device *device, CUdevice source,
                       bool *ret_has_access, struct mover_done *done)
{
        int can = 1, r = 0;

        if (source != device->id)
                r = DRIVER_CALL(done, cuDeviceCanAccessPeer, &can, device->id, source);
        if (r == 0 && !can && !job->source_context)
                r = DRIVER_CALL(done, cuDevicePrimaryCtxRetain, &job->source_context, source);
        job->source_device = source;
        *ret_has_access = can;
        return r;
}

/*
 * Access for both devices, where there is any: that is what makes the driver copy directly; peer
 * contexts need not be.
 */
static int import_source(struct job *job, const struct device *device, struct mover_done *done)
{
        CUdevice source, ids[2];
        bool has_access = false;
        int r;

        r = device_find(&source, job->source_uuid, done);
        if (r == 0)
                r = find_access(job, device, source, &has_access, done);
        if (r == 0)
                r = mapping_import(&job->source_mapping, job->source.sizes, job->source.fds,
                                   job->source.n, done);
        ids[0] = source;
        ids[1] = device->id;
        if (r == 0)
                r = mapping_map(&job->source_mapping, job->source.sizes, ids,
                                has_access && ids[0] != ids[1] ? 2 : 1, done);
        return r;
}

static int find_source(struct job *job, const struct device *device, struct mover_done *done)
{
        CUdeviceptr source;
        int r;

        r = import_source(job, device, done);
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

int pieces_find(struct job *job, const struct device *device, struct mover_done *done)
{
        if (job->pieces)
                return 0;
        if (job->kind != MOVER_PEER)
                return find_segments(job, done);
        if (!job_is_complete(job, &job->source))
                return -EPROTO;
        return find_source(job, device, done);
}
