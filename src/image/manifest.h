/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_MANIFEST_H
#define IMAGE_MANIFEST_H

/*
 * The manifest of an image, manifest.json: what the image is of, and what its other files must be.
 * docs/checkpoint-images.md describes it member by member.
 *
 * An image has two parts, of which it has at least one: "memory", the GPU memory of the processes of
 * a vGPU, in a data file; and "criu", the processes themselves, in files that CRIU made.
 *
 * image_manifest_parse() checks everything before a caller sees it: every number is within its bounds,
 * the lists fit each other, and no name of a file contains a path.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "image/data.h"
#include "image/error.h"

#define IMAGE_FORMAT "openvgpu-checkpoint"
#define IMAGE_VERSION \
        3 /* of several devices; 2: with a parent; 1: neither, as older readers know it */
#define IMAGE_MANIFEST_FILE "manifest.json"
#define IMAGE_DATA_FILE     "memory.data"
#define IMAGE_CRIU_FOLDER   "criu"

#define IMAGE_TEXT_MAX      96
#define IMAGE_DEVICES_MAX   8 /* of one vGPU */
#define IMAGE_PROCESSES_MAX 4096
#define IMAGE_FILES_MAX     65536
#define IMAGE_MANIFEST_MAX  ((size_t)64 << 20) /* bytes */

/* One mapping of device memory. */
struct image_allocation {
        uint64_t address, size;
        uint64_t device; /* on which of the image's devices it was */
};

struct image_process {
        int pid;
        char name[IMAGE_TEXT_MAX];
        struct image_allocation *allocations; /* in the order of their bytes in the data file */
        size_t n_allocations;
        uint64_t size; /* sum of the sizes of @allocations */
};

struct image_device {
        char name[IMAGE_TEXT_MAX]; /* the kind of device: "NVIDIA H200" */
        char uuid[IMAGE_TEXT_MAX];
        uint64_t memory;
};

struct image_file {
        char name[IMAGE_TEXT_MAX];
        uint64_t size;
        uint32_t checksum;
};

struct image_manifest {
        char id[IMAGE_TEXT_MAX];      /* at random; "": made by a version that gave none */
        uint32_t checksum;            /* of the manifest itself, once it was parsed */
        char created[IMAGE_TEXT_MAX]; /* 2026-01-31T12:00:00Z */
        char host[IMAGE_TEXT_MAX];
        char software[IMAGE_TEXT_MAX]; /* "0.1.0" */

        struct image_device device[IMAGE_DEVICES_MAX]; /* as the programs count them */
        size_t n_devices;                              /* 0: written as 1 */
        uint32_t driver_version;                       /* cuDriverGetVersion(): 13000 */
        char driver[IMAGE_TEXT_MAX]; /* of the kernel's module: "580.159.04", or "" */

        bool has_vgpu;
        struct {
                char name[IMAGE_TEXT_MAX];
                char uuid[IMAGE_TEXT_MAX];
                uint64_t frame_buffer;
        } vgpu;

        struct image_process *processes;
        size_t n_processes;

        /* The image that has the rest of the memory. */
        bool has_parent;
        struct {
                char directory[PATH_MAX];
                char id[IMAGE_TEXT_MAX];
                uint32_t checksum; /* of its manifest */
        } parent;

        bool has_memory;
        struct image_table memory;
        bool has_hashes; /* memory.hashes is there */
        uint32_t hashes_checksum;

        bool has_criu;
        struct {
                char version[IMAGE_TEXT_MAX];
                int pid; /* the root of the tree */
                bool is_shell_job;
                struct image_file *files;
                size_t n_files;
        } criu;
};

void image_manifest_deinit(struct image_manifest *manifest);

/* image_manifest_make_id() - give it a new id. Errors: getrandom(). */
int image_manifest_make_id(struct image_manifest *manifest);

/* image_manifest_can_name() - can @path be in a manifest? Control characters and broken UTF-8 cannot. */
bool image_manifest_can_name(const char *path);

/*
 * image_manifest_parse() - read a manifest from the bytes of a file
 * @where:  its path, for messages
 * Errors: -EBADMSG, it was altered or is no manifest; -EOPNOTSUPP, it is of a newer version.
 */
int image_manifest_parse(struct image_manifest *ret_manifest, const char *where, const char *text,
                         size_t size, struct image_error *error);

/* image_manifest_format() - make the text of a manifest, which the caller frees; NULL: no memory. */
char *image_manifest_format(const struct image_manifest *manifest);

#endif
