/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SOCK_SEQPACKET socket keeps the packets of several threads apart by itself:
 * no lock is needed here.
 */

#include "mover/answer.h"

#include <string.h>

#include "base/packet.h"

static struct mover_header header(const struct mover_header *request, enum mover_message message)
{
        return (struct mover_header){ .magic = MOVER_WIRE_MAGIC,
                                      .version = MOVER_WIRE_VERSION,
                                      .message = (uint16_t)message,
                                      .id = request->id,
                                      .job = request->job };
}

void answer_done(const struct mover_header *request, struct mover_done *done, int error)
{
        done->header = header(request, MOVER_DONE);
        done->error = error;
        (void)packet_send(MOVER_SOCKET, done, sizeof(*done), NULL, 0);
}

void answer_info(const struct mover_header *request, struct mover_info *info)
{
        info->header = header(request, MOVER_INFO_IS);
        (void)packet_send(MOVER_SOCKET, info, sizeof(*info), NULL, 0);
}

void answer_progress(const struct mover_header *request, uint64_t bytes_done, uint64_t bytes_total)
{
        struct mover_progress progress = { .header = header(request, MOVER_PROGRESS),
                                           .bytes_done = bytes_done,
                                           .bytes_total = bytes_total };

        (void)packet_send(MOVER_SOCKET, &progress, sizeof(progress), NULL, 0);
}

void answer_returned(int pid)
{
        const struct mover_header none = { 0 };
        struct mover_returned returned = { .header = header(&none, MOVER_RETURNED), .pid = pid };

        (void)packet_send(MOVER_SOCKET, &returned, sizeof(returned), NULL, 0);
}

void answer_passed(const struct mover_header *request, size_t n)
{
        struct mover_passed passed = { .header = header(request, MOVER_PASSED),
                                       .n_memories = (uint32_t)n };

        (void)packet_send(MOVER_SOCKET, &passed, sizeof(passed), NULL, 0);
}

void answer_hashes(const struct mover_header *request, const struct hash_value *values, size_t n)
{
        for (size_t first = 0; first < n; first += MOVER_HASH_MAX) {
                size_t count = n - first < MOVER_HASH_MAX ? n - first : MOVER_HASH_MAX;
                struct mover_hashes hashes = { .header = header(request, MOVER_HASHES),
                                               .first = (uint32_t)first,
                                               .count = (uint32_t)count };

                memcpy(hashes.hash, values + first, count * sizeof(*values));
                (void)packet_send(MOVER_SOCKET, &hashes, sizeof(hashes), NULL, 0);
        }
}
