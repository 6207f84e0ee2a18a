/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CATALOG_MIG_H
#define CATALOG_MIG_H

/* GPU instances: how a board is cut by MIG, and the types that a whole GPU instance is. */

#include "catalog/board.h"
#include "state/state-page.h"

#define CATALOG_MIG_SLICES 8 /* of memory */

struct catalog_profile {
        uint32_t number; /* NVML_GPU_INSTANCE_PROFILE_* */
        struct state_profile profile;
};

/* catalog_list_profiles() - into CATALOG_MIG_PROFILES places; 0: the board has no MIG. */
uint32_t catalog_list_profiles(struct catalog_profile *profiles, const struct state_device *device);

/* catalog_slices() - slices of memory as bits. */
static inline uint32_t catalog_slices(uint32_t start, uint32_t size)
{
        return ((1u << size) - 1) << start;
}

/* catalog_fits() - can an instance begin at slice @start of memory beside those that are @taken (bits)? */
bool catalog_fits(const struct catalog_profile *profile, uint32_t start, uint32_t taken);

/* catalog_count_room() - how many instances fit beside the slices of memory that are @taken. */
uint32_t catalog_count_room(const struct catalog_profile *profile, uint32_t taken);

struct catalog_type;

/* catalog_list_mig_types() - behind the @n types that are there; returns how many there are then. */
uint32_t catalog_list_mig_types(struct catalog_type *types, uint32_t n,
                                const struct state_device *device,
                                const struct catalog_board *board);

#endif
