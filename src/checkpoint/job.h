/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_JOB_H
#define CHECKPOINT_JOB_H

/*
 * A job is one request on a group of processes, from their first states to the answer.
 *
 * The answer's processes are the group, in the order in which they are suspended. A function that
 * fails notes the reason in the job and returns -1. Only the first reason is reported, so the
 * undoing after it may fail silently.
 */

#include <stdbool.h>

#include <openvgpu/checkpoint.h>

#include "abi/cuda.h"
#include "checkpoint/device.h"
#include "wire/checkpoint.h"

struct job {
        int socket; /* to the library; -1: none */
        const struct checkpoint_wire_request *request;
        struct checkpoint_wire_answer answer;
        int pidfd[CHECKPOINT_PROCESSES_MAX]; /* of the answer's processes */
        uint64_t deadline_ms;                /* for locks; CLOCK_MONOTONIC; UINT64_MAX: for ever */
        bool is_undoing;
        struct device_list devices; /* read when first needed */
        struct pairs pairs;         /* none: everything stays where it was */
};

/*
 * job_fail() - note the failure of process @i (-1: of no particular process)
 * @call: the driver's function, or "" if the driver did not fail
 *
 * Returns -1.
 */
__attribute__((format(printf, 7, 8))) int job_fail(struct job *job, int i,
                                                   enum vgpu_checkpoint_error_kind kind,
                                                   const char *call, CUresult code,
                                                   const char *hint, const char *message, ...);

/* job_add() - add process @pid, and take @pidfd, which refers to it. Its state is not known yet. */
int job_add(struct job *job, int pid, int pidfd);

/* job_drop() - take process @i out of the group. */
void job_drop(struct job *job, int i);

void job_deinit(struct job *job);

/* job_read_devices() - read the host's devices into the job's list; false: the driver does not tell. */
bool job_read_devices(struct job *job);

/* job_is_dead() - has process @i ended? Waits for it, at most @timeout_ms. */
bool job_is_dead(const struct job *job, int i, int timeout_ms);

/*
 * JOB_CALL() - call the driver's @name on process @i. If the process has ended, make no call and return
 * JOB_NOT_ASKED: the driver knows only the number, which another process may have by now
 */
#define JOB_CALL(job, i, name, ...)             \
        (job_is_dead(job, i, 0) ? JOB_NOT_ASKED \
                                : driver.name((job)->answer.process[i].pid, __VA_ARGS__))
#define JOB_NOT_ASKED ((CUresult)0x7fffffff)

/* job_caller_is_gone() - has the process ended that made the request? */
bool job_caller_is_gone(const struct job *job);

#endif
