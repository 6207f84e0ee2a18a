/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_CLIENT_H
#define OPENVGPU_CLIENT_H

/*
 * Client: the way to the manager, vgpud, and the reason why the last call failed.
 *
 * Making a client opens nothing. The first call that needs the manager connects; a call after the
 * connection broke connects again. No call is ever sent twice.
 *
 * Threads:  a client belongs to one thread at a time; make one for each thread. Nothing is shared
 *           between clients.
 * Time:     a call waits 10 seconds for its answer (vgpu_client_set_timeout_ms()); suspend, resume
 *           and migrate wait as long as the manager holds the connection. Signals interrupt nothing.
 * Errors:   0 or a negative errno. After a failure vgpu_client_get_error() has the kind, which is
 *           finer, a message and a hint for people, and what else is known.
 * Source:   docs/control-protocol.md.
 */

#include <openvgpu/base.h>

VGPU_BEGIN_DECLS

struct vgpu_client;

/* Why a call failed. The errno in brackets is what the call returned. */
enum vgpu_error_kind {
        VGPU_ERROR_NONE = 0,

        /* The manager refused, or failed and has undone what it began. */
        VGPU_ERROR_FAILED = 1,            /* anything else [-EIO] */
        VGPU_ERROR_NO_SUCH_VGPU = 2,      /* [-ENOENT] */
        VGPU_ERROR_NO_SUCH_DEVICE = 3,    /* [-ENODEV] */
        VGPU_ERROR_VGPU_EXISTS = 4,       /* [-EEXIST] */
        VGPU_ERROR_INVALID_PARAMETER = 5, /* [-EINVAL] */
        VGPU_ERROR_NO_ROOM = 6,           /* too little left on the device [-ENOSPC] */
        VGPU_ERROR_POOL_TOO_SMALL = 7,    /* too little host memory for it [-EDQUOT] */
        VGPU_ERROR_WRONG_STATE = 8,       /* e.g. resume of a running vGPU [-ESTALE] */
        VGPU_ERROR_BUSY = 9,              /* another operation, or processes in it [-EBUSY] */
        VGPU_ERROR_TIMED_OUT = 10,        /* a guest did not come to rest in time [-ETIME] */
        VGPU_ERROR_NOT_MOVABLE = 11,      /* a guest holds what cannot be suspended [-EOPNOTSUPP] */
        VGPU_ERROR_DRIVER_FAILED = 12,    /* see driver_call and driver_code [-EREMOTEIO] */
        VGPU_ERROR_GUEST_LOST = 13,       /* a guest process died meanwhile [-ESRCH] */
        VGPU_ERROR_PERMISSION_DENIED = 14, /* [-EACCES] */
        VGPU_ERROR_METHOD_NOT_FOUND = 15,  /* the manager is older than the library [-ENOSYS] */
        VGPU_ERROR_NO_CUDA = 16,           /* images: the process does not use CUDA [-ENXIO] */

        /* There was no answer that could be used. */
        VGPU_ERROR_NO_MANAGER = 32,      /* nobody listens [-ECONNREFUSED] */
        VGPU_ERROR_NO_ANSWER = 33,       /* not in time; the outcome is unknown [-ETIMEDOUT] */
        VGPU_ERROR_CONNECTION_LOST = 34, /* in the middle; the outcome is unknown [-ECONNRESET] */
        VGPU_ERROR_BAD_ANSWER = 35,      /* not what the protocol says; outcome unknown [-EPROTO] */
        VGPU_ERROR_OUT_OF_MEMORY = 36,   /* here, not on a device [-ENOMEM] */
};

struct vgpu_error {
        enum vgpu_error_kind kind;
        int code;                /* what the call returned, a negative errno; 0: no error */
        const char *name;        /* of the kind: "NoSuchVgpu"; the protocol's, where it has one */
        const char *message;     /* one line: what and why */
        const char *hint;        /* one line: what to do, or "" */
        const char *parameter;   /* VGPU_ERROR_INVALID_PARAMETER: which, or "" */
        const char *driver_call; /* VGPU_ERROR_DRIVER_FAILED: e.g. "cuMemCreate", or "" */
        int driver_code;         /* VGPU_ERROR_DRIVER_FAILED: its CUresult, or 0 */
        int process;             /* the guest process that it is about, or 0 */
};

/**
 * vgpu_client_new() - make a client; does not connect
 * @ret_client:     the caller owns it and frees it with vgpu_client_free()
 * @run_directory:  where the manager's socket is; copied. NULL: $OPENVGPU_RUN, else
 *                  /run/openvgpu if a manager is there or the caller is root, else
 *                  $XDG_RUNTIME_DIR/openvgpu, else /tmp/openvgpu-UID
 *
 * Errors: -ENAMETOOLONG, no socket can have such a path. -ENOMEM.
 */
int vgpu_client_new(struct vgpu_client **ret_client, const char *run_directory);

/** vgpu_client_free() - disconnect; NULL is fine. Returns NULL. */
struct vgpu_client *vgpu_client_free(struct vgpu_client *client);

/** vgpu_client_set_timeout_ms() - how long a call waits for its answer; 0 restores 10 seconds. */
void vgpu_client_set_timeout_ms(struct vgpu_client *client, unsigned int timeout_ms);

/** vgpu_client_get_run_directory() - borrowed; valid as long as @client. */
const char *vgpu_client_get_run_directory(const struct vgpu_client *client);

/**
 * vgpu_client_get_error() - why the last call with @client failed
 *
 * Never NULL; the kind is VGPU_ERROR_NONE when it succeeded. Borrowed: valid until the next call
 * with @client.
 */
const struct vgpu_error *vgpu_client_get_error(const struct vgpu_client *client);

VGPU_END_DECLS

#endif
