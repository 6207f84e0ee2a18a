/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

/* A context has everything of one process on one device. Call these with the process' lock held. */

#include "abi/sim-table.h"
#include "sim/object.h"
#include "sim/process.h"

#define CONTEXT_LIMITS 10

struct CUctx_st {
        struct object object;
        CUcontext next; /* process.contexts */
        CUdevice device;
        unsigned int flags;
        unsigned int retained; /* of a primary one; 0: it is not active */
        unsigned int attached; /* of one that was created, beside its creation */
        bool is_primary;
        bool is_unwhole; /* restored, and not made whole again: the device cannot interrupt its kernels */
        uint64_t id;
        uint64_t cost;       /* bytes of the device that it takes itself */
        uint32_t peers;      /* ordinals whose memory it may use */
        CUresult fault;      /* sticky, what a kernel did wrong */
        struct object green; /* the other handle of a green one */
        unsigned int multiprocessors;
        CUcontext primary;  /* which a green one is a part of; else NULL */
        uint64_t n_pending; /* work of its streams, also of destroyed ones */
        CUstream streams;   /* list, the legacy stream too */
        CUstream legacy;
        size_t limits[CONTEXT_LIMITS];
        int cache_config, shared_config;
};

/* context_top() - return the thread's current one, live or not; NULL: there is none. */
CUcontext context_top(void);

/* context_push() - make @context current; false: the thread's stack is full. context_pop() - undo a push. */
bool context_push(CUcontext context);
void context_pop(void);

/* context_owner() - memory and events of a green one are its primary one's: return that; or @context itself. */
static inline CUcontext context_owner(CUcontext context)
{
        return context->primary ? context->primary : context;
}

/* context_is_in() - is it @whole, or a green one of it? All in process.contexts are asked. */
static inline bool context_is_in(CUcontext context, CUcontext whole)
{
        return context == whole || context->primary == whole;
}

/*
 * context_get_own() - get the current one of this thread. Errors: CUDA_ERROR_INVALID_CONTEXT; its fault.
 * context_get() - its owner.
 */
CUresult context_get_own(CUcontext *ret_context);
CUresult context_get(CUcontext *ret_context);

/* context_new() - an empty one; NULL: no memory. context_free() - the end of it. */
CUcontext context_new(CUdevice device, unsigned int flags);
void context_free(CUcontext context);

/* context_end_greens() - a primary one ends, and its green ones before it. */
void context_end_greens(CUcontext primary);

/*
 * context_has_room() - is there so much of its device left that the driver can do with it what takes a little for itself:
 * a stream, a checkpoint
 */
bool context_has_room(CUcontext context);

/* context_take_room() - take it, and add it to @taken, of which each device of the host has one. */
bool context_take_room(CUcontext context, uint64_t *taken);

/*
 * context_mend_all() - make those that were restored whole again, unless OPENVGPU_SIM_WHOLE is 0. Takes the lock itself.
 */
enum sim_mend context_mend_all(void);

/* context_find() - return @context if it is live, else NULL. */
CUcontext context_find(CUcontext context);

#endif
