/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what a site can still host, and where. */
#include "catalog/catalog.h"

/* Slots of a site, as many as the largest device has GiB. */
#define SLOTS_MAX 1024

const struct state_scheduler_limits catalog_scheduler_limits = {
        .policy = { STATE_POLICY_BEST_EFFORT, STATE_POLICY_EQUAL_SHARE, STATE_POLICY_FIXED_SHARE },
        .time_slice_min = 1000000,
        .time_slice_max = 30000000,
        .can_arr = 1,
        .frequency_min = 63,
        .frequency_max = 960,
        .averaging_min = 1,
        .averaging_max = 60,
};

struct occupancy {
        uint8_t is_taken[SLOTS_MAX];
        uint64_t frame_buffer; /* of the type that runs; 0: none does */
        bool is_mixed;         /* several do */
};

static bool is_at(const struct state_page *state_page, uint32_t site,
                  const struct state_instance *instance)
{
        struct state_gpu_instance gpu_instance;

        if (instance->state == STATE_SUSPENDED)
                return false;
        if (site < STATE_DEVICES_MAX)
                return instance->device == site && instance->gpu_instance == STATE_NONE;
        return state_read_gpu_instance(state_page, site - STATE_DEVICES_MAX, &gpu_instance) &&
               gpu_instance.device == instance->device && gpu_instance.id == instance->gpu_instance;
}

static void occupy(struct occupancy *occupancy, const struct state_page *state_page,
                   const struct state_instance *instance)
{
        struct state_type type;
        uint32_t slot;

        for (uint32_t i = 0; i < instance->placement_size; i++)
                if (instance->placement + i < SLOTS_MAX)
                        occupancy->is_taken[instance->placement + i] = 1;
        if (!state_find_type(state_page, instance->type_id, &slot) ||
            !state_read_type(state_page, slot, &type))
                return;
        if (occupancy->frame_buffer != 0 && occupancy->frame_buffer != type.frame_buffer)
                occupancy->is_mixed = true;
        occupancy->frame_buffer = type.frame_buffer;
}

static void look(struct occupancy *ret_occupancy, const struct state_page *state_page,
                 uint32_t site)
{
        struct state_instance instance;

        *ret_occupancy = (struct occupancy){ 0 };
        for (uint32_t slot = 0; slot < state_end_instance(state_page); slot++)
                if (state_read_instance(state_page, slot, &instance) &&
                    is_at(state_page, site, &instance))
                        occupy(ret_occupancy, state_page, &instance);
}

static bool is_free(const struct occupancy *occupancy, uint32_t first, uint32_t size)
{
        for (uint32_t i = first; i < first + size; i++)
                if (i >= SLOTS_MAX || occupancy->is_taken[i])
                        return false;
        return true;
}

static void take(struct occupancy *occupancy, uint32_t first, uint32_t size)
{
        for (uint32_t i = first; i < first + size && i < SLOTS_MAX; i++)
                occupancy->is_taken[i] = 1;
}

/* How many of @placements could be taken one after another? */
static uint32_t count_free(const struct occupancy *occupancy,
                           const struct state_placements *placements, uint32_t size)
{
        struct occupancy rest = *occupancy;
        uint32_t n = 0;

        for (uint32_t i = 0; i < placements->n_mixed; i++)
                if (is_free(&rest, placements->mixed[i], size)) {
                        take(&rest, placements->mixed[i], size);
                        n++;
                }
        return n;
}

static uint32_t count_creatable(const struct state_page *state_page,
                                const struct occupancy *occupancy, const struct state_offer *offer,
                                uint64_t left, bool is_heterogeneous)
{
        struct state_placements placements;
        struct state_type type;
        uint64_t n;

        if (!state_read_type(state_page, offer->type, &type) || type.frame_buffer == 0)
                return 0;
        n = left / type.frame_buffer;
        n = n < offer->max_instances ? n : offer->max_instances;
        if (!is_heterogeneous)
                return occupancy->frame_buffer != 0 &&
                                       (occupancy->is_mixed ||
                                        occupancy->frame_buffer != type.frame_buffer)
                               ? 0
                               : (uint32_t)n;
        if (state_read_placements(state_page, offer->type, &placements)) {
                uint32_t n_free = count_free(occupancy, &placements, type.placement_size);

                n = n < n_free ? n : n_free;
        }
        return (uint32_t)n;
}

/* GPU instances of a profile without a vGPU. */
static uint32_t count_unused(const struct state_page *state_page, uint32_t device,
                             uint32_t profile_id)
{
        struct state_gpu_instance gpu_instance;
        uint32_t n = 0;

        for (uint32_t slot = 0; slot < STATE_GPU_INSTANCES_MAX; slot++)
                n += state_read_gpu_instance(state_page, slot, &gpu_instance) &&
                     gpu_instance.device == device && gpu_instance.profile_id == profile_id &&
                     gpu_instance.n_instances == 0;
        return n;
}

/* Of a device as a whole: types that are GPU instances and types that share time go by its mode. */
static uint32_t count_by_mode(const struct state_page *state_page, uint32_t site,
                              const struct state_offer *offer, uint32_t n)
{
        struct state_device device;
        struct state_type type;

        if (site >= STATE_DEVICES_MAX || !state_read_device(state_page, site, &device) ||
            !state_read_type(state_page, offer->type, &type))
                return n;
        if (type.profile_id == STATE_NONE)
                return device.mig == 1 ? 0 : n;
        return device.mig == 1 ? count_unused(state_page, site, type.profile_id) : 0;
}

void catalog_update_offers(struct state_page *state_page, uint32_t site, uint64_t left,
                           bool is_heterogeneous)
{
        struct occupancy occupancy;
        struct state_offers offers;
        bool has_changed = false;

        if (!state_read_offers(state_page, site, &offers))
                return;
        look(&occupancy, state_page, site);
        for (uint32_t i = 0; i < offers.n; i++) {
                uint32_t n = count_creatable(state_page, &occupancy, &offers.offer[i], left,
                                             is_heterogeneous);

                n = count_by_mode(state_page, site, &offers.offer[i], n);
                has_changed |= n != offers.offer[i].n_creatable;
                offers.offer[i].n_creatable = (uint16_t)n;
        }
        if (has_changed)
                state_write_offers(state_page, site, &offers);
}

uint32_t catalog_find_placement(const struct state_page *state_page, uint32_t site, uint32_t id,
                                bool is_heterogeneous)
{
        struct state_placements placements;
        struct occupancy occupancy;
        struct state_type type;
        uint32_t slot;

        if (!state_find_type(state_page, id, &slot) || !state_read_type(state_page, slot, &type) ||
            !state_read_placements(state_page, slot, &placements))
                return STATE_PLACEMENT_NONE;
        look(&occupancy, state_page, site);
        for (uint32_t i = 0; i < (is_heterogeneous ? placements.n_mixed : placements.n_uniform);
             i++) {
                uint32_t first = is_heterogeneous ? placements.mixed[i] : placements.uniform[i];

                if (is_free(&occupancy, first, type.placement_size))
                        return first;
        }
        return STATE_PLACEMENT_NONE;
}
