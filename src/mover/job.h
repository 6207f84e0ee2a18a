/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOVER_JOB_H
#define MOVER_JOB_H

/*
 * A job: a copy of device memory out to slabs, in from slabs, or over from another
 * device (wire/mover.h). This file has the parts of a job and says which thread may touch them;
 * mover/transfer.h does the copying.
 *
 * The socket's thread collects it from several messages. Staging and the run are
 * tasks of their own, and the end may come at any time: each takes part by
 * job_enter() and job_leave(). What the job holds of the device goes with
 * job_end(), also while there is a reference.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mover/device.h"
#include "mover/mapping.h"
#include "mover/slab.h"
#include "wire/mover.h"

/* Far above what a guest can have; it bounds what a confused manager can make us allocate. */
#define JOB_MEMORIES_MAX (1u << 20)
#define JOB_SEGMENTS_MAX (1u << 22)
#define JOB_HASHES_MAX   (1u << 22)

/* Device memory that we were given: JOB_SOURCE or JOB_MEMORY. */
struct job_memories {
        size_t n;
        uint64_t *sizes;
        int *fds; /* -1 when imported */
};

/* The bytes of a job in their order: each piece is in one memory and at one place outside of it. */
struct job_piece {
        uint32_t memory;
        uint64_t memory_offset;
        uint64_t length;
        uint32_t slab;      /* OUT, IN */
        char *host;         /* OUT, IN: in the slab */
        CUdeviceptr source; /* PEER */
};

enum job_phase { JOB_IDLE, JOB_QUEUED, JOB_RUNNING, JOB_FINISHED };

struct job {
        struct job *next; /* of the socket's thread, like the next two */
        bool is_staged;   /* JOB_STAGE has come */
        bool is_started;  /* JOB_RUN has come */
        uint32_t id;
        enum mover_job_kind kind;
        char source_uuid[DEVICE_UUID_MAX];
        size_t n_memories; /* that will come */
        struct job_memories source;
        struct job_memories target; /* OUT: what is read, all the same */
        size_t n_segments, n_segments_max;
        struct mover_segment *segments;
        size_t n_hashes, n_hashes_max;
        struct hash_value *hashes; /* of what the slabs have */
        bool must_verify, hands_over, is_live;
        uint32_t rate; /* REFRESH, LIVE: MiB a second; 0: it is neither */

        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned int n_refs;
        enum job_phase stage, run;
        atomic_bool stop_staging;
        atomic_bool is_cancelled;
        atomic_bool must_stop; /* REFRESH, LIVE: or it is cancelled */

        /* For the one task that works: staging, then the run, then the end. */
        struct slabs *slabs;
        size_t n_held; /* segments with slabs that we hold */
        struct job_piece *pieces;
        size_t n_pieces;
        uint64_t n_bytes; /* of all pieces */
        struct mapping source_mapping, staging, target_mapping;
        CUcontext source_context; /* of a device that ours has no access to; NULL: it has */
        CUdevice source_device;
        struct room_taking stage_taking; /* of staging's memory, from when it was asked for */
        uint64_t n_staged;               /* bytes from the first piece on that are in @staging */
        int stage_error;                 /* a failure that is not just want of memory */
        struct mover_done stage_done;    /* its driver call */
        uint64_t stage_ns;               /* how long staging copied */
        uint64_t told_ns;                /* when progress was told */
        bool is_half_passed;
};

/* job_new() - from its JOB_BEGIN. Errors: -EPROTO, -ENOMEM. */
int job_new(struct job **ret_job, const struct mover_job_begin *begin, struct slabs *slabs);
struct job *job_ref(struct job *job);
struct job *job_unref(struct job *job);

/* The messages. Descriptors are taken, and -1 left. Errors: -EPROTO. */
int job_add_source(struct job *job, const struct mover_memory *memory, int *fds, size_t n_fds);
int job_add_memory(struct job *job, const struct mover_memory *memory, int *fds, size_t n_fds);
int job_add_segments(struct job *job, const struct mover_segments *segments);
int job_add_hashes(struct job *job, const struct mover_hashes *hashes);

bool job_is_complete(const struct job *job, const struct job_memories *memories);

/* job_enter() - begin @phase; false: not any more. Then job_leave(). */
bool job_enter(struct job *job, enum job_phase *phase);
void job_leave(struct job *job, enum job_phase *phase);

/* job_stop_staging() - returns when staging has stopped, or will never begin. */
void job_stop_staging(struct job *job);

/* job_stop() - JOB_STOP. */
void job_stop(struct job *job);

/* job_rest() - wait until @until_ns (CLOCK_MONOTONIC), or less if the job is to stop. */
void job_rest(struct job *job, uint64_t until_ns);

/* job_end() - cancel what works on it, wait for that, and drop all that it holds of the device. */
void job_end(struct job *job);

/* job_release() - drop all that it holds of the device. Only for the task that works on it. */
void job_release(struct job *job);

#endif
