/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CALL_ENTRY_H
#define SIM_CALL_ENTRY_H

/* The entry points of the simulated driver, by the numbers that the generator gave them (abi/cuda.abi). */

#include <stdbool.h>

#include "sim-entries.h"

struct call_entry {
        const char *name;
        const char *base; /* what cuGetProcAddress() calls it */
        int since;        /* API version, 0: not given out */
        bool is_per_thread;
        void (*function)(void);
};

extern const struct call_entry call_entries[CALL_COUNT];

#endif
