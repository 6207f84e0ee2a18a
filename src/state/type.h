/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_TYPE_H
#define STATE_TYPE_H

/*
 * vGPU types. Types come with the manager's start and stay until its end. The texts and
 * the placements of a type are at its slot in tables of their own.
 */

#include "state/device.h"

#define STATE_TYPES_MAX      1024 /* a power of two; at most half of them are used */
#define STATE_PLACEMENTS_MAX 64

/* Bits of state_type.capabilities: NVML's numbers of a type's capabilities. */
enum state_type_capability {
        STATE_TYPE_NVLINK_P2P = 1 << 0,
        STATE_TYPE_GPUDIRECT = 1 << 1,
        STATE_TYPE_MULTI_EXCLUSIVE = 1 << 2,
        STATE_TYPE_EXCLUSIVE_TYPE = 1 << 3,
        STATE_TYPE_EXCLUSIVE_SIZE = 1 << 4,
};

struct state_type {
        uint32_t id;
        uint32_t capabilities;     /* bits: enum state_type_capability */
        uint32_t pci_device_id;    /* as a guest sees it, 0x233510de */
        uint32_t pci_subsystem_id; /* 0x18be10de */
        uint32_t profile_id;       /* of the GPU instance behind it; NONE: shares time */
        uint32_t n_heads;
        uint32_t width, height;    /* of each head at most, pixels */
        uint32_t frame_rate_limit; /* frames a second; 0: no limit */
        uint32_t max_instances;    /* on a device */
        uint32_t max_instances_vm;
        uint32_t max_instances_gpu_instance; /* 0: not backed by MIG */
        uint32_t placement_size;             /* slots */
        uint32_t reserved;
        uint64_t frame_buffer; /* bytes, as the following */
        uint64_t bar1;
        uint64_t gsp_heap;
        uint64_t reservation;
};

struct state_type_text {
        _Alignas(uint64_t) char name[STATE_TEXT_MAX]; /* "NVIDIA H200-35C" */
        char class[STATE_LABEL_MAX];                  /* "Compute" */
        char licence[STATE_TEXT_MAX];                 /* "name,version;..." */
};

/* The first slots that a vGPU of the type may ever have. */
struct state_placements {
        _Alignas(uint64_t) uint32_t n_mixed; /* when sizes mix (heterogeneous mode) */
        uint32_t n_uniform;                  /* when all are of one size */
        uint16_t mixed[STATE_PLACEMENTS_MAX];
        uint16_t uniform[STATE_PLACEMENTS_MAX];
};

#endif
