/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts come and go.
 *
 * A primary context keeps its handle when it is released, reset and retained
 * again, as with the real driver: programs keep the pointer.
 */

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "sim/call.h"
#include "sim/capture.h"
#include "sim/context.h"
#include "sim/memory.h"
#include "sim/module.h"
#include "sim/stream.h"

/* What a context takes of an H200; small simulated devices give a small part. */
#define COST          (512 * MIB)
#define COST_FRACTION 16

/* Stack size, printf buffer, heap, as the real driver has them at first. */
static const size_t default_limits[CONTEXT_LIMITS] = { 1024, 7 * MIB, 8 * MIB, 2, 2048, 64 };

static uint64_t get_cost(int at)
{
        uint64_t part = process.host_device[at].memory / COST_FRACTION;

        return (part < COST ? part : COST) & ~(MEMORY_PAGE - 1);
}

/* An H200 needed between 4 and 6 MiB; small simulated devices need a small part. */
#define ROOM          (4 * MIB)
#define ROOM_FRACTION 256

static uint64_t get_room(int at)
{
        uint64_t part = process.host_device[at].memory / ROOM_FRACTION;

        return (part < ROOM ? part : ROOM) / MIB * MIB;
}

bool context_has_room(CUcontext context)
{
        int at = process_device(context->device)->at;

        return holdings_get_free(&process.holdings, at) >= get_room(at);
}

bool context_take_room(CUcontext context, uint64_t *taken)
{
        int at = process_device(context->device)->at;

        if (holdings_charge(&process.holdings, at, get_room(at)) < 0)
                return false;
        taken[at] += get_room(at);
        return true;
}

