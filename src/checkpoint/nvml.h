/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_NVML_H
#define CHECKPOINT_NVML_H

/* Two questions to NVML, which is loaded at the first of them. It needs no context on the device. */

#include <stdint.h>

/* nvml_get_free() - bytes left on the device @uuid. Errors: -ENODATA, NVML can't tell. */
int nvml_get_free(uint64_t *ret_bytes, const char *uuid);

/* nvml_get_used() - bytes that process @pid holds of it; 0 also when NVML can't tell. */
uint64_t nvml_get_used(const char *uuid, int pid);

#endif
