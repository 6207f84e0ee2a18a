/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/mig.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "catalog/catalog.h"

#define TYPE_BITS 0x30 /* of the ids: above the instances of types that share time */
#define STEP      (512 * MIB)

/* From NVIDIA's MIG user guide, chapter "Supported MIG Profiles". @number is NVML's. */
static const struct cut {
        uint32_t number, id, slices, memory_slices, instances;
        const char *suffix, *type_suffix;
} cuts[CATALOG_MIG_PROFILES] = {
        { 4, 0, 7, 8, 1, "", "" },       { 3, 5, 4, 4, 1, "", "" },  { 2, 9, 3, 4, 2, "", "" },
        { 1, 14, 2, 2, 3, "", "" },      { 9, 15, 1, 2, 4, "", "" }, { 0, 19, 1, 1, 7, "", "" },
        { 7, 20, 1, 1, 1, "+me", "ME" },
};

/* In names the slices of memory are whole GB, but all of them are what the board is called by. */
static uint32_t name_gigabytes(const struct cut *cut, const struct catalog_board *board)
{
        uint32_t all = board->cuts[0].gigabytes;

        if (cut->memory_slices == 1)
                return board->mig->gigabytes;
        return (all * cut->memory_slices + CATALOG_MIG_SLICES / 2) / CATALOG_MIG_SLICES;
}

/* A device that is not a whole board has a part of what the board's listing says. */
static uint64_t get_memory(const struct cut *cut, const struct catalog_board *board,
                           const struct state_device *device)
{
        uint64_t share = device->memory_total / CATALOG_MIG_SLICES * cut->memory_slices;

        if (cut->memory_slices == CATALOG_MIG_SLICES)
                return device->memory_total;
        if (board->mig->memory[cut->memory_slices] &&
            device->memory_total / CATALOG_GRAIN == board->memory * MIB / CATALOG_GRAIN)
                return board->mig->memory[cut->memory_slices] * MIB;
        return share - share % STEP;
}

/*
 * Instances begin at multiples of their size, and there are only seven slices of multiprocessors,
 * one behind each slice of memory but the last.
 */
static uint32_t get_starts(const struct cut *cut)
{
        uint32_t starts = 0;

        for (uint32_t start = 0; start + cut->memory_slices <= CATALOG_MIG_SLICES;
             start += cut->memory_slices)
                if (start + cut->slices < CATALOG_MIG_SLICES)
                        starts |= 1u << start;
        return starts;
}

uint32_t catalog_list_profiles(struct catalog_profile *profiles, const struct state_device *device)
{
        const struct catalog_board *board =
                catalog_find_board((uint16_t)(device->pci_device_id >> 16));

        if (!board || !board->mig)
                return 0;
        for (uint32_t i = 0; i < CATALOG_MIG_PROFILES; i++) {
                const struct catalog_mig *mig = board->mig;
                const struct cut *cut = &cuts[i];

                profiles[i] = (struct catalog_profile){
                        .number = cut->number,
                        .profile = { .id = cut->id,
                                     .slices = cut->slices,
                                     .max_instances = cut->instances,
                                     .n_multiprocessors = mig->multiprocessors[i < 6 ? i : 5],
                                     .n_copy_engines = mig->engines[i].copy,
                                     .n_decoders = mig->engines[i].decoders,
                                     .n_jpegs = mig->engines[i].jpegs,
                                     .n_ofas = mig->engines[i].ofas,
                                     .n_left = cut->instances,
                                     .memory_slices = cut->memory_slices,
                                     .starts = get_starts(cut),
                                     .memory_size = get_memory(cut, board, device) },
                };
                snprintf(profiles[i].profile.name, sizeof(profiles[i].profile.name), "%ug.%ugb%s",
                         cut->slices, name_gigabytes(cut, board), cut->suffix);
        }
        return CATALOG_MIG_PROFILES;
}

bool catalog_fits(const struct catalog_profile *profile, uint32_t start, uint32_t taken)
{
        return start < CATALOG_MIG_SLICES && (profile->profile.starts >> start & 1) &&
               (taken & catalog_slices(start, profile->profile.memory_slices)) == 0;
}

uint32_t catalog_count_room(const struct catalog_profile *profile, uint32_t taken)
{
        uint32_t n = 0;

        for (uint32_t start = 0; start < CATALOG_MIG_SLICES; start++)
                n += catalog_fits(profile, start, taken);
        return n;
}

uint32_t catalog_list_mig_types(struct catalog_type *types, uint32_t n,
                                const struct state_device *device,
                                const struct catalog_board *board)
{
        for (uint32_t i = 0; board->mig && i < CATALOG_MIG_PROFILES; i++) {
                const struct cut *cut = &cuts[i];
                struct catalog_type *type = &types[n];

                if (n == CATALOG_TYPES_MAX)
                        break;
                *type = (struct catalog_type){
                        .type = { .id = catalog_make_id(device, TYPE_BITS | i),
                                  .pci_device_id = device->pci_device_id,
                                  .pci_subsystem_id = device->pci_subsystem_id,
                                  .profile_id = cut->id,
                                  .n_heads = 1,
                                  .width = 3840,
                                  .height = 2400,
                                  .max_instances = cut->instances,
                                  .max_instances_vm = 1,
                                  .max_instances_gpu_instance = 1,
                                  .placement_size = cut->memory_slices,
                                  .frame_buffer = get_memory(cut, board, device),
                                  .bar1 = get_memory(cut, board, device) },
                };
                snprintf(type->text.name, sizeof(type->text.name), "NVIDIA %.40s-%u-%uC%s",
                         board->name, cut->slices, name_gigabytes(cut, board), cut->type_suffix);
                strcpy(type->text.class, "Compute");
                strcpy(type->text.licence, "NVIDIA-vComputeServer,9.0;Quadro-Virtual-DWS,5.0");
                n++;
        }
        return n;
}
