/* SPDX-License-Identifier: Apache-2.0 */
#include "musl/refusal.h"

#define CUDA_ERROR_NO_DEVICE 100

__attribute__((used)) static int refuse(void)
{
        refusal_say();
        return CUDA_ERROR_NO_DEVICE;
}

#define GATE_ENTRY(name, kind) REFUSAL_EXPORT int name(void) __attribute__((alias("refuse")));
#include "gate-entries.inc"
