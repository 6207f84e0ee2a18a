/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/live.h"

#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "mover/driver.h"
#include "mover/mapping.h"

/* 1.2 ms of a PCIe 5 bus: no stop waits longer, and the calls cost little beside it. */
#define PIECE_BYTES (64 * MIB)

struct live {
        struct job *job;
        struct device *device;
        struct mover_done *done;
        struct mapping bounce; /* memory of our own */
        CUstream stream;       /* of the hashes */
};

static int make_bounce(struct live *live, uint64_t size)
{
        struct room_taking taking;
        int r = device_begin_taking(live->device, &taking);

        if (r < 0)
                return r;
        r = mapping_create(&live->bounce, &taking, live->device->id, size, live->done);

        device_end_taking(live->device, &taking);
        if (r == 0)
                r = device_get_stream(live->device, &live->stream, live->done);
        return r < 0 ? r : mapping_map(&live->bounce, &size, &live->device->id, 1, live->done);
}

/* In both cases nothing is under way any more. */
static int copy_to_host(const struct live *live, char *host, uint64_t length)
{
        int r = DRIVER_CALL(live->done, cuMemcpyDtoHAsync_v2, host, live->bounce.base, length,
                            NULL);

        return r < 0 ? r : DRIVER_CALL(live->done, cuStreamSynchronize, NULL);
}

static int copy_bounced(struct live *live, char *host, struct hash_value *hashes, size_t n)
{
        struct hashing hashing = { 0 };
        int r = hashing_start(&hashing, &live->device->hasher, live->stream, live->bounce.base, n,
                              live->done);

        for (size_t i = 0; i < n; i++)
                hashes[i] = HASH_UNKNOWN;
        if (r == 0)
                r = copy_to_host(live, host, n * HASH_BLOCK);
        if (r == 0)
                r = hashing_finish(&hashing, live->done);
        if (r == 0)
                memcpy(hashes, hashing.values, n * sizeof(*hashes));
        hashing_deinit(&hashing);
        return r;
}

static int copy_piece(struct live *live, const struct copy_part *part, uint64_t offset,
                      uint64_t length)
{
        uint64_t first = part->device + offset - live->job->target_mapping.base;
        int r;

        r = DRIVER_CALL(live->done, cuMemcpyDtoDAsync_v2, live->bounce.base, part->device + offset,
                        length, NULL);
        if (r == 0)
                r = DRIVER_CALL(live->done, cuStreamSynchronize, NULL);
        if (r == 0)
                r = copy_bounced(live, part->host + offset, &live->job->hashes[first / HASH_BLOCK],
                                 length / HASH_BLOCK);
        return r < 0 ? r : driver_fault_point(live->done, "mover.live-piece");
}

/* The whole blocks of a part; a block of which another slab has the rest is left for the last copy. */
static int copy_part(struct live *live, const struct copy_part *part, uint64_t *copied)
{
        uint64_t first = part->device - live->job->target_mapping.base;
        uint64_t offset = (HASH_BLOCK - first % HASH_BLOCK) % HASH_BLOCK, next_ns = 0;

        while (offset + HASH_BLOCK <= part->length) {
                uint64_t rest = (part->length - offset) / HASH_BLOCK * HASH_BLOCK;
                uint64_t length = rest < live->bounce.size ? rest : live->bounce.size;
                int r;

                job_rest(live->job, next_ns);
                if (live->job->must_stop)
                        return 0;
                next_ns = clock_now(CLOCK_MONOTONIC) + length * NS_PER_S / (live->job->rate * MIB);
                r = copy_piece(live, part, offset, length);
                if (r < 0)
                        return r;
                *copied += length;
                offset += length;
        }
        return 0;
}

static uint64_t find_longest(const struct copy_part *parts, size_t n_parts)
{
        uint64_t longest = 0;

        for (size_t i = 0; i < n_parts; i++)
                if (parts[i].length > longest)
                        longest = parts[i].length;
        return longest / HASH_BLOCK * HASH_BLOCK;
}

int live_run(const struct copy_part *parts, size_t n_parts, struct job *job, struct device *device,
             uint64_t *ret_copied, struct mover_done *done)
{
        struct live live = { .job = job, .device = device, .done = done };
        uint64_t longest = find_longest(parts, n_parts);
        int r;

        *ret_copied = 0;
        if (longest == 0)
                return 0;
        r = make_bounce(&live, longest < PIECE_BYTES ? longest : PIECE_BYTES);
        for (size_t i = 0; i < n_parts && r == 0 && !job->must_stop; i++)
                r = copy_part(&live, &parts[i], ret_copied);
        mapping_deinit(&live.bounce);
        device_put_stream(device, live.stream);
        return r;
}
