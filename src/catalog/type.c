/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "catalog/board.h"
#include "catalog/catalog.h"
#include "catalog/mig.h"

#define FRAME_BUFFER_STEP (512 * MIB)
#define FRAME_BUFFER_MIN  (1 * GIB)

/* Of a board that we do not know. */
static const struct catalog_cut cuts_other[] = { { 1, 0 },  { 2, 0 },  { 4, 0 }, { 8, 0 },
                                                 { 16, 0 }, { 32, 0 }, { 0, 0 } };

/* Of NVIDIA's types for graphics, each as many GB as its name says. */
static const uint8_t sizes_workstation[] = { 48, 24, 16, 12, 8, 6, 4, 3, 2, 1, 0 };
static const uint8_t sizes_pc[] = { 2, 1, 0 };

#define INSTANCES_MAX 32 /* of a type on a device that is not cut by MIG */

/* The series of NVIDIA's types: what each is for. @bits tell them apart in ids. */
static const struct series {
        enum catalog_series series;
        uint8_t bits;
        char letter;
        const char *class, *licence;
        const uint8_t *sizes; /* NULL: the board's cuts */
        uint32_t n_heads, width, height, frame_rate_limit;
} all_series[] = {
        { CATALOG_COMPUTE, 0x00, 'C', "Compute", "NVIDIA-vComputeServer,9.0;Quadro-Virtual-DWS,5.0",
          NULL, 1, 3840, 2400, 0 },
        { CATALOG_WORKSTATION, 0x40, 'Q', "Quadro",
          "Quadro-Virtual-DWS,5.0;GRID-Virtual-WS,2.0;GRID-Virtual-WS-Ext,2.0", sizes_workstation,
          4, 7680, 4320, 60 },
        { CATALOG_PC, 0x80, 'B', "NVS",
          "GRID-Virtual-PC,2.0;Quadro-Virtual-DWS,5.0;GRID-Virtual-WS,2.0", sizes_pc, 4, 5120, 2880,
          45 },
        { CATALOG_APPS, 0xc0, 'A', "NVS", "GRID-Virtual-Apps,3.0", sizes_workstation, 1, 1280, 1024,
          60 },
};

static void write_texts(struct state_type_text *text, const struct state_device *device,
                        const struct series *series, uint32_t gigabytes)
{
        const struct catalog_board *board = catalog_get_board(device);
        const char *name = board ? board->name : device->name;

        if (strncmp(name, "NVIDIA ", strlen("NVIDIA ")) == 0)
                name += strlen("NVIDIA ");
        snprintf(text->name, sizeof(text->name), "NVIDIA %.40s-%u%c", name, gigabytes,
                 series->letter);
        strcpy(text->class, series->class);
        strcpy(text->licence, series->licence);
}

/* Slots are GiB as the names of types count them; a board that we do not know has its own. */
static uint32_t count_slots(uint64_t frame_buffer, uint32_t gigabytes)
{
        uint64_t slots = gigabytes ? gigabytes : frame_buffer / GIB;

        return slots ? (uint32_t)slots : 1;
}

/*
 * Where a vGPU may begin in a region of slots. When sizes mix, by the rule behind the tables of
 * NVIDIA's user guide: the region is halved until half as many parts are there as vGPUs of the type
 * may run (a power of two), and in each part one stands at the start and one at the end.
 */
static void place_mixed(struct state_placements *placements, uint32_t region, uint32_t size,
                        uint32_t max_instances)
{
        uint32_t parts = 1;

        if (max_instances < 2) {
                placements->n_mixed = 1;
                return;
        }
        while (parts * 4 <= max_instances && parts * 4 <= STATE_PLACEMENTS_MAX)
                parts *= 2;
        for (uint32_t i = 0; i < parts; i++) {
                placements->mixed[placements->n_mixed++] = (uint16_t)(region * i / parts);
                placements->mixed[placements->n_mixed++] =
                        (uint16_t)(region * (i + 1) / parts - size);
        }
}

