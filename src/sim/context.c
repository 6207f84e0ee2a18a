/* SPDX-License-Identifier: Apache-2.0 */
/* Which contexts are live, which one is current in a thread, and which ones are peers. */

#include "sim/context.h"

#include <stdlib.h>
#include <string.h>

#define STACK_MAX 32

static _Thread_local struct {
        CUcontext context[STACK_MAX];
        unsigned int depth;
} stack;

CUcontext context_find(CUcontext context)
{
        CUcontext found = object_find(context, OBJECT_CONTEXT);

        return found && (!found->is_primary || found->retained) ? found : NULL;
}

CUcontext context_top(void)
{
        return stack.depth ? stack.context[stack.depth - 1] : NULL;
}

bool context_push(CUcontext context)
{
        if (stack.depth == STACK_MAX)
                return false;
        stack.context[stack.depth++] = context;
        return true;
}

void context_pop(void)
{
        stack.depth--;
}

CUresult context_get_own(CUcontext *ret_context)
{
        CUcontext context = context_find(context_top());

        if (!context)
                return CUDA_ERROR_INVALID_CONTEXT;
        if (context_owner(context)->fault)
                return context_owner(context)->fault;
        *ret_context = context;
        return CUDA_SUCCESS;
}

CUresult context_get(CUcontext *ret_context)
{
        CUresult result = context_get_own(ret_context);

        if (result == CUDA_SUCCESS)
                *ret_context = context_owner(*ret_context);
        return result;
}

CUresult sim_cuCtxGetCurrent(CUcontext *context)
{
        if (!context)
                return CUDA_ERROR_INVALID_VALUE;
        *context = context_top();
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(CUcontext context)
{
        PROCESS_LOCKED();

        if (context && !context_find(context))
                return CUDA_ERROR_INVALID_CONTEXT;
        if (stack.depth == 0)
                stack.depth = 1;
        stack.context[stack.depth - 1] = context;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxPushCurrent_v2(CUcontext context)
{
        PROCESS_LOCKED();

        return context_find(context) && context_push(context) ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_cuCtxPopCurrent_v2(CUcontext *context)
{
        if (!context_top())
                return CUDA_ERROR_INVALID_CONTEXT;
        if (context)
                *context = context_top();
        stack.depth--;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice(CUdevice *device)
{
        CUcontext context;
        PROCESS_LOCKED();

        if (!device)
                return CUDA_ERROR_INVALID_VALUE;
        context = context_find(context_top());
        if (!context)
                return CUDA_ERROR_INVALID_CONTEXT;
        *device = context->device;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
        PROCESS_LOCKED();

        context = context_find(context ? context : context_top());
        if (!device)
                return CUDA_ERROR_INVALID_VALUE;
        if (!context)
                return CUDA_ERROR_INVALID_CONTEXT;
        *device = context->device;
        return CUDA_SUCCESS;
}

enum sim_mend context_mend_all(void)
{
        const char *wanted = getenv("OPENVGPU_SIM_WHOLE");
        bool is_refused = wanted && strcmp(wanted, "0") == 0;
        enum sim_mend mend = SIM_MEND_NOTHING;
        PROCESS_LOCKED();

        for (CUcontext context = process.contexts; context; context = context->next) {
                if (!context->is_unwhole)
                        continue;
                mend = is_refused ? SIM_MEND_REFUSED : SIM_MEND_DONE;
                context->is_unwhole = is_refused;
        }
        return mend;
}

CUresult sim_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!context_find(peer))
                return CUDA_ERROR_INVALID_CONTEXT;
        if (flags || peer->device == context->device)
                return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
        if (!device_has_peers())
                return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
        if (context->peers & (1u << peer->device))
                return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
        context->peers |= 1u << peer->device;
        return CUDA_SUCCESS;
}

CUresult sim_cuCtxDisablePeerAccess(CUcontext peer)
{
        CUcontext context;
        CUresult result;
        PROCESS_LOCKED();

        result = context_get(&context);
        if (result != CUDA_SUCCESS)
                return result;
        if (!context_find(peer))
                return CUDA_ERROR_INVALID_CONTEXT;
        if (!(context->peers & (1u << peer->device)))
                return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
        context->peers &= ~(1u << peer->device);
        return CUDA_SUCCESS;
}
