/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_IMAGE_H
#define OPENVGPU_IMAGE_H

/*
 * Image: a checkpoint on disk, of the GPU memory of a vGPU or of whole processes.
 *
 * An image is a directory (docs/checkpoint-images.md), which gets its name when it is complete. A
 * load refuses an image that is incomplete, changed or made by something else, and names the file,
 * the chunk and the cause.
 *
 *   vgpu_image_dump()          writes the GPU memory of a suspended vGPU; its programs stay
 *   vgpu_image_load()          puts the memory back: the programs resume with the dumped contents
 *   vgpu_image_dump_process()  writes a process and all processes below it with CRIU, and ends them
 *   vgpu_image_load_process()  makes the processes again and continues them
 *
 * The driver checkpoints a process that is no guest of a vGPU, and copies its GPU memory into its
 * host memory; CRIU then dumps the whole process. The GPU memory of a guest goes from the pool to
 * the disk, past CRIU. A failure harms no running process: the processes continue as before.
 *
 * Units:    bytes; seconds as real numbers.
 * Threads:  see client.h.
 * Errors:   those of client.h. VGPU_ERROR_FAILED concerns the image or CRIU: the message has the
 *           file and the cause, the hint says what to do. VGPU_ERROR_INVALID_PARAMETER: an unusable
 *           name. VGPU_ERROR_GUEST_LOST: a process is lost or cannot continue.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>

VGPU_BEGIN_DECLS

/* Options of an action; begin with VGPU_IMAGE_OPTIONS_INIT, so that the struct can grow. */
struct vgpu_image_options {
        size_t size;             /* of this struct, as the caller was compiled */
        const char *compression; /* dump: "none", "zstd"; NULL: none */
        int level;               /* of zstd, 1 to 19; 0: 1 */
        double timeout_seconds;  /* until the processes must be at rest; 0: 10 */
        bool leave_running;      /* dump_process: continue the process afterwards */
        const char *criu;        /* path of CRIU; NULL: "criu" on PATH, or in a usual place */
        bool cut_pipes;          /* dump_process: accept a process that writes to others' pipes */
        const char *parent;      /* dump: an older image; only what differs from it is written */
        const char *device;      /* load: resume there, as in operation.h; NULL: see below */
};

/* clang-format off */
#define VGPU_IMAGE_OPTIONS_INIT { sizeof(struct vgpu_image_options), 0, 0, 0, false, 0, false, 0, 0 }
/* clang-format on */

/* What an image contains, and how long the last action took. */
struct vgpu_image_report {
        const char *directory;
        const char *created; /* "2026-01-31T12:00:00Z" */
        const char *host;
        const char *device_name; /* the kind: "NVIDIA H200" */
        const char *device_uuid; /* of its first device */
        const char *vgpu;        /* name, or "" */
        uint32_t cuda_driver_version;
        size_t n_processes;
        pid_t pid;             /* the root of a process image, or 0 */
        uint64_t memory_bytes; /* GPU memory in the data file */
        uint64_t data_bytes;   /* of the data file */
        uint64_t criu_bytes;   /* of CRIU's files */
        bool has_io_uring;     /* how the data file was written or read */
        bool has_direct_io;
        double data_seconds; /* writing or reading the data file */
        double criu_seconds;
        double cuda_seconds; /* suspend and resume */
        double seconds;      /* the whole action */
        const char *const
                *ancestors; /* the images that it needs: its parent, that one's parent, ... */
        size_t n_ancestors;
        uint64_t inherited_bytes; /* of memory_bytes: not in the data file, but in an ancestor's */
        const char *const *device_uuids; /* of all of its devices, in their order */
        size_t n_devices;
};

/**
 * vgpu_image_dump() - write the GPU memory of the suspended vGPU @name to a new image
 * @directory:   the image; must not exist, or be empty
 * @ret_report:  the caller owns it, vgpu_image_report_free(); may be NULL
 *
 * With a parent, blocks of 2 MiB that it has are not written. The image can then be loaded only as
 * long as the parent, and the parent's own, are where they were or beside it, and unchanged.
 */
int vgpu_image_dump(struct vgpu_client *client, const char *name, const char *directory,
                    const struct vgpu_image_options *options,
                    struct vgpu_image_report **ret_report);

/**
 * vgpu_image_load() - put GPU memory from an image into the suspended vGPU @name
 *
 * The vGPU's processes must be those of the image, with the same memory at the same addresses. The
 * whole image is read and compared with its checksums before anything is exchanged. The vGPU stays
 * suspended, unless options.device says where to resume it.
 */
int vgpu_image_load(struct vgpu_client *client, const char *name, const char *directory,
                    const struct vgpu_image_options *options,
                    struct vgpu_image_report **ret_report);

/**
 * vgpu_image_dump_process() - write process @pid, with all processes below it, to a new image
 *
 * This needs CRIU and its privileges. All processes of a guest's vGPU must be in the tree. After a
 * failure the processes continue.
 */
int vgpu_image_dump_process(struct vgpu_client *client, pid_t pid, const char *directory,
                            const struct vgpu_image_options *options,
                            struct vgpu_image_report **ret_report);

/**
 * vgpu_image_load_process() - make the processes of an image again, with their numbers, and
 * continue them
 *
 * They come back to the devices that they were on, or to those of options.device.
 * A guest's vGPU is created again if it no longer exists. After a failure none of the processes is
 * left.
 */
int vgpu_image_load_process(struct vgpu_client *client, const char *directory,
                            const struct vgpu_image_options *options,
                            struct vgpu_image_report **ret_report);

/** vgpu_image_check() - read a whole image and compare it with its checksums. */
int vgpu_image_check(struct vgpu_client *client, const char *directory,
                     struct vgpu_image_report **ret_report);

/** vgpu_image_report_free() - NULL is fine. Returns NULL. */
struct vgpu_image_report *vgpu_image_report_free(struct vgpu_image_report *report);

VGPU_END_DECLS

#endif
