/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/pending.h"

#include "base/clock.h"
#include "daemon/process.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

uint64_t pending_note(struct pending *pending, uint64_t bytes, uint64_t now_ns)
{
        if (bytes == 0 || now_ns - pending->seen_ns > PENDING_GAP_NS)
                *pending = (struct pending){ .since_ns = now_ns, .least = UINT64_MAX };
        pending->seen_ns = now_ns;
        pending->least = smaller(pending->least, bytes);
        pending->stale = smaller(pending->stale, bytes);
        if (now_ns - pending->since_ns >= PENDING_TERM_NS) {
                pending->stale = pending->least;
                pending->since_ns = now_ns;
                pending->least = bytes;
        }
        return bytes - pending->stale;
}

static uint64_t sum_running(const struct instance *instance, const struct instance_part *part)
{
        uint64_t limit = instance->frame_buffer, sum = 0;
        const struct guest *guest;

        list_for_each(guest, &instance->guests, link) {
                uint64_t bytes = guest->slot == UINT32_MAX
                                         ? 0
                                         : page_read_pending(&part->page, guest->slot, limit);

                if (bytes > 0 && !process_is_stopped(guest->pid))
                        sum += bytes;
        }
        return smaller(sum, limit);
}

void pending_look(const struct instance *instance, struct instance_part *part)
{
        uint64_t bytes;

        page_read_claim(&part->page, instance->frame_buffer, &part->claim);
        bytes = part->claim.pending > 0 ? sum_running(instance, part) : 0;
        part->claim.pending = pending_note(&part->pending, bytes, clock_now(CLOCK_MONOTONIC));
}
