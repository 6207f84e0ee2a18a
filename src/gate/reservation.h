/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_RESERVATION_H
#define GATE_RESERVATION_H

/*
 * The address ranges that the gate reserves outside of the arena (mapping.h), for memory that must look
 * ordinary to the application: the driver refuses to unmap it.
 *
 * One thread may free an address, and another one be given it, just when a third one unmaps it by
 * mistake. So the hooks hold the reservations from their check until the driver has answered, and no
 * range becomes ours in between.
 *
 * While they are held only the lock of vmm.h is taken, and never the other way round.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"

/* reservation_make() - reserve @size bytes of addresses. */
CUresult reservation_make(CUdeviceptr *ret_address, uint64_t size);

/* reservation_free() - end the reservation that begins at @address; nothing is mapped there. */
void reservation_free(CUdeviceptr address, uint64_t size);

/* reservation_hold() - none is made or freed until reservation_let_go(). */
void reservation_hold(void);
void reservation_let_go(void);

/* reservation_overlaps() - does the range touch a reservation? While they are held. */
bool reservation_overlaps(CUdeviceptr address, uint64_t size);

#endif
