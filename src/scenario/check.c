/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a scenario mean together, and what follows from them: devices. */
#include "scenario/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "catalog/board.h"
#include "catalog/mig.h"
#include "scenario/compute.h"
#include "scenario/link.h"
#include "scenario/parse.h"

#define VENDOR 0x10deu

static void describe(struct scenario_device *device, uint32_t index)
{
        const struct catalog_board *board = catalog_find_kind(device->kind);

        if (!device->memory)
                device->memory = board->memory * MIB;
        device->memory &= ~(2 * MIB - 1); /* as the simulator does */
        if (!board->mig && device->mig != 1)
                device->mig = STATE_NONE;
        device->limits = catalog_scheduler_limits;
        device->record = (struct state_device){
                .index = index,
                .pci_device_id = (uint32_t)board->pci_device << 16 | VENDOR,
                .pci_subsystem_id = (uint32_t)board->pci_subsystem << 16 | VENDOR,
                .memory_total = device->memory,
        };
        snprintf(device->record.name, sizeof(device->record.name), "%s", board->product);
        if (device->ecc_pending == STATE_NONE)
                device->ecc_pending = device->ecc;
}

/* Types of the scenario's own. */

static int check_type(const struct scenario_device *device, struct catalog_type *type,
                      struct reader *reader)
{
        if (type->type.frame_buffer == 0 || type->type.frame_buffer > device->memory)
                return reader_fail(reader, "the frame buffer must be above 0 and at most that of "
                                           "the device");
        if (!type->type.pci_device_id)
                type->type.pci_device_id = device->record.pci_device_id;
        if (!type->type.pci_subsystem_id)
                type->type.pci_subsystem_id = device->record.pci_subsystem_id;
        if (!type->type.max_instances_vm)
                type->type.max_instances_vm = type->type.max_instances;
        if (!type->type.bar1)
                type->type.bar1 = type->type.frame_buffer;
        if (!type->type.placement_size)
                type->type.placement_size = type->type.frame_buffer < GIB
                                                    ? 1
                                                    : (uint32_t)(type->type.frame_buffer / GIB);
        if (!type->placements.n_mixed && !type->placements.n_uniform)
                catalog_place(type, (uint32_t)(device->memory / GIB));
        return 0;
}

static int check_types(struct scenario_device *device, size_t index, struct reader *reader)
{
        for (size_t i = 0; i < device->n_types; i++) {
                reader_set_place(reader, "devices[%zu].types[%zu]", index, i);
                for (size_t j = 0; j < i; j++)
                        if (device->types[i].type.id == device->types[j].type.id)
                                return reader_fail(reader, "the id %u is used twice",
                                                   device->types[i].type.id);
                if (check_type(device, &device->types[i], reader) < 0)
                        return -EINVAL;
        }
        return 0;
}

/* Schedulers. */

static int check_scheduler(const struct scenario_scheduler *scheduler, struct reader *reader)
{
        const struct state_scheduler_limits *limits = &catalog_scheduler_limits;

        if (scheduler->policy != STATE_POLICY_BEST_EFFORT &&
            scheduler->engine != STATE_ENGINE_GRAPHICS)
                return reader_fail(reader, "encoders have no policy but best effort");
        if (scheduler->frequency && scheduler->frequency < limits->frequency_min)
                return reader_fail(reader, "the frequency is below %u Hz", limits->frequency_min);
        if (scheduler->time_slice && scheduler->time_slice < limits->time_slice_min)
                return reader_fail(reader, "the time slice is below %u ns", limits->time_slice_min);
        return 0;
}

static int check_schedulers(const struct scenario_scheduler *schedulers, size_t n,
                            struct reader *reader, const char *place)
{
        for (size_t i = 0; i < n; i++) {
                reader_set_place(reader, "%s.schedulers[%zu]", place, i);
                if (check_scheduler(&schedulers[i], reader) < 0)
                        return -EINVAL;
        }
        return 0;
}

/* GPU instances. */

static const struct catalog_profile *find_profile(const struct catalog_profile *profiles,
                                                  uint32_t n, const char *name)
{
        for (uint32_t i = 0; i < n; i++)
                if (strcmp(profiles[i].profile.name, name) == 0)
                        return &profiles[i];
        return NULL;
}

static int fail_profile(const char *name, const struct catalog_profile *profiles, uint32_t n,
                        struct reader *reader)
{
        char words[256] = "";

        for (uint32_t i = 0; i < n; i++)
                snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s",
                         i ? ", " : "", profiles[i].profile.name);
        return reader_fail(reader, "there is no profile '%.32s'; allowed: %s", name, words);
}

/* Slices of memory that the first @n have, as bits. */
static uint32_t get_taken(const struct scenario_device *device, size_t n)
{
        uint32_t taken = 0;

        for (size_t i = 0; i < n; i++)
                taken |= catalog_slices(device->gpu_instances[i].record.placement_start,
                                        device->gpu_instances[i].record.placement_size);
        return taken;
}

