/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_INSTANCE_H
#define STATE_INSTANCE_H

/*
 * vGPU instances, and the virtual machine in which NVML sees each of them.
 *
 * An instance keeps its slot as long as it lives. Its other records (struct state_vm, samples,
 * accounting) are at the same slot.
 */

#include "state/device.h"

#define STATE_INSTANCES_MAX 4096

#define STATE_PLACEMENT_NONE 0xffffu

enum state_instance_state {
        STATE_IDLE = 0, /* no process */
        STATE_RUNNING,
        STATE_SUSPENDING,
        STATE_SUSPENDED, /* off the GPU entirely */
        STATE_EVICTED,   /* memory is out, the context stays (--keep-context) */
        STATE_RESUMING,
        STATE_MIGRATING,
        STATE_FAILED, /* a process cannot be saved; see the manager's log */
};

/* Of the driver in the virtual machine. What only it knows is DRIVER_NOT_LOADED until it runs. */
enum state_guest_driver {
        STATE_GUEST_DRIVER_NONE = 0, /* not installed */
        STATE_GUEST_DRIVER_STOPPED,  /* installed, not loaded */
        STATE_GUEST_DRIVER_RUNNING,
};

/* Numbers are NVML's. */
enum state_licence {
        STATE_LICENCE_UNKNOWN = 0,
        STATE_LICENCE_UNINITIALIZED,
        STATE_LICENCE_UNLICENSED_UNRESTRICTED,
        STATE_LICENCE_UNLICENSED_RESTRICTED,
        STATE_LICENCE_UNLICENSED,
        STATE_LICENCE_LICENSED,
};

struct state_instance {
        uint32_t id; /* NVML's vGPU instance id, never 0, unique while the manager's state lives */
        uint32_t device; /* index */
        uint32_t state;  /* enum state_instance_state */
        uint32_t type_id;
        uint32_t n_processes;
        uint32_t tenant_uid;
        uint32_t utilization_gpu; /* percent of the device */
        uint32_t utilization_memory;
        uint32_t utilization_encoder, utilization_decoder, utilization_jpeg, utilization_ofa;
        uint32_t guest_driver;     /* enum state_guest_driver */
        uint32_t licence;          /* enum state_licence; is licensed: STATE_LICENCE_LICENSED */
        uint32_t gpu_instance;     /* id; NONE: shares the time of the device */
        uint32_t placement;        /* first slot; STATE_PLACEMENT_NONE */
        uint32_t placement_size;   /* slots */
        uint32_t frame_rate_limit; /* frames a second; 0: no limit */
        state_switch ecc;
        state_switch accounting;
        uint32_t encoder_capacity; /* percent */
        uint32_t vgpu_version;     /* that the guest's driver speaks; 0: none runs */
        uint32_t can_migrate;
        uint32_t is_virtual;         /* of a scenario: nothing can run in it */
        uint64_t frame_buffer_quota; /* bytes */
        uint64_t frame_buffer_used;
        uint64_t runtime_state_size; /* bytes, at most, beside the frame buffer */
        uint64_t created_ns;         /* CLOCK_REALTIME */
        char uuid[STATE_UUID_MAX];   /* plain 8-4-4-4-12 */
        char name[STATE_NAME_MAX];   /* of the vGPU */
};

/* Bits of state_vm.uses; a blob of metadata from elsewhere may have others, which say the same. */
enum state_use {
        STATE_USES_MANAGED = 1 << 0,    /* memory that the device shares with the host */
        STATE_USES_IMPORTED = 1 << 1,   /* memory of another process, or that another has */
        STATE_USES_REGISTERED = 1 << 2, /* memory of which there is a dma-buf */
};

enum state_vm_id { STATE_VM_DOMAIN = 0, STATE_VM_UUID };

struct state_vm {
        uint32_t id_kind; /* enum state_vm_id */
        uint32_t reserved;
        struct state_expiry licence_expiry;
        char id[STATE_TEXT_MAX]; /* a number, or a UUID */
        char name[STATE_TEXT_MAX];
        char driver_version[STATE_TEXT_MAX]; /* "": none is installed */
        char mdev_uuid[STATE_UUID_MAX];      /* "": no mediated device */
        char pci_bus_id[STATE_LABEL_MAX];    /* in the machine, "00000000:02:04.0"; "": unknown */
        uint64_t uses; /* bits of what stands in the way of a move elsewhere: enum state_use */
};

#endif
