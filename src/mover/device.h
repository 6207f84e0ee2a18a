/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_DEVICE_H
#define MOVER_DEVICE_H

/*
 * A device and its primary context, which is created at the first use: it costs
 * about 0.1 s and 0.5 GiB of the device, and checkpoint calls need none.
 *
 * Threads: any. A current context belongs to a thread: each task that touches
 * the device begins with device_enter().
 */

#include <pthread.h>
#include <stdbool.h>

#include "abi/cuda.h"
#include "mover/hasher.h"
#include "mover/margin.h"
#include "wire/mover.h"

#define DEVICE_UUID_MAX 48

struct device {
        pthread_mutex_t lock;
        CUdevice id;
        CUcontext context; /* or NULL */
        pthread_rwlock_t restores;
        struct hasher hasher;
        struct margin margin; /* there with the context */
};

/* device_find() - the device whose UUID is @uuid ("GPU-..."). Errors: -ENODEV; a driver call. */
int device_find(CUdevice *ret_id, const char *uuid, struct mover_done *done);

/* device_format_uuid() - as NVML and nvidia-smi write it, into DEVICE_UUID_MAX bytes. */
void device_format_uuid(char *text, const CUuuid *uuid);

int device_init(struct device *device, const char *uuid, struct mover_done *done);

/* device_enter() - make the context, created where needed, current in this thread. */
int device_enter(struct device *device, struct mover_done *done);

/* device_drop() - destroy the context, if there is one. */
int device_drop(struct device *device, struct mover_done *done);

bool device_has_context(struct device *device);

/*
 * device_begin_restore() - until device_end_restore(), what was held for the restore of a process is free,
 * and only for that: who would take memory of the device for a context or to hold it, waits.
 */
void device_begin_restore(struct device *device);
void device_end_restore(struct device *device);

/* device_begin_taking() - likewise, around the taking; waits until no restore is under way. */
void device_begin_taking(struct device *device);
void device_end_taking(struct device *device);

/* device_lend_margin() - until device_return_margin(), around calls in which the driver takes memory for itself. */
void device_lend_margin(struct device *device);
void device_return_margin(struct device *device);

/* device_create_stream() - with the margin lent if there is no room for it. In the current context. */
int device_create_stream(struct device *device, CUstream *ret_stream, struct mover_done *done);

/* device_read_free() - what is free of the device, without what is missing of the margin. */
int device_read_free(struct device *device, uint64_t *ret_free, struct mover_done *done);

/* device_load_hasher() - hasher_load(), as one who takes. */
int device_load_hasher(struct device *device, struct mover_done *done);

#endif
