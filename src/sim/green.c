/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts. Each retains its device's primary context, and all but its streams is that one's.
 *
 * When one ends, its streams are left without a context: every call with one of them fails, and its captures are
 * no more. What they have been given to do goes on. They are freed with the primary context.
 */

#include "sim/green.h"

#include <stddef.h>
#include <stdlib.h>

#include "sim/capture.h"
#include "sim/stream.h"

/* Multiprocessors are given away in such groups, as on an H200. */
#define GROUP 8u

CUcontext green_find(CUgreenCtx green)
{
        char *object = object_find(green, OBJECT_GREEN);

        return object ? (CUcontext)(void *)(object - offsetof(struct CUctx_st, green)) : NULL;
}

/* Resources: a description is the number of multiprocessors. */

static void set_resource(CUdevResource *resource, unsigned int count)
{
        *resource = (CUdevResource){ .type = count ? CU_DEV_RESOURCE_TYPE_SM : 0 };
        resource->sm.smCount = count;
}

CUresult sim_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, int type)
{
        int count = 0;
        CUresult result =
                sim_cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);

        if (result != CUDA_SUCCESS)
                return result;
        if (!resource || type != CU_DEV_RESOURCE_TYPE_SM)
                return CUDA_ERROR_INVALID_VALUE;
        set_resource(resource, (unsigned int)count);
        return CUDA_SUCCESS;
}

CUresult sim_cuDevSmResourceSplitByCount(CUdevResource *parts, unsigned int *n,
                                         const CUdevResource *whole, CUdevResource *rest,
                                         unsigned int flags, unsigned int least)
{
        unsigned int size = least ? (least + GROUP - 1) / GROUP * GROUP : GROUP, possible;

        if (!n || !whole || whole->type != CU_DEV_RESOURCE_TYPE_SM || flags)
                return CUDA_ERROR_INVALID_VALUE;
        possible = whole->sm.smCount / size;
        if (!parts) {
                *n = possible;
                return CUDA_SUCCESS;
        }
        if (possible == 0)
                return CUDA_ERROR_NOT_SUPPORTED;
        if (*n > possible)
                *n = possible;
        for (unsigned int i = 0; i < *n; i++)
                set_resource(&parts[i], size);
        if (rest)
                set_resource(rest, whole->sm.smCount - *n * size);
        return CUDA_SUCCESS;
}

CUresult sim_cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources,
                                       unsigned int n)
{
        if (!description || !resources || n != 1 || resources->type != CU_DEV_RESOURCE_TYPE_SM)
                return CUDA_ERROR_INVALID_VALUE;
        *description = (CUdevResourceDesc)(uintptr_t)resources->sm.smCount;
        return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *resource, int type)
{
        CUcontext context;
        PROCESS_LOCKED();

        context = green_find(green);
        if (!context)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (!resource || type != CU_DEV_RESOURCE_TYPE_SM)
                return CUDA_ERROR_INVALID_VALUE;
        set_resource(resource, context->multiprocessors);
        return CUDA_SUCCESS;
}

/* Contexts. */

static CUcontext new_green(CUcontext primary, CUdevice device)
{
        CUcontext context = context_new(device, primary->flags);

        if (!context)
                return NULL;
        context->primary = primary;
        context->id = process.next_id++;
        context->legacy = stream_new(context, CU_STREAM_DEFAULT, 0);
        if (!context->legacy) {
                context_free(context);
                return NULL;
        }
        object_add(&context->green, OBJECT_GREEN);
        return context;
}

CUresult sim_cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc resources, CUdevice device,
                              unsigned int flags)
{
        CUcontext primary, context;
        CUresult result;

        if (!green || !resources || flags != CU_GREEN_CTX_DEFAULT_STREAM)
                return CUDA_ERROR_INVALID_VALUE;
        result = sim_cuDevicePrimaryCtxRetain(&primary, device);
        if (result != CUDA_SUCCESS)
                return result;
        {
                PROCESS_LOCKED();

                context = new_green(primary, device);
                if (context)
                        context->multiprocessors = (unsigned int)(uintptr_t)resources;
        }
        if (!context) {
                (void)sim_cuDevicePrimaryCtxRelease_v2(device);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *green = (CUgreenCtx)(void *)&context->green;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
        PROCESS_LOCKED();

        if (!context)
                return CUDA_ERROR_INVALID_VALUE;
        *context = green_find(green);
        return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* It is found by nobody any more, but its streams still do what they have to do. */
static void end_green(CUcontext context)
{
        capture_drop_all(context);
        object_remove(&context->object);
        object_remove(&context->green);
}

CUresult sim_cuGreenCtxDestroy(CUgreenCtx green)
{
        CUdevice device;

        {
                CUcontext context;
                PROCESS_LOCKED();

                context = green_find(green);
                if (!context)
                        return CUDA_ERROR_INVALID_CONTEXT;
                device = context->device;
                end_green(context);
        }
        return sim_cuDevicePrimaryCtxRelease_v2(device);
}

static CUcontext find_green_of(CUcontext primary)
{
        CUcontext context = process.contexts;

        while (context && context->primary != primary)
                context = context->next;
        return context;
}

void context_end_greens(CUcontext primary)
{
        CUcontext context;

        while ((context = find_green_of(primary))) {
                if (context_find(context))
                        end_green(context);
                stream_destroy_all(context);
                context_free(context);
        }
}

CUresult sim_cuGreenCtxStreamCreate(CUstream *ret_stream, CUgreenCtx green, unsigned int flags,
                                    int priority)
{
        CUcontext context;
        CUstream stream;
        PROCESS_LOCKED();

        context = green_find(green);
        if (!context)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (!ret_stream || flags != CU_STREAM_NON_BLOCKING)
                return CUDA_ERROR_INVALID_VALUE;
        stream = context_has_room(context) ? stream_new(context, flags, priority) : NULL;
        if (!stream)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *ret_stream = stream;
        return CUDA_SUCCESS;
}
