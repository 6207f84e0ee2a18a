/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

/*
 * The ledger: who used how much of what in which minute, in one SQLite database of its own, so that it
 * may be large, copied and read by others, and so that nothing that happens to it touches the state of
 * the vGPUs.
 *
 * What is written in one ledger_write() is there entirely or not at all, also when the manager is killed
 * in the middle. Rows of usage are added to, rows of processes replaced.
 *
 * A process that ended may be folded: its row goes, and its usage is added to that of LEDGER_OTHERS, which
 * stands for all such processes of its vGPU. Sums by vGPU, tenant, device and minute stay what they are.
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
#include "meter/minutes.h"
#include "meter/wall.h"

#define LEDGER_NAME_MAX 96
#define LEDGER_UUID_MAX 48

/* In place of a serial number. */
#define LEDGER_OTHERS      1
#define LEDGER_OTHERS_NAME "(others)"

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
        uint64_t start_time; /* of the kernel: tells a reused pid */
        uint64_t started_ms; /* CLOCK_REALTIME */
        uint64_t ended_ms;   /* 0: it runs */
        uint64_t life_ns;
        uint64_t joined_ms; /* of the steady clock: tells how long it has run; 0: not known */
        uint64_t max_memory;
        uint64_t busy_ns[METER_ENGINES];
        uint64_t seen_ns
                [METER_ENGINES]; /* of the source's own counts, the part that is in busy_ns */
        bool is_listed;          /* in the accounting: it was not cleared */
        bool is_folded;          /* it ended not long after it started; not written */
        char name[LEDGER_NAME_MAX];
};

/* What had ended in a vGPU by then is no longer listed in its accounting; it is still billed. */
struct ledger_clearing {
        uint64_t vgpu, at_ms;
};

/* What goes in at once. A zeroed struct is an empty one. */
struct ledger_batch {
        struct minutes minutes;    /* the device of a key is an index */
        struct ledger_vgpu *vgpus; /* the later of two of a serial number counts, */
        size_t n_vgpus, room_vgpus;
        struct ledger_process *processes; /* and here; but the earlier is forgotten some time */
        size_t n_processes, room_processes;
        struct ledger_clearing *clearings; /* after the processes */
        size_t n_clearings;
        struct wall wall; /* when it was closed */
};

void ledger_batch_deinit(struct ledger_batch *batch);
int ledger_batch_add_vgpu(struct ledger_batch *batch, const struct ledger_vgpu *vgpu);
int ledger_batch_add_process(struct ledger_batch *batch, const struct ledger_process *process);
int ledger_batch_add_clearing(struct ledger_batch *batch, const struct ledger_clearing *clearing);

/*
 * ledger_batch_move() - add all of @from to @to
 *
 * What does not fit into memory stays in @from, and so do the records of vGPUs then: that a vGPU is gone is
 * never in @to before all its usage is. Errors: -ENOMEM.
 */
int ledger_batch_move(struct ledger_batch *to, struct ledger_batch *from);

/* ledger_batch_clear() - it is empty; its room stays. */
void ledger_batch_clear(struct ledger_batch *batch);

/*
 * ledger_open() - open or make the ledger at @path; @devices by index, borrowed until it is closed
 *
 * @boot_id tells boots of the machine apart: a steady clock means something within one of them.
 */
int ledger_open(struct ledger **ret_ledger, const char *path, const char *boot_id,
                const struct ledger_device *devices, size_t n_devices);
struct ledger *ledger_close(struct ledger *ledger);
DEFINE_CLEANUP(struct ledger *, ledger_close);

/* ledger_get_error() - SQLite's words for the last error. */
const char *ledger_get_error(const struct ledger *ledger);

/* ledger_set_aside() - rename a damaged one; @ret_path of PATHS_MAX bytes says to what. */
int ledger_set_aside(const char *path, uint64_t now_ms, char *ret_path);

int ledger_write(struct ledger *ledger, const struct ledger_batch *batch);

/* ledger_get_wall() - of the last write; was it in this boot? Errors: -ENOENT. */
int ledger_get_wall(struct ledger *ledger, struct wall *ret_wall, bool *ret_is_this_boot);

/* ledger_has_vgpu() - 1: what the vGPU used up to the last write is written. 0: it came after that. */
int ledger_has_vgpu(struct ledger *ledger, uint64_t serial);

/*
 * ledger_each_ended() - the processes of vGPU @vgpu that ended and are listed, in the order of their
 * ends, at most @max of them and the last
 *
 * ledger_each_running() - those of all vGPUs, also of some that are gone, that ran when it was written.
 */
typedef int (*ledger_process_fn)(const struct ledger_process *process, void *userdata);
int ledger_each_ended(struct ledger *ledger, uint64_t vgpu, size_t max, ledger_process_fn each,
                      void *userdata);
int ledger_each_running(struct ledger *ledger, ledger_process_fn each, void *userdata);

/* ledger_prune() - forget what is older than @minute, some of it; 1: call again, there is more. */
int ledger_prune(struct ledger *ledger, uint64_t minute);

/*
 * ledger_prune_vgpus() - forget the vGPUs of which there is no usage (any more)
 *
 * But not @vgpus, those that are there. It reads all usage once: not to be done often.
 */
int ledger_prune_vgpus(struct ledger *ledger, const struct ledger_vgpu *vgpus, size_t n);

/* LEDGER_BY_JOB: the vGPUs of Slurm's jobs, whose names are job-JOB-STEP; other vGPUs are in no row. */
enum ledger_group {
        LEDGER_BY_TENANT,
        LEDGER_BY_VGPU,
        LEDGER_BY_PROCESS,
        LEDGER_BY_DEVICE,
        LEDGER_BY_JOB,
};

#define LEDGER_JOB_MAX 24

#define LEDGER_ANY_TENANT (-1)

struct ledger_query {
        enum ledger_group group;
        uint64_t since, until; /* minutes; @until is the first that no longer counts */
        int64_t tenant;        /* only what is this user's, or LEDGER_ANY_TENANT */
        uint64_t offset, limit;
};

/* What a row is about depends on the group; the rest is 0 and "". Of LEDGER_OTHERS there is one for each vGPU. */
struct ledger_row {
        uid_t tenant;
        struct ledger_vgpu vgpu;
        struct ledger_device device;
        pid_t pid;
        uint64_t process, started_ms, ended_ms;
        char process_name[LEDGER_NAME_MAX];
        char job[LEDGER_JOB_MAX];
        uint64_t memory_peak; /* of a job: of the process that held most */
        struct usage_amount amount;
};

typedef int (*ledger_row_fn)(const struct ledger_row *row, void *userdata);
int ledger_sum(struct ledger *ledger, const struct ledger_query *query, ledger_row_fn each,
               void *userdata);

#endif
