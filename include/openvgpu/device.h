/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_DEVICE_H
#define OPENVGPU_DEVICE_H

/*
 * Device: a physical GPU.
 *
 * vgpud, asked with a client, tells which ones it shares out and what it has promised of them. NVML,
 * asked with a host, tells what they are and which vGPUs they can host; there a device is named by
 * its index.
 *
 * Units:    bytes.
 * Threads:  see client.h and host.h; a list may be read by any number of threads.
 * Errors:   those of client.h, and of host.h; from all that take a device: VGPU_ERROR_NO_SUCH_DEVICE.
 * Source:   docs/control-protocol.md, ListDevices.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>
#include <openvgpu/host.h>

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

/*
 * Asked of NVML.
 */

enum vgpu_device_mode {
        VGPU_DEVICE_NON_SRIOV = 0,
        VGPU_DEVICE_SRIOV = 1, /* device and driver use PCI virtual functions */
};

/* What a device can do with vGPUs. A value is a yes or no unless it says otherwise. */
enum vgpu_device_capability {
        VGPU_DEVICE_FRACTIONAL_MULTI_VGPU = 0, /* a VM may own several vGPUs of parts of it */
        VGPU_DEVICE_HETEROGENEOUS_PROFILES = 1,
        VGPU_DEVICE_HETEROGENEOUS_SIZES = 2,
        VGPU_DEVICE_READ_BANDWIDTH = 3,  /* of a buffer of migration data, MB/s */
        VGPU_DEVICE_WRITE_BANDWIDTH = 4, /* MB/s */
        VGPU_DEVICE_STREAMING = 5,       /* migration data in a stream */
        VGPU_DEVICE_MINI_QUARTER = 6,    /* can be set */
        VGPU_DEVICE_MEDIA_ENGINES = 7,   /* compute types with media engines; can be set */
        VGPU_DEVICE_WARM_UPDATE = 8,
        VGPU_DEVICE_HOMOGENEOUS_PLACEMENTS = 9,
        VGPU_DEVICE_MIG_TIMESLICING_SUPPORTED = 10,
        VGPU_DEVICE_MIG_TIMESLICING = 11, /* can be set */
};

#define VGPU_DEVICE_CAPABILITY_COUNT 12

/** vgpu_device_count() - indices are less than that. */
int vgpu_device_count(struct vgpu_host *host, uint32_t *ret_count);

/**
 * vgpu_device_find() - the index of a device
 * @text:  an index, a UUID, the beginning of a UUID that no other has, or a PCI address
 *
 * Errors: VGPU_ERROR_NO_SUCH_DEVICE. VGPU_ERROR_INVALID_PARAMETER, several begin so.
 */
int vgpu_device_find(struct vgpu_host *host, const char *text, uint32_t *ret_device);

/* "GPU-...", "NVIDIA H200", "00000000:3B:00.0". The caller frees it with vgpu_free(). */
int vgpu_device_get_uuid(struct vgpu_host *host, uint32_t device, char **ret_uuid);
int vgpu_device_get_name(struct vgpu_host *host, uint32_t device, char **ret_name);
int vgpu_device_get_pci_bus_id(struct vgpu_host *host, uint32_t device, char **ret_bus_id);

/** vgpu_device_get_mode() - how it hosts vGPUs. Errors: VGPU_ERROR_NOT_SUPPORTED, not at all. */
int vgpu_device_get_mode(struct vgpu_host *host, uint32_t device, enum vgpu_device_mode *ret_mode);

/** vgpu_device_get_capability() - a number, or 0 and 1 for no and yes. */
int vgpu_device_get_capability(struct vgpu_host *host, uint32_t device,
                               enum vgpu_device_capability capability, uint32_t *ret_value);

/**
 * vgpu_device_set_capability() - switch one that can be
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, it cannot, or not now. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_device_set_capability(struct vgpu_host *host, uint32_t device,
                               enum vgpu_device_capability capability, bool is_on);

/** vgpu_device_capability_get_name() - "warm-update"; "unknown" for others. Never freed. */
const char *vgpu_device_capability_get_name(enum vgpu_device_capability capability);

/** vgpu_device_lookup_types() - that it can ever host. The caller frees it with vgpu_free(). */
int vgpu_device_lookup_types(struct vgpu_host *host, uint32_t device,
                             struct vgpu_number_list **ret_types);

/** vgpu_device_lookup_creatable_types() - that could start now. The caller frees it likewise. */
int vgpu_device_lookup_creatable_types(struct vgpu_host *host, uint32_t device,
                                       uint32_t gpu_instance, struct vgpu_number_list **ret_types);

/** vgpu_device_lookup_instances() - ids of the vGPUs that are active on it; likewise. */
int vgpu_device_lookup_instances(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                 struct vgpu_number_list **ret_instances);

VGPU_END_DECLS

#endif
