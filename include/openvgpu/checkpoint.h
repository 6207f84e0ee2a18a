/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENVGPU_CHECKPOINT_H
#define OPENVGPU_CHECKPOINT_H

/*
 * Checkpoint: take the CUDA state of any process off its devices, and put it back.
 *
 * This needs no manager and no vGPU, only a CUDA driver of branch 570 or newer. A process is in a
 * state:
 *
 *     running --lock--> locked --checkpoint--> checkpointed
 *             <-unlock-        <---restore---
 *
 * While a process is not running, its threads wait in their next CUDA call. Suspend is lock and
 * checkpoint; resume is restore and unlock. An action that fails puts every process back into the
 * state that it had before. Where this is impossible, the error says so (@is_undone), and why.
 *
 *     r = vgpu_checkpoint_new(&checkpoint, pid);
 *     if (r == 0)
 *             r = vgpu_checkpoint_suspend(checkpoint, NULL);
 *     if (r < 0)
 *             fputs(vgpu_checkpoint_get_error(checkpoint)->message, stderr);
 *
 * A helper process calls the driver, because a call can crash or never return. The first action
 * starts the helper, which takes as long as the driver's start: milliseconds to seconds. Keep a
 * struct vgpu_checkpoint as long as you need it. If the caller dies in the middle of an action, the
 * helper undoes the action.
 *
 * Threads:  a struct vgpu_checkpoint belongs to one thread at a time; several are independent.
 * Time:     seconds as real numbers. VGPU_CHECKPOINT_FOREVER or any negative number means for ever;
 *           NaN is VGPU_CHECKPOINT_ERROR_INVALID. 0 checks once and does not wait, but a lock gives
 *           the driver a millisecond, because the driver takes 0 for "for ever".
 * Errors:   0 or a negative errno. After a failure vgpu_checkpoint_get_error() has a more precise
 *           kind, the driver's call and code, a message and a hint for people. The kinds listed
 *           with a function are part of its contract. Any action can also fail with _NO_PROCESS,
 *           _NO_CUDA, _PERMISSION, _NO_DRIVER, _INVALID (an option, more than 64 processes),
 *           _NOT_SUPPORTED (the driver has no checkpoints), _DRIVER_FAILED, _FAILED, _OUT_OF_MEMORY,
 *           with _WRONG_STATE when a signal has stopped a process or somebody else checkpoints it,
 *           and with _LOST when a process died or can only be killed.
 * Rights:   the driver requires those of ptrace(2) over the process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <openvgpu/base.h>

VGPU_BEGIN_DECLS

struct vgpu_checkpoint;

#define VGPU_CHECKPOINT_FOREVER (-1.0)

/* The driver's numbers. An unlisted number is a state of a newer driver: the process is busy. */
enum vgpu_checkpoint_state {
        VGPU_CHECKPOINT_STATE_UNKNOWN = -1, /* could not be read, or the process has no CUDA */
        VGPU_CHECKPOINT_STATE_RUNNING = 0,
        VGPU_CHECKPOINT_STATE_LOCKED = 1,
        VGPU_CHECKPOINT_STATE_CHECKPOINTED = 2,
        VGPU_CHECKPOINT_STATE_FAILED = 3, /* can only be killed */
        VGPU_CHECKPOINT_STATE_CHECKPOINTING = 4,
        VGPU_CHECKPOINT_STATE_RESTORING = 5
};

