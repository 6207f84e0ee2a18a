/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_DEVICE_MOVER_H
#define MANAGER_DEVICE_MOVER_H

/*
 * The mover of a device.
 *
 * The mover is started when a guest joins the device or an operation needs it and
 * is let go when no vGPU with processes is left there: starting one takes half a
 * second that no suspend should wait for, and its context takes half a GiB that an
 * unused device should not lose. Where a vGPU could move to, a mover stands by: it
 * has loaded the driver (9 MB of RAM) but has no context (nothing of the device).
 * Or, with vgpud --pin-ahead, it makes the pool ready for that vGPU, which takes a context.
 */

#include "daemon/failure.h"
#include "helper/mover.h"
#include "pool/pool.h"

struct device;
struct manager;

/* device_probe_all() - fill @manager's devices, by asking a mover. */
int device_probe_all(struct manager *manager, struct failure *failure);

void device_deinit(struct device *device);

/* device_get_mover() - started if need be. */
int device_get_mover(struct device *device, struct mover **ret_mover);

/* device_settle() - start or end the mover and size its part of the pool, as the guests ask for. */
void device_settle(struct device *device);

/* device_work() - the pool's worker (pool_worker_fn); @userdata is the manager. */
int device_work(const struct pool_work *work, void *userdata);

#endif
