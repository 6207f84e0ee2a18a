/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_HOST_LAYOUT_H
#define SIM_HOST_LAYOUT_H

/*
 * The directory of a simulated host has these files.
 *
 *   host         struct host, which only its owner can write: every process maps it
 *   slots        struct host_slots, which every process can write, also truncate: no process maps it or believes
 *                a number in it (host-view.h). A process that has a slot holds a POSIX record lock on the slot's
 *                byte of this file: the kernel drops it when the process dies, and a forked child does not inherit it;
 *                likewise HOST_WAITS_AT behind them while a stream of it waits for a device
 *   lock         flock()ed while slots are claimed and memory is charged
 *   engine-N     flock()ed by the stream that runs on device N now
 *   turn-N       flock()ed by the stream that gets device N next
 *   services/N   socket on which the process of slot N takes checkpoint calls
 *
 * The directory is its owner's as well, so that no other user can put anything in the place of a file.
 *
 * Device memory lies in the folder @memory, on a tmpfs: each allocation is a file without a name;
 * one that has been exported gets a name there, DEVICE-SIZE-INODE, so that others can see whether
 * anybody still holds it (memory-file.h).
 */

#include <stdint.h>

#define HOST_MAGIC           0x54534f48u /* "HOST" */
#define HOST_VERSION         8u
#define HOST_DEVICES_MAX     32
#define HOST_SLOTS           2048
#define HOST_SLOTS_KEPT      64 /* the first, for the programs of the host itself (host.h) */
#define HOST_WAITS_AT        ((uint64_t)HOST_SLOTS) /* bytes to lock: as many as slots for each device */
#define HOST_DEVICE_NAME_MAX 96
#define HOST_PATH_MAX        256

struct host_device {
        char name[HOST_DEVICE_NAME_MAX]; /* "NVIDIA H200" */
        char kind[16];                   /* a context moves only between devices of one kind */
        uint8_t uuid[16];
        uint64_t memory; /* bytes */
        uint32_t multiprocessors;
        uint32_t compute_major, compute_minor;
        uint32_t pci_domain, pci_bus, pci_device;
        uint32_t pci_device_id; /* device and vendor, 0x233510de */
};

/* What of a device is busy. */
enum host_busy {
        HOST_BUSY_KERNEL, /* the engine ran a kernel */
        HOST_BUSY_MEMORY, /* its memory was read or written, by a kernel, a copy or a set */
        HOST_BUSY_KINDS,
};

struct host {
        uint32_t magic;
        uint32_t version;
        uint32_t n_devices;
        char specification[HOST_PATH_MAX];
        char memory[HOST_PATH_MAX]; /* absolute path of the folder */
        struct host_device device[HOST_DEVICES_MAX];
};

struct host_slot {
        int32_t pid; /* 0: free */
        int32_t service_thread;
        uint32_t state;         /* CUprocessState */
        int32_t last_pid;       /* the process that had it last */
        uint32_t is_off;        /* it gets no engine until this is 0 again */
        uint32_t pid_namespace; /* that @pid is a number of */
};

/* Never in memory: it says where in the file something is. What lies behind the end of the file is 0. */
struct host_slots {
        uint32_t n; /* slots from here on were never claimed */
        uint32_t reserved;
        struct host_slot slot[HOST_SLOTS];
        uint64_t shared
                [HOST_DEVICES_MAX]; /* bytes in exported files; can be too much, never too little */
        uint64_t used[HOST_DEVICES_MAX][HOST_SLOTS];     /* bytes, without what is exported */
        uint64_t contexts[HOST_SLOTS][HOST_DEVICES_MAX]; /* bytes of them that its contexts take */
        /* Nanoseconds since the slot was claimed; kept when the process dies, until the next claim. */
        uint64_t busy[HOST_SLOTS][HOST_DEVICES_MAX][HOST_BUSY_KINDS];
};

#endif
