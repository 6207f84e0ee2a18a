/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_MOVER_H
#define WIRE_MOVER_H

/*
 * The manager's requests to a mover, over the SOCK_SEQPACKET socket that is the
 * mover's descriptor 3. One mover serves one device (the one it copies to or
 * from); it sees all devices, for peer copies.
 *
 * Requests carry an id that the answers repeat. A mover works on several at
 * once: checkpoint calls and copies overlap. It ends when the socket closes.
 *
 *   INFO                                  -> INFO_IS
 *   KEY         (+1 fd)                   -> DONE      the key of all hashes: a file with a struct hash_key
 *   SLAB_ADD    slab, size (+1 fd)        -> DONE      map, touch, register with the driver. A job may have
 *                                                      it before the DONE: it waits, and fails as this does
 *   SLAB_ZERO   slab                      -> DONE      forget what the last vGPU left there
 *   SLAB_REMOVE slab                      -> DONE
 *   JOB_BEGIN   job, kind, devices        -> (nothing)
 *   JOB_SOURCE* job, sizes, fds           -> (nothing) PEER: memory to copy from, in order
 *   JOB_SEGMENTS* job, segments           -> (nothing) OUT, IN: which bytes go where
 *   JOB_HASHES* job, hashes               -> (nothing) OUT: of what is in the slabs already
 *   JOB_STAGE   job, limit                -> PROGRESS* IN, PEER: begin to copy into memory of the
 *                                                      mover's own, before the target is there
 *   JOB_MEMORY* job, sizes, fds           -> (nothing) OUT: memory to copy from, IN, PEER: the
 *                                                      guest's new memory to copy to, in order
 *   JOB_RUN     job                       -> PROGRESS*, PASSED*, HASHES*, DONE
 *   JOB_STOP    job                       -> (nothing) REFRESH, LIVE: the run ends where it is
 *   JOB_END     job                       -> DONE      drop the mover's hold on the memory
 *   HOLD        pid, bytes                -> DONE      have that much memory of the device in hand,
 *                                                      so that nobody takes what the restore of the
 *                                                      process will need; 0: let go of what
 *                                                      requests before this one have taken
 *   LEND        call, pid, bytes          -> DONE      until LEND_END: the mover of another device calls the
 *                                                      driver for a process that is on this one, too. The
 *                                                      margin is given back, nothing else takes memory, and
 *                                                      for a restore what is held for it is let go. ENOSPC:
 *                                                      there is too little for a checkpoint
 *   LEND_END    call, pid, bytes          -> DONE      of a checkpoint: have that much in hand first. ENOENT: it was
 *                                                      not this mover that has lent, and nothing is in hand
 *   CHECKPOINT  pid, action, bytes        -> DONE      ESRCH: the process has ended; EINPROGRESS: the driver
 *               (+1 pidfd)                             does not answer for it, see below
 *   CONTEXT                               -> DONE      create the device context
 *
 * Staging hides the copy of a resume behind the driver's restore. The guest can create its memory
 * only when its context is back (0.2 to 0.3 s). Until then the mover fills memory of its own on the
 * same device at the speed of the bus. When the guest's memory arrives, what is staged is copied
 * within the device (about 2 TB/s) and the rest goes straight from the source.
 *
 * An OUT job with hashes leaves out what the slabs have already. The memories, one behind the other,
 * are cut into blocks, of which each has one hash; n_hashes is their number. The mover hashes all
 * blocks on the device and copies those whose hash is not the one that the manager sent (HASH_UNKNOWN
 * for what the slabs do not have). When all has arrived, HASHES tells the new ones. If the device cannot
 * hash, everything is copied and there are no HASHES; DONE says why in hash_error.
 *
 * An OUT job with HAND_OVER lets go of memory as soon as the slabs have it: PASSED tells how many memories,
 * from the first on, the mover holds no more. It may tell none; what is left it holds until JOB_END.
 *
 * An OUT job with REFRESH copies what has changed, in small pieces and @rate MiB a second at most, until
 * it is through or stopped. HASHES tells what the slabs have then: that of the new contents for a block that
 * was copied, the former one for a block that was not reached, HASH_UNKNOWN for one that was copied in part.
 * DONE's bytes are those that the slabs have as the device has them. Without hashes it fails and copies nothing.
 * Also where the copy fails is_torn says whether anything may have been written.
 *
 * LIVE is a REFRESH of memory that a process writes to meanwhile: HASHES are of what the slabs have then, which
 * the memory may never have been as a whole. It takes up to 64 MiB of the device besides.
 *
 * A restore that runs out of memory loses the process for ever (measured on driver 580), so it is
 * not begun before the mover has @bytes of memory in hand, which it frees right before the call;
 * and a checkpoint leaves the mover with as much of what it has freed, for the way back.
 *
 * The driver knows processes only by their numbers, and the kernel reuses these. CHECKPOINT
 * therefore comes with a pidfd, which says right before each call of the driver whether the process
 * is still there.
 *
 * A call of the driver on a process may never return. Who asks waits @call_ms for each; one that has not returned
 * by then is left behind, and the DONE names it with EINPROGRESS. Nothing is asked of that process before it has
 * returned, which RETURNED tells; what state the process is in then is to be asked.
 *
 * A job that fails says so once, in the DONE of JOB_RUN; what it staged is gone, what it was given
 * to read is untouched. JOB_END is needed in any case, and ends a job in any state.
 */

