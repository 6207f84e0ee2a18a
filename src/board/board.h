/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BOARD_BOARD_H
#define BOARD_BOARD_H

/*
 * The board: the manager's published state, one file in the run directory that
 * any process may map read-only. One writer, any number of readers, no locks.
 *
 * Each record has a sequence counter: odd while it is written, changed by each
 * write. A reader copies the record and takes the copy if the counter was even
 * and the same before and after (board_read_device() and the others do this).
 * @generation counts changes of the whole board.
 *
 * A manager that starts makes a new file and renames it over the old one; a
 * reader that finds @closed set, or @heartbeat_ns (CLOCK_MONOTONIC) older than
 * BOARD_STALE_NS, opens it anew.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOARD_MAGIC   0x44524f42u /* "BORD" */
#define BOARD_VERSION 1u

#define BOARD_DEVICES_MAX   32
#define BOARD_INSTANCES_MAX 256
#define BOARD_PROCESSES_MAX 2048

#define BOARD_STALE_NS 3000000000ull

#define BOARD_UUID_MAX 48
#define BOARD_NAME_MAX 96

struct board_device {
        uint32_t index;
        uint32_t pci_domain, pci_bus, pci_device;
        uint32_t pci_device_id; /* device and vendor as NVML shows them, 0x233510de */
        uint32_t pci_subsystem_id;
        uint32_t n_instances;
        uint32_t utilization_gpu;    /* percent; of what runs in vGPUs */
        uint32_t utilization_memory; /* percent */
        uint32_t driver_version;     /* CUDA, e.g. 13000 */
        uint64_t memory_total;       /* bytes */
        uint64_t memory_used;        /* bytes, by vGPUs */
        char uuid[BOARD_UUID_MAX];   /* "GPU-..." */
        char name[BOARD_NAME_MAX];   /* "NVIDIA H200" */
};

enum board_instance_state {
        BOARD_IDLE = 0, /* no process */
        BOARD_RUNNING,
        BOARD_SUSPENDING,
        BOARD_SUSPENDED, /* off the GPU entirely */
        BOARD_EVICTED,   /* memory is out, the context stays (--keep-context) */
        BOARD_RESUMING,
        BOARD_MIGRATING,
        BOARD_FAILED, /* a process cannot be saved; see the manager's log */
};

struct board_instance {
        uint32_t id; /* NVML's vGPU instance id, never 0, unique while the manager's state lives */
        uint32_t device; /* index */
        uint32_t state;  /* enum board_instance_state */
        uint32_t type_id;
        uint32_t n_processes;
        uint32_t tenant_uid;
        uint32_t utilization_gpu;
        uint32_t utilization_memory;
        uint64_t frame_buffer_quota; /* bytes */
        uint64_t frame_buffer_used;
        uint64_t created_ns;       /* CLOCK_REALTIME */
        char uuid[BOARD_UUID_MAX]; /* plain 8-4-4-4-12 */
        char name[BOARD_NAME_MAX]; /* shown as NVML's VM name */
};

struct board_process {
        uint32_t pid;
        uint32_t instance; /* id */
        uint32_t device;
        uint32_t utilization_gpu;
        uint64_t memory_used; /* bytes */
        uint64_t start_ns;    /* CLOCK_REALTIME */
        char name[BOARD_NAME_MAX];
};

#define BOARD_RECORD(type)                                          \
        struct type##_record {                                      \
                _Atomic uint32_t sequence; /* odd: being written */ \
                _Atomic uint32_t in_use;                            \
                struct type value;                                  \
        }

BOARD_RECORD(board_device);
BOARD_RECORD(board_instance);
BOARD_RECORD(board_process);

struct board {
        uint32_t magic;
        uint32_t version;
        uint64_t size; /* of the file */
        uint32_t simulated;
        _Atomic uint32_t closed; /* the manager ended in good order */
        _Atomic uint64_t generation;
        _Atomic uint64_t heartbeat_ns;
        char driver_name[BOARD_NAME_MAX]; /* "580.159.04"; on the simulator ours */
        char real_nvml[256];              /* NVIDIA's library to forward to, or "" */
        _Atomic uint32_t n_devices;       /* records in use are not contiguous, except devices */
        uint32_t reserved[15];
        struct board_device_record device[BOARD_DEVICES_MAX];
        struct board_instance_record instance[BOARD_INSTANCES_MAX];
        struct board_process_record process[BOARD_PROCESSES_MAX];
};

/*
 * Readers. @ret_value is set when the record was in use; false otherwise. They never block for
 * longer than a write of one record takes.
 */
bool board_read_device(const struct board *board, uint32_t slot, struct board_device *ret_value);
bool board_read_instance(const struct board *board, uint32_t slot,
                         struct board_instance *ret_value);
bool board_read_process(const struct board *board, uint32_t slot, struct board_process *ret_value);

/* The writer: one thread of the manager. NULL takes the record out of use. */
void board_write_device(struct board *board, uint32_t slot, const struct board_device *value);
void board_write_instance(struct board *board, uint32_t slot, const struct board_instance *value);
void board_write_process(struct board *board, uint32_t slot, const struct board_process *value);

/*
 * board_create() - make a new board at @path (written beside it, renamed over it) and map it.
 * Readable by everyone, writable by the manager's user. board_close() marks it closed and unmaps.
 */
int board_create(struct board **ret_board, const char *path);
void board_close(struct board *board);

/*
 * board_map() - map the board at @path for reading. Errors: -ENOENT (no manager has run),
 * -EPROTO (not a board), -EPROTONOSUPPORT (another version). board_unmap() takes NULL.
 */
int board_map(const struct board **ret_board, const char *path);
void board_unmap(const struct board *board);

#endif
