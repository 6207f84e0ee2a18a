/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/publish/virtual-mig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "catalog/mig.h"
#include "daemon/uuid.h"
#include "manager/publish/virtual-internal.h"
#include "manager/publish/virtual-scheduler.h"
#include "scenario/scenario.h"
#include "state/compute.h"

#define SLICES_MAX 7 /* of multiprocessors, of a device */

/* Looking at the state page. */

static uint32_t find_gpu_instance(const struct virtual_stage *stage, uint32_t device, uint32_t id,
                                  struct state_gpu_instance *ret_record)
{
        for (uint32_t slot = 0; slot < state_end_gpu_instance(stage->state_page); slot++)
                if (state_read_gpu_instance(stage->state_page, slot, ret_record) &&
                    ret_record->device == device && ret_record->id == id)
                        return slot;
        return STATE_NONE;
}

static uint32_t find_compute_instance(const struct virtual_stage *stage, uint32_t gpu_instance_slot,
                                      uint32_t id, struct state_compute_instance *ret_record)
{
        for (uint32_t slot = 0; slot < state_end_compute_instance(stage->state_page); slot++)
                if (state_read_compute_instance(stage->state_page, slot, ret_record) &&
                    ret_record->gpu_instance_slot == gpu_instance_slot && ret_record->id == id)
                        return slot;
        return STATE_NONE;
}

/* What GPU instances take of a device, and what a profile has of them. */
struct use {
        uint32_t memory; /* slices, as bits */
        uint32_t slices; /* of multiprocessors */
        uint32_t n_like; /* of the profile */
};

static bool find_profile(const struct virtual_stage *stage, uint32_t device, uint32_t id,
                         struct catalog_profile *ret_profile)
{
        struct catalog_profile profiles[CATALOG_MIG_PROFILES];
        uint32_t n = catalog_list_profiles(profiles, &stage->scenario->devices[device].record);

        for (uint32_t i = 0; i < n; i++) {
                if (profiles[i].profile.id != id)
                        continue;
                *ret_profile = profiles[i];
                return true;
        }
        return false;
}

static uint32_t get_slices(const struct virtual_stage *stage, uint32_t device, uint32_t profile_id)
{
        struct catalog_profile profile;

        return find_profile(stage, device, profile_id, &profile) ? profile.profile.slices : 0;
}

static struct use get_use(const struct virtual_stage *stage, uint32_t device, uint32_t profile_id)
{
        struct state_gpu_instance other;
        struct use use = { 0 };

        for (uint32_t slot = 0; slot < state_end_gpu_instance(stage->state_page); slot++) {
                if (!state_read_gpu_instance(stage->state_page, slot, &other) ||
                    other.device != device)
                        continue;
                use.memory |= catalog_slices(other.placement_start, other.placement_size);
                use.slices += get_slices(stage, device, other.profile_id);
                use.n_like += other.profile_id == profile_id;
        }
        return use;
}

static uint32_t get_taken_slices(const struct virtual_stage *stage, uint32_t gpu_instance_slot)
{
        struct state_compute_instance other;
        uint32_t taken = 0;

        for (uint32_t slot = 0; slot < state_end_compute_instance(stage->state_page); slot++)
                if (state_read_compute_instance(stage->state_page, slot, &other) &&
                    other.gpu_instance_slot == gpu_instance_slot)
                        taken |= catalog_slices(other.placement_start, other.placement_size);
        return taken;
}

/* Profiles: what is left of one depends on where all the instances are. */

static uint32_t count_left(const struct virtual_stage *stage, uint32_t device,
                           const struct catalog_profile *profile)
{
        struct use use = get_use(stage, device, profile->profile.id);
        uint32_t room = catalog_count_room(profile, use.memory);
        uint32_t left = profile->profile.max_instances - use.n_like;
        uint32_t by_slices = (SLICES_MAX - use.slices) / profile->profile.slices;

        left = left < room ? left : room;
        return left < by_slices ? left : by_slices;
}