/* Takes the device memory of a context and makes its streams. */
static CUresult open_context(CUcontext context)
{
        struct device *device = process_device(context->device);

        context->cost = get_cost(device->at);
        if (holdings_charge(&process.holdings, device->at, context->cost) < 0)
                return CUDA_ERROR_OUT_OF_MEMORY;
        context->legacy = stream_new(context, CU_STREAM_DEFAULT, 0);
        if (!context->legacy) {
                holdings_refund(&process.holdings, device->at, context->cost);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        holdings_note_context(&process.holdings, device->at, (int64_t)context->cost);
        memcpy(context->limits, default_limits, sizeof(context->limits));
        context->id = process.next_id++;
        context->fault = CUDA_SUCCESS;
        return CUDA_SUCCESS;
}

static void close_context(CUcontext context)
{
        context_end_greens(context);
        capture_drop_all(context);
        stream_destroy_all(context);
        memory_release_all(context);
        module_unload_all(context);
        holdings_refund(&process.holdings, process_device(context->device)->at, context->cost);
        holdings_note_context(&process.holdings, process_device(context->device)->at,
                              -(int64_t)context->cost);
        context->legacy = NULL;
        context->peers = 0;
}

CUcontext context_new(CUdevice device, unsigned int flags)
{
        CUcontext context = calloc(1, sizeof(*context));

        if (!context)
                return NULL;
        context->device = device;
        context->flags = flags;
        context->next = process.contexts;
        process.contexts = context;
        object_add(&context->object, OBJECT_CONTEXT);
        return context;
}

void context_free(CUcontext context)
{
        CUcontext *link = &process.contexts;

        while (*link != context)
                link = &(*link)->next;
        *link = context->next;
        object_remove(&context->object);
        free(context);
}

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *ret_context, CUdevice ordinal)
{
        struct device *device;
        CUresult result = CUDA_SUCCESS;
        PROCESS_LOCKED();

        device = process_device(ordinal);
        if (!ret_context)
                return CUDA_ERROR_INVALID_VALUE;
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        if (!device->primary) {
                device->primary = context_new(ordinal, device->primary_flags);
                if (!device->primary)
                        return CUDA_ERROR_OUT_OF_MEMORY;
                device->primary->is_primary = true;
        }
        if (device->primary->retained == 0)
                result = open_context(device->primary);
        if (result != CUDA_SUCCESS)
                return result;
        device->primary->retained++;
        *ret_context = device->primary;
        return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice ordinal)
{
        struct device *device = process_device(ordinal);
        PROCESS_LOCKED();

        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        if (!device->primary || device->primary->retained == 0)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (device->primary->retained == 1)
                close_context(device->primary);
        device->primary->retained--;
        return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice ordinal)
{
        struct device *device = process_device(ordinal);
        PROCESS_LOCKED();

        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        if (device->primary && device->primary->retained) {
                close_context(device->primary);
                device->primary->retained = 0;
        }
        return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags)
{
        struct device *device = process_device(ordinal);
        PROCESS_LOCKED();

        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        device->primary_flags = flags;
        if (device->primary)
                device->primary->flags = flags;
        return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active)
{
        struct device *device = process_device(ordinal);
        PROCESS_LOCKED();

        if (!flags || !active)
                return CUDA_ERROR_INVALID_VALUE;
        if (!device)
                return CUDA_ERROR_INVALID_DEVICE;
        *flags = device->primary_flags;
        *active = device->primary && device->primary->retained;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxCreate_v2(CUcontext *ret_context, unsigned int flags, CUdevice device)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        if (!ret_context)
                return CUDA_ERROR_INVALID_VALUE;
        if (!process_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        context = context_new(device, flags);
        if (!context)
                return CUDA_ERROR_OUT_OF_MEMORY;
        result = open_context(context);
        if (result == CUDA_SUCCESS && !context_push(context)) {
                close_context(context);
                result = CUDA_ERROR_INVALID_VALUE;
        }
        if (result != CUDA_SUCCESS) {
                context_free(context);
                return result;
        }
        *ret_context = context;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxCreate_v3(CUcontext *context, void *affinity, int n_affinity, unsigned int flags,
                            CUdevice device)
{
        if (affinity || n_affinity)
                return CUDA_ERROR_NOT_SUPPORTED;
        return sim_cuCtxCreate_v2(context, flags, device);
}

CUresult sim_cuCtxCreate_v4(CUcontext *context, void *params, unsigned int flags, CUdevice device)
{
        if (params)
                return CUDA_ERROR_NOT_SUPPORTED;
        return sim_cuCtxCreate_v2(context, flags, device);
}

static void destroy(CUcontext context)
{
        close_context(context);
        if (context_top() == context)
                context_pop();
        context_free(context);
}

CUresult sim_cuCtxDestroy_v2(CUcontext context)
{
        PROCESS_LOCKED();

        if (!context_find(context) || context->is_primary || context->primary)
                return CUDA_ERROR_INVALID_CONTEXT;
        destroy(context);
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxAttach(CUcontext *ret_context, unsigned int flags)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!ret_context || flags)
                return CUDA_ERROR_INVALID_VALUE;
        if (context->is_primary)
                return CUDA_ERROR_INVALID_CONTEXT;
        context->attached++;
        *ret_context = context;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxDetach(CUcontext context)
{
        PROCESS_LOCKED();

        if (!context_find(context) || context->is_primary || context->primary ||
            context_top() != context)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (context->attached > 0)
                context->attached--;
        else
                destroy(context);
        return CUDA_SUCCESS;
}

static CUresult synchronize_locked(CUcontext context)
{
        if (capture_invalidate_context(context))
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        stream_wait_for_context(context);
        return context_owner(context)->fault;
}

static CUresult synchronize(void)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get_own(&context);
        return result ? result : synchronize_locked(context);
}

CUresult sim_cuCtxSynchronize(void)
{
        return call_has_passed() ? CUDA_SUCCESS : synchronize();
}

static CUresult synchronize_context(CUcontext context)
{
        PROCESS_LOCKED();

        context = context_find(context ? context : context_top());
        return context ? synchronize_locked(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_cuCtxSynchronize_v2(CUcontext context)
{
        return call_has_passed() ? CUDA_SUCCESS : synchronize_context(context);
}