#include <stdint.h>

#include "hash/hash.h"

#define MOVER_WIRE_MAGIC   0x45564f4du /* "MOVE" */
#define MOVER_WIRE_VERSION 10u
#define MOVER_SOCKET       3

enum mover_message {
        MOVER_INFO = 1,
        MOVER_SLAB_ADD,
        MOVER_SLAB_ZERO,
        MOVER_SLAB_REMOVE,
        MOVER_JOB_BEGIN,
        MOVER_JOB_MEMORY,
        MOVER_JOB_SEGMENTS,
        MOVER_JOB_RUN,
        MOVER_JOB_END,
        MOVER_CHECKPOINT,
        MOVER_CONTEXT,
        MOVER_JOB_SOURCE,
        MOVER_JOB_STAGE,
        MOVER_HOLD,
        MOVER_KEY,
        MOVER_JOB_HASHES,
        MOVER_JOB_STOP,
        MOVER_LEND,
        MOVER_LEND_END,

        MOVER_INFO_IS = 64,
        MOVER_PROGRESS,
        MOVER_DONE,
        MOVER_HASHES,
        MOVER_PASSED,
        MOVER_RETURNED,
};

struct mover_header {
        uint32_t magic;
        uint16_t version;
        uint16_t message; /* enum mover_message */
        uint32_t id;      /* of the request; repeated in its answers */
        uint32_t job;     /* JOB_*, PROGRESS: chosen by the manager */
};

/* What a mover keeps of its device beside what it says is free: at most, and of small devices (mover/margin.h). */
#define MOVER_MARGIN      (UINT64_C(64) << 20)
#define MOVER_MARGIN_PART 64

struct mover_info {
        struct mover_header header;
        uint64_t memory_total; /* bytes */
        uint64_t memory_free;
        uint32_t has_context; /* memory_free is only known (non-zero) with a context */
        uint32_t driver_version;
};

struct mover_slab {
        struct mover_header header;
        uint32_t slab;
        uint32_t reserved;
        uint64_t size;
};

enum mover_job_kind {
        MOVER_OUT = 1, /* device memory -> slabs */
        MOVER_IN,      /* slabs -> the guest's memory on the mover's device */
        MOVER_PEER,    /* memory of another device (or this one) -> the guest's, on the mover's */
};

enum mover_job_flag {
        MOVER_JOB_VERIFY = 1 << 0,    /* compare byte by byte what the hashes say is in the slabs */
        MOVER_JOB_HAND_OVER = 1 << 1, /* OUT, without VERIFY: let go of what the slabs have */
        MOVER_JOB_REFRESH = 1 << 2,   /* OUT with hashes, and none of the others: see above */
        MOVER_JOB_LIVE = 1 << 3,      /* likewise */
};

struct mover_job_begin {
        struct mover_header header;
        uint32_t kind;       /* enum mover_job_kind */
        uint32_t n_memories; /* how many JOB_MEMORY entries will come */
        uint32_t n_segments;
        uint32_t n_hashes;    /* OUT: of all blocks; 0: copy everything, and hash nothing */
        uint32_t flags;       /* enum mover_job_flag */
        uint32_t rate;        /* REFRESH, LIVE: MiB a second; else 0 */
        char source_uuid[48]; /* PEER: the device that the given memory is on */
};

#define MOVER_MEMORY_MAX  64
#define MOVER_SEGMENT_MAX 128
#define MOVER_HASH_MAX    240

struct mover_memory { /* JOB_MEMORY and JOB_SOURCE */
        struct mover_header header;
        uint32_t first; /* index of the first entry in the job */
        uint32_t count;
        uint64_t size[MOVER_MEMORY_MAX];
};

