/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CATALOG_BOARD_H
#define CATALOG_BOARD_H

/* Facts of NVIDIA's boards, from its documentation and from pci.ids. */

#include <stdbool.h>
#include <stdint.h>

#define CATALOG_GRAIN ((uint64_t)2 << 20) /* of the memory of a device, bytes */

/* A size in which a board is cut. */
struct catalog_cut {
        uint8_t instances; /* 0 ends a table */
        uint8_t gigabytes; /* in the name; 0: the frame buffer in GiB */
};

/* How MIG cuts a board. Profiles in the order of catalog_list_profiles(). */
#define CATALOG_MIG_PROFILES 7

struct catalog_mig {
        uint8_t gigabytes;          /* of a slice of memory, in names */
        uint8_t multiprocessors[6]; /* that of 1g with the media engines is that of 1g */
        uint32_t memory[5];         /* MiB, by slices of memory; 0: the slices' part of the whole */
        struct {
                uint8_t copy, decoders, jpegs, ofas;
        } engines[CATALOG_MIG_PROFILES];
};

struct catalog_board {
        uint16_t pci_device, pci_subsystem;
        const char *kind;    /* as the simulator calls it; NULL: it can't be simulated */
        uint32_t memory;     /* MiB, as NVML tells it; of those that can be simulated */
        const char *product; /* the device's name */
        const char *name;    /* in the names of its types */
        const struct catalog_cut *cuts;
        const struct catalog_mig *mig; /* NULL: no MIG, or not known since it can't be simulated */
        bool has_graphics;
        uint32_t n_cores, memory_bus_width, power_limit; /* bits; W */
        uint32_t bar1;           /* MiB; 0: the power of two that holds the memory */
        uint8_t links, switches; /* NVLinks, and the switches that they lead to; 0: none */
};

/* Of the links of a board: NVML's number of their version, and what one carries, in MB/s. */
struct catalog_link {
        uint32_t version, speed;
};

/* catalog_find_board() - by PCI device, or by the device's name; NULL for none. */
const struct catalog_board *catalog_find_board(uint16_t pci_device);
const struct catalog_board *catalog_find_product(const char *product);

/*
 * catalog_get_board() - that of @device; NULL for none. A board of which we see less than nine tenths is a part of
 * one (or a simulated small one).
 */
struct state_device;
const struct catalog_board *catalog_get_board(const struct state_device *device);

/* catalog_get_bar1() - the window to its memory, in bytes; of those that can be simulated. */
uint64_t catalog_get_bar1(const struct catalog_board *board);

/* catalog_get_link() - zeros for a board without links. */
struct catalog_link catalog_get_link(const struct catalog_board *board);

/* catalog_find_kind() - by the simulator's word. */
const struct catalog_board *catalog_find_kind(const char *kind);

#endif
