/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/model/footprint.h"

#include "base/size.h"
#include "daemon/log.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "wire/mover.h"

/* Of a context that nobody has measured: about 0.5 GiB on an H200, more with large modules. */
#define UNKNOWN      (768 * MIB)
#define UNKNOWN_PART 16 /* of the device's memory, at most */

/* For what a restore may take beyond what it gave back: tables, alignment. */
#define MARGIN      (64 * MIB)
#define MARGIN_PART 128

static uint64_t at_most(uint64_t bytes, const struct device *device, uint64_t part)
{
        return bytes < device->memory_total / part ? bytes : device->memory_total / part;
}

uint64_t footprint_get_unknown(const struct device *device)
{
        return at_most(UNKNOWN, device, UNKNOWN_PART);
}

uint64_t footprint_get_mover(const struct device *device)
{
        return footprint_get_unknown(device) + at_most(MOVER_MARGIN, device, MOVER_MARGIN_PART);
}

static void read_use(const struct guest *guest, size_t part, struct page_use *ret_use)
{
        *ret_use = (struct page_use){ .had_context = true };
        if (guest->slot != UINT32_MAX)
                page_read(&guest->instance->part[part].page, guest->slot,
                          guest->instance->frame_buffer, ret_use);
}

static uint64_t seen_bytes(const struct guest *guest)
{
        uint64_t most = 0;

        for (size_t part = 0; part < guest->instance->n_parts; part++)
                if (guest->meter.part[part].context_bytes > most)
                        most = guest->meter.part[part].context_bytes;
        return most;
}

/* The rank of a job has one on its own device alone. Neither its gate nor the meter has seen one elsewhere. */
static bool has_context(const struct guest *guest, size_t part, const struct page_use *use)
{
        return guest->instance->n_parts == 1 || use->had_context ||
               guest->meter.part[part].context_bytes > 0;
}

static bool is_steady(const struct guest *guest)
{
        for (size_t part = 0; part < guest->instance->n_parts; part++)
                if (guest->meter.part[part].context_bytes > 0 && !guest->meter.part[part].is_steady)
                        return false;
        return true;
}

/* Its contexts still grow, and nobody has measured them: it has more by now than was seen. */
static bool is_growing(const struct guest *guest)
{
        return guest->context.bytes == 0 && seen_bytes(guest) > 0 && !is_steady(guest);
}

/* 0: nothing is known. */
static uint64_t known_bytes(const struct guest *guest)
{
        uint64_t seen = seen_bytes(guest);

        return seen > guest->context.bytes ? seen : guest->context.bytes;
}

static uint64_t context_bytes(const struct guest *guest, const struct device *device)
{
        uint64_t known = known_bytes(guest), unknown = footprint_get_unknown(device);

        if (is_growing(guest))
                known += known / 2 < unknown ? known / 2 : unknown;
        return known == 0 || (is_growing(guest) && known < unknown) ? unknown : known;
}

uint64_t footprint_get(const struct guest *guest, size_t part, const struct device *device)
{
        uint64_t contexts = context_bytes(guest, device);
        struct page_use use;

        read_use(guest, part, &use);
        if (!has_context(guest, part, &use))
                contexts = 0;
        return contexts + use.fixed + at_most(MARGIN, device, MARGIN_PART);
}

static void keep(struct guest *guest, uint64_t bytes)
{
        const struct device *device = instance_home(guest->instance);

        if (bytes > device->memory_total)
                bytes = device->memory_total; /* whatever a mover has told */
        if (bytes == guest->context.bytes)
                return;
        guest->context.bytes = bytes;
        (void)store_put_footprint(guest->instance->manager->store, guest->instance->id, guest->pid,
                                  bytes); /* if not, the next manager assumes what is usual */
}

void footprint_note(struct guest *guest)
{
        if (!is_growing(guest)) /* what is assumed is not known */
                keep(guest, known_bytes(guest));
}

void footprint_measure(struct guest *guest, uint64_t bytes)
{
        uint64_t seen = seen_bytes(guest);
        struct page_use use;

        read_use(guest, 0, &use);
        if (bytes <= use.fixed || !has_context(guest, 0, &use))
                return;
        bytes -= use.fixed;
        log_event(LOG_LEVEL_DEBUG, "measured a context", "vgpu=%s pid=%d bytes=%llu known=%llu",
                  guest->instance->name, (int)guest->pid, (unsigned long long)bytes,
                  (unsigned long long)guest->context.bytes);
        keep(guest, bytes > seen ? bytes : seen);
}

void footprint_load(struct guest *guest)
{
        uint64_t bytes;

        if (store_get_footprint(guest->instance->manager->store, guest->instance->id, guest->pid,
                                &bytes) == 0)
                guest->context.bytes = bytes;
}
