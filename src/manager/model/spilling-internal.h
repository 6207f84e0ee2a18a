/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SPILLING_INTERNAL_H
#define MANAGER_SPILLING_INTERNAL_H

#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

struct guest;
struct manager;
struct reserve;
struct spill_copy;

/* Memory of a guest on its way to a file: spilling.h. */
struct spilling {
        struct list link; /* in manager->spillings */
        struct manager *manager;
        struct guest *guest; /* NULL: nobody needs it */
        uid_t owner;
        int fd;
        const struct reserve *reserve; /* only compared; NULL: a file of its own */
        uint64_t begin;                /* where in that */
        uint64_t bytes, generation;
        struct spill_copy *copy;
        void (*done)(struct manager *manager, int error);
};

#endif
