/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/difference.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/size.h"
#include "mover/device.h"
#include "mover/driver.h"

bool difference_is_known(const struct job *job)
{
        const struct hash_value unknown = HASH_UNKNOWN;

        for (size_t i = 0; i < job->n_hashes; i++)
                if (!hash_is_equal(&job->hashes[i], &unknown))
                        return true;
        return false;
}

void difference_begin(struct difference *difference, struct job *job, struct device *device)
{
        struct mover_done *failure = &difference->failure;
        int r;

        difference->job = job;
        difference->device = device;
        if (job->n_hashes == 0)
                return;
        r = driver_fault_point(failure, "mover.hashing");
        if (r == 0)
                r = device_load_hasher(device, failure);
        if (r == 0)
                r = device_get_stream(device, &difference->stream, failure);
        if (r == 0)
                r = hashing_start(&difference->hashing, &device->hasher, difference->stream,
                                  job->target_mapping.base, job->n_hashes, failure);
        difference->error = r;
        difference->is_under_way = r == 0;
}

void difference_wait(struct difference *difference)
{
        uint64_t start = clock_now(CLOCK_MONOTONIC);

        if (!difference->is_under_way)
                return;
        difference->is_under_way = false;
        difference->error = hashing_finish(&difference->hashing, &difference->failure);
        if (difference->error == 0)
                difference->error = driver_fault_point(&difference->failure, "mover.hashed");
        difference->wait_ns += clock_now(CLOCK_MONOTONIC) - start;
}

void difference_find(struct difference *difference)
{
        const struct job *job = difference->job;

        if (!difference->is_under_way || !difference_is_known(job))
                return;
        difference_wait(difference);
        if (difference->error < 0)
                return;
        difference->is_unchanged = calloc(job->n_hashes, sizeof(*difference->is_unchanged));
        for (size_t i = 0; i < job->n_hashes && difference->is_unchanged; i++) {
                difference->is_unchanged[i] =
                        hash_is_equal(&job->hashes[i], &difference->hashing.values[i]);
                difference->n_unchanged += difference->is_unchanged[i];
        }
}

void difference_end(struct difference *difference)
{
        struct job *job = difference->job;

        difference_wait(difference);
        if (job->n_hashes > 0 && difference->error == 0)
                memcpy(job->hashes, difference->hashing.values,
                       job->n_hashes * sizeof(*job->hashes));
}

bool difference_skips(const struct difference *difference, uint64_t offset)
{
        return difference->is_unchanged && difference->is_unchanged[offset / HASH_BLOCK];
}

void difference_log(const struct difference *difference)
{
        const struct mover_done *failure = &difference->failure;

        fprintf(stderr, "mover: event=not-hashed call=%s code=%d error=\"%s\"\n",
                failure->call[0] ? failure->call : "-", failure->driver_code,
                strerrordesc_np(-difference->error));
}

void difference_deinit(struct difference *difference)
{
        hashing_deinit(&difference->hashing);
        if (difference->stream)
                device_put_stream(difference->device, difference->stream);
        free(difference->is_unchanged);
        *difference = (struct difference){ 0 };
}

/* Verifying. */

#define BUFFER_BYTES (16 * MIB)

static int verify_piece(char *buffer, const struct copy_part *part, uint64_t offset,
                        struct mover_done *done)
{
        uint64_t rest = part->length - offset;
        uint64_t n = rest < BUFFER_BYTES ? rest : BUFFER_BYTES;
        int r;

        r = DRIVER_CALL(done, cuMemcpyDtoHAsync_v2, buffer, part->device + offset, n, NULL);
        if (r == 0)
                r = DRIVER_CALL(done, cuStreamSynchronize, NULL);
        if (r < 0 || memcmp(part->host + offset, buffer, n) == 0)
                return r;
        memcpy(part->host + offset, buffer, n);
        done->wrong += n;
        return 0;
}

int difference_verify(const struct copy_part *parts, size_t n_parts, struct mover_done *done)
{
        CLEANUP(freep) char *buffer = malloc(BUFFER_BYTES);
        int r = buffer ? 0 : -ENOMEM;

        for (size_t i = 0; i < n_parts; i++)
                for (uint64_t offset = 0; offset < parts[i].length && r == 0;
                     offset += BUFFER_BYTES)
                        r = verify_piece(buffer, &parts[i], offset, done);
        return r;
}
