/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_LINK_H
#define NVML_LINK_H

/* NVLinks of a scenario's devices. */

#include <stdint.h>

#include "abi/nvml-device.h"
#include "abi/nvml-link.h"

/* link_count_between() - count the active links between two devices, by index; switches connect all. */
uint32_t link_count_between(uint32_t a, uint32_t b);

/* link_read_field() - answer a numbered field about links; NOT_SUPPORTED: it is about something else. */
nvmlReturn_t link_read_field(nvmlDevice_t handle, nvmlFieldValue_t *value);

#endif
