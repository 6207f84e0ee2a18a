/* SPDX-License-Identifier: Apache-2.0 */
#include "catalog/board.h"

#include <stddef.h>
#include <string.h>

#include "base/size.h"
#include "catalog/catalog.h"

#define PREFIXES 127 /* of the ids of types: a prime, and no id is negative */

/* NVIDIA's virtual GPU types for compute, from its documentation, by size of the board's memory. */
static const struct catalog_cut cuts_141[] = { { 1, 141 }, { 2, 70 },  { 4, 35 }, { 5, 28 },
                                               { 8, 17 },  { 10, 14 }, { 16, 8 }, { 20, 7 },
                                               { 32, 4 },  { 0, 0 } };
static const struct catalog_cut cuts_94[] = { { 1, 94 }, { 2, 47 }, { 4, 23 }, { 6, 15 },
                                              { 8, 11 }, { 15, 6 }, { 23, 4 }, { 0, 0 } };
static const struct catalog_cut cuts_80[] = { { 1, 80 }, { 2, 40 }, { 4, 20 }, { 5, 16 },
                                              { 8, 10 }, { 10, 8 }, { 20, 4 }, { 0, 0 } };
static const struct catalog_cut cuts_48[] = { { 1, 48 }, { 2, 24 }, { 3, 16 }, { 4, 12 },
                                              { 6, 8 },  { 8, 6 },  { 12, 4 }, { 0, 0 } };
static const struct catalog_cut cuts_40[] = { { 1, 40 }, { 2, 20 }, { 4, 10 }, { 5, 8 },
                                              { 8, 5 },  { 10, 4 }, { 0, 0 } };
static const struct catalog_cut cuts_24[] = { { 1, 24 }, { 2, 12 }, { 3, 8 },
                                              { 4, 6 },  { 6, 4 },  { 0, 0 } };
static const struct catalog_cut cuts_16[] = { { 1, 16 }, { 2, 8 }, { 4, 4 }, { 0, 0 } };

/*
 * Engines and copy engines: NVIDIA's MIG user guide, chapter "Supported MIG Profiles", tables "GPU Instance
 * Profiles on A100", "on H100" and "on H200"; the last two are alike. Multiprocessors and memory of an A100:
 * the guide, chapter "Getting Started with MIG", listing of nvidia-smi mig -lgip; of an H100 80 GB (SXM5): the
 * same listing of such a board; of an H200: the listing (1g, 2g), and what CUDA tells in 3g (69.75 GiB).
 */
static const struct catalog_mig mig_a100 = {
        .gigabytes = 5,
        .multiprocessors = { 98, 56, 42, 28, 14, 14 },
        .memory = { [1] = 4864, [2] = 9984, [4] = 19968 },
        .engines = { { 7, 5, 1, 1 },
                     { 4, 2, 0, 0 },
                     { 3, 2, 0, 0 },
                     { 2, 1, 0, 0 },
                     { 1, 1, 0, 0 },
                     { 1, 0, 0, 0 },
                     { 1, 1, 1, 1 } },
};

#define HOPPER                                                                       \
        .multiprocessors = { 132, 64, 60, 32, 26, 16 },                              \
        .engines = { { 8, 7, 7, 1 }, { 4, 4, 4, 0 }, { 3, 3, 3, 0 }, { 2, 2, 2, 0 }, \
                     { 1, 1, 1, 0 }, { 1, 1, 1, 0 }, { 1, 1, 1, 1 } }

static const struct catalog_mig mig_h100 = { .gigabytes = 10,
                                             .memory = { [1] = 9984, [2] = 20096, [4] = 40448 },
                                             HOPPER };
static const struct catalog_mig mig_h200 = { .gigabytes = 18,
                                             .memory = { [1] = 16384, [2] = 33280, [4] = 71424 },
                                             HOPPER };

