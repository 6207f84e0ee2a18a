/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/capture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "gate/caller.h"
#include "gate/child.h"
#include "gate/entry.h"
#include "gate/graph.h"
#include "gate/idle-lock.h"
#include "gate/section.h"

/* More captures at once than this are not believed; the rest is counted as ended. */
#define CAPTURES_MAX 1024

/* The longest that a capture is kept from its beginning, and between two looks. */
#define KEPT_AWAY_NS      200000000u
#define KEPT_AWAY_STEP_NS 20000

struct captured {
        const void *stream; /* see identity() */
        CUcontext context;  /* which takes the capture with it when it ends */
        CUgraph graph;      /* goes with a capture that comes to nothing; NULL: not this one's */
};

/*
 * With idle_hold() around the driver's call and what is noted of it: some calls ruin captures, in
 * whatever mode, and ours of that kind are made under the same lock (idle.c). The lock in here is for
 * those who look without.
 */
static struct {
        pthread_mutex_t lock;
        struct captured of[CAPTURES_MAX];
        _Atomic size_t n;
        /* Calls that begin or end one, while the driver may have it and @n not. */
        _Atomic unsigned int n_changing;
        _Atomic unsigned int n_kept_away; /* each is raised before the other is looked at */
} captures = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool capture_is_active(void)
{
        return atomic_load(&captures.n) > 0 || atomic_load(&captures.n_changing) > 0;
}

bool capture_keep_away(void)
{
        atomic_fetch_add(&captures.n_kept_away, 1);
        if (!capture_is_active())
                return true;
        capture_let_begin();
        return false;
}

void capture_let_begin(void)
{
        atomic_fetch_sub(&captures.n_kept_away, 1);
}

/* Before the driver's call; begun() after it. */
static void begin(void)
{
        const struct timespec moment = { .tv_nsec = KEPT_AWAY_STEP_NS };
        uint64_t until_ns = clock_now(CLOCK_MONOTONIC) + KEPT_AWAY_NS;

        section_begin();
        atomic_fetch_add(&captures.n_changing, 1);
        while (atomic_load(&captures.n_kept_away) > 0 && clock_now(CLOCK_MONOTONIC) < until_ns)
                nanosleep(&moment, NULL);
        idle_hold();
}

static bool is_own_stream(CUstream stream, bool is_per_thread)
{
        return stream == CU_STREAM_PER_THREAD || (is_per_thread && !stream);
}

/*
 * The per-thread default stream has the same handle in all threads and contexts: the thread and the
 * context tell them apart.
 */
static struct captured identity(CUstream stream, bool is_per_thread)
{
        struct captured captured = { .stream = stream };

        if (is_own_stream(stream, is_per_thread)) {
                captured.stream = caller_self_get();
                DRIVER(cuCtxGetCurrent)(&captured.context);
        } else {
                DRIVER(cuStreamGetCtx)(stream, &captured.context);
        }
        return captured;
}

static bool is_same(const struct captured *a, const struct captured *b)
{
        return a->stream == b->stream && a->context == b->context;
}

static bool is_in_context(const struct captured *a, const struct captured *b)
{
        return a->context == b->context;
}

static bool is_of_stream(const struct captured *a, const struct captured *b)
{
        return a->stream == b->stream;
}

/* One that is @like @which goes, and is told in its place. */
static bool take(bool (*like)(const struct captured *, const struct captured *),
                 struct captured *which)
{
        bool is_found = false;

        pthread_mutex_lock(&captures.lock);
        for (size_t i = captures.n; i-- > 0 && !is_found;)
                if (like(&captures.of[i], which)) {
                        *which = captures.of[i];
                        captures.of[i] = captures.of[captures.n - 1];
                        atomic_fetch_sub(&captures.n, 1);
                        is_found = true;
                }
        pthread_mutex_unlock(&captures.lock);
        return is_found;
}

/* It came to nothing: the driver has destroyed what was captured. */
static void come_to_nothing(const struct captured *captured)
{
        if (captured->graph)
                (void)graph_handle_settle(graph_handle_take(captured->graph), CUDA_SUCCESS);
}

static void add(const struct captured *captured)
{
        pthread_mutex_lock(&captures.lock);
        if (captures.n < CAPTURES_MAX) {
                captures.of[captures.n] = *captured;
                atomic_fetch_add(&captures.n, 1);
        }
        pthread_mutex_unlock(&captures.lock);
}

/* @graph: the application's own, or NULL for one that the driver makes. */
static CUresult begun(CUresult result, CUstream stream, bool is_per_thread, CUgraph graph)
{
        if (result == CUDA_SUCCESS) {
                struct captured captured = identity(stream, is_per_thread);

                if (!graph)
                        (void)graph_capture_find(stream, is_per_thread, &captured.graph);
                add(&captured);
        }
        atomic_fetch_sub(&captures.n_changing, 1);
        idle_release();
        section_end();
        return result;
}

