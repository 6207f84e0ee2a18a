/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "catalog/catalog.h"

#define FRAME_BUFFER_STEP (512 * MIB)
#define FRAME_BUFFER_MIN  (1 * GIB)

/* What NVIDIA's types for compute have: one head, so that a client that loops over heads finds one. */
#define HEADS  1
#define WIDTH  3840
#define HEIGHT 2400

struct cut {
        uint8_t instances;
        uint8_t gigabytes; /* in the name; 0: the frame buffer in GiB */
};

/* NVIDIA's virtual GPU types for compute, from its documentation, by size of the board's memory. */
static const struct cut cuts_141[] = { { 1, 141 }, { 2, 70 }, { 4, 35 }, { 5, 28 }, { 8, 17 },
                                       { 10, 14 }, { 16, 8 }, { 20, 7 }, { 32, 4 }, { 0, 0 } };
static const struct cut cuts_94[] = { { 1, 94 }, { 2, 47 }, { 4, 23 }, { 6, 15 },
                                      { 8, 11 }, { 15, 6 }, { 23, 4 }, { 0, 0 } };
static const struct cut cuts_80[] = { { 1, 80 }, { 2, 40 }, { 4, 20 }, { 5, 16 },
                                      { 8, 10 }, { 10, 8 }, { 20, 4 }, { 0, 0 } };
static const struct cut cuts_48[] = { { 1, 48 }, { 2, 24 }, { 3, 16 }, { 4, 12 },
                                      { 6, 8 },  { 8, 6 },  { 12, 4 }, { 0, 0 } };
static const struct cut cuts_40[] = { { 1, 40 }, { 2, 20 }, { 4, 10 }, { 5, 8 },
                                      { 8, 5 },  { 10, 4 }, { 0, 0 } };
static const struct cut cuts_24[] = {
        { 1, 24 }, { 2, 12 }, { 3, 8 }, { 4, 6 }, { 6, 4 }, { 0, 0 }
};
static const struct cut cuts_16[] = { { 1, 16 }, { 2, 8 }, { 4, 4 }, { 0, 0 } };
static const struct cut cuts_other[] = { { 1, 0 },  { 2, 0 },  { 4, 0 }, { 8, 0 },
                                         { 16, 0 }, { 32, 0 }, { 0, 0 } };

static const struct known_board {
        uint16_t pci_device;
        const char *name; /* in the names of its types */
        const struct cut *cuts;
} known_boards[] = {
        { 0x2335, "H200", cuts_141 },  /* SXM5 */
        { 0x233b, "H200", cuts_141 },  /* NVL */
        { 0x2321, "H100L", cuts_94 },  /* NVL */
        { 0x2330, "H100XM", cuts_80 }, /* SXM5 */
        { 0x2331, "H100", cuts_80 },   /* PCIe */
        { 0x20b2, "A100DX", cuts_80 }, /* SXM4, 80 GB */
        { 0x20b5, "A100D", cuts_80 },  /* PCIe, 80 GB */
        { 0x20b0, "A100X", cuts_40 },  /* SXM4, 40 GB */
        { 0x20f1, "A100", cuts_40 },   /* PCIe, 40 GB */
        { 0x20b7, "A30", cuts_24 },    { 0x2235, "A40", cuts_48 },  { 0x2236, "A10", cuts_24 },
        { 0x26b5, "L40", cuts_48 },    { 0x26b9, "L40S", cuts_48 }, { 0x27b8, "L4", cuts_24 },
        { 0x1eb8, "T4", cuts_16 },
};

static uint16_t pci_device(const struct board_device *device)
{
        return (uint16_t)(device->pci_device_id >> 16);
}