static int place_gpu_instance(struct scenario_device *device, size_t index,
                              const struct catalog_profile *profile, struct reader *reader)
{
        struct scenario_gpu_instance *gpu_instance = &device->gpu_instances[index];
        uint32_t taken = get_taken(device, index), start = gpu_instance->placement;

        if (start == SCENARIO_NOTHING)
                for (start = 0; start < CATALOG_MIG_SLICES; start++)
                        if (catalog_fits(profile, start, taken))
                                break;
        if (start >= CATALOG_MIG_SLICES)
                return reader_fail(reader, "there is no room left for a %s",
                                   gpu_instance->profile_name);
        if (!catalog_fits(profile, start, taken))
                return reader_fail(reader,
                                   "a %s cannot begin at slice %u, or others are in its way",
                                   gpu_instance->profile_name, start);
        gpu_instance->record = (struct state_gpu_instance){
                .device = device->record.index,
                .id = gpu_instance->id,
                .profile_id = profile->profile.id,
                .placement_start = start,
                .placement_size = profile->profile.memory_slices,
                .is_heterogeneous = gpu_instance->is_heterogeneous,
                .memory_total = profile->profile.memory_size,
        };
        return 0;
}

static int check_gpu_instance(struct scenario_device *device, size_t at, size_t index,
                              uint32_t *n_slices, struct reader *reader)
{
        struct catalog_profile profiles[CATALOG_MIG_PROFILES];
        uint32_t n = catalog_list_profiles(profiles, &device->record);
        struct scenario_gpu_instance *gpu_instance = &device->gpu_instances[index];
        const struct catalog_profile *profile =
                find_profile(profiles, n, gpu_instance->profile_name);
        char place[96];

        reader_set_place(reader, "devices[%zu].gpu_instances[%zu]", at, index);
        if (device->mig != 1)
                return reader_fail(reader, "the device is not in MIG mode; set its mig to true");
        if (!profile)
                return fail_profile(gpu_instance->profile_name, profiles, n, reader);
        for (size_t i = 0; i < index; i++)
                if (device->gpu_instances[i].id == gpu_instance->id)
                        return reader_fail(reader, "the id %u is used twice", gpu_instance->id);
        *n_slices += profile->profile.slices;
        if (*n_slices > 7)
                return reader_fail(reader, "there are more than 7 slices of multiprocessors");
        if (place_gpu_instance(device, index, profile, reader) < 0)
                return -EINVAL;
        snprintf(place, sizeof(place), "devices[%zu].gpu_instances[%zu]", at, index);
        if (compute_check(gpu_instance, &profile->profile, reader, place) < 0)
                return -EINVAL;
        return check_schedulers(gpu_instance->schedulers, gpu_instance->n_schedulers, reader,
                                place);
}

static int check_device(struct scenario_device *device, size_t index, struct reader *reader)
{
        uint32_t n_slices = 0;
        char place[96];

        snprintf(place, sizeof(place), "devices[%zu]", index);
        reader_set_place(reader, "%s", place);
        if (device->mig == 1 && !catalog_find_kind(device->kind)->mig)
                return reader_fail(reader, "a %s has no MIG", device->kind);
        if (device->memory && device->memory < 64 * MIB)
                return reader_fail(reader, "the memory is too little; allowed: 64 MiB and above");
        describe(device, (uint32_t)index);
        if (check_types(device, index, reader) < 0)
                return -EINVAL;
        if (device->mig == 1 && device->n_schedulers > 0) {
                reader_set_place(reader, "%s.schedulers", place);
                return reader_fail(reader, "in MIG mode each GPU instance has its own");
        }
        if (check_schedulers(device->schedulers, device->n_schedulers, reader, place) < 0)
                return -EINVAL;
        for (size_t i = 0; i < device->n_gpu_instances; i++)
                if (check_gpu_instance(device, index, i, &n_slices, reader) < 0)
                        return -EINVAL;
        return 0;
}

/* MIG devices. */

static size_t count_uuid(const struct scenario_device *device, const char *uuid)
{
        size_t n = 0;

        for (size_t i = 0; i < device->n_gpu_instances; i++)
                for (size_t k = 0; k < device->gpu_instances[i].n_compute_instances; k++)
                        n += strcmp(device->gpu_instances[i].compute_instances[k].uuid, uuid) == 0;
        return n;
}

static int check_compute_uuids(const struct scenario *scenario, size_t index, struct reader *reader)
{
        const struct scenario_device *device = &scenario->devices[index];

        for (size_t i = 0; i < device->n_gpu_instances; i++)
                for (size_t k = 0; k < device->gpu_instances[i].n_compute_instances; k++) {
                        const char *uuid = device->gpu_instances[i].compute_instances[k].uuid;
                        size_t n = 0;

                        for (size_t d = 0; *uuid && d < scenario->n_devices; d++)
                                n += count_uuid(&scenario->devices[d], uuid);
                        if (n < 2)
                                continue;
                        reader_set_place(
                                reader,
                                "devices[%zu].gpu_instances[%zu].compute_instances[%zu].uuid",
                                index, i, k);
                        return reader_fail(reader, "is used twice: a MIG device is found by it");
                }
        return 0;
}

int scenario_check(struct scenario *scenario, struct reader *reader)
{
        reader_set_place(reader, "devices");
        if (scenario->n_devices == 0)
                return reader_fail(reader, "needs a device at least");
        for (size_t i = 0; i < scenario->n_devices; i++)
                if (check_device(&scenario->devices[i], i, reader) < 0)
                        return -EINVAL;
        for (size_t i = 0; i < scenario->n_devices; i++)
                if (check_compute_uuids(scenario, i, reader) < 0 ||
                    link_check(scenario, i, reader) < 0)
                        return -EINVAL;
        return check_vgpus(scenario, reader);
}