struct mover_segment {
        uint32_t memory; /* index in the job */
        uint32_t slab;
        uint64_t memory_offset;
        uint64_t slab_offset;
        uint64_t length;
};

struct mover_segments {
        struct mover_header header;
        uint32_t count;
        uint32_t reserved;
        struct mover_segment segment[MOVER_SEGMENT_MAX];
};

struct mover_hashes { /* JOB_HASHES and HASHES */
        struct mover_header header;
        uint32_t first; /* index of the first entry in the job */
        uint32_t count;
        struct hash_value hash[MOVER_HASH_MAX];
};

struct mover_stage {
        struct mover_header header;
        uint64_t limit; /* bytes of device memory that staging may take */
};

struct mover_hold {
        struct mover_header header;
        int32_t pid; /* whose */
        uint32_t reserved;
        uint64_t bytes; /* in all; 0: none any more */
};

enum mover_call { MOVER_CALL_CHECKPOINT, MOVER_CALL_RESTORE, MOVER_CALLS };

struct mover_lend { /* LEND and LEND_END */
        struct mover_header header;
        int32_t pid;
        uint32_t call;  /* enum mover_call */
        uint64_t bytes; /* LEND_END of a checkpoint that went well: to hold; else 0 */
};

enum mover_checkpoint_action {
        MOVER_CHECKPOINT_STATE = 1, /* only read it */
        MOVER_CHECKPOINT_SUSPEND,   /* lock, checkpoint; a failed checkpoint is unlocked again */
        MOVER_CHECKPOINT_RESUME,    /* restore (with pairs), unlock; from LOCKED: only unlock */
};

#define MOVER_PAIRS_MAX 32

struct mover_pair {
        uint8_t old_uuid[16];
        uint8_t new_uuid[16];
};

struct mover_checkpoint {
        struct mover_header header;
        int32_t pid;
        uint32_t action;     /* enum mover_checkpoint_action */
        uint32_t timeout_ms; /* of the lock; at least 1 */
        uint32_t n_pairs;    /* RESUME: 0 restores to the same devices */
        struct mover_pair pair[MOVER_PAIRS_MAX];
        uint64_t
                bytes; /* RESUME: what the restore takes; SUSPEND: to hold afterwards, if possible */
        uint32_t call_ms; /* so long each call of the driver is waited for; 0: until it returns */
        uint32_t reserved;
};

struct mover_progress {
        struct mover_header header;
        uint64_t bytes_done;
        uint64_t bytes_total;
};

struct mover_passed {
        struct mover_header header;
        uint32_t n_memories; /* from the first on: they are in the slabs, and let go */
        uint32_t reserved;
};

struct mover_returned {
        struct mover_header header;
        int32_t pid;
        uint32_t reserved;
};

struct mover_done {
        struct mover_header header;
        int32_t error;         /* 0 or a negative errno; -ETIMEDOUT: the lock timed out */
        int32_t driver_code;   /* CUresult of the failed call, or 0 */
        char call[64];         /* the driver call that failed */
        int32_t process_state; /* CHECKPOINT: CUprocessState afterwards, -1 unknown; FAILED: lost */
        uint16_t is_untouched; /* CHECKPOINT: 1: nothing was asked of the process */
        uint16_t is_held;      /* SUSPEND: 1: the bytes that were to be held */
        uint64_t bytes;        /* JOB_RUN; SUSPEND: what became free meanwhile, 0: not known */
        uint64_t unchanged;    /* JOB_RUN: of @bytes, what was in the slabs already */
        uint64_t wrong; /* JOB_RUN with VERIFY: bytes of blocks that the hashes were wrong about */
        uint64_t hash_ns;   /* JOB_RUN: what waited for the hashes */
        int32_t hash_error; /* JOB_RUN: why there are no HASHES; 0: there are, or none were wanted */
        uint32_t
                is_torn; /* REFRESH, LIVE, failed: 1: slabs may have something else than their hashes say */
        uint64_t prepare_ns;    /* JOB_RUN: import or create, and map */
        uint64_t copy_ns;       /* JOB_RUN: from the first to the last byte */
        uint64_t pin_ns;        /* JOB_RUN: of @copy_ns, what waited for slabs to be registered */
        uint64_t lock_ns;       /* CHECKPOINT: lock, or unlock */
        uint64_t checkpoint_ns; /* CHECKPOINT: checkpoint, or restore */
};

/*
 * `vgpu-mover --probe` prints one line for each device and ends; without a device, nothing:
 *
 *     UUID <TAB> PCI bus id <TAB> total memory in bytes <TAB> driver version <TAB> name
 */

#endif
