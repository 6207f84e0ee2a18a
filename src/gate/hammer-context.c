/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks of contexts, captures and names under eight threads. */
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/size.h"
#include "gate/entry.h"
#include "gate/hammer.h"
#include "gate/idle.h"

#define DONE(call) check_answer(call, CUDA_SUCCESS)

/* Contexts with memory that goes with them, by all ways to make and to end one. */
static void make_contexts(unsigned int thread, unsigned int random)
{
        CUdeviceptr pointer;
        CUcontext context, same;

        (void)thread;
        check(cuCtxCreate(&context, 0, 0) == CUDA_ERROR_NOT_SUPPORTED); /* in the simulation */
        DONE(random % 3 == 0   ? cuCtxCreate_v2(&context, 0, 0)
             : random % 3 == 1 ? cuCtxCreate_v3(&context, NULL, 0, 0, 0)
                               : cuCtxCreate_v4(&context, NULL, 0, 0));
        DONE(cuMemAlloc_v2(&pointer, 1 + random % 5000));
        DONE(cuCtxAttach(&same, 0));
        check(same == context);
        DONE(cuCtxDetach(context));
        DONE(cuMemsetD8_v2(pointer, 1, 1));
        DONE(random % 4 == 0   ? cuCtxDetach(context)
             : random % 4 == 1 ? cuCtxDestroy(context)
                               : cuCtxDestroy_v2(context));
}

static void retain(unsigned int thread, unsigned int random)
{
        CUcontext context, current;

        (void)thread;
        DONE(cuDevicePrimaryCtxRetain(&context, 0));
        DONE(cuCtxGetCurrent(&current));
        check(context == current);
        DONE(random % 2 ? cuDevicePrimaryCtxRelease(0) : cuDevicePrimaryCtxRelease_v2(0));
}

/* Not before all have begun: who has retained the context wants to make it current. */
static void reset(unsigned int thread, unsigned int random)
{
        static _Atomic unsigned int here;
        CUcontext context;

        if ((atomic_fetch_or(&here, 1u << thread) | 1u << thread) != (1u << HAMMER_THREADS) - 1)
                return;
        DONE(cuDevicePrimaryCtxRetain(&context, 0));
        DONE(random % 2 ? cuDevicePrimaryCtxReset(0) : cuDevicePrimaryCtxReset_v2(0));
}

static void allow_peers(unsigned int thread, unsigned int random)
{
        CUcontext primary, context;

        (void)thread;
        (void)random;
        DONE(cuCtxGetCurrent(&primary));
        DONE(cuCtxCreate_v2(&context, 0, 0));
        check(cuCtxEnablePeerAccess(primary, 0) == CUDA_ERROR_INVALID_DEVICE);
        check(cuCtxDisablePeerAccess(primary) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
        DONE(cuCtxDestroy_v2(context));
}

/* The gate does not close while a stream is captured: there must be moments without. */
static void pause_between(unsigned int random)
{
        usleep(1000 + random % 2000);
}

static void capture(unsigned int thread, unsigned int random)
{
        CUgraph graph = NULL;
        CUstream stream;

        (void)thread;
        DONE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        DONE(random % 2 ? cuStreamBeginCapture(stream) : cuStreamBeginCapture_v2(stream, 0));
        check(cuStreamEndCapture(stream, NULL) == CUDA_ERROR_INVALID_VALUE);
        DONE(cuStreamEndCapture(stream, &graph));
        DONE(cuGraphDestroy(graph));
        DONE(random % 2 ? cuStreamBeginCapture_ptsz(NULL)
                        : cuStreamBeginCapture_v2_ptsz(CU_STREAM_PER_THREAD, 1));
        DONE(cuStreamEndCapture_ptsz(NULL, &graph));
        DONE(cuGraphDestroy(graph));
        check(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, 0) ==
              CUDA_ERROR_NOT_SUPPORTED);
        check(cuStreamBeginCaptureToGraph_ptsz(stream, graph, NULL, NULL, 0, 0) ==
              CUDA_ERROR_NOT_SUPPORTED);
        DONE(cuStreamBeginCapture_v2(stream, 2));
        DONE(random % 2 ? cuStreamDestroy(stream) : cuStreamDestroy_v2(stream));
        pause_between(random);
}

/* Half of the threads capture; the others put events behind all work, as turns do, and make contexts. */
static void capture_beside_marks(unsigned int thread, unsigned int random)
{
        int r;

        if (thread % 2 == 0) {
                capture(thread, random);
                return;
        }
        r = idle_mark();
        check(r == 0 || r == -EBUSY);
        (void)idle_is_reached();
        if (random % 16 == 0)
                make_contexts(thread, random);
}

static void ask_for_functions(unsigned int thread, unsigned int random)
{
        static const char *const names[] = { "cuMemAlloc", "cuStreamEndCapture", "cuLaunchKernel" };
        void *function = NULL, *same = NULL;
        int status;

        (void)thread;
        DONE(cuInit(0));
        DONE(cuGetProcAddress_v2(names[random % 3], &function, 12000, random % 3, &status));
        DONE(cuGetProcAddress(names[random % 3], &same, 12000, random % 3));
        check(function && function == same);
        check(entry_stub_for(function, "cuOfTomorrow") != NULL);
}

const struct hammer hammer_context[] = {
        { "cuCtxCreate cuCtxCreate_v2 cuCtxCreate_v3 cuCtxCreate_v4 cuCtxDestroy cuCtxDestroy_v2 "
          "cuCtxAttach cuCtxDetach",
          NULL, make_contexts, NULL },
        { "cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2", NULL,
          retain, NULL },
        { "cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2", NULL, reset, NULL },
        { "cuCtxEnablePeerAccess cuCtxDisablePeerAccess", NULL, allow_peers, NULL },
        { "cuStreamBeginCapture cuStreamBeginCapture_ptsz cuStreamBeginCapture_v2 "
          "cuStreamBeginCapture_v2_ptsz cuStreamBeginCaptureToGraph "
          "cuStreamBeginCaptureToGraph_ptsz cuStreamEndCapture cuStreamEndCapture_ptsz "
          "cuStreamDestroy cuStreamDestroy_v2",
          NULL, capture, NULL },
        { "cuStreamBeginCapture_v2 cuStreamEndCapture", NULL, capture_beside_marks, NULL },
        { "cuInit cuGetProcAddress cuGetProcAddress_v2", NULL, ask_for_functions, NULL },
        { NULL, NULL, NULL, NULL },
};