/* Why an action failed. The errno in brackets is what the call returned. */
enum vgpu_checkpoint_error_kind {
        VGPU_CHECKPOINT_ERROR_NONE = 0,
        VGPU_CHECKPOINT_ERROR_FAILED = 1,      /* anything else [-EIO] */
        VGPU_CHECKPOINT_ERROR_NO_CUDA = 2,     /* the process does not use CUDA [-ENXIO] */
        VGPU_CHECKPOINT_ERROR_NO_PROCESS = 3,  /* the process does not exist (any more) [-ESRCH] */
        VGPU_CHECKPOINT_ERROR_PERMISSION = 4,  /* the process is somebody else's [-EACCES] */
        VGPU_CHECKPOINT_ERROR_WRONG_STATE = 5, /* e.g. restore of a running process [-ESTALE] */
        VGPU_CHECKPOINT_ERROR_TIMED_OUT = 6,   /* the work did not end in time [-ETIME] */
        VGPU_CHECKPOINT_ERROR_INVALID = 7,     /* a pid, a device or a pair [-EINVAL] */
        VGPU_CHECKPOINT_ERROR_NO_ROOM = 8,     /* too little memory on a device [-ENOSPC] */
        VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED =
                9,                        /* the process holds something unsavable [-EOPNOTSUPP] */
        VGPU_CHECKPOINT_ERROR_GUEST = 10, /* a manager controls the process [-EBUSY] */
        VGPU_CHECKPOINT_ERROR_DANGEROUS = 11,     /* the driver would kill the process [-EDEADLK] */
        VGPU_CHECKPOINT_ERROR_DRIVER_FAILED = 12, /* see driver_call, driver_code [-EREMOTEIO] */
        VGPU_CHECKPOINT_ERROR_LOST = 13,          /* a process is dead or can only be killed
                                                     [-EOWNERDEAD] */
        VGPU_CHECKPOINT_ERROR_NO_DRIVER = 14,     /* no driver, or too old [-ENODEV] */
        VGPU_CHECKPOINT_ERROR_OUT_OF_MEMORY = 15  /* here, not on a device [-ENOMEM] */
};

struct vgpu_checkpoint_error {
        enum vgpu_checkpoint_error_kind kind;
        int code;                /* what the call returned; 0: no error */
        const char *name;        /* of the kind: "NoCuda" */
        const char *message;     /* one line: what and why */
        const char *hint;        /* one line: what to do, or "" */
        const char *driver_call; /* "cuCheckpointProcessLock", or "" */
        int driver_code;         /* the call's CUresult, or 0 */
        const char *driver_name; /* "CUDA_ERROR_NOT_READY", or "" */
        const char *driver_text; /* "device not ready": in the driver's words, or "" */
        pid_t pid;               /* the process concerned, or 0 */
        enum vgpu_checkpoint_state state_before;
        enum vgpu_checkpoint_state state_after;
        bool is_undone; /* every process is as it was before */
};

/**
 * vgpu_checkpoint_new() - control process @pid, which may be the number of any of its threads
 * @ret_checkpoint:  the caller owns it and frees it with vgpu_checkpoint_free()
 *
 * A pidfd holds the process: a later process with the same number is never mistaken for it.
 * Errors: -ESRCH, there is no such process. -EINVAL. -ENOMEM. Those of pidfd_open(2).
 */
int vgpu_checkpoint_new(struct vgpu_checkpoint **ret_checkpoint, pid_t pid);

/** vgpu_checkpoint_new_current() - control the calling process. Errors: as vgpu_checkpoint_new(). */
int vgpu_checkpoint_new_current(struct vgpu_checkpoint **ret_checkpoint);

/**
 * vgpu_checkpoint_add() - add a process to all later actions: all or none
 *
 * Processes are locked and checkpointed in the order in which they were added, and restored and
 * unlocked in the reverse order. Errors: as vgpu_checkpoint_new(); -E2BIG, more than 64.
 */
int vgpu_checkpoint_add(struct vgpu_checkpoint *checkpoint, pid_t pid);

/** vgpu_checkpoint_free() - changes the state of no process; NULL is fine. Returns NULL. */
struct vgpu_checkpoint *vgpu_checkpoint_free(struct vgpu_checkpoint *checkpoint);

/** vgpu_checkpoint_get_pid() - get the number of the first process. */
pid_t vgpu_checkpoint_get_pid(const struct vgpu_checkpoint *checkpoint);

/** vgpu_checkpoint_state_get_name() - "running", ...; "busy" for a new state. Never freed. */
const char *vgpu_checkpoint_state_get_name(enum vgpu_checkpoint_state state);

