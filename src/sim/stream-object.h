/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_STREAM_OBJECT_H
#define SIM_STREAM_OBJECT_H

/*
 * A stream as an object: what it knows, who holds it, and which one a handle means. stream.h says how
 * its work is done. With the process' lock held.
 */

#include "sim/context.h"
#include "sim/engine.h"

struct work;

struct CUstream_st {
        struct object object;
        CUstream next; /* context->streams */
        CUcontext context;
        unsigned int flags;
        int priority;
        uint64_t id;
        uint64_t thread; /* whose per-thread stream it is; 0: nobody's */
        unsigned int refs;
        bool is_destroyed; /* by the program; listed until its work is done */
        bool is_listed;    /* in context->streams */
        bool has_thread;
        struct capture *capture;
        uint64_t issued, done;
        struct work *first, **last;
        struct engine engine;
};

/* stream_new() - make a stream. NULL: no memory. */
CUstream stream_new(CUcontext context, unsigned int flags, int priority);
CUstream stream_ref(CUstream stream);
CUstream stream_unref(CUstream stream);

/* stream_is_detached() - has its green context ended without it? */
bool stream_is_detached(CUstream stream);

/* stream_find() - find the stream that a program means by @handle. */
CUresult stream_find(CUstream *ret_stream, CUstream handle);

#endif
