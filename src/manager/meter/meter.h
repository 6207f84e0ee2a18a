/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANAGER_METER_H
#define MANAGER_METER_H

/*
 * The meter: how long each guest process has had the engines of its device. Utilization, accounting
 * and the ledger are all made of these numbers and of no others.
 *
 * Where they come from is said once for each device (docs/metering.md):
 *
 *     turns      the scheduler gives exclusive turns and measures them (turn_ns of a vGPU). Exact.
 *     engine     nothing is enforced, the device is simulated: its engine's own count. Exact.
 *     samples    nothing is enforced, the device is real: NVIDIA's samples. Estimated.
 *
 * Only GPU time, METER_SM, is the scheduler's; the other engines are always read from below.
 *
 * Four times a second while processes are in vGPUs it takes a sample of everything; else once a
 * second; never while there is no vGPU.
 *
 * It learns of vGPUs and processes as an observer.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. All calls are made by the manager's thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/failure.h"
#include "manager/model/meter-record.h"

struct device;
struct guest;
struct instance;
struct instance_part;
struct ledger_thread;
struct manager;
struct meter;

/* meter_new() - with the ledger in the state directory; one that cannot be opened is only logged. */
int meter_new(struct meter **ret_meter, struct manager *manager);

/* meter_start() - what a former manager left is loaded: begin to sample. */
void meter_start(struct meter *meter);

/* meter_free() - all that is metered so far is written. Returns NULL. */
struct meter *meter_free(struct meter *meter);

/* meter_sync() - settle everything up to now, so that what is shown is not a quarter second old. */
void meter_sync(struct meter *meter);

/* meter_clear_accounting() - forget the processes of @instance that ended. Returns how many. */
size_t meter_clear_accounting(struct instance *instance);

/* meter_write() - what is settled shall be in the ledger soon. */
void meter_write(struct meter *meter);

/* meter_get_ledger() - NULL: there is none. */
struct ledger_thread *meter_get_ledger(struct meter *meter);

/* meter_reaches_ledger() - false: what is metered waits in memory, or nothing is */
bool meter_reaches_ledger(struct meter *meter);

/* meter_get_source() - what is seen of @device from below. */
enum meter_source_kind meter_get_source(const struct device *device);

/* meter_get_source_name() - where its GPU time comes from, for clients: "turns" or a kind of source. */
const char *meter_get_source_name(const struct device *device);

#endif
