/* SPDX-License-Identifier: Apache-2.0 */
#include "mover/device.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "mover/driver.h"

void device_format_uuid(char *text, const CUuuid *uuid)
{
        const unsigned char *b = uuid->bytes;

        snprintf(text, DEVICE_UUID_MAX,
                 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                 b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                 b[14], b[15]);
}

static int get_uuid(char *text, CUdevice id, struct mover_done *done)
{
        CUuuid uuid;
        int r;

        r = DRIVER_CALL(done, cuDeviceGetUuid, &uuid, id);
        if (r == 0)
                device_format_uuid(text, &uuid);
        return r;
}

int device_find(CUdevice *ret_id, const char *uuid, struct mover_done *done)
{
        int count, r;

        r = DRIVER_CALL(done, cuDeviceGetCount, &count);
        for (int i = 0; i < count && r == 0; i++) {
                char text[DEVICE_UUID_MAX];
                CUdevice id;

                r = DRIVER_CALL(done, cuDeviceGet, &id, i);
                if (r == 0)
                        r = get_uuid(text, id, done);
                if (r == 0 && strcasecmp(text, uuid) == 0) {
                        *ret_id = id;
                        return 0;
                }
        }
        return r < 0 ? r : -ENODEV;
}

int device_init(struct device *device, const char *uuid, struct mover_done *done)
{
        CUdevice id;
        int r;

        r = device_find(&id, uuid, done);
        if (r < 0)
                return r;

        *device = (struct device){ .lock = PTHREAD_MUTEX_INITIALIZER,
                                   .streams = { .lock = PTHREAD_MUTEX_INITIALIZER },
                                   .id = id };
        room_init(&device->room);
        hasher_init(&device->hasher);
        margin_init(&device->margin);
        return 0;
}

/* While a window is open that has what is free; the next one to enter takes the margin then. */
static void take_margin(struct device *device)
{
        struct room_taking taking;

        /* A margin that is returned while we find it lent is taken by us: its return did not come in here. */
        while (margin_is_lacking(&device->margin) && room_try(&device->room, &taking)) {
                margin_take(&device->margin, &taking, device->id);
                room_end(&taking);
        }
}

/* As far as there is room for them. */
static void make_streams(struct streams *streams)
{
        struct mover_done ignored = { 0 };

        pthread_mutex_lock(&streams->lock);
        while (streams->n < STREAMS_READY &&
               DRIVER_CALL(&ignored, cuStreamCreate, &streams->idle[streams->n],
                           CU_STREAM_NON_BLOCKING) == 0)
                streams->n++;
        pthread_mutex_unlock(&streams->lock);
}

static int make_context_locked(struct device *device, struct mover_done *done)
{
        size_t total;
        int r = DRIVER_CALL(done, cuDeviceTotalMem_v2, &total, device->id);

        if (r == 0)
                r = DRIVER_CALL(done, cuDevicePrimaryCtxRetain, &device->context, device->id);
        if (r == 0) {
                r = DRIVER_CALL(done, cuCtxSetCurrent, device->context);
                if (r < 0)
                        (void)driver.cuDevicePrimaryCtxRelease_v2(device->id);
        }
        if (r < 0) {
                device->context = NULL;
                return r;
        }
        make_streams(&device->streams);
        margin_want(&device->margin, total);
        return 0;
}

/* A window is not waited for with the lock: threads that have it open look for the context. */
static int make_context(struct device *device, struct mover_done *done)
{
        struct room_taking taking;
        int r = 0;

        if (!room_begin(&device->room, &taking))
                return -ENOMEM;
        pthread_mutex_lock(&device->lock);
        if (!device->context)
                r = make_context_locked(device, done);
        pthread_mutex_unlock(&device->lock);
        room_end(&taking);
        return r;
}

int device_enter(struct device *device, struct mover_done *done)
{
        int r = 0;

        if (!device_has_context(device))
                r = make_context(device, done);
        if (r < 0)
                return r;
        pthread_mutex_lock(&device->lock);
        r = DRIVER_CALL(done, cuCtxSetCurrent, device->context);
        pthread_mutex_unlock(&device->lock);
        if (r == 0)
                take_margin(device);
        return r;
}

