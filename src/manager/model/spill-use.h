/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SPILL_USE_H
#define MANAGER_SPILL_USE_H

/* What the spill has of a guest (spilled.h says how it came there), and how much of all. */

#include <stdint.h>

struct instance;
struct manager;

struct spilled {
        int fd;         /* of the file */
        uint64_t begin; /* where in the vGPU's reserve (reserve.h); 0: the file has nothing else */
        uint64_t bytes;
        uint64_t generation; /* of the reservation that it was copied from */
};

#define SPILLED_SLAB 0u /* of the extent in the store */

/* spill_use_get() - bytes of @instance; spill_use_get_sum() - of all vGPUs. */
uint64_t spill_use_get(const struct instance *instance);
uint64_t spill_use_get_sum(const struct manager *manager);

/* spill_use_get_own() - of @instance in files that are not its reserve; spill_use_get_files() - of all vGPUs. */
uint64_t spill_use_get_own(const struct instance *instance);
uint64_t spill_use_get_files(const struct manager *manager);

#endif
