/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/contexts.h"

#include "checkpoint/driver.h"
#include "wire/checkpoint.h"

static struct context contexts[CHECKPOINT_PAIRS_MAX];

static void release(unsigned int device)
{
        struct context *context = &contexts[device];
        CUdevice ordinal;

        (void)driver.cuCtxSetCurrent(context->context);
        for (unsigned int i = 0; i < CREW_MAX; i++)
                for (unsigned int k = 0; k < 2; k++)
                        if (context->stream[i][k])
                                (void)driver.cuStreamDestroy_v2(context->stream[i][k]);
        (void)driver.cuCtxSetCurrent(NULL);
        if (driver.cuDeviceGet(&ordinal, (int)device) == CUDA_SUCCESS)
                (void)driver.cuDevicePrimaryCtxRelease_v2(ordinal);
        *context = (struct context){ 0 };
}

static CUresult make_streams(struct context *context)
{
        CUresult code = driver.cuCtxSetCurrent(context->context);

        for (unsigned int i = 0; i < crew_get_size(); i++)
                for (unsigned int k = 0; k < 2 && code == CUDA_SUCCESS; k++)
                        code = driver.cuStreamCreate(&context->stream[i][k],
                                                     CU_STREAM_NON_BLOCKING);
        return code;
}

CUresult contexts_retain(unsigned int device)
{
        struct context *context = &contexts[device];
        CUdevice ordinal;
        CUresult code;

        if (context->context)
                return CUDA_SUCCESS;
        code = driver.cuDeviceGet(&ordinal, (int)device);
        if (code == CUDA_SUCCESS)
                code = driver.cuDevicePrimaryCtxRetain(&context->context, ordinal);
        if (code != CUDA_SUCCESS) {
                context->context = NULL;
                return code;
        }
        code = make_streams(context);
        if (code != CUDA_SUCCESS)
                release(device);
        return code;
}

const struct context *contexts_get(unsigned int device)
{
        return &contexts[device];
}

int contexts_find(CUstream stream)
{
        CUcontext context;

        if (driver.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS)
                return -1;
        for (int i = 0; i < CHECKPOINT_PAIRS_MAX; i++)
                if (contexts[i].context && contexts[i].context == context)
                        return i;
        return -1;
}

CUresult contexts_enter(int device)
{
        for (int i = 0; device < 0 && i < CHECKPOINT_PAIRS_MAX; i++)
                if (contexts[i].context)
                        device = i;
        if (device < 0)
                return CUDA_ERROR_INVALID_CONTEXT;
        return driver.cuCtxSetCurrent(contexts[device].context);
}

void contexts_release(void)
{
        for (unsigned int i = 0; i < CHECKPOINT_PAIRS_MAX; i++)
                if (contexts[i].context)
                        release(i);
}
