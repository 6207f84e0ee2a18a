/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_RESOURCE_MANAGER_H
#define WIRE_RESOURCE_MANAGER_H

/*
 * The few calls of NVIDIA's resource manager, in the kernel module, that OpenVGPU uses: those with
 * which a process makes its channels, and those that hold a channel off the device. The
 * declarations are our own; the numbers are the interface, which is stable from driver 535 to 595.
 *
 * All are ioctls of type 'F' on a descriptor of /dev/nvidiactl. Objects have handles, which mean
 * something within one client only; a client belongs to the open file that it was made on, and the
 * kernel module refuses it on any other (status INVALID_CLIENT).
 */

#include <stdint.h>
#include <sys/ioctl.h>

#define RM_IOCTL_TYPE    'F'
#define RM_IOCTL_FREE    0x29
#define RM_IOCTL_CONTROL 0x2a
#define RM_IOCTL_ALLOC   0x2b
#define RM_IOCTL_MAP     0x4e /* a mmap() of the descriptor that it names follows */

#define RM_MAJOR         195 /* of the device nodes */
#define RM_MINOR_CONTROL 255 /* /dev/nvidiactl */

#define RM_CLASS_SUBDEVICE     0x2080u
#define RM_CLASS_CHANNEL_GROUP 0xa06cu
#define RM_CLASS_DEBUGGER      0x83deu

/* Classes of channels: one for each generation of devices. */
#define RM_IS_CHANNEL_CLASS(class) (((class) & 0xffu) == 0x6fu && (class) > 0xffu)

/* Objects of a channel that run kernels, and the registers that wake a device up: likewise. */
#define RM_IS_COMPUTE_CLASS(class)  (((class) & 0xffu) == 0xc0u && (class) > 0xffu)
#define RM_IS_USERMODE_CLASS(class) (((class) & 0xffu) == 0x61u && (class) > 0xffu)

#define RM_ENGINE_GRAPHICS 1u

/* ALLOC has two forms, told apart by their sizes; they begin alike. */
struct rm_alloc {
        uint32_t client, parent, object, class;
        uint64_t parameters;
        uint64_t rights;
        uint32_t parameters_size;
        uint32_t flags;
        uint32_t status;
        uint32_t reserved;
};

struct rm_alloc_short {
        uint32_t client, parent, object, class;
        uint64_t parameters;
        uint32_t parameters_size;
        uint32_t status;
};

/* The beginning of the parameters of a channel group. */
struct rm_channel_group {
        uint32_t error_context, ecc_context, address_space;
        uint32_t engine; /* RM_ENGINE_GRAPHICS, ... */
};

/* The beginning of the parameters of a channel. */
struct rm_channel {
        uint32_t error_object, error_buffer;
        uint64_t ring; /* address on the device of its entries */
        uint32_t n_entries;
        uint32_t flags;
        uint32_t context, address_space;
        uint32_t user_memory[8]; /* that has its registers PUT and GET; the first counts */
        uint64_t user_offset[8];
};

struct rm_map {
        uint32_t client, device, memory;
        uint32_t reserved;
        uint64_t offset;
        uint64_t length;
        uint64_t cookie;
        uint32_t status;
        uint32_t flags;
        int32_t fd; /* to be mapped next */
        uint32_t reserved2;
};

struct rm_free {
        uint32_t client, parent, object;
        uint32_t status;
};

struct rm_control {
        uint32_t client, object;
        uint32_t command;
        uint32_t flags;
        uint64_t parameters; /* address */
        uint32_t parameters_size;
        uint32_t status;
};

#define RM_REQUEST_CONTROL _IOC(_IOC_READ | _IOC_WRITE, RM_IOCTL_TYPE, RM_IOCTL_CONTROL, 32)

/* What a handle is; the object of the call is the client. */
#define RM_COMMAND_GET_HANDLE_INFO 0x00000d02u
#define RM_HANDLE_INFO_CLASS       2u

struct rm_handle_info {
        uint32_t object;
        uint32_t index;
        uint64_t result;
};

/* Take channels off the schedule, or put them back; the object is a subdevice. */
#define RM_COMMAND_DISABLE_CHANNELS 0x2080110bu
#define RM_DISABLE_CHANNELS_MAX     64

struct rm_disable_channels {
        uint8_t disable;
        uint8_t reserved[3];
        uint32_t n;
        uint8_t only_scheduling; /* 1: what runs goes on */
        uint8_t rewind;
        uint8_t reserved2[6];
        uint64_t event;
        uint32_t client[RM_DISABLE_CHANNELS_MAX];
        uint32_t channel[RM_DISABLE_CHANNELS_MAX];
};

/* Begin the run list anew, which is when what was changed takes effect; the object is a channel. */
#define RM_COMMAND_RESTART_RUN_LIST 0xa06f0111u

struct rm_restart_run_list {
        uint8_t force;  /* also when the channel runs just now */
        uint8_t bypass; /* do not wait for the switch */
};

/* What a channel's doorbell is rung with; the object is the channel, the answer one word. */
#define RM_COMMAND_GET_DOORBELL_TOKEN 0xc36f0108u

/*
 * What makes the kernels of a context interruptible: the exceptions that its debugger object handles, the preemption
 * mode of its channel group, and the group's time slice.
 */
#define RM_COMMAND_SET_EXCEPTION_MASK  0x83de0309u
#define RM_COMMAND_SET_PREEMPTION_MODE 0x20801210u
#define RM_COMMAND_SET_TIME_SLICE      0xa06c0103u

#define RM_OK                 0u
#define RM_INVALID_CLIENT     0x23u
#define RM_INVALID_STATE      0x40u /* of a channel that is being made or freed */
#define RM_OBJECT_NOT_FOUND   0x57u
#define RM_INSUFFICIENT_RIGHT 0x1bu

_Static_assert(sizeof(struct rm_alloc) == 48 && sizeof(struct rm_alloc_short) == 32, "interface");
_Static_assert(sizeof(struct rm_free) == 16 && sizeof(struct rm_control) == 32, "interface");
_Static_assert(sizeof(struct rm_handle_info) == 16, "interface");
_Static_assert(sizeof(struct rm_channel) == 128 && sizeof(struct rm_map) == 56, "interface");
_Static_assert(sizeof(struct rm_disable_channels) == 24 + 8 * RM_DISABLE_CHANNELS_MAX, "interface");

#endif
