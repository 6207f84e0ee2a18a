/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_INSTANCE_H
#define OPENVGPU_INSTANCE_H

/*
 * vGPU instance, short: vGPU: a slice of a device with a quota of frame buffer, held by one user.
 * Guest processes run in it (guest.h); it can be suspended, resumed and moved (operation.h).
 *
 * A client asks vgpud, which creates and removes vGPUs and knows all vGPUs, also suspended ones.
 * Where a function takes a vGPU's @name, the UUID works as well. A host asks NVML, which knows more
 * about active vGPUs, that is, vGPUs on a device. A host names a vGPU by its id, which is the
 * member @id of struct vgpu_instance. Other headers have what NVML knows about a vGPU's licence,
 * sessions, accounting, utilization and metadata.
 *
 * Units:    bytes.
 * Threads:  see client.h and host.h; results may be read by any number of threads.
 * Errors:   those of client.h and of host.h; a kind that is listed with a function is part of its
 *           contract. Every function that takes an id can fail with VGPU_ERROR_NO_SUCH_VGPU: no
 *           active vGPU has the id.
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
        VGPU_INSTANCE_EVICTED = 5,   /* memory off the device, context still on it */
        VGPU_INSTANCE_RESUMING = 6,
        VGPU_INSTANCE_MIGRATING = 7,
        VGPU_INSTANCE_FAILED = 8, /* a process cannot be saved; see the log of vgpud */
};

/** vgpu_instance_state_get_name() - "running"; "unknown" for any other number. Never freed. */
const char *vgpu_instance_state_get_name(enum vgpu_instance_state state);

/* A guest process. */
struct vgpu_process {
        int32_t pid;
        const char *name;        /* chosen by the guest: may contain anything but NUL */
        uint64_t memory_used;    /* bytes of frame buffer */
        uint64_t memory_movable; /* the bytes that suspend moves at the speed of the bus */
        uint64_t n_launches;     /* kernels, graphs and host functions so far */
        const char *
                container_name; /* as its engine called it when it joined; "": in none, or vgpud does not say */
        /*
         * Can the device interrupt its kernels? "": yes, as its driver made its contexts; "whole": yes, they were
         * restored and made whole again; "unwhole": no, they were restored (docs/limits.md)
         */
        const char *context;
        const char *context_reason; /* why it is "unwhole"; "": it is not, or that is not known */
};

/* What a vGPU has of one device. */
struct vgpu_instance_part {
        uint32_t id;     /* NVML's vGPU instance id */
        uint32_t device; /* index */
        const char *device_uuid;
        uint64_t frame_buffer_used; /* bytes */
        double gpu_seconds_total;   /* GPU time of its programs there since vgpud began */
};

struct vgpu_instance {
        uint32_t id; /* NVML's vGPU instance id; of its first part */
        const char *name;
        const char *uuid;
        uint32_t device; /* index, of the first; of a suspended vGPU: the device that it left */
        const char *device_uuid;
        enum vgpu_instance_state state;
        uint64_t frame_buffer;      /* bytes, the quota on each of its devices */
        uint64_t frame_buffer_used; /* bytes, on all of them */
        bool is_transient;          /* ends with the program for which it was created */
        uint32_t owner;             /* user id */
        int64_t created_seconds;    /* since the epoch */
        size_t n_processes;
        const struct vgpu_process *const *processes;
        uint32_t share;          /* percent of its device's time; 0: none */
        double idle_after;       /* seconds without work, then it leaves its device; 0: never */
        bool idle_keeps_context; /* only its memory leaves */
        double idle;        /* seconds that it has had no work on its device, as far as known */
        const char *demand; /* "", "leaving", "away", "waiting for memory" or "coming in" */
        const char *demand_reason; /* why it did not leave, or come in, when it should have; "" */
        uint64_t host_memory;      /* bytes of the pool that its evicted memory takes */
        const char *
                swap_class; /* "interactive" or "batch": how it waits, and makes room, where there is not enough */
        double resident_seconds; /* that its programs were on a device, since vgpud started */
        uint64_t swapped_bytes;  /* that it moved by itself and by demand, since then */
        uint64_t n_waits;        /* times that it waited for room to come in or to allocate */
        double waited_seconds;
        uint64_t n_swaps; /* times that it left its device, or came back, by itself and by demand */
        uint32_t demand_percent; /* of its memory that has moved, while "leaving" or "coming in" */
        uint64_t spilled_memory; /* bytes of its evicted memory that are on disk, not in the pool */
        size_t n_parts;          /* its devices, as its programs count them; 0: an older vgpud */
        const struct vgpu_instance_part *const *parts;
        const char *
                pool_group; /* those of one group keep equal memory once in the pool; "": all of its owner */
        const char *outside; /* a process of it that uses a device past the gate; "": none */
        const char *gone; /* the UUID of a device that it had, and that vgpud has not found; "" */
};

struct vgpu_instance_list {
        size_t n_instances;
        const struct vgpu_instance *const *instances;
};

