/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the meter sees from below how long the engines ran: of simulated devices in their host, of
 * real ones through the sampler.
 */

#include <errno.h>

#include "manager/meter/meter-internal.h"
#include "manager/meter/meter-sampler.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "sim/usage.h"

struct meter_source {
        struct sim_usage *simulation; /* one of the two */
        struct meter_sampler *sampler;
};

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

void meter_source_tick(struct meter_source *source, size_t n_guests)
{
        if (source->sampler)
                meter_sampler_tick(source->sampler, n_guests);
}

enum meter_source_kind meter_source_get_kind(const struct meter_source *source,
                                             const struct device *device)
{
        if (source->simulation)
                return METER_SOURCE_ENGINE;
        return device->meter.has_samples ? METER_SOURCE_SAMPLES : METER_SOURCE_NONE;
}

void meter_source_add(struct guest *guest, enum meter_engine engine, uint64_t ns)
{
        if (engine == METER_SM && instance_home(guest->instance)->meter.has_turns)
                guest->meter.weight_ns += ns;
        else
                guest->meter.new_ns[engine] += ns;
}

/* A count that is less than before is that of another process with the number of one that died. */
static void add_count(struct guest *guest, enum meter_engine engine, uint64_t count)
{
        uint64_t *seen = &guest->meter.seen_ns[engine];

        meter_source_add(guest, engine, count >= *seen ? count - *seen : count);
        *seen = count;
}

void meter_source_read(struct meter_source *source, struct guest *guest)
{
        struct sim_busy busy;

        if (!source->simulation || !sim_usage_read(source->simulation, guest->pid, &busy))
                return;
        add_count(guest, METER_SM, busy.kernel_ns);
        add_count(guest, METER_MEMORY, busy.memory_ns);
        guest->meter.context_bytes = busy.context_bytes;
}

void meter_source_begin(struct meter_source *source, struct guest *guest)
{
        struct sim_busy busy;

        if (!source->simulation || !sim_usage_read(source->simulation, guest->pid, &busy))
                return;
        guest->meter.seen_ns[METER_SM] = busy.kernel_ns;
        guest->meter.seen_ns[METER_MEMORY] = busy.memory_ns;
}
