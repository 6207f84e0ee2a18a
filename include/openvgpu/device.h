/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_DEVICE_H
#define OPENVGPU_DEVICE_H

/*
 * Device: a physical GPU that the manager shares out.
 *
 * Units:    bytes.
 * Threads:  see client.h; a list may be read by any number of threads.
 * Errors:   those of client.h.
 * Source:   docs/control-protocol.md, ListDevices.
 */

#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>

VGPU_BEGIN_DECLS

struct vgpu_device {
        uint32_t index;           /* as the CUDA driver counts */
        uint32_t n_vgpus;         /* instances on it, suspended ones too */
        const char *uuid;         /* "GPU-..." */
        const char *name;         /* "NVIDIA H200" */
        const char *pci_bus_id;   /* "00000000:3B:00.0" */
        uint64_t memory_total;    /* bytes */
        uint64_t memory_promised; /* bytes: the sum of the vGPUs' quotas */
        uint64_t memory_used;     /* bytes that vGPUs hold */
};

struct vgpu_device_list {
        size_t n_devices;
        const struct vgpu_device *const *devices; /* by index, ascending */
};

/**
 * vgpu_device_lookup_all() - all devices, as they are now
 * @ret_list:  the caller owns it and frees it with vgpu_device_list_free()
 */
int vgpu_device_lookup_all(struct vgpu_client *client, struct vgpu_device_list **ret_list);

/** vgpu_device_list_free() - NULL is fine. Returns NULL. */
struct vgpu_device_list *vgpu_device_list_free(struct vgpu_device_list *list);

VGPU_END_DECLS

#endif
