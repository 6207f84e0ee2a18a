/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_METADATA_H
#define OPENVGPU_METADATA_H

/*
 * Metadata: facts about a vGPU, and about a device, that decide whether the vGPU can move to the
 * device.
 *
 * Metadata is a sequence of bytes that you can store and carry to another host. The metadata of the
 * vGPU and of the device alone decide whether the vGPU can move; the free memory of the device does
 * not matter.
 *
 * You may ask for a vGPU's metadata at any time. Before the guest's driver has loaded, and after it
 * has ended, the facts that only this driver knows are missing: is_guest_known is false, the
 * guest's driver and vGPU version are "" and 0, and can_migrate is false because the driver has not
 * said that it can. Such a vGPU can only be started again elsewhere (VGPU_POWER_COLD). Ask again
 * before a move.
 *
 * Threads:  see host.h; any number of threads may read the metadata.
 * Errors:   those of host.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

enum vgpu_metadata_kind {
        VGPU_METADATA_INSTANCE = 1,
        VGPU_METADATA_DEVICE = 2,
};

struct vgpu_metadata {
        enum vgpu_metadata_kind kind;
        size_t size; /* of @bytes */
        const void *bytes;

        /* The public facts in the bytes; the rest is the driver's. */
        uint32_t version, revision;
        const char *host_driver_version;
        bool can_migrate;
        bool is_guest_known;                       /* of a vGPU: the next two members are valid */
        const char *guest_driver_version;          /* of a vGPU; else "" */
        uint32_t guest_version;                    /* of a vGPU: its vGPU version; else 0 */
        uint32_t version_minimum, version_maximum; /* of a device: for guests; else 0 */
};

/* The states of a virtual machine in which the vGPU can move; bits. */
enum vgpu_power_state {
        VGPU_POWER_COLD = 1,      /* S5: switched off */
        VGPU_POWER_HIBERNATE = 2, /* S4 */
        VGPU_POWER_SLEEP = 4,     /* S3 */
        VGPU_POWER_LIVE = 8,      /* S0: running */
};

/* What limits these states; bits. */
enum vgpu_limit {
        VGPU_LIMIT_HOST_DRIVER = 1,
        VGPU_LIMIT_GUEST_DRIVER = 2,
        VGPU_LIMIT_DEVICE = 4,
        VGPU_LIMIT_OTHER = 8,
};

struct vgpu_compatibility {
        uint32_t power_states; /* of enum vgpu_power_state; 0: the vGPU cannot move */
        uint32_t limits;       /* of enum vgpu_limit; 0: none */
};

/** vgpu_metadata_lookup_instance() - get the metadata of a vGPU. Free it with vgpu_free(). */
int vgpu_metadata_lookup_instance(struct vgpu_host *host, uint32_t instance,
                                  struct vgpu_metadata **ret_metadata);

/** vgpu_metadata_lookup_device() - get the metadata of a device. Free it with vgpu_free(). */
int vgpu_metadata_lookup_device(struct vgpu_host *host, uint32_t device,
                                struct vgpu_metadata **ret_metadata);

/**
 * vgpu_metadata_new() - make metadata from bytes of another host
 * @bytes:         the member @bytes of the original metadata; copied
 * @ret_metadata:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_INVALID_PARAMETER, the bytes are no such metadata.
 */
int vgpu_metadata_new(struct vgpu_host *host, enum vgpu_metadata_kind kind, const void *bytes,
                      size_t size, struct vgpu_metadata **ret_metadata);

/**
 * vgpu_metadata_check() - check whether the vGPU of @instance can move to the device of @device
 * @instance, @device:  metadata of these kinds, from any host
 * @ret_compatibility:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_INVALID_PARAMETER, the metadata is of other kinds. "Cannot move" is no error.
 */
int vgpu_metadata_check(struct vgpu_host *host, const struct vgpu_metadata *instance,
                        const struct vgpu_metadata *device,
                        struct vgpu_compatibility **ret_compatibility);

/**
 * vgpu_metadata_get_device_text() - get the kind of a device: devices of one kind have equal texts
 * @ret_text:  the caller frees it with vgpu_free()
 */
int vgpu_metadata_get_device_text(struct vgpu_host *host, uint32_t device, char **ret_text);

VGPU_END_DECLS

#endif