bool device_enter_existing(struct device *device)
{
        struct mover_done ignored = { 0 };
        bool is_there;

        pthread_mutex_lock(&device->lock);
        is_there = device->context && DRIVER_CALL(&ignored, cuCtxSetCurrent, device->context) == 0;
        pthread_mutex_unlock(&device->lock);
        if (is_there)
                take_margin(device);
        return is_there;
}

bool device_has_context(struct device *device)
{
        bool has;

        pthread_mutex_lock(&device->lock);
        has = device->context != NULL;
        pthread_mutex_unlock(&device->lock);
        return has;
}

int device_begin_taking(struct device *device, struct room_taking *ret_taking)
{
        return room_begin(&device->room, ret_taking) ? 0 : -ENOMEM;
}

bool device_try_taking(struct device *device, uint32_t ms, struct room_taking *ret_taking)
{
        return room_try_for(&device->room, ms, ret_taking);
}

void device_end_taking(struct device *device, struct room_taking *taking)
{
        room_end(taking);
        take_margin(device);
}

void device_open_window(struct device *device, enum room_window window)
{
        room_open(&device->room, window);
}

void device_close_window(struct device *device, enum room_window window)
{
        room_close(&device->room, window);
        take_margin(device);
}

void device_lend_margin(struct device *device)
{
        margin_lend(&device->margin);
}

void device_return_margin(struct device *device)
{
        margin_return(&device->margin);
        take_margin(device);
}

/* It looks in the device's context, which may not be there: then it is not known what is free. */
int device_claim(struct device *device, enum margin_call call, uint64_t bytes,
                 struct margin_claim *ret_claim)
{
        return margin_claim(&device->margin, call, bytes, device_enter_existing(device), ret_claim);
}

void device_unclaim(struct device *device, struct margin_claim *claim)
{
        margin_unclaim(&device->margin, claim);
}

static CUstream pop_stream(struct streams *streams)
{
        CUstream stream = NULL;

        pthread_mutex_lock(&streams->lock);
        if (streams->n > 0)
                stream = streams->idle[--streams->n];
        pthread_mutex_unlock(&streams->lock);
        return stream;
}

static int create_stream(struct device *device, CUstream *ret_stream, struct mover_done *done)
{
        int r = DRIVER_CALL(done, cuStreamCreate, ret_stream, CU_STREAM_NON_BLOCKING);

        if (r == -ENOMEM) {
                driver_forget(done);
                margin_lend(&device->margin);
                r = DRIVER_CALL(done, cuStreamCreate, ret_stream, CU_STREAM_NON_BLOCKING);
                margin_return(&device->margin);
        }
        if (r == -ENOMEM) {
                driver_forget(done);
                *ret_stream = CU_STREAM_LEGACY;
                r = 0;
        }
        return r;
}

int device_get_stream(struct device *device, CUstream *ret_stream, struct mover_done *done)
{
        struct room_taking taking;
        int r;

        *ret_stream = pop_stream(&device->streams);
        if (*ret_stream)
                return 0;
        if (!device_try_taking(device, 0, &taking)) {
                *ret_stream = CU_STREAM_LEGACY;
                return 0;
        }
        r = create_stream(device, ret_stream, done);
        device_end_taking(device, &taking);
        return r;
}

void device_put_stream(struct device *device, CUstream stream)
{
        struct streams *streams = &device->streams;
        bool is_kept = false;

        if (!stream || stream == CU_STREAM_LEGACY)
                return;
        pthread_mutex_lock(&streams->lock);
        if (streams->n < STREAMS_MAX) {
                streams->idle[streams->n++] = stream;
                is_kept = true;
        }
        pthread_mutex_unlock(&streams->lock);
        if (!is_kept)
                driver.cuStreamDestroy_v2(stream);
}

int device_read_free(struct device *device, uint64_t *ret_free, struct mover_done *done)
{
        int r = device_enter(device, done);

        return r < 0 ? r : margin_read_free(&device->margin, ret_free, done);
}

int device_load_hasher(struct device *device, struct mover_done *done)
{
        struct room_taking taking;
        int r;

        if (!hasher_wants_loading(&device->hasher))
                return hasher_load(&device->hasher, device->id, done);
        r = device_begin_taking(device, &taking);
        if (r < 0)
                return r;
        r = hasher_load(&device->hasher, device->id, done);
        device_end_taking(device, &taking);
        return r;
}