/*
 * A move from one device to another: an index of the driver, a UUID, or the beginning of a UUID.
 * The driver wants a permutation of all devices of the host. Devices that no pair names therefore
 * stay, and an open chain is closed to a ring: with 0 to 1 and 1 to 2, device 2 goes to 0, also in
 * a process on device 2. Two devices of different kinds, and a device that is named twice on one
 * side, are VGPU_CHECKPOINT_ERROR_INVALID.
 */
struct vgpu_checkpoint_pair {
        const char *from;
        const char *to;
};

/* Options of an action; begin with VGPU_CHECKPOINT_OPTIONS_INIT, so that the struct can grow. */
struct vgpu_checkpoint_options {
        size_t size;            /* of this struct, as the caller was compiled */
        double timeout_seconds; /* lock: until work under way must end */
        bool with_children;     /* include all CUDA processes below; skip those without CUDA */
        bool is_careful;        /* checkpoint, suspend: stop the threads first */
        bool is_forced;         /* allow dangerous actions, and guests of a manager */
        const struct vgpu_checkpoint_pair *pairs; /* restore: the devices that change, see above */
        size_t n_pairs;
};

/* The lock waits 10 seconds. */
/* clang-format off */
#define VGPU_CHECKPOINT_OPTIONS_INIT \
        { sizeof(struct vgpu_checkpoint_options), 10, false, false, false, 0, 0 }
/* clang-format on */

/**
 * vgpu_checkpoint_get_state() - ask the driver for the state of the first process
 * Errors: VGPU_CHECKPOINT_ERROR_NO_CUDA, _NO_PROCESS, _PERMISSION. _WRONG_STATE: a signal has
 * stopped the process, and the driver cannot reach it.
 */
int vgpu_checkpoint_get_state(struct vgpu_checkpoint *checkpoint,
                              enum vgpu_checkpoint_state *ret_state);

/**
 * vgpu_checkpoint_look() - ask for the states of all processes, see vgpu_checkpoint_get_processes()
 * @options:  only @with_children matters; NULL: without children
 */
int vgpu_checkpoint_look(struct vgpu_checkpoint *checkpoint,
                         const struct vgpu_checkpoint_options *options);

/**
 * vgpu_checkpoint_is_running() - is the first process in this state?
 *
 * False also if the state could not be read: the kind of vgpu_checkpoint_get_error() is _NONE only
 * where the process is in another state.
 */
bool vgpu_checkpoint_is_running(struct vgpu_checkpoint *checkpoint);
bool vgpu_checkpoint_is_locked(struct vgpu_checkpoint *checkpoint);
bool vgpu_checkpoint_is_checkpointed(struct vgpu_checkpoint *checkpoint);

/**
 * vgpu_checkpoint_wait() - wait until the first process is in @state
 *
 * The driver does not report changes, so this function asks repeatedly: after a millisecond, then
 * after growing pauses of up to 25. It may miss a shorter state. The wait ends when the process is
 * in @state, when the time is up, when the process ends (seen at once), when the process fails, or
 * when its state cannot be read. The function also waits for a process that does not use CUDA yet.
 * Errors: VGPU_CHECKPOINT_ERROR_TIMED_OUT. _LOST: the process fails. Those of
 * vgpu_checkpoint_get_state(), except _NO_CUDA.
 */
int vgpu_checkpoint_wait(struct vgpu_checkpoint *checkpoint, enum vgpu_checkpoint_state state,
                         double timeout_seconds);

/** vgpu_checkpoint_get_restore_thread() - get the thread in which the driver restores the process. */
int vgpu_checkpoint_get_restore_thread(struct vgpu_checkpoint *checkpoint, pid_t *ret_thread);

