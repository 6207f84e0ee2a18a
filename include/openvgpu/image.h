/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_IMAGE_H
#define OPENVGPU_IMAGE_H

/*
 * Image: a checkpoint on disk, of the GPU memory of a vGPU or of whole processes.
 *
 * An image is a directory (docs/checkpoint-images.md). It has its name when it is whole; what was
 * cut off, altered or made by something else is refused, with the file, the chunk and the cause.
 *
 *   vgpu_image_dump()          the GPU memory of a suspended vGPU, whose programs stay
 *   vgpu_image_load()          puts it back: the programs resume with the contents of the dump
 *   vgpu_image_dump_process()  a process with all that is below it, by CRIU; it is gone afterwards
 *   vgpu_image_load_process()  the process is there again and goes on
 *
 * A process that is no guest of a vGPU is checkpointed by the driver, which brings its GPU memory
 * into its own host memory; CRIU then dumps all of it. Of a guest, the GPU memory goes from the pool
 * to the disk, past CRIU. Nothing that fails harms what runs: it goes on as before.
 *
 * Units:    bytes; seconds as real numbers.
 * Threads:  see client.h.
 * Errors:   those of client.h. What concerns the image or CRIU is VGPU_ERROR_FAILED, with the file
 *           and the cause in the message and what to do in the hint; VGPU_ERROR_INVALID_PARAMETER
 *           for a name that cannot be used; VGPU_ERROR_GUEST_LOST, a process is lost or cannot go on.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>

VGPU_BEGIN_DECLS

/* How to do it; begin with VGPU_IMAGE_OPTIONS_INIT, so that the struct can grow. */
struct vgpu_image_options {
        size_t size;             /* of this struct, as the caller was compiled */
        const char *compression; /* dump: "none", "zstd"; NULL: none */
        int level;               /* of zstd, 1 to 19; 0: 1 */
        double timeout_seconds;  /* for the processes to come to rest; 0: 10 */
        bool leave_running;      /* dump_process: it goes on afterwards */
        const char *criu;        /* the program; NULL: "criu" on PATH, or in a usual place */
        bool cut_pipes;          /* dump_process: also what writes to a pipe that others read */
};

/* clang-format off */
#define VGPU_IMAGE_OPTIONS_INIT { sizeof(struct vgpu_image_options), 0, 0, 0, false, 0, false }
/* clang-format on */

/* What an image has in it, and what the last action with it took. */
struct vgpu_image_report {
        const char *directory;
        const char *created; /* "2026-01-31T12:00:00Z" */
        const char *host;
        const char *device_name; /* the kind: "NVIDIA H200" */
        const char *device_uuid;
        const char *vgpu; /* name, or "" */
        uint32_t cuda_driver_version;
        size_t n_processes;
        pid_t pid;             /* the root of a process image, or 0 */
        uint64_t memory_bytes; /* GPU memory in the data file */
        uint64_t data_bytes;   /* of the data file */
        uint64_t criu_bytes;   /* of CRIU's files */
        bool has_io_uring;     /* that is how the data file was written or read */
        bool has_direct_io;
        double data_seconds; /* the data file, to the disk or from it */
        double criu_seconds;
        double cuda_seconds; /* suspend and resume */
        double seconds;      /* the whole */
};

/**
 * vgpu_image_dump() - write the GPU memory of the suspended vGPU @name to a new image
 * @directory:   where; must not exist, or be empty
 * @ret_report:  the caller owns it, vgpu_image_report_free(); may be NULL
 */
int vgpu_image_dump(struct vgpu_client *client, const char *name, const char *directory,
                    const struct vgpu_image_options *options,
                    struct vgpu_image_report **ret_report);

/**
 * vgpu_image_load() - put GPU memory from an image into the suspended vGPU @name
 *
 * Its processes must be those of the image, with the same memory at the same addresses. All of the
 * image is read and compared with its checksums before anything is exchanged.
 */
int vgpu_image_load(struct vgpu_client *client, const char *name, const char *directory,
                    const struct vgpu_image_options *options,
                    struct vgpu_image_report **ret_report);

/**
 * vgpu_image_dump_process() - write process @pid, with all processes below it, to a new image
 *
 * Needs CRIU and its privileges. A guest's whole vGPU must be in the tree. After a failure the
 * processes go on.
 */
int vgpu_image_dump_process(struct vgpu_client *client, pid_t pid, const char *directory,
                            const struct vgpu_image_options *options,
                            struct vgpu_image_report **ret_report);

/**
 * vgpu_image_load_process() - make the processes of an image again, with their numbers, and let them
 * go on
 *
 * A guest's vGPU is made again, if it is no longer there. After a failure none of them is left.
 */
int vgpu_image_load_process(struct vgpu_client *client, const char *directory,
                            const struct vgpu_image_options *options,
                            struct vgpu_image_report **ret_report);

/** vgpu_image_check() - read all of an image and compare it with its checksums. */
int vgpu_image_check(struct vgpu_client *client, const char *directory,
                     struct vgpu_image_report **ret_report);

/** vgpu_image_report_free() - NULL is fine. Returns NULL. */
struct vgpu_image_report *vgpu_image_report_free(struct vgpu_image_report *report);

VGPU_END_DECLS

#endif