/**
 * vgpu_instance_lookup_all() - ask for all vGPUs, as they are now
 * @ret_list:  the caller owns it and frees it with vgpu_instance_list_free()
 */
int vgpu_instance_lookup_all(struct vgpu_client *client, struct vgpu_instance_list **ret_list);

/** vgpu_instance_list_free() - NULL is fine. Returns NULL. */
struct vgpu_instance_list *vgpu_instance_list_free(struct vgpu_instance_list *list);

/**
 * vgpu_instance_lookup() - ask for one vGPU, as it is now
 * @ret_instance:  the caller owns it and frees it with vgpu_instance_free()
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU.
 */
int vgpu_instance_lookup(struct vgpu_client *client, const char *name,
                         struct vgpu_instance **ret_instance);

/** vgpu_instance_free() - free the answer, not the vGPU; NULL is fine. Returns NULL. */
struct vgpu_instance *vgpu_instance_free(struct vgpu_instance *instance);

/* How to create a vGPU; begin with VGPU_INSTANCE_OPTIONS_INIT, so that the struct can grow. */
struct vgpu_instance_options {
        size_t size;      /* of this struct, as the caller was compiled */
        const char *name; /* NULL: the manager chooses a name */
        const char
                *device; /* index, UUID or beginning of a UUID; NULL: the device with most room */
        uint64_t frame_buffer; /* bytes, the quota, 2 MiB or more; must be set */
        bool is_transient;     /* remove it when the calling process and all guests have ended */
        uint32_t share;    /* percent of the device's time; 0: none (time-sharing.h); for root */
        bool has_owner;    /* it belongs to the user @owner; for root */
        uint32_t owner;    /* user id; without @has_owner, that of the calling user */
        double idle_after; /* seconds without work, then it leaves its device by itself; 0: never */
        bool idle_keeps_context; /* then only its memory leaves */
        const char *swap_class;  /* "interactive" or "batch"; NULL: batch */
        uint32_t
                n_devices; /* with @device NULL: so many, 1 to 8, linked ones if possible; 0: one */
        const char *
                pool_group; /* vGPUs, also of several users, that may know what the others have in the pool; NULL: those of its owner; for root */
        bool is_dry;        /* only say whether it may be made, as things are */
};

/* clang-format off */
#define VGPU_INSTANCE_OPTIONS_INIT { sizeof(struct vgpu_instance_options), 0, 0, 0, false, 0, false, 0, 0, false, 0, 0, 0, false }
/* clang-format on */

/**
 * vgpu_instance_create() - create a vGPU, which belongs to the calling user
 * @ret_instance:  the caller owns it (the answer, not the vGPU); vgpu_instance_free(); may be NULL
 *                 if @options is_dry it is set to NULL
 *
 * Errors: VGPU_ERROR_VGPU_EXISTS. VGPU_ERROR_NO_SUCH_DEVICE. VGPU_ERROR_NO_ROOM.
 * VGPU_ERROR_INVALID_PARAMETER. VGPU_ERROR_PERMISSION_DENIED: a share, an owner and a
 * pool group are for root to give.
 */
int vgpu_instance_create(struct vgpu_client *client, const struct vgpu_instance_options *options,
                         struct vgpu_instance **ret_instance);

/**
 * vgpu_instance_set_idle() - after how long without work it leaves its device by itself
 * @after:          seconds, 0.1 to 86400; 0: it never does
 * @keeps_context:  then only its memory leaves, and a part of each program stays
 * @ret_instance:   the vGPU as it is now, vgpu_instance_free(); may be NULL
 *
 * It comes back by itself when one of its programs makes a call. At any time; also while it is away.
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_INVALID_PARAMETER. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_instance_set_idle(struct vgpu_client *client, const char *name, double after,
                           bool keeps_context, struct vgpu_instance **ret_instance);

/**
 * vgpu_instance_set_class() - how it waits for room, and makes room, on an overcommitted device
 * @swap_class:    "interactive" or "batch"
 * @ret_instance:  the vGPU as it is now, vgpu_instance_free(); may be NULL
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_INVALID_PARAMETER. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_instance_set_class(struct vgpu_client *client, const char *name, const char *swap_class,
                            struct vgpu_instance **ret_instance);

/**
 * vgpu_instance_remove() - remove a vGPU that has no processes
 * @ret_instance:  the vGPU as it was, vgpu_instance_free(); may be NULL
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_BUSY. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_instance_remove(struct vgpu_client *client, const char *name,
                         struct vgpu_instance **ret_instance);

/**
 * vgpu_instance_rename() - the vGPU @name is called @to from now on; its programs run on
 * @ret_instance:  the vGPU as it is now, vgpu_instance_free(); may be NULL
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_VGPU_EXISTS. VGPU_ERROR_INVALID_PARAMETER.
 * VGPU_ERROR_BUSY. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_instance_rename(struct vgpu_client *client, const char *name, const char *to,
                         struct vgpu_instance **ret_instance);

/**
 * vgpu_instance_resize() - the vGPU @name has the quota @frame_buffer from now on; its programs run on
 * @frame_buffer:  bytes; no less than its programs hold, no more than its device has left
 * @ret_instance:  the vGPU as it is now, vgpu_instance_free(); may be NULL
 *
 * Errors: VGPU_ERROR_NO_SUCH_VGPU. VGPU_ERROR_BUSY, its programs hold more, or an operation is under way.
 * VGPU_ERROR_NO_ROOM. VGPU_ERROR_INVALID_PARAMETER. VGPU_ERROR_UNSUPPORTED. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_instance_resize(struct vgpu_client *client, const char *name, uint64_t frame_buffer,
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

/** vgpu_instance_check() - check that @instance is the id of an active vGPU. */
int vgpu_instance_check(struct vgpu_host *host, uint32_t instance);

