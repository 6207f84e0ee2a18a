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
#include "mover/room.h"
#include "wire/mover.h"

#define DEVICE_UUID_MAX 48

/*
 * Streams that are not in use. They are made with the context, one for each copy that may be under way: a copy
 * that begins while a window is open (mover/room.h) takes no memory.
 */
#define STREAMS_READY 8
#define STREAMS_MAX   16

struct streams {
        pthread_mutex_t lock;
        CUstream idle[STREAMS_MAX];
        size_t n;
};

struct device {
        pthread_mutex_t lock;
        CUdevice id;
        CUcontext context; /* or NULL */
        struct room room;
        _Atomic uint64_t theft; /* the most that others have taken of a hold that was let go */
        struct streams streams;
        struct hasher hasher;
        struct margin margin; /* there with the context */
};

/* device_find() - the device with the UUID @uuid ("GPU-..."). Errors: -ENODEV; a driver call. */
int device_find(CUdevice *ret_id, const char *uuid, struct mover_done *done);

/* device_format_uuid() - as NVML and nvidia-smi write it, into DEVICE_UUID_MAX bytes. */
void device_format_uuid(char *text, const CUuuid *uuid);

int device_init(struct device *device, const char *uuid, struct mover_done *done);

/* device_enter() - make the context, created where needed, current in this thread. */
int device_enter(struct device *device, struct mover_done *done);

/* device_enter_existing() - the same if it is there; waits for no window. False: not. */
bool device_enter_existing(struct device *device);

bool device_has_context(struct device *device);

/*
 * device_begin_taking() - room_begin(); the margin is taken behind device_end_taking(), if it is lacking. Errors: -ENOMEM,
 * what is free was that of a window all that time.
 */
int device_begin_taking(struct device *device, struct room_taking *ret_taking);
void device_end_taking(struct device *device, struct room_taking *taking);

/* device_try_taking() - room_try_for(), as device_begin_taking(). */
bool device_try_taking(struct device *device, uint32_t ms, struct room_taking *ret_taking);

/* device_open_window() - room_open(), as device_begin_taking(). */
void device_open_window(struct device *device, enum room_window window);
void device_close_window(struct device *device, enum room_window window);

/* device_lend_margin() - until device_return_margin(), around calls in which the driver takes memory for itself. */
void device_lend_margin(struct device *device);
void device_return_margin(struct device *device);

/*
 * device_claim() - margin_claim(), of what is free of the device. Errors: -ENOSPC, there is too little: the call is not to
 * be made.
 */
int device_claim(struct device *device, enum margin_call call, uint64_t bytes,
                 struct margin_claim *ret_claim);
void device_unclaim(struct device *device, struct margin_claim *claim);

/*
 * device_get_stream() - until device_put_stream(), when nothing is under way on it. It is of the device's context, which
 * is current. Nothing else uses it, but where there is none and a window is open, or the device is full: then it is the
 * context's own, which takes no memory, and copies go on one after another. A copy for want of which a process could not
 * go back is never refused one. A NULL one is fine to put.
 */
int device_get_stream(struct device *device, CUstream *ret_stream, struct mover_done *done);
void device_put_stream(struct device *device, CUstream stream);

/* device_read_free() - what is free of the device, without what is missing of the margin. */
int device_read_free(struct device *device, uint64_t *ret_free, struct mover_done *done);

/* device_load_hasher() - hasher_load(), as a taking. */
int device_load_hasher(struct device *device, struct mover_done *done);

#endif
