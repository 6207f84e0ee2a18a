/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SPILL_USE_H
#define MANAGER_SPILL_USE_H

/* What the spill has of a guest (spilled.h says how it came there), and how much of all. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct instance;
struct manager;

struct spilled {
        int fd;         /* of the file */
        uint64_t begin; /* where in the vGPU's reserve (reserve.h); 0: the file has nothing else */
        uint64_t bytes;
        uint64_t generation; /* of the reservation that it was copied from */
        struct pool_reservation
                *ahead;     /* spare, with the same in it; NULL: the file has it alone */
        bool is_unreadable; /* reading it ahead has failed */
};

#define SPILLED_SLAB 0u /* of the extent in the store */

/* spill_use_get() - bytes of @instance; spill_use_get_sum() - of all vGPUs. */
uint64_t spill_use_get(const struct instance *instance);
uint64_t spill_use_get_sum(const struct manager *manager);

/* spill_use_get_own() - of @instance in files that are not its reserve; spill_use_get_files() - of all vGPUs. */
uint64_t spill_use_get_own(const struct instance *instance);
uint64_t spill_use_get_files(const struct manager *manager);

/* spill_use_get_coming() - what is on its way to files that are no reserve, of the vGPUs of @user; (uid_t)-1: of all. */
uint64_t spill_use_get_coming(const struct manager *manager, uid_t user);

/*
 * spill_use_pass() - if something is on its way to a part of @instance's reserve between *@begin and @end: *@begin is
 * behind it. It may be of a process that has ended.
 */
bool spill_use_pass(const struct instance *instance, uint64_t end, uint64_t *begin);

#endif
