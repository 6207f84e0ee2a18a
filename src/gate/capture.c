/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/capture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "gate/caller.h"
#include "gate/entry.h"

/* More captures at once than this are not believed; the rest is counted as ended. */
#define CAPTURES_MAX 1024

static struct {
        pthread_mutex_t lock;
        const void *stream[CAPTURES_MAX];
        _Atomic size_t n;
} captures = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool capture_is_active(void)
{
        return atomic_load(&captures.n) > 0;
}

/* The per-thread default stream has the same handle in all threads: the thread tells them apart. */
static const void *identity(CUstream stream, bool is_per_thread)
{
        if (stream == CU_STREAM_PER_THREAD || (is_per_thread && !stream))
                return caller_self_get();
        return stream;
}

/* Was it there? */
static bool remove_stream(const void *stream)
{
        bool is_found = false;

        pthread_mutex_lock(&captures.lock);
        for (size_t i = 0; i < captures.n && !is_found; i++)
                if (captures.stream[i] == stream) {
                        captures.stream[i] = captures.stream[captures.n - 1];
                        atomic_fetch_sub(&captures.n, 1);
                        is_found = true;
                }
        pthread_mutex_unlock(&captures.lock);
        return is_found;
}

static void add_stream(const void *stream)
{
        pthread_mutex_lock(&captures.lock);
        if (captures.n < CAPTURES_MAX) {
                captures.stream[captures.n] = stream;
                atomic_fetch_add(&captures.n, 1);
        }
        pthread_mutex_unlock(&captures.lock);
}

static CUresult begun(CUresult result, CUstream stream, bool is_per_thread)
{
        if (result == CUDA_SUCCESS)
                add_stream(identity(stream, is_per_thread));
        return result;
}

/* A capture that was invalidated ends with an error; one that another thread must end goes on. */
static CUresult ended(CUresult result, CUstream stream, bool is_per_thread)
{
        if (result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD &&
            result != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED && result != CUDA_ERROR_INVALID_VALUE)
                (void)remove_stream(identity(stream, is_per_thread));
        return result;
}

CUresult our_cuStreamBeginCapture(CUstream stream)
{
        return begun(DRIVER(cuStreamBeginCapture)(stream), stream, false);
}

CUresult our_cuStreamBeginCapture_ptsz(CUstream stream)
{
        return begun(DRIVER(cuStreamBeginCapture_ptsz)(stream), stream, true);
}

CUresult our_cuStreamBeginCapture_v2(CUstream stream, int mode)
{
        return begun(DRIVER(cuStreamBeginCapture_v2)(stream, mode), stream, false);
}

CUresult our_cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode)
{
        return begun(DRIVER(cuStreamBeginCapture_v2_ptsz)(stream, mode), stream, true);
}

CUresult our_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                         const CUgraphNode *dependencies, const void *edges,
                                         size_t n, int mode)
{
        return begun(
                DRIVER(cuStreamBeginCaptureToGraph)(stream, graph, dependencies, edges, n, mode),
                stream, false);
}

CUresult our_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                              const CUgraphNode *dependencies, const void *edges,
                                              size_t n, int mode)
{
        return begun(DRIVER(cuStreamBeginCaptureToGraph_ptsz)(stream, graph, dependencies, edges, n,
                                                              mode),
                     stream, true);
}

CUresult our_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
        return ended(DRIVER(cuStreamEndCapture)(stream, graph), stream, false);
}

CUresult our_cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
        return ended(DRIVER(cuStreamEndCapture_ptsz)(stream, graph), stream, true);
}

/*
 * Destroying a stream ends its capture. It is forgotten before the call: after it, another thread's new
 * stream may have the same handle.
 */
static CUresult destroy(CUresult (*call)(CUstream stream), CUstream stream)
{
        bool was_capturing = remove_stream(identity(stream, false));
        CUresult result = call(stream);

        if (was_capturing && result != CUDA_SUCCESS)
                add_stream(identity(stream, false));
        return result;
}

CUresult our_cuStreamDestroy(CUstream stream)
{
        return destroy(DRIVER(cuStreamDestroy), stream);
}

CUresult our_cuStreamDestroy_v2(CUstream stream)
{
        return destroy(DRIVER(cuStreamDestroy_v2), stream);
}

void capture_forget(void)
{
        pthread_mutex_init(&captures.lock, NULL);
        atomic_store(&captures.n, 0);
}
