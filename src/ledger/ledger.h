/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

/*
 * The ledger says who used how much of what in which minute. It is an SQLite database of its own: it may
 * be large, others may copy and read it, and damage to it does not touch the state of the vGPUs.
 *
 * One ledger_write() is written entirely or not at all, even if the manager is killed in the middle. A
 * write adds to rows of usage, and replaces rows of processes.
 *
 * A process that ended may be folded: the ledger drops its row and adds its usage to LEDGER_OTHERS, which
 * stands for all such processes of the vGPU; in its place, each container that the vGPU has has a row of its own,
 * LEDGER_OTHERS_IN. Sums by vGPU, container, tenant, device and minute do not change.
 *
 * So may a vGPU that is gone: its usage and that of its processes is added to that of LEDGER_OTHERS_OF its owner.
 * Sums by tenant, device and minute stay what they are.
 *
 * Serial numbers are for ever: of a vGPU the nanosecond of its creation, of a process that of its joining.
 *
 * A ledger belongs to one thread at a time. Errors: -EBUSY (somebody else has locked it; try again),
 * -ENOSPC, -EUCLEAN (damaged), -EPROTO (not a ledger), -EPROTONOSUPPORT (of a newer version),
 * -EACCES, -ENOMEM, -EIO.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/container-id.h"
#include "meter/minutes.h"
#include "meter/wall.h"

#define LEDGER_NAME_MAX           96
#define LEDGER_UUID_MAX           48
#define LEDGER_CONTAINER_MAX      (CONTAINER_ID_SHORT + 1)
#define LEDGER_CONTAINER_NAME_MAX 128

/* In place of a serial number. */
#define LEDGER_OTHERS      1
#define LEDGER_OTHERS_NAME "(others)"

/* From here on: of a container, with the bits below from its id and the vGPU. No time is so late. */
#define LEDGER_OTHERS_IN (1ull << 62)

/* Likewise, of the vGPUs of a user; no creation was so early. */
#define LEDGER_OTHERS_OF(owner) ((uint64_t)(owner) + 1)

struct ledger;

struct ledger_device {
        char uuid[LEDGER_UUID_MAX], name[LEDGER_NAME_MAX];
};

struct ledger_vgpu {
        uint64_t serial;
        char uuid[LEDGER_UUID_MAX], name[LEDGER_NAME_MAX];
        uid_t owner;
        bool is_gone;     /* this is the last that is heard of it; not written */
        bool is_folded;   /* and it was not there for long; not written */
        uint64_t gone_ms; /* CLOCK_REALTIME */
};

struct ledger_process {
        uint64_t serial, vgpu;
        pid_t pid;
        uint64_t start_time; /* of the kernel: distinguishes a reused pid */
        uint64_t started_ms; /* CLOCK_REALTIME */
        uint64_t ended_ms;   /* 0: the process runs */
        uint64_t life_ns;
        uint64_t joined_ms; /* of the steady clock, for the time that it has run; 0: not known */
        uint64_t max_memory;
        uint64_t busy_ns[METER_ENGINES];
        uint64_t seen_ns
                [METER_ENGINES]; /* the part of the source's own counts that busy_ns contains */
        bool is_listed;          /* the accounting has it: nobody cleared it */
        bool is_folded;          /* it ended soon after its start; the flag is not written */
        uint32_t
                of_device; /* index, and 1: what it had of this one of several devices; 0: of all */
        char name[LEDGER_NAME_MAX];
        /* Of its container, as its engine says: the beginning of the id, and the name; "": it is in none. */
        char container[LEDGER_CONTAINER_MAX], container_name[LEDGER_CONTAINER_NAME_MAX];
};

static inline uint32_t ledger_process_get_device(const struct ledger_process *part)
{
        return part->of_device - 1;
}

/* The accounting no longer lists the processes that had ended by then. They are still billed. */
struct ledger_clearing {
        uint64_t vgpu, at_ms;
};

/* The entries of one write. A zeroed struct is empty. */
struct ledger_batch {
        struct minutes minutes;    /* the device of a key is an index */
        struct ledger_vgpu *vgpus; /* of two with the same serial number, the later one counts */
        size_t n_vgpus, room_vgpus;
        struct ledger_process *processes; /* likewise; the earlier one is dropped at some time */
        size_t n_processes, room_processes;
        struct ledger_clearing *clearings; /* are written after the processes */
        size_t n_clearings;
        struct wall wall; /* when the batch was closed */
};

void ledger_batch_deinit(struct ledger_batch *batch);
int ledger_batch_add_vgpu(struct ledger_batch *batch, const struct ledger_vgpu *vgpu);
int ledger_batch_add_process(struct ledger_batch *batch, const struct ledger_process *process);
int ledger_batch_add_clearing(struct ledger_batch *batch, const struct ledger_clearing *clearing);

/*
 * ledger_batch_move() - move all entries of @from to @to
 *
 * Entries for which there is no memory stay in @from. The records of vGPUs then stay too, so that @to never
 * says that a vGPU is gone before it has all usage of the vGPU. Errors: -ENOMEM.
 */
