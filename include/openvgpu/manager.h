/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_MANAGER_H
#define OPENVGPU_MANAGER_H

/*
 * Manager: what vgpud says about itself, the driver below it, and its pool: the host memory that
 * the memory of suspended vGPUs goes to.
 *
 * Units:    bytes.
 * Threads:  see client.h; a result may be read by any number of threads.
 * Errors:   those of client.h.
 * Source:   docs/control-protocol.md, GetInfo.
 */

#include <stdbool.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>

VGPU_BEGIN_DECLS

struct vgpu_pool {
        uint64_t limit;      /* bytes that the pool may take */
        uint64_t size;       /* bytes that it has taken */
        uint64_t ready;      /* bytes of that pinned for a device: a suspend goes there at once */
        uint64_t used;       /* bytes that suspended vGPUs have in it */
        uint64_t slab_size;  /* bytes; it grows in pieces of this */
        uint64_t huge_pages; /* bytes of it in huge pages */
};

struct vgpu_manager {
        const char *version;          /* of vgpud */
        bool is_simulated;            /* its devices are simulated */
        uint32_t cuda_driver_version; /* CUDA's number: 1000 * major + 10 * minor */
        const char *driver_path;      /* libcuda.so.1 that the guests' calls end in */
        const char *gate_path;        /* what is preloaded into guests */
        const char *nvml_path;        /* folder with the libnvidia-ml.so.1 that knows vGPUs */
        const char *run_directory;    /* sockets and board */
        const struct vgpu_pool *pool; /* part of this result */
        uint64_t descriptors_used;    /* of vgpud, for vGPUs, processes and connections */
        uint64_t descriptors_limit;   /* of that; 0: a vgpud that does not say */
};

/**
 * vgpu_manager_lookup() - what the manager says now
 * @ret_manager:  the caller owns it and frees it with vgpu_manager_free()
 */
int vgpu_manager_lookup(struct vgpu_client *client, struct vgpu_manager **ret_manager);

/** vgpu_manager_free() - NULL is fine. Returns NULL. */
struct vgpu_manager *vgpu_manager_free(struct vgpu_manager *manager);

VGPU_END_DECLS

#endif