/* A state page that has MIG tells its profiles also when the mode is off. */
static void put_profiles(struct virtual_stage *stage, uint32_t device)
{
        struct catalog_profile profiles[CATALOG_MIG_PROFILES];
        uint32_t n = catalog_list_profiles(profiles, &stage->scenario->devices[device].record);

        for (uint32_t i = 0; i < n; i++) {
                profiles[i].profile.n_left = stage->scenario->devices[device].mig == 1
                                                     ? count_left(stage, device, &profiles[i])
                                                     : 0;
                state_write_profile(stage->state_page,
                                    state_slot_of_profile(device, profiles[i].number),
                                    &profiles[i].profile);
        }
}

/* GPU instances. */

static int put_types(struct virtual_stage *stage, uint32_t device, uint32_t slot,
                     uint32_t profile_id)
{
        CLEANUP(freep) struct catalog_type *types = calloc(STATE_OFFERS_MAX, sizeof(*types));
        uint32_t n, n_fitting = 0;

        if (!types)
                return -ENOMEM;
        n = scenario_list_types(&stage->scenario->devices[device], types);
        for (uint32_t i = 0; i < n; i++)
                if (types[i].type.profile_id == profile_id)
                        types[n_fitting++] = types[i];
        return catalog_publish_types(stage->state_page, state_site_of_gpu_instance(slot), types,
                                     n_fitting);
}

/* The next slot after the one that was given last. */
static uint32_t take_gpu_instance_slot(struct virtual_stage *stage)
{
        struct state_gpu_instance unused;

        for (uint32_t i = 0; i < STATE_GPU_INSTANCES_MAX; i++) {
                uint32_t slot = stage->next_gpu_instance++ % STATE_GPU_INSTANCES_MAX;

                if (!state_read_gpu_instance(stage->state_page, slot, &unused))
                        return slot;
        }
        return STATE_NONE;
}

static int put_gpu_instance(struct virtual_stage *stage, const struct state_gpu_instance *record,
                            const struct scenario_scheduler *schedulers, size_t n_schedulers,
                            uint32_t *ret_slot)
{
        uint32_t slot = take_gpu_instance_slot(stage);

        if (slot == STATE_NONE)
                return -ENOSPC;
        state_write_gpu_instance(stage->state_page, slot, record);
        virtual_put_schedulers(stage, state_site_of_gpu_instance(slot), schedulers, n_schedulers);
        *ret_slot = slot;
        return put_types(stage, record->device, slot, record->profile_id);
}

/* Compute instances. */

static uint32_t take_compute_instance_slot(struct virtual_stage *stage)
{
        struct state_compute_instance unused;

        for (uint32_t i = 0; i < STATE_COMPUTE_INSTANCES_MAX; i++) {
                uint32_t slot = stage->next_compute_instance++ % STATE_COMPUTE_INSTANCES_MAX;

                if (!state_read_compute_instance(stage->state_page, slot, &unused))
                        return slot;
        }
        return STATE_NONE;
}

static int put_compute_instance(struct virtual_stage *stage, struct state_compute_instance *record)
{
        uint32_t slot = take_compute_instance_slot(stage);
        char uuid[UUID_TEXT_MAX];
        int r;

        if (slot == STATE_NONE)
                return -ENOSPC;
        if (!record->uuid[0]) {
                r = uuid_make(uuid);
                if (r < 0)
                        return r;
                snprintf(record->uuid, sizeof(record->uuid), "MIG-%s", uuid);
        }
        state_write_compute_instance(stage->state_page, slot, record);
        return 0;
}

static int put_compute_instances(struct virtual_stage *stage,
                                 const struct scenario_gpu_instance *gpu_instance, uint32_t slot)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < gpu_instance->n_compute_instances; i++) {
                struct state_compute_instance record = gpu_instance->compute_instances[i].record;

                record.gpu_instance_slot = slot;
                r = put_compute_instance(stage, &record);
        }
        return r;
}

int virtual_put_mig(struct virtual_stage *stage, size_t index)
{
        const struct scenario_device *device = &stage->scenario->devices[index];
        uint32_t slot;
        int r = 0;

        for (size_t i = 0; r == 0 && i < device->n_gpu_instances; i++) {
                const struct scenario_gpu_instance *own = &device->gpu_instances[i];

                r = put_gpu_instance(stage, &own->record, own->schedulers, own->n_schedulers,
                                     &slot);
                if (r == 0)
                        r = put_compute_instances(stage, own, slot);
        }
        put_profiles(stage, (uint32_t)index);
        return r;
}