int ledger_batch_move(struct ledger_batch *to, struct ledger_batch *from);

/* ledger_batch_clear() - drop all entries, and keep the memory. */
void ledger_batch_clear(struct ledger_batch *batch);

/*
 * ledger_open() - open or make the ledger at @path
 * @boot_id:  distinguishes boots of the machine: a steady clock has a meaning only within one boot
 * @devices:  by index; borrowed until the ledger is closed
 */
int ledger_open(struct ledger **ret_ledger, const char *path, const char *boot_id,
                const struct ledger_device *devices, size_t n_devices);
struct ledger *ledger_close(struct ledger *ledger);
DEFINE_CLEANUP(struct ledger *, ledger_close);

/* ledger_get_error() - get SQLite's words for the last error. */
const char *ledger_get_error(const struct ledger *ledger);

/* ledger_set_aside() - rename a damaged ledger. @ret_path, of PATHS_MAX bytes, gets the new name. */
int ledger_set_aside(const char *path, uint64_t now_ms, char *ret_path);

int ledger_write(struct ledger *ledger, const struct ledger_batch *batch);

/* ledger_get_wall() - get the time of the last write, and whether that was in this boot. Errors: -ENOENT. */
int ledger_get_wall(struct ledger *ledger, struct wall *ret_wall, bool *ret_is_this_boot);

/* ledger_has_vgpu() - 1: the ledger has what the vGPU used up to the last write. 0: the vGPU came later. */
int ledger_has_vgpu(struct ledger *ledger, uint64_t serial);

/*
 * ledger_each_ended() - call @each for the last @max listed processes of vGPU @vgpu that ended, in the
 * order of their ends
 *
 * ledger_each_running() - call @each for the processes that ran at the last write, of all vGPUs; some of
 * the vGPUs may be gone
 *
 * ledger_each_part() - call @each for what process @serial had of each of several devices: the time, the
 * memory and the source's counts of a record with of_device. ledger_each_running_part() - of all that ran
 */
typedef int (*ledger_process_fn)(const struct ledger_process *process, void *userdata);
int ledger_each_ended(struct ledger *ledger, uint64_t vgpu, size_t max, ledger_process_fn each,
                      void *userdata);
int ledger_each_running(struct ledger *ledger, ledger_process_fn each, void *userdata);
int ledger_each_part(struct ledger *ledger, uint64_t serial, ledger_process_fn each,
                     void *userdata);
int ledger_each_running_part(struct ledger *ledger, ledger_process_fn each, void *userdata);

/* ledger_prune() - forget some of what is older than @minute. Returns 1 if there is more: call again. */
int ledger_prune(struct ledger *ledger, uint64_t minute);

/*
 * ledger_prune_vgpus() - forget all vGPUs without usage, except the @n existing @vgpus
 *
 * This reads all usage once, so it should be called rarely.
 */
int ledger_prune_vgpus(struct ledger *ledger, const struct ledger_vgpu *vgpus, size_t n);

/*
 * LEDGER_BY_JOB: the vGPUs of Slurm's jobs, whose names are job-JOB-STEP; other vGPUs are in no row.
 * LEDGER_BY_CONTAINER: processes in containers; a quota is of a vGPU, and in no row.
 * LEDGER_BY_PART: vGPUs, each on one device.
 */
enum ledger_group {
        LEDGER_BY_TENANT,
        LEDGER_BY_VGPU,
        LEDGER_BY_PROCESS,
        LEDGER_BY_DEVICE,
        LEDGER_BY_JOB,
        LEDGER_BY_CONTAINER,
        LEDGER_BY_PART,
        LEDGER_GROUPS
};

#define LEDGER_JOB_MAX 24

#define LEDGER_ANY_TENANT (-1)

struct ledger_query {
        enum ledger_group group;
        uint64_t since, until; /* minutes; @until is the first one that does not count */
        int64_t tenant;        /* the user whose usage is summed up, or LEDGER_ANY_TENANT */
        uint64_t offset, limit;
};

/* The group decides which members a row has; the others are 0 and "". LEDGER_OTHERS has a row for each vGPU. */
struct ledger_row {
        uid_t tenant;
        struct ledger_vgpu vgpu;
        struct ledger_device device;
        pid_t pid;
        uint64_t process, started_ms, ended_ms;
        char process_name[LEDGER_NAME_MAX];
        char job[LEDGER_JOB_MAX];
        uint64_t memory_peak; /* of a job, of a container: of the process that held most */
        char container[LEDGER_CONTAINER_MAX], container_name[LEDGER_CONTAINER_NAME_MAX];
        struct usage_amount amount;
};

typedef int (*ledger_row_fn)(const struct ledger_row *row, void *userdata);
int ledger_sum(struct ledger *ledger, const struct ledger_query *query, ledger_row_fn each,
               void *userdata);

#endif
