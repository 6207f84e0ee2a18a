/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_MEMORY_LIMIT_H
#define NVML_MEMORY_LIMIT_H

#include <stdint.h>

/* memory_limit_get_own() - return the lowest hard limit on a device that applies to this process; else @otherwise. */
uint64_t memory_limit_get_own(uint32_t device, uint64_t otherwise);

#endif
