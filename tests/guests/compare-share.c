/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: legacy IPC, and descriptors of memory for other devices. */
#include <string.h>
#include <unistd.h>

#include "tests/guests/compare.h"

static void legacy(void)
{
        CUdeviceptr small, large, opened = 0;
        CUipcMemHandle handle;

        compare_start();
        must(DRIVER(cuMemAlloc_v2)(&small, 1000));
        must(DRIVER(cuMemAlloc_v2)(&large, (size_t)3 << 20));
        CALL(cuIpcGetMemHandle, "small", &handle, small);
        CALL(cuIpcGetMemHandle, "large", &handle, large);
        CALL(cuIpcGetMemHandle, "nothing", &handle, 4096);
        memset(&handle, 0, sizeof(handle));
        CALL(cuIpcOpenMemHandle_v2, "of nobody", &opened, handle, 1);
        CALL(cuIpcOpenMemHandle, "of nobody", &opened, handle, 1);
        CALL(cuIpcCloseMemHandle, "that is not open", large);
        CALL(cuIpcCloseMemHandle, "nothing", 4096);
}

static void take(const char *what, CUdeviceptr pointer, size_t size)
{
        int fd = -1;

        if (CALL(cuMemGetHandleForAddressRange, what, &fd, pointer, size,
                 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) == CUDA_SUCCESS)
                (void)close(fd);
}

static void dma_bufs(void)
{
        const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        const size_t size = (size_t)2 << 20;
        CUmemGenericAllocationHandle handle;
        CUdeviceptr large, mapped;

        compare_start();
        must(DRIVER(cuMemAlloc_v2)(&large, 2 * size));
        take("all", large, 2 * size);
        take("a part", large + size, size);
        take("one page", large, 4096);
        take("odd size", large, 1000);
        take("odd address", large + 1, 4096);
        take("no bytes", large, 0);
        take("too many bytes", large, 64 * size);
        take("nothing", 4096, 4096);
        must(DRIVER(cuMemAddressReserve)(&mapped, size, 0, 0, 0));
        must(DRIVER(cuMemCreate)(&handle, size, &prop, 0));
        must(DRIVER(cuMemMap)(mapped, size, 0, handle, 0));
        must(DRIVER(cuMemSetAccess)(mapped, size, &access, 1));
        take("mapped", mapped, size);
        CALL(cuMemUnmap, "with a dma-buf", mapped, size);
        CALL(cuMemRelease, "with a dma-buf", handle);
        CALL(cuMemFree_v2, "with a dma-buf", large);
}

/* Nothing of another library is there: each call says so, in its way. */
static void of_other_libraries(void)
{
        CUeglStreamConnection connection = NULL;
        CUgraphicsResource resource = NULL;
        CUexternalSemaphore semaphore = NULL;
        CUexternalMemory memory = NULL;

        compare_start();
        CALL(cuImportExternalMemory, "of nothing", &memory, NULL);
        CALL(cuDestroyExternalMemory, "none", NULL);
        CALL(cuImportExternalSemaphore, "of nothing", &semaphore, NULL);
        CALL(cuDestroyExternalSemaphore, "none", NULL);
        CALL(cuGraphicsUnregisterResource, "none", NULL);
        CALL(cuGraphicsGLRegisterBuffer, "without a display", &resource, 1, 0);
        CALL(cuGraphicsGLRegisterImage, "without a display", &resource, 1, 0, 0);
        CALL(cuGLRegisterBufferObject, "without a display", 1);
        CALL(cuGLUnregisterBufferObject, "without a display", 1);
        CALL(cuGraphicsVDPAURegisterOutputSurface, "without a display", &resource, 1, 0);
        CALL(cuGraphicsVDPAURegisterVideoSurface, "without a display", &resource, 1, 0);
        CALL(cuGraphicsEGLRegisterImage, "none", &resource, NULL, 0);
        CALL(cuEGLStreamConsumerConnect, "none", &connection, NULL);
        CALL(cuEGLStreamConsumerConnectWithFlags, "none", &connection, NULL, 0);
        CALL(cuEGLStreamConsumerDisconnect, "none", &connection);
        CALL(cuEGLStreamProducerConnect, "none", &connection, NULL, 1, 1);
        CALL(cuEGLStreamProducerDisconnect, "none", &connection);
}

static void bound(void)
{
        compare_start();
        CALL(cuMemMapArrayAsync, "nothing", NULL, 0, NULL);
        CALL(cuMemMapArrayAsync_ptsz, "nothing", NULL, 0, NULL);
        CALL(cuMulticastBindAddr, "nothing", 0, 0, 0, 0, 0);
        CALL(cuMulticastBindAddr_v2, "nothing", 0, 0, 0, 0, 0, 0);
        CALL(cuMulticastBindMem_v2, "nothing", 0, 0, 0, 0, 0, 0, 0);
}

const struct compare_case compare_share[] = {
        { "legacy", legacy },
        { "dma-bufs", dma_bufs },
        { "of-other-libraries", of_other_libraries },
        { "bound", bound },
        { NULL, NULL },
};
