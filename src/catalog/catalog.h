/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

/*
 * The catalog: facts about NVIDIA's boards, and the rule by which a device is cut into vGPU types.
 * The manager publishes the result; readers of the state page never ask the catalog.
 *
 * For known boards, the types are the compute types that NVIDIA documents for the board, with
 * NVIDIA's names ("NVIDIA H200-35C": a quarter). Other boards are cut into 1, 2, 4, 8, 16 and 32,
 * and their types are named after the device and the size in GiB. A type has a frame buffer:
 *
 *     frame buffer = memory of the device / most instances, rounded down to 512 MiB;
 *     the type of one instance has all of it
 *
 * so that the most instances always fit, whatever part of the memory the board's driver keeps.
 *
 * The id of a type is PCI device << 8 | most instances: the same on every host and in every run. A
 * device whose memory is not that of its board has other ids, because its types have other sizes.
 */

#include <stdint.h>

#include "state/state-page.h"

/* What a type is for; bits. Live vGPUs are for compute. */
enum catalog_series {
        CATALOG_COMPUTE = 1,     /* -35C */
        CATALOG_WORKSTATION = 2, /* -12Q, and the following: only boards with graphics */
        CATALOG_PC = 4,          /* -2B */
        CATALOG_APPS = 8,        /* -4A */
        CATALOG_MIG = 16,        /* -1-18C: a GPU instance */
};

/* At most so many types a device. */
#define CATALOG_TYPES_MAX 64

struct catalog_type {
        struct state_type type;
        struct state_type_text text;
        struct state_placements placements;
};

/*
 * catalog_list_types() - the types of @device, each series largest first, into CATALOG_TYPES_MAX
 * places; @series: bits
 */
uint32_t catalog_list_types(struct catalog_type *types, const struct state_device *device,
                            uint32_t series);

/* catalog_make_id() - the id of the type with this @number (8 bits) among those of @device. */
uint32_t catalog_make_id(const struct state_device *device, uint32_t number);

/* What NVIDIA's scheduler can be set to, from its user guide. */
extern const struct state_scheduler_limits catalog_scheduler_limits;

/* catalog_place() - set the placements of @type in a region of @region slots. */
void catalog_place(struct catalog_type *type, uint32_t region);

/* catalog_publish() - its types for compute, and that @device offers them. Errors: -ENOSPC. */
int catalog_publish(struct state_page *state_page, const struct state_device *device);

/* catalog_publish_types() - the same for any types at any site. */
int catalog_publish_types(struct state_page *state_page, uint32_t site,
                          const struct catalog_type *types, uint32_t n);

/*
 * catalog_type_of_quota() - the id of the smallest type on offer at @site that holds @quota bytes,
 * else of the largest; 0: nothing is on offer. Quotas are free, types are what NVML's clients know.
 */
uint32_t catalog_type_of_quota(const struct state_page *state_page, uint32_t site, uint64_t quota);

/*
 * catalog_update_offers() - what could still be created at @site, beside the vGPUs that the state page
 * shows there, with @left bytes to promise. When sizes don't mix, only the size that runs.
 */
void catalog_update_offers(struct state_page *state_page, uint32_t site, uint64_t left,
                           bool is_heterogeneous);

/*
 * catalog_find_placement() - the first slot for one more vGPU of the type @id at @site;
 * STATE_PLACEMENT_NONE: there is none
 */
uint32_t catalog_find_placement(const struct state_page *state_page, uint32_t site, uint32_t id,
                                bool is_heterogeneous);

#endif
