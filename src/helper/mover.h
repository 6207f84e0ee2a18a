/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELPER_MOVER_H
#define HELPER_MOVER_H

/*
 * The manager's side of one mover process (wire/mover.h): requests that complete
 * by callback from the event loop.
 *
 * A request that was accepted (0 returned) completes exactly once: with the
 * mover's answer, or with -ECONNRESET when the mover died. Nothing completes
 * before the function that asked has returned, and nothing after mover_free().
 *
 * A mover that breaks the protocol is killed, so that there is one kind of loss.
 * The loss is told when the process is gone entirely: the kernel has then closed
 * all that it had, and the device memory that it imported or created is free.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "wire/mover.h"

#define MOVER_UUID_MAX 48

struct mover;

/*
 * The process is gone, all requests have completed. The callback may call mover_free(), and
 * mover_new() for another one: whether to start again is the owner's decision.
 */
typedef void (*mover_lost_fn)(struct mover *mover, void *userdata);

/* A call of the driver on @pid has returned of which a checkpoint had said that it has not (-EINPROGRESS). */
typedef void (*mover_returned_fn)(struct mover *mover, pid_t pid, void *userdata);

/* All that it was asked is answered: mover_is_awaited() is false. */
typedef void (*mover_idle_fn)(struct mover *mover, void *userdata);

struct mover_options {
        const char *program;     /* PATHS_MOVER in the private directory */
        const char *device_uuid; /* "GPU-..." */
        const char *driver_path; /* its OPENVGPU_DRIVER; NULL: "libcuda.so.1" of the system */
        mover_lost_fn lost;
        mover_returned_fn returned; /* or NULL */
        mover_idle_fn idle;         /* or NULL */
        void *userdata;             /* of all */
};

/*
 * mover_new() - start a mover. The rest of our environment (OPENVGPU_SIM, OPENVGPU_FAULT, ...) is
 * handed on. Whether the driver works shows in the answer to the first request, or in a loss.
 */
int mover_new(struct mover **ret_mover, sd_event *event, const struct mover_options *options);

/*
 * mover_free() - hang up; the process ends by itself and is reaped by the event loop. Requests under way never complete:
 * so not while mover_is_awaited(), but at the end of everything. Allowed in every callback. Returns NULL.
 */
struct mover *mover_free(struct mover *mover);
DEFINE_CLEANUP(struct mover *, mover_free);

pid_t mover_get_pid(const struct mover *mover);

/* mover_is_lost() - true: every request is refused with -ECONNRESET at once. */
bool mover_is_lost(const struct mover *mover);

/* mover_is_awaited() - is a request under way, or the end of the process, of which mover_lost_fn will tell? */
bool mover_is_awaited(const struct mover *mover);

/* @done is borrowed. done->error is 0 or a negative errno; the other fields as in wire/mover.h. */
typedef void (*mover_done_fn)(struct mover *mover, const struct mover_done *done, void *userdata);

/* @info is NULL when the request failed with @error. */
typedef void (*mover_info_fn)(struct mover *mover, int error, const struct mover_info *info,
                              void *userdata);

int mover_info(struct mover *mover, mover_info_fn done, void *userdata);

/* mover_key() - once, before the first job: what it hashes with. @fd has a struct hash_key. */
int mover_key(struct mover *mover, int fd, mover_done_fn done, void *userdata);

/* mover_context() - create the device context (about 0.5 GiB of the device). It goes with the mover. */
int mover_context(struct mover *mover, mover_done_fn done, void *userdata);

/* @fd stays the caller's in all functions here. */
int mover_slab_add(struct mover *mover, uint32_t slab, int fd, uint64_t size, mover_done_fn done,
                   void *userdata);
int mover_slab_zero(struct mover *mover, uint32_t slab, mover_done_fn done, void *userdata);
int mover_slab_remove(struct mover *mover, uint32_t slab, mover_done_fn done, void *userdata);

/*
 * mover_checkpoint() - of the process @pid, of which @pidfd is: when it has ended, nobody else is touched
 * pairs: RESUME to other devices; they must then name every device of the machine. Errors: -EINVAL.
 */
struct mover_checkpoint_options {
        uint32_t timeout_ms; /* of the driver's lock */
        const struct mover_pair *pairs;
        size_t n_pairs;
        uint64_t bytes; /* RESUME: what it takes of the device; SUSPEND: to hold for the way back */
        uint32_t call_ms; /* so long each call of the driver is waited for; 0: until it returns */
};

int mover_checkpoint(struct mover *mover, pid_t pid, int pidfd, enum mover_checkpoint_action action,
                     const struct mover_checkpoint_options *options, mover_done_fn done,
                     void *userdata);

/*
 * mover_hold() - keep @bytes in all of the device for the restore of @pid; 0: none any more. @done may be
 * NULL.
 */