void virtual_play_mig(struct virtual_stage *stage, size_t index)
{
        const struct scenario *scenario = stage->scenario;
        struct state_gpu_instance record;

        for (uint32_t slot = 0; slot < state_end_gpu_instance(stage->state_page); slot++) {
                uint32_t n = 0;

                if (!state_read_gpu_instance(stage->state_page, slot, &record) ||
                    record.device != index)
                        continue;
                for (size_t j = 0; j < scenario->n_vgpus; j++)
                        n += stage->vgpus[j].is_there && scenario->vgpus[j].device == index &&
                             scenario->vgpus[j].gpu_instance == record.id;
                record.n_instances = n;
                state_write_gpu_instance(stage->state_page, slot, &record);
                catalog_update_offers(stage->state_page, state_site_of_gpu_instance(slot),
                                      n ? 0 : record.memory_total, record.is_heterogeneous == 1);
        }
}

/* What clients ask. */

static int check_mig(const struct virtual_stage *stage, uint32_t device, struct failure *failure)
{
        if (!stage)
                return failure_set(failure, -EOPNOTSUPP, "Unsupported",
                                   "try it in a scenario (docs/scenarios.md)",
                                   "vgpud does not cut real devices by MIG");
        if (device >= stage->scenario->n_devices || stage->scenario->devices[device].mig != 1)
                return failure_set(failure, -EOPNOTSUPP, "Unsupported",
                                   "set mig to true in the scenario",
                                   "device %u is not in MIG mode", device);
        return 0;
}

static int fail_room(struct failure *failure, const char *what)
{
        return failure_set(failure, -ENOSPC, "NoRoom", "destroy another one first",
                           "there is no room left for this %s", what);
}

/* The place for one more, the last first, as NVIDIA's driver gives them; STATE_NONE: there is none. */
static uint32_t find_place(const struct catalog_profile *profile, uint32_t taken)
{
        for (uint32_t start = CATALOG_MIG_SLICES; start-- > 0;)
                if (catalog_fits(profile, start, taken))
                        return start;
        return STATE_NONE;
}

static bool can_begin(const struct catalog_profile *profile, uint32_t start)
{
        return start == STATE_NONE ||
               (start < CATALOG_MIG_SLICES && profile->profile.starts >> start & 1);
}

static uint32_t find_gpu_instance_id(const struct virtual_stage *stage, uint32_t device)
{
        struct state_gpu_instance unused;
        uint32_t id = 1;

        while (find_gpu_instance(stage, device, id, &unused) != STATE_NONE)
                id++;
        return id;
}

int virtual_create_gpu_instance(struct virtual_stage *stage, uint32_t device, uint32_t profile_id,
                                uint32_t start, uint32_t *ret_id, struct failure *failure)
{
        struct catalog_profile profile;
        uint32_t slot, taken;
        struct state_gpu_instance record;
        int r = check_mig(stage, device, failure);

        if (r < 0)
                return r;
        if (!find_profile(stage, device, profile_id, &profile))
                return failure_parameter(failure, "profile", "", "device %u has no profile %u",
                                         device, profile_id);
        if (!can_begin(&profile, start))
                return failure_parameter(failure, "start", "", "a %s cannot begin at slice %u",
                                         profile.profile.name, start);
        taken = get_use(stage, device, profile_id).memory;
        if (start == STATE_NONE)
                start = find_place(&profile, taken);
        if (start == STATE_NONE || !catalog_fits(&profile, start, taken) ||
            count_left(stage, device, &profile) == 0)
                return fail_room(failure, "GPU instance");
        record = (struct state_gpu_instance){
                .device = device,
                .id = find_gpu_instance_id(stage, device),
                .profile_id = profile_id,
                .placement_start = start,
                .placement_size = profile.profile.memory_slices,
                .memory_total = profile.profile.memory_size,
        };
        r = put_gpu_instance(stage, &record, NULL, 0, &slot);
        if (r < 0)
                return r;
        put_profiles(stage, device);
        *ret_id = record.id;
        return 0;
}

