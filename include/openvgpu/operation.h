/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_OPERATION_H
#define OPENVGPU_OPERATION_H

/*
 * Operation: suspend, resume or migrate a vGPU while its programs run.
 *
 * The manager does the work. The caller waits for the end and gets progress reports in the
 * meantime. A caller that goes away stops nothing. The manager undoes a failed operation: the
 * programs continue with their memory as it was. After VGPU_ERROR_CONNECTION_LOST the outcome is
 * unknown: ask with vgpu_instance_lookup().
 *
 * Units:    bytes; seconds as real numbers.
 * Threads:  see client.h. Progress is reported in the calling thread.
 * Errors:   those of client.h; common to all operations: VGPU_ERROR_NO_SUCH_VGPU,
 *           VGPU_ERROR_WRONG_STATE, VGPU_ERROR_BUSY, VGPU_ERROR_PERMISSION_DENIED,
 *           VGPU_ERROR_TIMED_OUT, VGPU_ERROR_NOT_MOVABLE, VGPU_ERROR_DRIVER_FAILED,
 *           VGPU_ERROR_GUEST_LOST.
 * Source:   docs/control-protocol.md.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>
#include <openvgpu/instance.h>

VGPU_BEGIN_DECLS

struct vgpu_operation_progress {
        const char *
                stage; /* "running", "draining", "copying", "context", "finishing"; or a new stage */
        uint64_t bytes_done;  /* of @bytes_total */
        uint64_t bytes_total; /* 0: not known yet */
};

/*
 * The client calls it while the operation runs; @progress is valid only during the call. It must
 * not use the client that waits.
 */
typedef void (*vgpu_operation_progress_function)(const struct vgpu_operation_progress *progress,
                                                 void *userdata);

/* Options of an operation; begin with VGPU_OPERATION_OPTIONS_INIT, so that the struct can grow. */
struct vgpu_operation_options {
        size_t size;            /* of this struct, as the caller was compiled */
        double timeout_seconds; /* until the guests must be at rest; 0: the manager's choice */
        bool keep_context;      /* suspend: leave the CUDA context on the device */
        vgpu_operation_progress_function progress; /* NULL: none */
        void *userdata;                            /* of @progress */
        bool verify;   /* suspend: compare every byte that has not changed since the last suspend */
        bool group;    /* suspend, resume: also all vGPUs whose processes share memory with it */
        bool pre_copy; /* suspend: copy while the programs run, and what they change at the end */
};

/* clang-format off */
#define VGPU_OPERATION_OPTIONS_INIT { sizeof(struct vgpu_operation_options), 0, false, 0, 0, false, false, false }
/* clang-format on */

struct vgpu_operation_report {
        const struct vgpu_instance *instance; /* as it is now; part of the report */
        uint64_t bytes;                       /* moved by the manager, with @bytes_unchanged */
        double seconds;                       /* the whole operation */
        double copy_seconds;                  /* moving the bytes */
        double context_seconds;               /* the driver's checkpoint and restore */
        double drain_seconds;                 /* until the guests were at rest */
        double pool_seconds;                  /* waited for host memory to be pinned */
        uint32_t n_processes;                 /* a resume leaves out those in @left_behind */
        uint32_t from_device;                 /* indices, of its first parts; equal for a suspend */
        uint32_t to_device;
        const char *lost; /* one line: the processes that the driver could not restore; "": none */
        bool had_left;    /* suspend: it had left by itself; nothing moved, and it stays away now */
        uint64_t bytes_unchanged; /* suspend: of @bytes, what host memory had from the last time */
        double fetch_seconds;     /* resume: reading from disk what was spilled there */
        double stopped_seconds; /* how long the programs stood still, of a resume since its suspend; 0: unknown */
        double pre_copy_seconds; /* suspend: of @seconds, how long was copied while they ran */
        uint64_t pre_copy_bytes; /* that were copied then, some of them several times */
        const char *left_behind; /* resume: one line, the stopped processes that follow; "": none */
};

/**
 * vgpu_operation_suspend() - take a vGPU off its device, its programs with it
 *
 * One that has left its device by itself does not come back by itself any more.
 *
 * @options:     NULL: the defaults
 * @ret_report:  the caller owns it, vgpu_operation_report_free(); may be NULL
 *
 * Errors: VGPU_ERROR_POOL_TOO_SMALL.
 */
int vgpu_operation_suspend(struct vgpu_client *client, const char *name,
                           const struct vgpu_operation_options *options,
                           struct vgpu_operation_report **ret_report);

/**
 * vgpu_operation_resume() - put a suspended vGPU on a device and continue its programs
 * @device:      index, UUID or beginning of a UUID; "2,3" of a vGPU of several; NULL: what it left
 * @options:     NULL: the defaults
 * @ret_report:  the caller owns it, vgpu_operation_report_free(); may be NULL
 *
 * Errors: VGPU_ERROR_NO_ROOM. VGPU_ERROR_NO_SUCH_DEVICE.
 */
int vgpu_operation_resume(struct vgpu_client *client, const char *name, const char *device,
                          const struct vgpu_operation_options *options,
                          struct vgpu_operation_report **ret_report);

/**
 * vgpu_operation_migrate() - move a running vGPU to another device
 * @device:      index, UUID or beginning of a UUID; "2,3" of a vGPU of several
 * @options:     NULL: the defaults
 * @ret_report:  the caller owns it, vgpu_operation_report_free(); may be NULL
 *
 * Errors: VGPU_ERROR_NO_ROOM. VGPU_ERROR_NO_SUCH_DEVICE.
 */
int vgpu_operation_migrate(struct vgpu_client *client, const char *name, const char *device,
                           const struct vgpu_operation_options *options,
                           struct vgpu_operation_report **ret_report);

/** vgpu_operation_report_free() - NULL is fine. Returns NULL. */
struct vgpu_operation_report *vgpu_operation_report_free(struct vgpu_operation_report *report);

VGPU_END_DECLS

#endif
