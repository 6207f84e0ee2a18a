/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_NVML_H
#define CHECKPOINT_NVML_H

/* Asks NVML two questions; the first one loads NVML. NVML needs no context on the device. */

#include <stdint.h>

/* nvml_get_free() - get the bytes left on the device @uuid. Errors: -ENODATA, NVML can't tell. */
int nvml_get_free(uint64_t *ret_bytes, const char *uuid);

/* nvml_get_used() - return the bytes that process @pid holds there; 0 also if NVML can't tell. */
uint64_t nvml_get_used(const char *uuid, int pid);

#endif