/* A board of which we see less than nine tenths is a part of one (or a simulated small one). */
static const struct known_board *find_board(const struct board_device *device)
{
        for (size_t i = 0; i < sizeof(known_boards) / sizeof(known_boards[0]); i++) {
                const struct known_board *board = &known_boards[i];

                if (board->pci_device == pci_device(device))
                        return device->memory_total >= board->cuts[0].gigabytes * GIB / 10 * 9
                                       ? board
                                       : NULL;
        }
        return NULL;
}

static void write_name(struct board_type_text *text, const struct board_device *device,
                       uint32_t gigabytes)
{
        const struct known_board *board = find_board(device);
        const char *name = board ? board->name : device->name;

        if (strncmp(name, "NVIDIA ", strlen("NVIDIA ")) == 0)
                name += strlen("NVIDIA ");
        snprintf(text->name, sizeof(text->name), "NVIDIA %.40s-%uC", name, gigabytes);
        strcpy(text->class, "Compute");
        strcpy(text->licence, "OpenVGPU," OPENVGPU_VERSION);
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
static void place_mixed(struct board_placements *placements, uint32_t region, uint32_t size,
                        uint32_t max_instances)
{
        uint32_t parts = 1;

        if (max_instances < 2) {
                placements->n_mixed = 1;
                return;
        }
        while (parts * 4 <= max_instances && parts * 4 <= BOARD_PLACEMENTS_MAX)
                parts *= 2;
        for (uint32_t i = 0; i < parts; i++) {
                placements->mixed[placements->n_mixed++] = (uint16_t)(region * i / parts);
                placements->mixed[placements->n_mixed++] =
                        (uint16_t)(region * (i + 1) / parts - size);
        }
}

/* Those of one size stand side by side. */
static void place_uniform(struct board_placements *placements, uint32_t size,
                          uint32_t max_instances)
{
        for (uint32_t i = 0; i < max_instances && i < BOARD_PLACEMENTS_MAX; i++)
                placements->uniform[placements->n_uniform++] = (uint16_t)(i * size);
}

void catalog_place(struct catalog_type *type, uint32_t region)
{
        uint32_t size = type->type.placement_size, n = type->type.max_instances;

        type->placements = (struct board_placements){ 0 };
        place_mixed(&type->placements, region, size, n);
        place_uniform(&type->placements, size, n);
}

static void cut_device(struct catalog_type *ret_type, const struct board_device *device,
                       const struct cut *cut, uint32_t region)
{
        uint64_t share = device->memory_total / cut->instances;
        uint64_t rounded = cut->instances == 1 ? share : share - share % FRAME_BUFFER_STEP;

        *ret_type = (struct catalog_type){
                .type = { .id = (uint32_t)pci_device(device) << 8 | cut->instances,
                          .pci_device_id = device->pci_device_id,
                          .pci_subsystem_id = device->pci_subsystem_id,
                          .profile_id = BOARD_NONE,
                          .n_heads = HEADS,
                          .width = WIDTH,
                          .height = HEIGHT,
                          .max_instances = cut->instances,
                          .max_instances_vm = cut->instances, /* a tenant may hold all of them */
                          .placement_size = count_slots(rounded, cut->gigabytes),
                          .frame_buffer = rounded,
                          /* As large as the frame buffer, as on boards with a resizable one. */
                          .bar1 = rounded },
        };
        write_name(&ret_type->text, device,
                   cut->gigabytes ? cut->gigabytes : (uint32_t)(rounded / GIB));
        catalog_place(ret_type, count_slots(device->memory_total, region));
}

uint32_t catalog_list_types(struct catalog_type *types, const struct board_device *device)
{
        const struct known_board *board = find_board(device);
        const struct cut *cut = board ? board->cuts : cuts_other;
        uint32_t n = 0;

        for (; cut->instances > 0 && n < CATALOG_TYPES_MAX; cut++) {
                cut_device(&types[n], device, cut, board ? board->cuts[0].gigabytes : 0);
                if (cut->instances == 1 || types[n].type.frame_buffer >= FRAME_BUFFER_MIN)
                        n++;
        }
        return n;
}
