/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes from other libraries: Vulkan's or Direct3D's memory and semaphores, resources of OpenGL, EGL and VDPAU.
 *
 * Its memory is the other library's, and not charged. Whether the driver's checkpoint brings it back, nobody has
 * measured: while it is there, the vGPU is not suspended.
 */
#include "gate/entry.h"
#include "gate/holding.h"
#include "wire/gate.h"

static uint64_t key_of(const void *handle)
{
        return (uint64_t)(uintptr_t)handle;
}

/* TAKE_IN(kind, call, key) - have the driver make the @call; what that gives is held under @key. */
#define TAKE_IN(kind, call, key)                                                          \
        do {                                                                              \
                struct holding *holding = holding_new(kind, 0, GATE_HOLDS_UNPROVEN);      \
                CUresult result;                                                          \
                                                                                          \
                if (!holding)                                                             \
                        return CUDA_ERROR_OUT_OF_MEMORY;                                  \
                result = call;                                                            \
                return holding_keep(holding, result, result == CUDA_SUCCESS ? (key) : 0); \
        } while (0)

CUresult our_cuImportExternalMemory(CUexternalMemory *memory, const void *description)
{
        TAKE_IN(HOLDING_EXTERNAL, DRIVER(cuImportExternalMemory)(memory, description),
                key_of(*memory));
}

CUresult our_cuDestroyExternalMemory(CUexternalMemory memory)
{
        struct holding *holding = holding_take(HOLDING_EXTERNAL, key_of(memory));

        return holding_settle(holding, DRIVER(cuDestroyExternalMemory)(memory));
}

CUresult our_cuImportExternalSemaphore(CUexternalSemaphore *semaphore, const void *description)
{
        TAKE_IN(HOLDING_EXTERNAL, DRIVER(cuImportExternalSemaphore)(semaphore, description),
                key_of(*semaphore));
}

CUresult our_cuDestroyExternalSemaphore(CUexternalSemaphore semaphore)
{
        struct holding *holding = holding_take(HOLDING_EXTERNAL, key_of(semaphore));

        return holding_settle(holding, DRIVER(cuDestroyExternalSemaphore)(semaphore));
}

/* Resources of graphics. */

CUresult our_cuGraphicsEGLRegisterImage(CUgraphicsResource *resource, void *image,
                                        unsigned int flags)
{
        TAKE_IN(HOLDING_EXTERNAL, DRIVER(cuGraphicsEGLRegisterImage)(resource, image, flags),
                key_of(*resource));
}

CUresult our_cuGraphicsGLRegisterBuffer(CUgraphicsResource *resource, unsigned int buffer,
                                        unsigned int flags)
{
        TAKE_IN(HOLDING_EXTERNAL, DRIVER(cuGraphicsGLRegisterBuffer)(resource, buffer, flags),
                key_of(*resource));
}

CUresult our_cuGraphicsGLRegisterImage(CUgraphicsResource *resource, unsigned int image,
                                       unsigned int target, unsigned int flags)
{
        TAKE_IN(HOLDING_EXTERNAL, DRIVER(cuGraphicsGLRegisterImage)(resource, image, target, flags),
                key_of(*resource));
}

CUresult our_cuGraphicsVDPAURegisterOutputSurface(CUgraphicsResource *resource, uint32_t surface,
                                                  unsigned int flags)
{
        TAKE_IN(HOLDING_EXTERNAL,
                DRIVER(cuGraphicsVDPAURegisterOutputSurface)(resource, surface, flags),
                key_of(*resource));
}

CUresult our_cuGraphicsVDPAURegisterVideoSurface(CUgraphicsResource *resource, uint32_t surface,
                                                 unsigned int flags)
{
        TAKE_IN(HOLDING_EXTERNAL,
                DRIVER(cuGraphicsVDPAURegisterVideoSurface)(resource, surface, flags),
                key_of(*resource));
}

CUresult our_cuGraphicsUnregisterResource(CUgraphicsResource resource)
{
        struct holding *holding = holding_take(HOLDING_EXTERNAL, key_of(resource));

        return holding_settle(holding, DRIVER(cuGraphicsUnregisterResource)(resource));
}

CUresult our_cuGLRegisterBufferObject(unsigned int buffer)
{
        TAKE_IN(HOLDING_BUFFER, DRIVER(cuGLRegisterBufferObject)(buffer), buffer);
}

CUresult our_cuGLUnregisterBufferObject(unsigned int buffer)
{
        struct holding *holding = holding_take(HOLDING_BUFFER, buffer);

        return holding_settle(holding, DRIVER(cuGLUnregisterBufferObject)(buffer));
}

/* Streams of images. */

CUresult our_cuEGLStreamConsumerConnect(CUeglStreamConnection *connection, void *stream)
{
        TAKE_IN(HOLDING_EXTERNAL, DRIVER(cuEGLStreamConsumerConnect)(connection, stream),
                key_of(*connection));
}

CUresult our_cuEGLStreamConsumerConnectWithFlags(CUeglStreamConnection *connection, void *stream,
                                                 unsigned int flags)
{
        TAKE_IN(HOLDING_EXTERNAL,
                DRIVER(cuEGLStreamConsumerConnectWithFlags)(connection, stream, flags),
                key_of(*connection));
}

CUresult our_cuEGLStreamProducerConnect(CUeglStreamConnection *connection, void *stream,
                                        int32_t width, int32_t height)
{
        TAKE_IN(HOLDING_EXTERNAL,
                DRIVER(cuEGLStreamProducerConnect)(connection, stream, width, height),
                key_of(*connection));
}

static CUresult disconnect(CUresult (*call)(CUeglStreamConnection *connection),
                           CUeglStreamConnection *connection)
{
        struct holding *holding =
                connection ? holding_take(HOLDING_EXTERNAL, key_of(*connection)) : NULL;

        return holding_settle(holding, call(connection));
}

CUresult our_cuEGLStreamConsumerDisconnect(CUeglStreamConnection *connection)
{
        return disconnect(DRIVER(cuEGLStreamConsumerDisconnect), connection);
}

CUresult our_cuEGLStreamProducerDisconnect(CUeglStreamConnection *connection)
{
        return disconnect(DRIVER(cuEGLStreamProducerDisconnect), connection);
}