/* Those of one size stand side by side. */
static void place_uniform(struct state_placements *placements, uint32_t size,
                          uint32_t max_instances)
{
        for (uint32_t i = 0; i < max_instances && i < STATE_PLACEMENTS_MAX; i++)
                placements->uniform[placements->n_uniform++] = (uint16_t)(i * size);
}

void catalog_place(struct catalog_type *type, uint32_t region)
{
        uint32_t size = type->type.placement_size, n = type->type.max_instances;

        type->placements = (struct state_placements){ 0 };
        place_mixed(&type->placements, region, size, n);
        place_uniform(&type->placements, size, n);
}

static void cut_device(struct catalog_type *ret_type, const struct state_device *device,
                       const struct series *series, const struct catalog_cut *cut, uint32_t region)
{
        uint64_t share = device->memory_total / cut->instances;
        uint64_t rounded = cut->instances == 1 ? share : share - share % FRAME_BUFFER_STEP;

        *ret_type = (struct catalog_type){
                .type = { .id = catalog_make_id(device, series->bits | cut->instances),
                          .pci_device_id = device->pci_device_id,
                          .pci_subsystem_id = device->pci_subsystem_id,
                          .profile_id = STATE_NONE,
                          .n_heads = series->n_heads,
                          .width = series->width,
                          .height = series->height,
                          .frame_rate_limit = series->frame_rate_limit,
                          .max_instances = cut->instances,
                          .max_instances_vm = cut->instances, /* a tenant may hold all of them */
                          .placement_size = count_slots(rounded, cut->gigabytes),
                          .frame_buffer = rounded,
                          /* As large as the frame buffer, as on boards with a resizable one. */
                          .bar1 = rounded },
        };
        write_texts(&ret_type->text, device, series,
                    cut->gigabytes ? cut->gigabytes : (uint32_t)(rounded / GIB));
        catalog_place(ret_type, region);
}

/* The cuts of a series that has its own sizes; into INSTANCES_MAX places. */
static const struct catalog_cut *make_cuts(struct catalog_cut *cuts, const uint8_t *sizes,
                                           uint32_t region)
{
        struct catalog_cut *cut = cuts;

        for (; *sizes; sizes++)
                if (region % *sizes == 0)
                        *cut++ = (struct catalog_cut){
                                .instances =
                                        (uint8_t)(region / *sizes < INSTANCES_MAX ? region / *sizes
                                                                                  : INSTANCES_MAX),
                                .gigabytes = *sizes,
                        };
        *cut = (struct catalog_cut){ 0 };
        return cuts;
}

static uint32_t list_series(struct catalog_type *types, uint32_t n,
                            const struct state_device *device, const struct series *series)
{
        const struct catalog_board *board = catalog_get_board(device);
        uint32_t region = count_slots(device->memory_total, board ? board->cuts[0].gigabytes : 0);
        struct catalog_cut own[INSTANCES_MAX];
        const struct catalog_cut *cut = series->sizes ? make_cuts(own, series->sizes, region)
                                        : board       ? board->cuts
                                                      : cuts_other;

        for (; cut->instances > 0 && n < CATALOG_TYPES_MAX; cut++) {
                cut_device(&types[n], device, series, cut, region);
                if (cut->instances == 1 || types[n].type.frame_buffer >= FRAME_BUFFER_MIN ||
                    series->sizes)
                        n++;
        }
        return n;
}

uint32_t catalog_list_types(struct catalog_type *types, const struct state_device *device,
                            uint32_t series)
{
        const struct catalog_board *board = catalog_get_board(device);
        uint32_t n = 0;

        for (size_t i = 0; i < sizeof(all_series) / sizeof(all_series[0]); i++)
                if (series & all_series[i].series &&
                    (all_series[i].series == CATALOG_COMPUTE || (board && board->has_graphics)))
                        n = list_series(types, n, device, &all_series[i]);
        if (series & CATALOG_MIG && board)
                n = catalog_list_mig_types(types, n, device, board);
        return n;
}