int mover_hold(struct mover *mover, pid_t pid, uint64_t bytes, mover_done_fn done, void *userdata);

/*
 * mover_lend() - make its device ready for a call of the driver that the mover of another device makes for @pid: it
 * gives back its margin, and takes no memory until mover_lend_end(). For a restore it lets go of what it holds for @pid.
 * Errors of @done: -ENOSPC, there is too little for a checkpoint.
 */
int mover_lend(struct mover *mover, pid_t pid, enum mover_call call, mover_done_fn done,
               void *userdata);

/* mover_lend_end() - behind it. @bytes: to hold for @pid, which a checkpoint has made free, or 0. @done may be NULL. */
int mover_lend_end(struct mover *mover, pid_t pid, enum mover_call call, uint64_t bytes,
                   mover_done_fn done, void *userdata);

typedef void (*mover_progress_fn)(struct mover *mover, uint64_t bytes_done, uint64_t bytes_total,
                                  void *userdata);

/* The first @n memories of the job are in the slabs, and the mover holds them no more. */
typedef void (*mover_passed_fn)(struct mover *mover, size_t n, void *userdata);

/*
 * A job, in the order of the calls: mover_job_begin(), perhaps mover_job_stage(), mover_job_run()
 * when the memory is there, mover_job_end(). All that is passed is copied.
 */
struct mover_job {
        enum mover_job_kind kind;
        size_t n_memories;
        const struct mover_segment *segments; /* OUT, IN: see pool_make_segments() */
        size_t n_segments;
        const char *source_uuid;   /* PEER: "GPU-..." of the memory to copy from */
        struct hash_value *hashes; /* OUT: of the slabs' contents; or NULL: nothing is hashed */
        size_t n_hashes;
        bool must_verify; /* OUT with hashes */
        uint32_t rate; /* OUT with hashes, without the one before: a refresh, MiB a second; or 0 */
        bool is_live;  /* with a rate: the memory is written to meanwhile */
        const uint64_t *source_sizes; /* PEER: n_memories */
        const int *source_fds;        /* PEER: n_memories */
        mover_progress_fn progress;   /* of staging and of the run; or NULL */
        mover_passed_fn passed; /* OUT without must_verify: or NULL: it holds all until it ends */
        void *userdata;         /* of @progress and @passed */
};

/*
 * @hashes, alone of all, are not copied: they are the caller's as long as the job has not ended, and have
 * the new ones when it has run and hash_error is 0. With a hash_error they are worth nothing.
 */

/* mover_job_begin() - Errors: -EINVAL (a field is missing, or does not belong to the kind). */
int mover_job_begin(struct mover *mover, uint32_t *ret_id, const struct mover_job *job);

/*
 * mover_job_stage() - IN, PEER: begin to copy now, into at most @limit bytes of memory of the
 * mover's own on its device. Never fails the job: where there is no room nothing is staged.
 */
int mover_job_stage(struct mover *mover, uint32_t id, uint64_t limit);

/*
 * mover_job_run() - @sizes and @fds: n_memories of them. OUT: memory to copy from; IN, PEER: the
 * guest's new memory to copy to. The mover holds it until mover_job_end(), unless the job fails.
 * done->error is -ECANCELED when mover_job_end() came first.
 */
int mover_job_run(struct mover *mover, uint32_t id, const uint64_t *sizes, const int *fds,
                  mover_done_fn done, void *userdata);

/*
 * mover_job_stop() - of a refresh: what it has copied stays copied, and @hashes say what that is; its run
 * is done then, unless it was before.
 */
int mover_job_stop(struct mover *mover, uint32_t id);

/*
 * mover_job_end() - needed for every job that has begun, also after a failure; ends it in any
 * state. When it is done the mover holds nothing of the job any more. @done may be NULL.
 */
int mover_job_end(struct mover *mover, uint32_t id, mover_done_fn done, void *userdata);

/* What `vgpu-mover --probe` found. */
struct mover_device {
        char uuid[MOVER_UUID_MAX];
        char pci_bus_id[32]; /* "00000000:1B:00.0" */
        char name[96];
        uint64_t memory_total;
        uint32_t driver_version; /* 13000 */
        uint64_t peers;          /* a bit for each device whose memory it can use */
};

#define MOVER_PROBE_TIMEOUT_MS 30000

/*
 * mover_probe() - the devices that the driver at @driver_path (NULL: the system's) sees
 *
 * Waits, for start-up. @ret_devices is the caller's to free(). No device: 0 and an empty array.
 * Errors: -ENODEV (the driver cannot be loaded or initialised; the reason is on stderr),
 * -ETIMEDOUT, -EPROTO.
 */
int mover_probe(struct mover_device **ret_devices, size_t *ret_n, const char *program,
                const char *driver_path);

#endif