/* A capture that was invalidated has ended with the error; one that another thread must end goes on. */
static bool goes_on(CUstream stream, bool is_per_thread)
{
        int status = CU_STREAM_CAPTURE_STATUS_NONE;
        CUresult result = is_per_thread ? DRIVER(cuStreamIsCapturing_ptsz)(stream, &status)
                                        : DRIVER(cuStreamIsCapturing)(stream, &status);

        return result == CUDA_ERROR_INVALID_CONTEXT || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Of what is no stream the driver must not be asked for the context: it reads there (driver 580). */
static bool is_stream(CUresult result)
{
        return result != CUDA_ERROR_NOT_INITIALIZED && result != CUDA_ERROR_DEINITIALIZED &&
               result != CUDA_ERROR_INVALID_HANDLE && result != CUDA_ERROR_INVALID_CONTEXT &&
               result != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* The driver is asked of streams that we know alone: of the legacy one, it would ruin others' captures. */
static void forget_ended(CUresult result, CUstream stream, bool is_per_thread)
{
        struct captured captured = identity(stream, is_per_thread);
        bool was_capturing;

        atomic_fetch_add(&captures.n_changing, 1);
        was_capturing = take(is_same, &captured);
        if (was_capturing && result != CUDA_SUCCESS) {
                if (goes_on(stream, is_per_thread))
                        add(&captured);
                else
                        come_to_nothing(&captured);
        }
        atomic_fetch_sub(&captures.n_changing, 1);
}

static CUresult ended(CUresult result, CUstream stream, bool is_per_thread)
{
        if (is_stream(result))
                forget_ended(result, stream, is_per_thread);
        idle_release();
        return result;
}

CUresult our_cuStreamBeginCapture(CUstream stream)
{
        begin();
        return begun(DRIVER(cuStreamBeginCapture)(stream), stream, false, NULL);
}

CUresult our_cuStreamBeginCapture_ptsz(CUstream stream)
{
        begin();
        return begun(DRIVER(cuStreamBeginCapture_ptsz)(stream), stream, true, NULL);
}

CUresult our_cuStreamBeginCapture_v2(CUstream stream, int mode)
{
        begin();
        return begun(DRIVER(cuStreamBeginCapture_v2)(stream, mode), stream, false, NULL);
}

CUresult our_cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode)
{
        begin();
        return begun(DRIVER(cuStreamBeginCapture_v2_ptsz)(stream, mode), stream, true, NULL);
}

CUresult our_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                         const CUgraphNode *dependencies, const void *edges,
                                         size_t n, int mode)
{
        begin();
        return begun(
                DRIVER(cuStreamBeginCaptureToGraph)(stream, graph, dependencies, edges, n, mode),
                stream, false, graph);
}

CUresult our_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                              const CUgraphNode *dependencies, const void *edges,
                                              size_t n, int mode)
{
        begin();
        return begun(DRIVER(cuStreamBeginCaptureToGraph_ptsz)(stream, graph, dependencies, edges, n,
                                                              mode),
                     stream, true, graph);
}

CUresult our_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
        idle_hold();
        return ended(DRIVER(cuStreamEndCapture)(stream, graph), stream, false);
}

CUresult our_cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
        idle_hold();
        return ended(DRIVER(cuStreamEndCapture_ptsz)(stream, graph), stream, true);
}

/*
 * Destroying a stream ends its capture. It is forgotten before the call: after it, another thread's new
 * stream may have the same handle.
 */
CUresult capture_destroy_stream(CUresult (*call)(CUstream stream), CUstream stream)
{
        struct captured captured = { .stream = stream };
        bool was_capturing;
        CUresult result;

        if (!capture_is_active())
                return call(stream);
        idle_hold();
        atomic_fetch_add(&captures.n_changing, 1);
        was_capturing = take(is_of_stream, &captured);
        result = call(stream);
        if (was_capturing && result != CUDA_SUCCESS)
                add(&captured);
        else if (was_capturing)
                come_to_nothing(&captured);
        atomic_fetch_sub(&captures.n_changing, 1);
        idle_release();
        return result;
}

void capture_drop_context(CUcontext context)
{
        struct captured captured = { .context = context };

        while (take(is_in_context, &captured))
                come_to_nothing(&captured);
}

void capture_drop_thread(const void *caller)
{
        struct captured captured = { .stream = caller };

        while (take(is_of_stream, &captured))
                ; /* what it has captured stays */
}

void capture_forget(void)
{
        pthread_mutex_init(&captures.lock, NULL);
        atomic_store(&captures.n, 0);
        atomic_store(&captures.n_changing, 0);
        atomic_store(&captures.n_kept_away, 0);
}
