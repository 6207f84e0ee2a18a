/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_DEVICE_H
#define OPENVGPU_DEVICE_H

/*
 * Device: a physical GPU.
 *
 * A client asks vgpud, which lists the devices that it manages and what it has promised of them. A
 * host asks NVML, which describes the devices and the vGPUs that they can host. A host names a
 * device by its index.
 *
 * Units:    bytes.
 * Threads:  see client.h and host.h; a list may be read by any number of threads.
 * Errors:   those of client.h and host.h. Every function that takes a device can fail with
 *           VGPU_ERROR_NO_SUCH_DEVICE.
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
        uint32_t index;           /* as the CUDA driver counts devices */
        uint32_t n_vgpus;         /* vGPUs on the device, suspended ones too */
        const char *uuid;         /* "GPU-..." */
        const char *name;         /* "NVIDIA H200" */
        const char *pci_bus_id;   /* "00000000:3B:00.0" */
        uint64_t memory_total;    /* bytes */
        uint64_t memory_promised; /* bytes: the sum of the vGPUs' quotas */
        uint64_t memory_used;     /* bytes that vGPUs hold */
        uint64_t memory_swapped;  /* bytes of its vGPUs that are off it, in the pool or on disk */
        bool is_overcommitted;    /* its vGPUs take turns: see vgpud --overcommit */
        uint64_t memory_left;     /* bytes: what it can still promise to one vGPU more */
        bool is_left_out;         /* it has no vGPUs: see vgpud --leave-out */
};

struct vgpu_device_list {
        size_t n_devices;
        const struct vgpu_device *const *devices; /* by index, ascending */
};

/**
 * vgpu_device_lookup_all() - ask for all devices, as they are now
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
        VGPU_DEVICE_SRIOV = 1, /* the device and the driver use PCI virtual functions */
};

/* What a device can do with vGPUs. A value is yes or no unless the comment says otherwise. */
enum vgpu_device_capability {
        VGPU_DEVICE_FRACTIONAL_MULTI_VGPU = 0, /* a VM may own several parts of it */
        VGPU_DEVICE_HETEROGENEOUS_PROFILES = 1,
        VGPU_DEVICE_HETEROGENEOUS_SIZES = 2,
        VGPU_DEVICE_READ_BANDWIDTH = 3,  /* for a buffer of migration data, MB/s */
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

/** vgpu_device_count() - get the number of devices; indices are less than it. */
int vgpu_device_count(struct vgpu_host *host, uint32_t *ret_count);

/**
 * vgpu_device_find() - get the index of a device
 * @text:  an index, a UUID, the unique beginning of a UUID, or a PCI address
 *
 * Errors: VGPU_ERROR_NO_SUCH_DEVICE. VGPU_ERROR_INVALID_PARAMETER, several UUIDs begin with @text.
 */
int vgpu_device_find(struct vgpu_host *host, const char *text, uint32_t *ret_device);

/* "GPU-...", "NVIDIA H200", "00000000:3B:00.0". The caller frees it with vgpu_free(). */
int vgpu_device_get_uuid(struct vgpu_host *host, uint32_t device, char **ret_uuid);
int vgpu_device_get_name(struct vgpu_host *host, uint32_t device, char **ret_name);
int vgpu_device_get_pci_bus_id(struct vgpu_host *host, uint32_t device, char **ret_bus_id);

/** vgpu_device_get_mode() - ask how it hosts vGPUs. Errors: VGPU_ERROR_NOT_SUPPORTED, not at all. */
int vgpu_device_get_mode(struct vgpu_host *host, uint32_t device, enum vgpu_device_mode *ret_mode);

/** vgpu_device_get_capability() - get a number, or 0 for no and 1 for yes. */
int vgpu_device_get_capability(struct vgpu_host *host, uint32_t device,
                               enum vgpu_device_capability capability, uint32_t *ret_value);

/**
 * vgpu_device_set_capability() - switch a capability that can be set
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, the capability cannot be set, or not now.
 * VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_device_set_capability(struct vgpu_host *host, uint32_t device,
                               enum vgpu_device_capability capability, bool is_on);

/** vgpu_device_capability_get_name() - "warm-update"; "unknown" for others. Never freed. */
const char *vgpu_device_capability_get_name(enum vgpu_device_capability capability);

/** vgpu_device_lookup_types() - get the types that it can host. Free the list with vgpu_free(). */
int vgpu_device_lookup_types(struct vgpu_host *host, uint32_t device,
                             struct vgpu_number_list **ret_types);

/** vgpu_device_lookup_creatable_types() - get the types of which a vGPU could start now; likewise. */
int vgpu_device_lookup_creatable_types(struct vgpu_host *host, uint32_t device,
                                       uint32_t gpu_instance, struct vgpu_number_list **ret_types);

/** vgpu_device_lookup_instances() - get the ids of its active vGPUs; likewise. */
int vgpu_device_lookup_instances(struct vgpu_host *host, uint32_t device, uint32_t gpu_instance,
                                 struct vgpu_number_list **ret_instances);

/*
 * What a device measures of itself, of all who use it. VGPU_UNKNOWN, and UINT64_MAX for the wider ones:
 * this device or driver does not tell.
 */
struct vgpu_device_sensors {
        uint32_t temperature;        /* Celsius */
        uint32_t power_mw;           /* drawn now */
        uint32_t power_limit_mw;     /* enforced */
        uint32_t clock_sm_mhz;       /* now */
        uint32_t clock_memory_mhz;   /* now */
        uint32_t gpu_utilization;    /* percent */
        uint32_t memory_utilization; /* percent of the time in which memory was read or written */
        uint32_t encoder_utilization, decoder_utilization; /* percent */
        uint64_t energy_mj;                                /* since the driver was loaded */
        uint64_t memory_total, memory_used, memory_free;   /* bytes */
        uint64_t ecc_corrected, ecc_uncorrected;           /* errors since the driver was loaded */
};

/**
 * vgpu_device_lookup_sensors() - what @device measures now
 * @ret_sensors:  the caller frees it with vgpu_free()
 *
 * A real device is asked itself, which takes its driver up to some milliseconds.
 */
int vgpu_device_lookup_sensors(struct vgpu_host *host, uint32_t device,
                               struct vgpu_device_sensors **ret_sensors);

VGPU_END_DECLS

#endif
