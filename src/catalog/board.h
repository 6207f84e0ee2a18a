/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CATALOG_BOARD_H
#define CATALOG_BOARD_H

/* Facts of NVIDIA's boards, from its documentation and from pci.ids. */

#include <stdbool.h>
#include <stdint.h>

/* A size in which a board is cut. */
struct catalog_cut {
        uint8_t instances; /* 0 ends a table */
        uint8_t gigabytes; /* in the name; 0: the frame buffer in GiB */
};

struct catalog_board {
        uint16_t pci_device, pci_subsystem;
        const char *kind;    /* as the simulator calls it; NULL: it can't be simulated */
        uint32_t memory;     /* MiB, as NVML tells it; of those that can be simulated */
        const char *product; /* the device's name */
        const char *name;    /* in the names of its types */
        const struct catalog_cut *cuts;
        uint8_t mig_gigabytes;  /* of a memory slice of MIG, in names; 0: no MIG */
        uint8_t mig_processors; /* multiprocessors of a slice */
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

/* catalog_get_bar1() - the window to its memory, in bytes; of those that can be simulated. */
uint64_t catalog_get_bar1(const struct catalog_board *board);

/* catalog_get_link() - zeros for a board without links. */
struct catalog_link catalog_get_link(const struct catalog_board *board);

/* catalog_find_kind() - by the simulator's word. */
const struct catalog_board *catalog_find_kind(const char *kind);

#endif
