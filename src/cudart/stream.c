/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, and the graphs that are captured of streams. */

#include "cudart/runtime.h"

cudaError_t runtime_cudaStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
        return (cudaError_t)driver.cuStreamCreateWithPriority(stream, flags, priority);
}

cudaError_t runtime_cudaStreamCreateWithFlags(CUstream *stream, unsigned int flags)
{
        return runtime_cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t runtime_cudaStreamCreate(CUstream *stream)
{
        return runtime_cudaStreamCreateWithFlags(stream, CU_STREAM_DEFAULT);
}

cudaError_t runtime_cudaStreamDestroy(CUstream stream)
{
        return (cudaError_t)driver.cuStreamDestroy_v2(stream);
}

cudaError_t runtime_cudaStreamSynchronize(CUstream stream)
{
        return (cudaError_t)driver.cuStreamSynchronize(runtime_stream(stream));
}

cudaError_t runtime_cudaStreamQuery(CUstream stream)
{
        return (cudaError_t)driver.cuStreamQuery(runtime_stream(stream));
}

cudaError_t runtime_cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
        return (cudaError_t)driver.cuStreamWaitEvent(runtime_stream(stream), event, flags);
}

cudaError_t runtime_cudaStreamGetPriority(CUstream stream, int *priority)
{
        return (cudaError_t)driver.cuStreamGetPriority(runtime_stream(stream), priority);
}

cudaError_t runtime_cudaStreamGetFlags(CUstream stream, unsigned int *flags)
{
        return (cudaError_t)driver.cuStreamGetFlags(runtime_stream(stream), flags);
}

cudaError_t runtime_cudaStreamGetId(CUstream stream, unsigned long long *id)
{
        return (cudaError_t)driver.cuStreamGetId(runtime_stream(stream), id);
}

cudaError_t runtime_cudaStreamGetDevice(CUstream stream, int *device)
{
        return (cudaError_t)driver.cuStreamGetDevice(runtime_stream(stream), device);
}

cudaError_t runtime_cudaStreamAddCallback(CUstream stream, CUstreamCallback function, void *data,
                                          unsigned int flags)
{
        return (cudaError_t)driver.cuStreamAddCallback(runtime_stream(stream), function, data,
                                                       flags);
}

cudaError_t runtime_cudaLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
        return (cudaError_t)driver.cuLaunchHostFunc(runtime_stream(stream), function, data);
}

cudaError_t runtime_cudaEventCreateWithFlags(CUevent *event, unsigned int flags)
{
        return (cudaError_t)driver.cuEventCreate(event, flags);
}

cudaError_t runtime_cudaEventCreate(CUevent *event)
{
        return runtime_cudaEventCreateWithFlags(event, CU_EVENT_DEFAULT);
}

cudaError_t runtime_cudaEventDestroy(CUevent event)
{
        return (cudaError_t)driver.cuEventDestroy_v2(event);
}

cudaError_t runtime_cudaEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
        return (cudaError_t)driver.cuEventRecordWithFlags(event, runtime_stream(stream), flags);
}

cudaError_t runtime_cudaEventRecord(CUevent event, CUstream stream)
{
        return runtime_cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t runtime_cudaEventQuery(CUevent event)
{
        return (cudaError_t)driver.cuEventQuery(event);
}

cudaError_t runtime_cudaEventSynchronize(CUevent event)
{
        return (cudaError_t)driver.cuEventSynchronize(event);
}

cudaError_t runtime_cudaEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
        return (cudaError_t)driver.cuEventElapsedTime(milliseconds, start, end);
}

cudaError_t runtime_cudaStreamBeginCapture(CUstream stream, int mode)
{
        return (cudaError_t)driver.cuStreamBeginCapture_v2(runtime_stream(stream), mode);
}

cudaError_t runtime_cudaStreamEndCapture(CUstream stream, CUgraph *graph)
{
        return (cudaError_t)driver.cuStreamEndCapture(runtime_stream(stream), graph);
}

cudaError_t runtime_cudaStreamIsCapturing(CUstream stream, int *status)
{
        return (cudaError_t)driver.cuStreamIsCapturing(runtime_stream(stream), status);
}

cudaError_t runtime_cudaStreamGetCaptureInfo(CUstream stream, int *status, unsigned long long *id,
                                             CUgraph *graph, const CUgraphNode **dependencies,
                                             const void **edges, size_t *n)
{
        uint64_t number = 0;
        CUresult result = driver.cuStreamGetCaptureInfo_v3(runtime_stream(stream), status, &number,
                                                           graph, dependencies, edges, n);

        if (result == CUDA_SUCCESS && id)
                *id = number;
        return (cudaError_t)result;
}

cudaError_t runtime_cudaThreadExchangeStreamCaptureMode(int *mode)
{
        return (cudaError_t)driver.cuThreadExchangeStreamCaptureMode(mode);
}

cudaError_t runtime_cudaGraphCreate(CUgraph *graph, unsigned int flags)
{
        return (cudaError_t)driver.cuGraphCreate(graph, flags);
}

cudaError_t runtime_cudaGraphDestroy(CUgraph graph)
{
        return (cudaError_t)driver.cuGraphDestroy(graph);
}

cudaError_t runtime_cudaGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
        return (cudaError_t)driver.cuGraphGetNodes(graph, nodes, n);
}

cudaError_t runtime_cudaGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                                  unsigned long long flags)
{
        return (cudaError_t)driver.cuGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t runtime_cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
        return runtime_cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t runtime_cudaGraphUpload(CUgraphExec exec, CUstream stream)
{
        return (cudaError_t)driver.cuGraphUpload(exec, runtime_stream(stream));
}

cudaError_t runtime_cudaGraphLaunch(CUgraphExec exec, CUstream stream)
{
        return (cudaError_t)driver.cuGraphLaunch(exec, runtime_stream(stream));
}

cudaError_t runtime_cudaGraphExecDestroy(CUgraphExec exec)
{
        return (cudaError_t)driver.cuGraphExecDestroy(exec);
}
