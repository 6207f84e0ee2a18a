/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_ERROR_H
#define OPENVGPU_ERROR_H

/*
 * Error: the reason why a call of a client (client.h) or of a host (host.h) failed.
 */

#include <openvgpu/base.h>

VGPU_BEGIN_DECLS

/* Why a call failed. The errno in brackets is what the call returned. */
enum vgpu_error_kind {
        VGPU_ERROR_NONE = 0,

        /* The manager refused, or failed and has undone what it began. */
        VGPU_ERROR_FAILED = 1,             /* anything else [-EIO] */
        VGPU_ERROR_NO_SUCH_VGPU = 2,       /* [-ENOENT] */
        VGPU_ERROR_NO_SUCH_DEVICE = 3,     /* [-ENODEV] */
        VGPU_ERROR_VGPU_EXISTS = 4,        /* [-EEXIST] */
        VGPU_ERROR_INVALID_PARAMETER = 5,  /* [-EINVAL] */
        VGPU_ERROR_NO_ROOM = 6,            /* too little left on the device [-ENOSPC] */
        VGPU_ERROR_POOL_TOO_SMALL = 7,     /* too little host memory in the pool [-EDQUOT] */
        VGPU_ERROR_WRONG_STATE = 8,        /* e.g. resume of a running vGPU [-ESTALE] */
        VGPU_ERROR_BUSY = 9,               /* another operation runs, or processes do [-EBUSY] */
        VGPU_ERROR_TIMED_OUT = 10,         /* a guest did not come to rest in time [-ETIME] */
        VGPU_ERROR_NOT_MOVABLE = 11,       /* a guest holds something unmovable [-EOPNOTSUPP] */
        VGPU_ERROR_DRIVER_FAILED = 12,     /* see driver_call and driver_code [-EREMOTEIO] */
        VGPU_ERROR_GUEST_LOST = 13,        /* a guest process died in the meantime [-ESRCH] */
        VGPU_ERROR_PERMISSION_DENIED = 14, /* [-EACCES] */
        VGPU_ERROR_METHOD_NOT_FOUND = 15,  /* the manager is older than the library [-ENOSYS] */
        VGPU_ERROR_NO_CUDA = 16,           /* images: the process does not use CUDA [-ENXIO] */

        /* There was no usable answer. */
        VGPU_ERROR_NO_MANAGER = 32,      /* nobody listens [-ECONNREFUSED] */
        VGPU_ERROR_NO_ANSWER = 33,       /* not in time; the outcome is unknown [-ETIMEDOUT] */
        VGPU_ERROR_CONNECTION_LOST = 34, /* in the middle; the outcome is unknown [-ECONNRESET] */
        VGPU_ERROR_BAD_ANSWER = 35,      /* not what the protocol says; outcome unknown [-EPROTO] */
        VGPU_ERROR_OUT_OF_MEMORY = 36,   /* here, not on a device [-ENOMEM] */

        /* NVML refused or failed (host.h). */
        VGPU_ERROR_NO_LIBRARY = 48,      /* no usable NVML library [-ELIBACC] */
        VGPU_ERROR_NOT_IN_DRIVER = 49,   /* the driver is too old [-ENOSYS] */
        VGPU_ERROR_NOT_SUPPORTED = 50,   /* not by this device, type or vGPU [-EOPNOTSUPP] */
        VGPU_ERROR_NO_SUCH_TYPE = 51,    /* [-ENOENT] */
        VGPU_ERROR_NO_SUCH_PROCESS = 52, /* it has no record [-ENOENT] */
        VGPU_ERROR_NOT_LOADED = 53,  /* the driver, here or in the guest, does not run [-ENODEV] */
        VGPU_ERROR_DEVICE_LOST = 54, /* the device fell off the bus [-ENXIO] */
        VGPU_ERROR_RESET_REQUIRED = 55, /* the device or the host needs a reset [-EIO] */
};

struct vgpu_error {
        enum vgpu_error_kind kind;
        int code;                /* what the call returned, a negative errno; 0: no error */
        const char *name;        /* of the kind: "NoSuchVgpu", as in the protocol */
        const char *message;     /* one line: what and why */
        const char *hint;        /* one line: what to do, or "" */
        const char *parameter;   /* VGPU_ERROR_INVALID_PARAMETER: which, or "" */
        const char *driver_call; /* the driver's function: "cuMemCreate", "nvmlInit_v2"; or "" */
        int driver_code;         /* the function's answer, a CUresult or nvmlReturn_t; or 0 */
        int process;             /* the guest process concerned, or 0 */
};

VGPU_END_DECLS

#endif
