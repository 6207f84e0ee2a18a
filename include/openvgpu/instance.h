/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_INSTANCE_H
#define OPENVGPU_INSTANCE_H

/*
 * vGPU instance, short: vGPU: a slice of a device with a quota of frame buffer, held by one user.
 * Guest processes run in it (guest.h); it can be suspended, resumed and moved (operation.h).
 *
 * vgpud, asked with a client, makes and removes vGPUs and tells of all that there are, suspended ones
 * too. Where a function takes a vGPU's @name, its UUID will do as well. NVML, asked with a host, tells
 * more of those that are active, that is, on a device; there a vGPU is named by its id, which is the
 * member of that name in struct vgpu_instance. What NVML knows of a vGPU's licence, sessions,
 * accounting, utilization and metadata has headers of its own.
 *
 * Units:    bytes.
 * Threads:  see client.h and host.h; results may be read by any number of threads.
 * Errors:   those of client.h and of host.h; a kind that is listed with a function is part of its
 *           contract; from all that take an id: VGPU_ERROR_NO_SUCH_VGPU, no active vGPU has it.
 * Source:   docs/control-protocol.md.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openvgpu/base.h>
#include <openvgpu/client.h>
#include <openvgpu/host.h>

VGPU_BEGIN_DECLS

enum vgpu_instance_state {
        VGPU_INSTANCE_UNKNOWN = 0, /* the manager is newer than the library */
        VGPU_INSTANCE_IDLE = 1,    /* no process */
        VGPU_INSTANCE_RUNNING = 2,
        VGPU_INSTANCE_SUSPENDING = 3,
        VGPU_INSTANCE_SUSPENDED = 4, /* off the device entirely */
        VGPU_INSTANCE_EVICTED = 5,   /* its memory is off the device, its context is not */
        VGPU_INSTANCE_RESUMING = 6,
        VGPU_INSTANCE_MIGRATING = 7,
        VGPU_INSTANCE_FAILED = 8, /* a process of it cannot be saved; the log of vgpud has more */
};

/** vgpu_instance_state_get_name() - "running"; "unknown" for any other number. Never freed. */
const char *vgpu_instance_state_get_name(enum vgpu_instance_state state);

/* A guest process. */
struct vgpu_process {
        int32_t pid;
        const char *name;        /* chosen by the guest: may contain anything but NUL */
        uint64_t memory_used;    /* bytes of frame buffer */
        uint64_t memory_movable; /* bytes of them that suspend moves at the speed of the bus */
        uint64_t n_launches;     /* kernels, graphs and host functions so far */
};

struct vgpu_instance {
        uint32_t id; /* NVML's vGPU instance id */
        const char *name;
        const char *uuid;
        uint32_t device; /* index; of a suspended one: where it was */
        const char *device_uuid;
        enum vgpu_instance_state state;
        uint64_t frame_buffer;      /* bytes, the quota */
        uint64_t frame_buffer_used; /* bytes */
        bool is_transient;          /* goes with the program that it was made for */
        uint32_t owner;             /* user id */
        int64_t created_seconds;    /* since the epoch */
        size_t n_processes;
        const struct vgpu_process *const *processes;
        uint32_t share; /* percent of its device's time; 0: none */
};

struct vgpu_instance_list {
        size_t n_instances;
        const struct vgpu_instance *const *instances;
};

/**
 * vgpu_instance_lookup_all() - all vGPUs, as they are now
 * @ret_list:  the caller owns it and frees it with vgpu_instance_list_free()
 */
int vgpu_instance_lookup_all(struct vgpu_client *client, struct vgpu_instance_list **ret_list);

/** vgpu_instance_list_free() - NULL is fine. Returns NULL. */
struct vgpu_instance_list *vgpu_instance_list_free(struct vgpu_instance_list *list);

/**
 * vgpu_instance_lookup() - one vGPU, as it is now
 * @ret_instance:  the caller owns it and frees it with vgpu_instance_free()
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU.
 */
int vgpu_instance_lookup(struct vgpu_client *client, const char *name,
                         struct vgpu_instance **ret_instance);

/** vgpu_instance_free() - forgets the answer, not the vGPU; NULL is fine. Returns NULL. */
struct vgpu_instance *vgpu_instance_free(struct vgpu_instance *instance);

/* How to create one; begin with VGPU_INSTANCE_OPTIONS_INIT, so that the struct can grow. */
struct vgpu_instance_options {
        size_t size;           /* of this struct, as the caller was compiled */
        const char *name;      /* NULL: the manager makes one up */
        const char *device;    /* index, UUID or beginning of a UUID; NULL: where most is left */
        uint64_t frame_buffer; /* bytes, the quota, 2 MiB or more; must be set */
        bool is_transient;     /* remove it when the calling process and all its guests are gone */
        uint32_t share; /* percent of the device's time; 0: none (time-sharing.h); for root */
        bool has_owner; /* it belongs to the user @owner; for root */
        uint32_t owner; /* user id; without @has_owner, that of the calling user */
};

/* clang-format off */
#define VGPU_INSTANCE_OPTIONS_INIT { sizeof(struct vgpu_instance_options), 0, 0, 0, false, 0, false, 0 }
/* clang-format on */

