/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_CHECKPOINT_H
#define WIRE_CHECKPOINT_H

/*
 * The messages between the public library and its helper vgpu-checkpointer, over a SOCK_SEQPACKET
 * connection that only they have.
 *
 *     REQUEST + a pidfd for each pid  ->  NOTE before each driver call, then ANSWER
 *
 * A note names the next call and the state in which the process was found. When the helper dies in
 * the call, the library knows what to report, and what the next helper must undo. When the
 * library's process dies, the helper sees the end of the connection, undoes what it has begun and
 * ends.
 */

#include <stdint.h>

#define CHECKPOINT_WIRE_MAGIC    0x504b4843u /* "CHKP" */
#define CHECKPOINT_PROCESSES_MAX 64
#define CHECKPOINT_PAIRS_MAX     32
#define CHECKPOINT_DEVICE_MAX    48
#define CHECKPOINT_FOREVER_MS    UINT32_MAX

enum checkpoint_message { CHECKPOINT_REQUEST = 1, CHECKPOINT_NOTE, CHECKPOINT_ANSWER };

enum checkpoint_action {
        CHECKPOINT_STATE = 1,
        CHECKPOINT_THREAD, /* states, and the restore threads */
        CHECKPOINT_LOCK,
        CHECKPOINT_CHECKPOINT,
        CHECKPOINT_RESTORE,
        CHECKPOINT_UNLOCK,
        CHECKPOINT_SUSPEND,
        CHECKPOINT_RESUME,
        CHECKPOINT_TOGGLE,
        CHECKPOINT_UNDO, /* bring each process to its @goal, as far as that goes */
        CHECKPOINT_ACTIONS
};

#define CHECKPOINT_WITH_CHILDREN 1u
#define CHECKPOINT_CAREFUL       2u
#define CHECKPOINT_FORCED        4u

#define CHECKPOINT_NO_STATE (-1)

/* checkpoint_state_name() - of a CUprocessState. One that we don't know is a newer driver's: busy. */
static inline const char *checkpoint_state_name(int state)
{
        static const char *const names[] = { "running", "locked",        "checkpointed",
                                             "failed",  "checkpointing", "restoring" };

        if (state == CHECKPOINT_NO_STATE)
                return "unknown";
        return state >= 0 && state < (int)(sizeof(names) / sizeof(names[0])) ? names[state]
                                                                             : "busy";
}

struct checkpoint_header {
        uint32_t magic;
        uint32_t message; /* enum checkpoint_message */
};

/* Texts of the user: an index, a UUID, or the beginning of one; they end with NUL. */
struct checkpoint_wire_pair {
        char from[CHECKPOINT_DEVICE_MAX];
        char to[CHECKPOINT_DEVICE_MAX];
};

struct checkpoint_wire_request {
        struct checkpoint_header header;
        uint32_t action; /* enum checkpoint_action */
        uint32_t flags;
        uint32_t timeout_ms; /* of all locks together; 0 looks once */
        uint32_t n_processes;
        uint32_t n_pairs;
        int32_t pid[CHECKPOINT_PROCESSES_MAX];
        int32_t goal[CHECKPOINT_PROCESSES_MAX]; /* UNDO: CUprocessState */
        struct checkpoint_wire_pair pair[CHECKPOINT_PAIRS_MAX];
};

struct checkpoint_wire_note {
        struct checkpoint_header header;
        int32_t pid;
        int32_t state_before;
        uint64_t start;   /* of the process, as base/process-stat.h has it; 0: it has ended */
        uint64_t most_ms; /* the call takes less, if it ever returns; 0: nobody knows */
        char call[48];    /* that is made now; "": it has returned */
};

struct checkpoint_wire_process {
        int32_t pid;
        int32_t thread; /* 0: not asked for */
        int32_t state_before;
        int32_t state;
        uint64_t lock_ns, checkpoint_ns, restore_ns, unlock_ns;
        uint64_t bytes;
};

struct checkpoint_wire_answer {
        struct checkpoint_header header;
        int32_t kind;        /* enum vgpu_checkpoint_error_kind; 0: done */
        int32_t driver_code; /* CUresult */
        int32_t pid;         /* that the failure is about, or 0 */
        uint32_t is_undone;
        uint32_t is_holding; /* the helper has stopped threads, and stays until they may run */
        uint32_t n_processes;
        char call[48];
        char driver_name[64];
        char driver_text[96];
        char message[512];
        char hint[256];
        struct checkpoint_wire_process process[CHECKPOINT_PROCESSES_MAX];
};

#endif
