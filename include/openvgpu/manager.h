/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_MANAGER_H
#define OPENVGPU_MANAGER_H

/*
 * Manager: facts about vgpud, the driver below it, and its pool, which is the host memory for
 * suspended vGPUs.
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
        uint64_t limit;     /* bytes that the pool may take */
        uint64_t size;      /* bytes that the pool has taken */
        uint64_t ready;     /* bytes of @size pinned for a device, where a suspend can go at once */
        uint64_t used;      /* bytes that vGPUs hold which are suspended, leaving or coming back */
        uint64_t slab_size; /* bytes of the pieces by which the pool grows */
        uint64_t held;      /* bytes of slabs that left the pool and that clients still have */
        uint64_t spare;     /* bytes kept of resumed vGPUs, and given up when the room is needed */
        uint64_t saved;     /* bytes more that would be used if equal blocks were not kept once */
        uint64_t spilled;   /* bytes of suspended vGPUs that are on disk instead (vgpud --spill) */
        uint64_t
                spill_limit; /* limit of @spilled and @reserved; 0: none but the disk, or nothing goes there */
        uint64_t reserved; /* bytes of the disk that are held for vGPUs of overcommitted devices */
        const char *spill_failure; /* why nothing more is promised on that disk; "": it works */
};

struct vgpu_manager {
        const char *version;          /* version of vgpud */
        bool is_simulated;            /* the devices are simulated */
        uint32_t cuda_driver_version; /* CUDA's number: 1000 * major + 10 * minor */
        const char *driver_path;      /* the libcuda.so.1 that the guests use */
        const char *gate_path;        /* the library that is preloaded into guests */
        const char *nvml_path;        /* folder with the libnvidia-ml.so.1 that knows vGPUs */
        const char *run_directory;    /* folder of the sockets and the state page */
        const struct vgpu_pool *pool; /* part of this result */
        uint64_t descriptors_used;    /* that vgpud uses for vGPUs, processes and connections */
        uint64_t descriptors_limit;   /* limit of @descriptors_used; 0: an old vgpud does not say */
        const char *scenario; /* file that vgpud plays for NVML: vgpud --scenario; "": none */
};

/**
 * vgpu_manager_lookup() - ask the manager for its present facts
 * @ret_manager:  the caller owns it and frees it with vgpu_manager_free()
 */
int vgpu_manager_lookup(struct vgpu_client *client, struct vgpu_manager **ret_manager);

/** vgpu_manager_free() - NULL is fine. Returns NULL. */
struct vgpu_manager *vgpu_manager_free(struct vgpu_manager *manager);

VGPU_END_DECLS

#endif