/**
 * vgpu_instance_create() - make a vGPU; it belongs to the calling user
 * @ret_instance:  the caller owns it (the answer, not the vGPU); vgpu_instance_free()
 *
 * Errors: VGPU_ERROR_VGPU_EXISTS. VGPU_ERROR_NO_SUCH_DEVICE. VGPU_ERROR_NO_ROOM.
 * VGPU_ERROR_INVALID_PARAMETER. VGPU_ERROR_PERMISSION_DENIED: a share and an owner are for
 * root to give.
 */
int vgpu_instance_create(struct vgpu_client *client, const struct vgpu_instance_options *options,
                         struct vgpu_instance **ret_instance);

/**
 * vgpu_instance_remove() - remove a vGPU that has no processes
 * @ret_instance:  the vGPU as it was, vgpu_instance_free(); may be NULL
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_BUSY. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_instance_remove(struct vgpu_client *client, const char *name,
                         struct vgpu_instance **ret_instance);

/*
 * Asked of NVML.
 */

enum vgpu_vm_id_kind {
        VGPU_VM_ID_DOMAIN = 0, /* a number as text; of vgpud's vGPUs: the owner's user id */
        VGPU_VM_ID_UUID = 1,
};

struct vgpu_vm {
        enum vgpu_vm_id_kind id_kind;
        const char *id;
};

/** vgpu_instance_check() - is @instance the id of an active vGPU? Errors: that it is not. */
int vgpu_instance_check(struct vgpu_host *host, uint32_t instance);

/** vgpu_instance_find() - the id of the active vGPU with the id or UUID @text. */
int vgpu_instance_find(struct vgpu_host *host, const char *text, uint32_t *ret_instance);

/** vgpu_instance_get_device() - the index of the device that it is on. */
int vgpu_instance_get_device(struct vgpu_host *host, uint32_t instance, uint32_t *ret_device);

/** vgpu_instance_get_type() - its type's id. */
int vgpu_instance_get_type(struct vgpu_host *host, uint32_t instance, uint32_t *ret_type);

/** vgpu_instance_get_placement() - its first slot; VGPU_UNKNOWN: it has no fixed place. */
int vgpu_instance_get_placement(struct vgpu_host *host, uint32_t instance, uint32_t *ret_placement);

/** vgpu_instance_get_gpu_instance() - its GPU instance; VGPU_WHOLE_DEVICE: it is time-sliced. */
int vgpu_instance_get_gpu_instance(struct vgpu_host *host, uint32_t instance,
                                   uint32_t *ret_gpu_instance);

/** vgpu_instance_get_uuid() - the caller frees it with vgpu_free(). */
int vgpu_instance_get_uuid(struct vgpu_host *host, uint32_t instance, char **ret_uuid);

/** vgpu_instance_lookup_vm() - whose it is. The caller frees it with vgpu_free(). */
int vgpu_instance_lookup_vm(struct vgpu_host *host, uint32_t instance, struct vgpu_vm **ret_vm);

/**
 * vgpu_instance_get_vm_driver_version() - of the driver in the guest
 * @ret_version:  "" while none runs; the caller frees it with vgpu_free()
 */
int vgpu_instance_get_vm_driver_version(struct vgpu_host *host, uint32_t instance,
                                        char **ret_version);

/**
 * vgpu_instance_get_mdev_uuid() - of the mediated device that the VM got
 * @ret_uuid:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, there is no such device below it.
 */
int vgpu_instance_get_mdev_uuid(struct vgpu_host *host, uint32_t instance, char **ret_uuid);

/**
 * vgpu_instance_get_pci_bus_id() - where the guest sees it
 * @ret_bus_id:  all zero if the guest has no driver; the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_NOT_LOADED, the guest's driver does not run.
 */
int vgpu_instance_get_pci_bus_id(struct vgpu_host *host, uint32_t instance, char **ret_bus_id);

/** vgpu_instance_get_frame_buffer_used() - bytes. */
int vgpu_instance_get_frame_buffer_used(struct vgpu_host *host, uint32_t instance,
                                        uint64_t *ret_bytes);

/**
 * vgpu_instance_get_runtime_state_size() - bytes that a move carries besides the frame buffer that is
 * used: what the contexts of its programs take. 0 where that is not known.
 */
int vgpu_instance_get_runtime_state_size(struct vgpu_host *host, uint32_t instance,
                                         uint64_t *ret_bytes);

/**
 * vgpu_instance_get_frame_rate_limit() - frames a second
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, there is no limit.
 */
int vgpu_instance_get_frame_rate_limit(struct vgpu_host *host, uint32_t instance,
                                       uint32_t *ret_fps);

/** vgpu_instance_get_ecc() - is ECC on? Errors: VGPU_ERROR_NOT_SUPPORTED. */
int vgpu_instance_get_ecc(struct vgpu_host *host, uint32_t instance, bool *ret_is_on);

/** vgpu_instance_get_encoder_capacity() - percent of the encoder that it may use. */
int vgpu_instance_get_encoder_capacity(struct vgpu_host *host, uint32_t instance,
                                       uint32_t *ret_percent);

/**
 * vgpu_instance_set_encoder_capacity() - @percent: 0 to 100
 *
 * Errors: VGPU_ERROR_INVALID_PARAMETER, more than 100. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_instance_set_encoder_capacity(struct vgpu_host *host, uint32_t instance, uint32_t percent);

VGPU_END_DECLS

#endif