static const struct catalog_board boards[] = {
        /* SXM5 */
        { 0x2335, 0x18be, "H200", 143771, "NVIDIA H200", "H200", cuts_141, &mig_h200, false, 16896,
          6144, 700, 0, 18, 4 },
        { 0x233b, 0x1996, NULL, 0, "NVIDIA H200 NVL", "H200", cuts_141, NULL, false, 16896, 6144,
          600, 0, 0, 0 },
        { 0x2321, 0x1839, NULL, 0, "NVIDIA H100 NVL", "H100L", cuts_94, NULL, false, 16896, 6016,
          400, 0, 0, 0 },
        /* SXM5 */
        { 0x2330, 0x16c1, "H100", 81559, "NVIDIA H100 80GB HBM3", "H100XM", cuts_80, &mig_h100,
          false, 16896, 5120, 700, 0, 18, 4 },
        { 0x2331, 0x1626, NULL, 0, "NVIDIA H100 PCIe", "H100", cuts_80, NULL, false, 14592, 5120,
          350, 0, 0, 0 },
        { 0x20b2, 0x1463, NULL, 0, "NVIDIA A100-SXM4-80GB", "A100DX", cuts_80, NULL, false, 6912,
          5120, 400, 0, 0, 0 },
        { 0x20b5, 0x1533, NULL, 0, "NVIDIA A100 80GB PCIe", "A100D", cuts_80, NULL, false, 6912,
          5120, 300, 0, 0, 0 },
        { 0x20b0, 0x134f, "A100", 40960, "NVIDIA A100-SXM4-40GB", "A100X", cuts_40, &mig_a100,
          false, 6912, 5120, 400, 0, 12, 6 },
        { 0x20f1, 0x145f, NULL, 0, "NVIDIA A100-PCIE-40GB", "A100", cuts_40, NULL, false, 6912,
          5120, 250, 0, 0, 0 },
        { 0x20b7, 0x1532, NULL, 0, "NVIDIA A30", "A30", cuts_24, NULL, false, 3584, 3072, 165, 0, 0,
          0 },
        { 0x2235, 0x145a, NULL, 0, "NVIDIA A40", "A40", cuts_48, NULL, true, 10752, 384, 300, 0, 0,
          0 },
        { 0x2236, 0x1482, NULL, 0, "NVIDIA A10", "A10", cuts_24, NULL, true, 9216, 384, 150, 0, 0,
          0 },
        { 0x26b1, 0x16a1, "RTX6000Ada", 49140, "NVIDIA RTX 6000 Ada Generation", "RTX6000-Ada",
          cuts_48, NULL, true, 18176, 384, 300, 0, 0, 0 },
        { 0x26b5, 0x169d, NULL, 0, "NVIDIA L40", "L40", cuts_48, NULL, true, 18176, 384, 300, 0, 0,
          0 },
        { 0x26b9, 0x1851, "L40S", 46068, "NVIDIA L40S", "L40S", cuts_48, NULL, true, 18176, 384,
          350, 0, 0, 0 },
        { 0x27b8, 0x16ca, "L4", 23034, "NVIDIA L4", "L4", cuts_24, NULL, true, 7424, 192, 72, 0, 0,
          0 },
        { 0x1eb8, 0x12a2, "T4", 15360, "Tesla T4", "T4", cuts_16, NULL, true, 2560, 256, 70, 256, 0,
          0 },
};

#define N_BOARDS (sizeof(boards) / sizeof(boards[0]))

/* Third generation with Ampere, fourth with Hopper. */
struct catalog_link catalog_get_link(const struct catalog_board *board)
{
        if (!board->links)
                return (struct catalog_link){ 0 };
        return board->pci_device >= 0x2300 ? (struct catalog_link){ 6, 26562 }
                                           : (struct catalog_link){ 4, 25781 };
}

const struct catalog_board *catalog_find_board(uint16_t pci_device)
{
        for (size_t i = 0; i < N_BOARDS; i++)
                if (boards[i].pci_device == pci_device)
                        return &boards[i];
        return NULL;
}

const struct catalog_board *catalog_find_product(const char *product)
{
        for (size_t i = 0; i < N_BOARDS; i++)
                if (strcmp(boards[i].product, product) == 0)
                        return &boards[i];
        return NULL;
}

uint64_t catalog_get_bar1(const struct catalog_board *board)
{
        uint64_t size = board->bar1 ? board->bar1 * MIB : MIB;

        while (!board->bar1 && size < board->memory * MIB)
                size *= 2;
        return size;
}

const struct catalog_board *catalog_find_kind(const char *kind)
{
        for (size_t i = 0; i < N_BOARDS; i++)
                if (boards[i].kind && strcmp(boards[i].kind, kind) == 0)
                        return &boards[i];
        return NULL;
}

static uint16_t pci_device(const struct state_device *device)
{
        return (uint16_t)(device->pci_device_id >> 16);
}

const struct catalog_board *catalog_get_board(const struct state_device *device)
{
        const struct catalog_board *board = catalog_find_board(pci_device(device));

        return board && device->memory_total >= board->cuts[0].gigabytes * GIB / 10 * 9 ? board
                                                                                        : NULL;
}

static bool is_whole(const struct state_device *device)
{
        const struct catalog_board *board = catalog_get_board(device);

        return board && (board->memory == 0 || device->memory_total / CATALOG_GRAIN ==
                                                       board->memory * MIB / CATALOG_GRAIN);
}

uint32_t catalog_make_id(const struct state_device *device, uint32_t number)
{
        uint64_t prefix =
                is_whole(device) ? 0 : 1 + device->memory_total / CATALOG_GRAIN % PREFIXES;

        return (uint32_t)prefix << 24 | (uint32_t)pci_device(device) << 8 | number;
}
