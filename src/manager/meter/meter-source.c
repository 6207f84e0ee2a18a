/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the meter sees from below how long the engines ran: of simulated devices in their host, of
 * real ones through the sampler.
 */

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "manager/meter/meter-internal.h"
#include "manager/meter/meter-outside.h"
#include "manager/meter/meter-sampler.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "sim/usage.h"

_Static_assert(SIM_USAGE_DEVICES == STATE_DEVICES_MAX, "all of them");

struct meter_source {
        struct sim_usage *simulation; /* one of the two */
        struct meter_sampler *sampler;
        uint64_t looked_ns; /* when it was looked for processes on the simulated devices */
};

/* How often the simulated host is asked, and for how many processes. */
#define LOOK_NS  2000000000u
#define PIDS_MAX 2048

int meter_source_new(struct meter_source **ret_source, struct manager *manager)
{
        struct meter_source *source;
        int r;

        if (!manager->simulation[0] && !manager->real_nvml[0])
                return 0;
        source = calloc(1, sizeof(*source));
        if (!source)
                return -ENOMEM;
        r = manager->simulation[0] ? sim_usage_open(&source->simulation, manager->simulation)
                                   : meter_sampler_new(&source->sampler, manager);
        if (r < 0)
                return meter_source_free(source), r;
        *ret_source = source;
        return 0;
}

struct meter_source *meter_source_free(struct meter_source *source)
{
        if (!source)
                return NULL;
        (void)sim_usage_close(source->simulation);
        (void)meter_sampler_free(source->sampler);
        free(source);
        return NULL;
}

/* The simulated host lists the processes on its devices; of real devices the samples do. */
static void look_outside(const struct meter_source *source, struct meter_outside *outside)
{
        pid_t pids[PIDS_MAX];
        size_t n = sim_usage_list(source->simulation, pids, PIDS_MAX);

        for (size_t i = 0; i < n; i++)
                meter_outside_see(outside, pids[i]);
}

void meter_source_tick(struct meter_source *source, struct meter_outside *outside)
{
        uint64_t now_ns = clock_now(CLOCK_MONOTONIC);

        if (source->sampler)
                meter_sampler_tick(source->sampler);
        if (!source->simulation || now_ns - source->looked_ns < LOOK_NS)
                return;
        source->looked_ns = now_ns;
        look_outside(source, outside);
}

void meter_source_stop(struct meter_source *source)
{
        if (source->sampler)
                meter_sampler_stop(source->sampler);
}

enum meter_source_kind meter_source_get_kind(const struct meter_source *source,
                                             const struct device *device)
{
        if (source->simulation)
                return METER_SOURCE_ENGINE;
        return device->meter.has_samples ? METER_SOURCE_SAMPLES : METER_SOURCE_NONE;
}

/* Whose use of @device it is: of the part that had it when all was settled, for its use is not settled yet. */
static size_t find_part(const struct instance *instance, uint32_t device)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                if (instance->part[i].meter.device == device)
                        return i;
        for (size_t i = 0; i < instance->n_parts; i++)
                if (instance->part[i].device->index == device)
                        return i;
        return 0;
}

/* A count that is less than before is that of another process with the number of one that died. */
static void add_count(struct guest *guest, size_t part, uint32_t device, enum meter_engine engine,
                      uint64_t count)
{
        uint64_t *seen = &guest->meter.seen_ns[device][engine];

        meter_add_use(guest, part, engine, count >= *seen ? count - *seen : count);
        *seen = count;
}

void meter_source_read(struct meter_source *source, struct guest *guest)
{
        struct instance *instance = guest->instance;
        struct sim_busy busy[SIM_USAGE_DEVICES];
        size_t part;

        if (!source->simulation || !sim_usage_read(source->simulation, guest->pid, busy))
                return;
        for (size_t i = 0; i < instance->n_parts; i++)
                guest->meter.part[i].context_bytes = 0;
        for (uint32_t device = 0; device < SIM_USAGE_DEVICES; device++) {
                part = find_part(instance, device);
                add_count(guest, part, device, METER_SM, busy[device].kernel_ns);
                add_count(guest, part, device, METER_MEMORY, busy[device].memory_ns);
                guest->meter.part[part].context_bytes += busy[device].context_bytes;
                guest->meter.part[part].is_steady = true; /* it is told, not found out */
        }
}

void meter_source_begin(struct meter_source *source, struct guest *guest)
{
        struct sim_busy busy[SIM_USAGE_DEVICES];

        if (!source->simulation || !sim_usage_read(source->simulation, guest->pid, busy))
                return;
        for (uint32_t device = 0; device < SIM_USAGE_DEVICES; device++) {
                guest->meter.seen_ns[device][METER_SM] = busy[device].kernel_ns;
                guest->meter.seen_ns[device][METER_MEMORY] = busy[device].memory_ns;
        }
}

static bool has_part_on(const struct instance *instance, uint32_t device)
{
        for (size_t i = 0; i < instance->n_parts; i++)
                if (instance->part[i].device->index == device)
                        return true;
        return false;
}

/* It had @total of all devices together: what it has of the others now is older than that. */
static void see_home(struct guest *guest, const uint64_t *total)
{
        const uint32_t home = instance_home(guest->instance)->index;

        for (int engine = 0; engine < METER_SEEN; engine++) {
                uint64_t elsewhere = 0;

                for (uint32_t device = 0; device < SIM_USAGE_DEVICES; device++)
                        elsewhere += device == home ? 0 : guest->meter.seen_ns[device][engine];
                guest->meter.seen_ns[home][engine] =
                        total[engine] > elsewhere ? total[engine] - elsewhere : 0;
        }
}

void meter_source_load(struct meter_source *source, struct guest *guest,
                       const struct ledger_process *former, const struct ledger_process *parts,
                       size_t n_parts)
{
        meter_source_begin(source, guest);
        if (n_parts == 0)
                see_home(guest, former->seen_ns);
        for (size_t i = 0; i < n_parts; i++) {
                uint32_t device = ledger_process_get_device(&parts[i]);

                if (has_part_on(guest->instance, device)) /* else it has left it since */
                        memcpy(guest->meter.seen_ns[device], parts[i].seen_ns,
                               sizeof(guest->meter.seen_ns[device]));
        }
}