/** vgpu_instance_find() - get the id of the active vGPU with the id or UUID @text. */
int vgpu_instance_find(struct vgpu_host *host, const char *text, uint32_t *ret_instance);

/** vgpu_instance_get_device() - get the index of its device. */
int vgpu_instance_get_device(struct vgpu_host *host, uint32_t instance, uint32_t *ret_device);

/** vgpu_instance_get_type() - get the id of its type. */
int vgpu_instance_get_type(struct vgpu_host *host, uint32_t instance, uint32_t *ret_type);

/** vgpu_instance_get_placement() - get its first slot; VGPU_UNKNOWN: it has no fixed place. */
int vgpu_instance_get_placement(struct vgpu_host *host, uint32_t instance, uint32_t *ret_placement);

/** vgpu_instance_get_gpu_instance() - get its GPU instance; VGPU_WHOLE_DEVICE: it is time-sliced. */
int vgpu_instance_get_gpu_instance(struct vgpu_host *host, uint32_t instance,
                                   uint32_t *ret_gpu_instance);

/** vgpu_instance_get_uuid() - get its UUID. Free it with vgpu_free(). */
int vgpu_instance_get_uuid(struct vgpu_host *host, uint32_t instance, char **ret_uuid);

/** vgpu_instance_lookup_vm() - get its virtual machine. Free it with vgpu_free(). */
int vgpu_instance_lookup_vm(struct vgpu_host *host, uint32_t instance, struct vgpu_vm **ret_vm);

/**
 * vgpu_instance_get_vm_driver_version() - get the version of the driver in the guest
 * @ret_version:  "" while no driver runs; the caller frees it with vgpu_free()
 */
int vgpu_instance_get_vm_driver_version(struct vgpu_host *host, uint32_t instance,
                                        char **ret_version);

/**
 * vgpu_instance_get_mdev_uuid() - get the UUID of the VM's mediated device
 * @ret_uuid:  the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, the vGPU has no mediated device.
 */
int vgpu_instance_get_mdev_uuid(struct vgpu_host *host, uint32_t instance, char **ret_uuid);

/**
 * vgpu_instance_get_pci_bus_id() - get the address at which the guest sees the vGPU
 * @ret_bus_id:  all zero if the guest has no driver; the caller frees it with vgpu_free()
 *
 * Errors: VGPU_ERROR_NOT_LOADED, the guest's driver does not run.
 */
int vgpu_instance_get_pci_bus_id(struct vgpu_host *host, uint32_t instance, char **ret_bus_id);

/** vgpu_instance_get_frame_buffer_used() - get the used bytes. */
int vgpu_instance_get_frame_buffer_used(struct vgpu_host *host, uint32_t instance,
                                        uint64_t *ret_bytes);

/**
 * vgpu_instance_get_runtime_state_size() - get the bytes that a move carries besides the used frame
 * buffer: the size of the programs' contexts. 0: not known.
 */
int vgpu_instance_get_runtime_state_size(struct vgpu_host *host, uint32_t instance,
                                         uint64_t *ret_bytes);

/**
 * vgpu_instance_get_frame_rate_limit() - get the limit in frames a second
 *
 * Errors: VGPU_ERROR_NOT_SUPPORTED, there is no limit.
 */
int vgpu_instance_get_frame_rate_limit(struct vgpu_host *host, uint32_t instance,
                                       uint32_t *ret_fps);

/** vgpu_instance_get_ecc() - ask whether ECC is on. Errors: VGPU_ERROR_NOT_SUPPORTED. */
int vgpu_instance_get_ecc(struct vgpu_host *host, uint32_t instance, bool *ret_is_on);

/** vgpu_instance_get_encoder_capacity() - get the percentage of the encoder that it may use. */
int vgpu_instance_get_encoder_capacity(struct vgpu_host *host, uint32_t instance,
                                       uint32_t *ret_percent);

/**
 * vgpu_instance_set_encoder_capacity() - set the percentage of the encoder, 0 to 100
 *
 * Errors: VGPU_ERROR_INVALID_PARAMETER, more than 100. VGPU_ERROR_PERMISSION_DENIED.
 */
int vgpu_instance_set_encoder_capacity(struct vgpu_host *host, uint32_t instance, uint32_t percent);

VGPU_END_DECLS

#endif
