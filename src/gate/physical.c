/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/physical.h"

#include "gate/entry.h"
#include "gate/log.h"

static CUresult failed(CUresult result, const char *call, const char **ret_call)
{
        log_write("%s failed: %d", call, result);
        *ret_call = call;
        return result;
}

static CUresult map_view(const struct view *view, CUmemGenericAllocationHandle real,
                         const char **ret_call)
{
        const CUdeviceptr address = view->by_address.key;
        const unsigned int on = 1;
        CUresult result;

        result = DRIVER(cuMemMap)(address, view->size, view->offset, real, 0);
        if (result != CUDA_SUCCESS)
                return failed(result, "cuMemMap", ret_call);
        if (view->n_access > 0)
                result = DRIVER(cuMemSetAccess)(address, view->size, view->access, view->n_access);
        if (result != CUDA_SUCCESS) {
                (void)DRIVER(cuMemUnmap)(address, view->size);
                return failed(result, "cuMemSetAccess", ret_call);
        }
        if (view->sync_memops)
                (void)DRIVER(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address);
        return CUDA_SUCCESS;
}

CUresult physical_map(const struct physical *physical, CUmemGenericAllocationHandle real,
                      const char **ret_call)
{
        const struct view *view = physical->views;
        CUresult result = CUDA_SUCCESS;

        for (; view && result == CUDA_SUCCESS; view = view->of_the_same) {
                result = map_view(view, real, ret_call);
                if (result != CUDA_SUCCESS)
                        break;
        }
        if (result != CUDA_SUCCESS)
                for (const struct view *done = physical->views; done != view;
                     done = done->of_the_same)
                        (void)DRIVER(cuMemUnmap)(done->by_address.key, done->size);
        return result;
}

CUresult physical_unmap(const struct physical *physical, CUmemGenericAllocationHandle real,
                        const char **ret_call)
{
        const struct view *view;
        const char *call;
        CUresult result;

        for (view = physical->views; view; view = view->of_the_same) {
                result = DRIVER(cuMemUnmap)(view->by_address.key, view->size);
                if (result != CUDA_SUCCESS)
                        break;
        }
        if (!view)
                return CUDA_SUCCESS;
        for (const struct view *done = physical->views; done != view; done = done->of_the_same)
                (void)map_view(done, real, &call);
        return failed(result, "cuMemUnmap", ret_call);
}
