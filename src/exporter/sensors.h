/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTER_SENSORS_H
#define EXPORTER_SENSORS_H

/*
 * Sensors: what devices measure of themselves, asked of NVML in a thread of its own. A driver that hangs
 * keeps that thread, and nobody else: metrics go on without temperatures.
 */

#include <openvgpu/device.h>

struct sensors;

/* sensors_new() - opens nothing yet. sensors_free() - leaves a thread that hangs behind. Returns NULL. */
int sensors_new(struct sensors **ret_sensors);
struct sensors *sensors_free(struct sensors *sensors);

/*
 * sensors_read() - of the devices with these UUIDs
 * @readings:  one for each; the caller frees each with vgpu_free(); NULL: it does not tell
 *
 * Errors: -ETIMEDOUT, NVML has not answered in @timeout_ms, or not an earlier question yet.
 */
int sensors_read(struct sensors *sensors, const char *const *uuids, size_t n, int timeout_ms,
                 struct vgpu_device_sensors **readings);

#endif
