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
                                   .restores = PTHREAD_RWLOCK_INITIALIZER,
                                   .id = id };
        hasher_init(&device->hasher);
        margin_init(&device->margin);
        return 0;
}

/* A restore that is under way has what is free; the next who enters takes it then. */
static void take_margin(struct device *device)
{
        /* Who returns it while we find it lent does not come in here, and leaves it to us. */
        while (margin_is_lacking(&device->margin) &&
               pthread_rwlock_trywrlock(&device->restores) == 0) {
                margin_take(&device->margin, device->id);
                pthread_rwlock_unlock(&device->restores);
        }
}

static int make_context(struct device *device, struct mover_done *done)
{
        size_t total;
        int r = DRIVER_CALL(done, cuDeviceTotalMem_v2, &total, device->id);

        if (r < 0)
                return r;
        device_begin_taking(device);
        r = DRIVER_CALL(done, cuDevicePrimaryCtxRetain, &device->context, device->id);
        device_end_taking(device);
        if (r < 0)
                device->context = NULL;
        else
                margin_want(&device->margin, total);
        return r;
}

int device_enter(struct device *device, struct mover_done *done)
{
        int r = 0;

        pthread_mutex_lock(&device->lock);
        if (!device->context)
                r = make_context(device, done);
        if (r == 0)
                r = DRIVER_CALL(done, cuCtxSetCurrent, device->context);
        if (r == 0)
                take_margin(device);
        pthread_mutex_unlock(&device->lock);
        return r;
}

int device_drop(struct device *device, struct mover_done *done)
{
        int r = 0;

        pthread_mutex_lock(&device->lock);
        if (device->context)
                r = DRIVER_CALL(done, cuDevicePrimaryCtxRelease_v2, device->id);
        if (r == 0) {
                device->context = NULL;
                hasher_forget(&device->hasher);
                margin_drop(&device->margin);
        }
        pthread_mutex_unlock(&device->lock);
        return r;
}

bool device_has_context(struct device *device)
{
        bool has;

        pthread_mutex_lock(&device->lock);
        has = device->context != NULL;
        pthread_mutex_unlock(&device->lock);
        return has;
}

void device_begin_restore(struct device *device)
{
        pthread_rwlock_rdlock(&device->restores);
}

void device_end_restore(struct device *device)
{
        pthread_rwlock_unlock(&device->restores);
        take_margin(device);
}

void device_begin_taking(struct device *device)
{
        pthread_rwlock_wrlock(&device->restores);
}

void device_end_taking(struct device *device)
{
        pthread_rwlock_unlock(&device->restores);
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

int device_create_stream(struct device *device, CUstream *ret_stream, struct mover_done *done)
{
        int r = DRIVER_CALL(done, cuStreamCreate, ret_stream, CU_STREAM_NON_BLOCKING);

        if (r != -ENOMEM)
                return r;
        driver_forget(done);
        device_lend_margin(device);
        r = DRIVER_CALL(done, cuStreamCreate, ret_stream, CU_STREAM_NON_BLOCKING);
        device_return_margin(device);
        return r;
}

int device_read_free(struct device *device, uint64_t *ret_free, struct mover_done *done)
{
        int r = device_enter(device, done);

        return r < 0 ? r : margin_read_free(&device->margin, ret_free, done);
}

int device_load_hasher(struct device *device, struct mover_done *done)
{
        int r;

        if (!hasher_wants_loading(&device->hasher))
                return hasher_load(&device->hasher, device->id, done);
        device_begin_taking(device);
        r = hasher_load(&device->hasher, device->id, done);
        device_end_taking(device);
        return r;
}
