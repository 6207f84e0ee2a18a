/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_WORK_H
#define SIM_WORK_H

/* A piece of work is one thing that a stream does. A graph is a list of work. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "base/cleanup.h"
#include "sim/kernel.h"

enum work_kind {
        WORK_NOTHING, /* only waits for others */
        WORK_COPY,
        WORK_SET,
        WORK_KERNEL,
        WORK_HOST,
        WORK_CALLBACK,
        WORK_RECORD,
        WORK_FREE,
};

/* Work waits until @number of @stream is done. */
struct dependency {
        struct dependency *next;
        CUstream stream;
        uint64_t number;
};

struct work {
        struct work *next;
        enum work_kind kind;
        CUstream stream;
        uint64_t number;
        struct dependency *dependencies;
        bool waits; /* the caller wants it done when the call returns: pageable memory */
        union {
                struct {
                        uint64_t to, from;
                        size_t to_pitch, from_pitch, width, height;
                } copy;
                struct {
                        uint64_t to;
                        size_t pitch, width, height; /* width in elements */
                        uint32_t value, element;     /* element: bytes */
                } set;
                struct {
                        const struct kernel *kernel;
                        struct kernel_arguments arguments;
                } kernel;
                struct {
                        CUhostFn function;
                        void *data;
                } host;
                struct {
                        CUstreamCallback function;
                        CUstream stream;
                        void *data;
                } callback;
                struct {
                        CUevent event;
                        uint64_t generation;
                } record;
                struct {
                        uint64_t address;
                } free;
        };
};

struct work *work_new(enum work_kind kind);
/* work_copy() - copy the work, but not what it waits for. */
struct work *work_copy(const struct work *work);
struct work *work_free(struct work *work);
DEFINE_CLEANUP(struct work *, work_free);

/* work_depend() - let the work wait for @number of @stream; with the lock held. Errors: -ENOMEM. */
int work_depend(struct work *work, CUstream stream, uint64_t number);
/* work_drop_dependencies() - let the work wait for nothing; with the lock held. */
void work_drop_dependencies(struct work *work);

#endif