/* Also one that a vGPU of the scenario will come to is in use. */
static bool is_promised(const struct virtual_stage *stage, const struct state_gpu_instance *record)
{
        for (size_t i = 0; i < stage->scenario->n_vgpus; i++)
                if (stage->scenario->vgpus[i].device == record->device &&
                    stage->scenario->vgpus[i].gpu_instance == record->id)
                        return true;
        return false;
}

static int find_for(struct virtual_stage *stage, uint32_t device, uint32_t id,
                    struct state_gpu_instance *ret_record, uint32_t *ret_slot,
                    struct failure *failure)
{
        int r = check_mig(stage, device, failure);

        if (r < 0)
                return r;
        *ret_slot = find_gpu_instance(stage, device, id, ret_record);
        return *ret_slot == STATE_NONE
                       ? failure_parameter(failure, "gpu_instance", "",
                                           "device %u has no GPU instance %u", device, id)
                       : 0;
}

int virtual_destroy_gpu_instance(struct virtual_stage *stage, uint32_t device, uint32_t id,
                                 struct failure *failure)
{
        struct state_gpu_instance record;
        uint32_t slot;
        int r = find_for(stage, device, id, &record, &slot, failure);

        if (r < 0)
                return r;
        if (is_promised(stage, &record))
                return failure_set(failure, -EBUSY, "InUse", "",
                                   "GPU instance %u of device %u is that of a vGPU", id, device);
        if (get_taken_slices(stage, slot))
                return failure_set(failure, -EBUSY, "InUse", "destroy them first",
                                   "GPU instance %u of device %u has compute instances", id,
                                   device);
        state_write_gpu_instance(stage->state_page, slot, NULL);
        state_write_offers(stage->state_page, state_site_of_gpu_instance(slot), NULL);
        put_profiles(stage, device);
        return 0;
}

int virtual_create_compute_instance(struct virtual_stage *stage, uint32_t device,
                                    uint32_t gpu_instance, uint32_t profile, uint32_t start,
                                    uint32_t *ret_id, struct failure *failure)
{
        struct state_compute_instance record = { .profile = profile }, other;
        struct state_gpu_instance part;
        uint32_t slot, whole, starts;
        int r = find_for(stage, device, gpu_instance, &part, &slot, failure);

        if (r < 0)
                return r;
        whole = get_slices(stage, device, part.profile_id);
        starts = state_compute_starts(profile, whole);
        if (!starts)
                return failure_parameter(failure, "profile", "",
                                         "GPU instance %u has no compute profile %u", gpu_instance,
                                         profile);
        if (start != STATE_NONE && (start >= SLICES_MAX || !(starts >> start & 1)))
                return failure_parameter(failure, "start", "", "it cannot begin at slice %u",
                                         start);
        starts = state_compute_free_starts(profile, whole, get_taken_slices(stage, slot));
        if (!starts || (start != STATE_NONE && !(starts >> start & 1)))
                return fail_room(failure, "compute instance");
        record.device = device;
        record.gpu_instance = gpu_instance;
        record.gpu_instance_slot = slot;
        record.placement_start = start != STATE_NONE ? start : (uint32_t)__builtin_ctz(starts);
        record.placement_size = state_compute_slices(profile);
        while (find_compute_instance(stage, slot, record.id, &other) != STATE_NONE)
                record.id++;
        r = put_compute_instance(stage, &record);
        if (r == 0)
                *ret_id = record.id;
        return r;
}

int virtual_destroy_compute_instance(struct virtual_stage *stage, uint32_t device,
                                     uint32_t gpu_instance, uint32_t id, struct failure *failure)
{
        struct state_compute_instance record;
        struct state_gpu_instance part;
        uint32_t slot;
        int r = find_for(stage, device, gpu_instance, &part, &slot, failure);

        if (r < 0)
                return r;
        slot = find_compute_instance(stage, slot, id, &record);
        if (slot == STATE_NONE)
                return failure_parameter(failure, "compute_instance", "",
                                         "GPU instance %u has no compute instance %u", gpu_instance,
                                         id);
        state_write_compute_instance(stage->state_page, slot, NULL);
        return 0;
}
