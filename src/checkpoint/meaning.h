/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_MEANING_H
#define CHECKPOINT_MEANING_H

/* The meaning of the driver's codes, by the call that answered. */

#include <stdbool.h>

#include <openvgpu/checkpoint.h>

#include "abi/cuda.h"

struct meaning {
        enum vgpu_checkpoint_error_kind kind;
        const char *text; /* follows "process 42 " */
        const char *hint; /* "" for none */
};

/*
 * meaning_find() - find the meaning of @code, the answer of @call on process @pid
 * @is_dead:       the process has ended meanwhile
 * @state_before:  the state in which the process was found, or -1 at the first call
 */
struct meaning meaning_find(const char *call, CUresult code, int pid, bool is_dead,
                            int state_before);

#endif
