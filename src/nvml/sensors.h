/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVML_SENSORS_H
#define NVML_SENSORS_H

/* A device's sensors, which also answer for its errors, clocks and fields. */

#include <stdbool.h>
#include <stddef.h>

#include "abi/nvml-device.h"
#include "state/state-page.h"

/* sensors_find() - find the sensors of a device; NOT_SUPPORTED: no scenario made them, or this is a guest. */
nvmlReturn_t sensors_find(struct state_sensors *ret_sensors, nvmlDevice_t handle,
                          bool has_pointers);

/* sensors_answer() - answer the sensor at the offset SENSOR(name); NOT_SUPPORTED: there is none. */
#define SENSOR(name) offsetof(struct state_sensors, name)
nvmlReturn_t sensors_answer(nvmlDevice_t handle, unsigned int *number, size_t offset);

/* Finds the offset of the time in ns for which a policy of NVML held clocks down; SIZE_MAX: it never did. */
unsigned long long sensors_get_throttled(const struct state_sensors *sensors, size_t offset);
size_t sensors_find_policy(unsigned int policy);

#endif
