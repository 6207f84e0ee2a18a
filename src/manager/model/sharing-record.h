/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_SHARING_RECORD_H
#define MANAGER_SHARING_RECORD_H

/* What a guest has of memory of others: sharing.h. */

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct sharing_guest {
        struct list makers, users; /* whose memory it has, and who has its */
        unsigned int n_makers;
        uint32_t n_imports; /* pieces of others' memory that it has, as it last said */
        uint32_t n_shared;  /* times that it has begun to share memory with another */
        bool has_told;      /* whose memory it has, since this manager started */
};

#endif