/*
 * The four steps. Each step requires every process in the state from which it starts; otherwise it
 * fails with VGPU_CHECKPOINT_ERROR_WRONG_STATE. @options may be NULL: the defaults. Every step
 * fails with VGPU_CHECKPOINT_ERROR_GUEST for a process that a manager controls, unless @is_forced.
 *
 *     lock        _TIMED_OUT: the work did not end in time
 *     checkpoint  _DANGEROUS: because of one thread, the driver would kill the process.
 *                 _NOT_SUPPORTED: the process holds something unsavable. _NO_ROOM: a device is full
 *                 to the last. _FAILED: also if @is_careful cannot stop the threads
 *     restore     _NO_ROOM: on a device. _INVALID: a pair, or the devices of the checkpoint are not
 *                 here any more. _LOST: also if the driver could not restore what the process holds
 *     unlock      only the errors of all actions
 */
int vgpu_checkpoint_lock(struct vgpu_checkpoint *checkpoint,
                         const struct vgpu_checkpoint_options *options);
int vgpu_checkpoint_checkpoint(struct vgpu_checkpoint *checkpoint,
                               const struct vgpu_checkpoint_options *options);
int vgpu_checkpoint_restore(struct vgpu_checkpoint *checkpoint,
                            const struct vgpu_checkpoint_options *options);
int vgpu_checkpoint_unlock(struct vgpu_checkpoint *checkpoint,
                           const struct vgpu_checkpoint_options *options);

/**
 * vgpu_checkpoint_try_lock() - lock, and say whether all processes are locked
 *
 * False: vgpu_checkpoint_get_error() says why not. _TIMED_OUT with @is_undone: every process runs as
 * before. Errors: those of vgpu_checkpoint_lock().
 */
bool vgpu_checkpoint_try_lock(struct vgpu_checkpoint *checkpoint,
                              const struct vgpu_checkpoint_options *options);

/**
 * vgpu_checkpoint_suspend() - checkpoint each process, from any state
 * vgpu_checkpoint_resume()  - run each process, from any state
 * vgpu_checkpoint_toggle()  - resume if the first process is checkpointed, suspend if it is running
 *
 * A process that is in the state already is left alone. Before a restore, the devices are asked
 * whether they have room, because a restore that does not fit kills the process. Toggle returns the
 * new state: VGPU_CHECKPOINT_STATE_RUNNING or _CHECKPOINTED, neither of which is negative.
 * Errors: those of the steps taken. Toggle: _WRONG_STATE, the first process is neither running nor
 * checkpointed.
 */
int vgpu_checkpoint_suspend(struct vgpu_checkpoint *checkpoint,
                            const struct vgpu_checkpoint_options *options);
int vgpu_checkpoint_resume(struct vgpu_checkpoint *checkpoint,
                           const struct vgpu_checkpoint_options *options);
int vgpu_checkpoint_toggle(struct vgpu_checkpoint *checkpoint,
                           const struct vgpu_checkpoint_options *options);

/* What the last call did to one process. */
struct vgpu_checkpoint_process {
        pid_t pid;
        pid_t restore_thread; /* 0: not requested */
        enum vgpu_checkpoint_state state_before;
        enum vgpu_checkpoint_state state; /* now */
        double lock_seconds;              /* of the driver's calls; 0: not called */
        double checkpoint_seconds;
        double restore_seconds;
        double unlock_seconds;
        uint64_t bytes; /* of device memory given up or taken; 0: not known */
};

/**
 * vgpu_checkpoint_get_processes() - get the processes of the last call, in the order of handling
 *
 * Borrowed: valid until the next call with @checkpoint. Also available after a failure.
 */
const struct vgpu_checkpoint_process *const *
vgpu_checkpoint_get_processes(const struct vgpu_checkpoint *checkpoint, size_t *ret_n);

/**
 * vgpu_checkpoint_get_error() - get the reason why the last call with @checkpoint failed
 *
 * Never NULL. Borrowed: valid until the next call with @checkpoint.
 */
const struct vgpu_checkpoint_error *
vgpu_checkpoint_get_error(const struct vgpu_checkpoint *checkpoint);

VGPU_END_DECLS

#endif
