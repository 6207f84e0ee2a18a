/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks of memory under eight threads. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "gate/hammer.h"

#define DONE(call)    check_answer(call, CUDA_SUCCESS)
#define REFUSED(call) check_answer(call, CUDA_ERROR_INVALID_VALUE)

static void use(CUdeviceptr pointer, size_t size, unsigned int random)
{
        unsigned char value;

        DONE(cuMemsetD8_v2(pointer, (unsigned char)random, size));
        DONE(cuMemcpyDtoH_v2(&value, pointer + size - 1, 1));
        check(value == (unsigned char)random);
}

static void allocate(unsigned int thread, unsigned int random)
{
        size_t size = random % 3 ? 1 + random % 5000 : 2 * MIB + random % 5000;
        CUdeviceptr pointer, base;
        size_t found;

        (void)thread;
        DONE(cuMemAlloc_v2(&pointer, size));
        DONE(cuMemGetAddressRange_v2(&base, &found, pointer + size - 1));
        check(base == pointer && found == size);
        use(pointer, size, random);
        DONE(cuMemFree_v2(pointer));
}

static void allocate_rows(unsigned int thread, unsigned int random)
{
        CUdeviceptr pointer;
        size_t pitch;

        (void)thread;
        DONE(cuMemAllocPitch_v2(&pointer, &pitch, 1 + random % 3000, 7, 4u << random % 3));
        check(pitch % 512 == 0);
        use(pointer, pitch * 7, random);
        DONE(cuMemFree_v2(pointer));
}

static void allocate_managed(unsigned int thread, unsigned int random)
{
        CUdeviceptr pointer;

        (void)thread;
        DONE(cuMemAllocManaged(&pointer, 1 + random % 5000, CU_MEM_ATTACH_GLOBAL));
        DONE(cuMemFree_v2(pointer));
}

static void allocate_in_order(unsigned int thread, unsigned int random)
{
        CUmemoryPool pool;
        CUdeviceptr pointer;

        (void)thread;
        DONE(cuDeviceGetDefaultMemPool(&pool, 0));
        DONE(cuMemAllocAsync(&pointer, 1 + random % 5000, CU_STREAM_PER_THREAD));
        DONE(cuMemFreeAsync(pointer, CU_STREAM_PER_THREAD));
        DONE(cuMemAllocFromPoolAsync(&pointer, 1 + random % 5000, pool, CU_STREAM_PER_THREAD));
        DONE(cuMemFreeAsync(pointer, CU_STREAM_PER_THREAD));
        DONE(cuMemAllocAsync_ptsz(&pointer, 1 + random % 5000, NULL));
        DONE(cuMemFreeAsync_ptsz(pointer, NULL));
        DONE(cuMemAllocFromPoolAsync_ptsz(&pointer, 1 + random % 5000, pool, NULL));
        DONE(cuMemFreeAsync_ptsz(pointer, NULL));
        DONE(cuMemAlloc_v2(&pointer, 1 + random % 5000));
        DONE(cuMemFreeAsync(pointer, CU_STREAM_PER_THREAD));
        DONE(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

static void make_arrays(unsigned int thread, unsigned int random)
{
        const CUDA_ARRAY_DESCRIPTOR flat = { 1 + random % 100, 7, CU_AD_FORMAT_FLOAT, 1 };
        const CUDA_ARRAY3D_DESCRIPTOR deep = { 1 + random % 100, 8, 3, CU_AD_FORMAT_HALF, 2, 0 };
        const CUDA_ARRAY3D_DESCRIPTOR mip = { 64, 64, 0, CU_AD_FORMAT_HALF, 2, 0 };
        CUmipmappedArray mipmap;
        CUarray array;

        (void)thread;
        DONE(cuArrayCreate_v2(&array, &flat));
        DONE(cuArrayDestroy(array));
        DONE(cuArray3DCreate_v2(&array, &deep));
        DONE(cuArrayDestroy(array));
        DONE(cuMipmappedArrayCreate(&mipmap, &mip, 3));
        DONE(cuMipmappedArrayDestroy(mipmap));
}

static void ask_how_much(unsigned int thread, unsigned int random)
{
        size_t free, total, device_total;

        (void)thread;
        (void)random;
        DONE(cuMemGetInfo_v2(&free, &total));
        DONE(cuDeviceTotalMem_v2(&device_total, 0));
        check(free <= total && total == GIB && device_total == GIB);
}

static const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
static const CUmemAccessDesc access_desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                             CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

static void map(unsigned int thread, unsigned int random)
{
        CUmemGenericAllocationHandle handle, again;
        CUdeviceptr address;

        (void)thread;
        DONE(cuMemAddressReserve(&address, 2 * MIB, 0, 0, 0));
        DONE(cuMemCreate(&handle, 2 * MIB, &prop, 0));
        DONE(cuMemMap(address, 2 * MIB, 0, handle, 0));
        if (random % 2)
                DONE(cuMemRelease(handle));
        DONE(cuMemSetAccess(address, 2 * MIB, &access_desc, 1));
        DONE(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(address + MIB)));
        DONE(cuMemRelease(again));
        DONE(cuMemUnmap(address, 2 * MIB));
        if (random % 2 == 0)
                DONE(cuMemRelease(handle));
        DONE(cuMemAddressFree(address, 2 * MIB));
}

/* An even thread and the next release the two handles of one allocation, at the same time if they can. */
static _Atomic CUmemGenericAllocationHandle second[HAMMER_THREADS];

static void release_one_of_two(unsigned int thread, unsigned int random)
{
        CUmemGenericAllocationHandle handle, again;
        CUdeviceptr address;

        (void)random;
        for (int i = 0; i < 20; i++) {
                if (thread % 2) {
                        again = atomic_exchange(&second[thread - 1], 0);
                } else {
                        DONE(cuMemAddressReserve(&address, 2 * MIB, 0, 0, 0));
                        DONE(cuMemCreate(&handle, 2 * MIB, &prop, 0));
                        DONE(cuMemMap(address, 2 * MIB, 0, handle, 0));
                        DONE(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)address));
                        DONE(cuMemUnmap(address, 2 * MIB));
                        DONE(cuMemAddressFree(address, 2 * MIB));
                        again = atomic_exchange(&second[thread], again);
                        DONE(cuMemRelease(handle));
                }
                if (again)
                        DONE(cuMemRelease(again));
        }
}

static void release_second(void)
{
        for (int i = 0; i < HAMMER_THREADS; i++)
                if (second[i])
                        DONE(cuMemRelease(second[i]));
}

/* Addresses that other threads free meanwhile: whatever the answer is, it is one. */
static _Atomic CUdeviceptr shared[16];

static void ask_for_what_goes(unsigned int thread, unsigned int random)
{
        _Atomic CUdeviceptr *place = &shared[random % 16];
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer = 0, base;
        CUcontext context;
        size_t size;

        if (thread % 2) {
                DONE(cuMemAlloc_v2(&pointer, random % 2 ? 2 * MIB : 1000));
                pointer = atomic_exchange(place, pointer);
                if (pointer)
                        DONE(cuMemFree_v2(pointer));
                return;
        }
        pointer = atomic_load(place);
        if (!pointer)
                return;
        (void)cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
        (void)cuMemGetAddressRange_v2(&base, &size, pointer);
        REFUSED(cuMemUnmap(pointer, 2 * MIB));
        REFUSED(cuMemAddressFree(pointer, 2 * MIB));
        REFUSED(cuMemSetAccess(pointer, 2 * MIB, &access_desc, 1));
        REFUSED(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)pointer));
}

/* As in a process whose address space is limited; ThreadSanitizer's is often too crowded for the arena as well. */
static void prepare_without_arena(void)
{
        check(setenv("OPENVGPU_SIM_FAIL", "cuMemAddressReserve@1=2", 1) == 0);
}

static void free_shared(void)
{
        for (size_t i = 0; i < 16; i++)
                if (shared[i])
                        DONE(cuMemFree_v2(shared[i]));
}

static CUgraphNodeParams allocation_of(size_t size)
{
        CUgraphNodeParams params;

        memset(&params, 0, sizeof(params));
        params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        params.alloc.bytesize = size;
        return params;
}

static void build_graphs(unsigned int thread, unsigned int random)
{
        CUgraphNodeParams params = allocation_of(1 + random % 5000);
        CUgraphExec exec;
        CUgraphNode node;
        CUgraph graph;

        (void)thread;
        DONE(cuGraphCreate(&graph, 0));
        DONE(cuGraphAddNode(&node, graph, NULL, 0, &params));
        DONE(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
        DONE(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params.alloc));
        DONE(random % 2 ? cuGraphInstantiate(&exec, graph, NULL, NULL, 0)
                        : cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
        DONE(cuGraphDestroy(graph));
        DONE(cuGraphLaunch(exec, CU_STREAM_PER_THREAD));
        DONE(cuGraphExecDestroy(exec));
}

static void capture_memory(unsigned int thread, unsigned int random)
{
        CUdeviceptr pointer;
        CUgraphExec exec;
        CUstream stream;
        CUgraph graph;

        if (thread % 4) {
                allocate(thread, random);
                return;
        }
        usleep(500); /* the gate closes between captures */
        DONE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        DONE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        DONE(cuMemAllocAsync(&pointer, 1 + random % 5000, stream));
        DONE(cuMemFreeAsync(pointer, stream));
        if (random % 3) {
                DONE(cuStreamEndCapture(stream, &graph));
                DONE(cuGraphInstantiateWithFlags(&exec, graph, 0));
                DONE(cuGraphExecDestroy(exec));
                DONE(cuGraphDestroy(graph));
        }
        DONE(cuStreamDestroy_v2(stream));
}

static void register_memory(unsigned int thread, unsigned int random)
{
        CUdeviceptr pointer;
        int fd;

        (void)thread;
        DONE(cuMemAlloc_v2(&pointer, random % 2 ? 2 * MIB : 4096 + random % 5000));
        if (cuMemGetHandleForAddressRange(&fd, pointer & -4096ull, 4096,
                                          CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) == CUDA_SUCCESS)
                close(fd);
        DONE(cuMemFree_v2(pointer));
}

static void share_pools(unsigned int thread, unsigned int random)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
        CUmemPoolPtrExportData data;
        CUdeviceptr pointer, imported_pointer;
        CUmemoryPool pool, imported;
        int fd;

        (void)thread;
        DONE(cuMemPoolCreate(&pool, &props));
        DONE(cuMemPoolExportToShareableHandle(&fd, pool, 1, 0));
        DONE(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, 1, 0));
        close(fd);
        DONE(cuMemAllocFromPoolAsync(&pointer, 1 + random % 5000, pool, CU_STREAM_PER_THREAD));
        DONE(cuMemPoolExportPointer(&data, pointer));
        DONE(cuMemPoolImportPointer(&imported_pointer, imported, &data));
        DONE(cuMemFreeAsync(imported_pointer, CU_STREAM_PER_THREAD));
        DONE(cuMemFreeAsync(pointer, CU_STREAM_PER_THREAD));
        DONE(cuStreamSynchronize(CU_STREAM_PER_THREAD));
        DONE(cuMemPoolDestroy(imported));
        DONE(cuMemPoolDestroy(pool));
}

static void share_handles(unsigned int thread, unsigned int random)
{
        CUmemGenericAllocationHandle handle, imported;
        int fd;

        (void)thread;
        (void)random;
        DONE(cuMemCreate(&handle, 2 * MIB, &prop, 0));
        DONE(cuMemExportToShareableHandle(&fd, handle, 1, 0));
        DONE(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, 1));
        close(fd);
        DONE(cuMemRelease(imported));
        DONE(cuMemRelease(handle));
}

static void ask_for_handles(unsigned int thread, unsigned int random)
{
        CUdeviceptr pointer, opened;
        CUipcMemHandle handle;

        (void)thread;
        DONE(cuMemAlloc_v2(&pointer, 1 + random % 5000));
        DONE(cuIpcGetMemHandle(&handle, pointer));
        check(cuIpcOpenMemHandle_v2(&opened, handle, 1) == CUDA_ERROR_INVALID_CONTEXT);
        memset(&handle, 0, sizeof(handle));
        check(cuIpcOpenMemHandle_v2(&opened, handle, 1) != CUDA_SUCCESS);
        check(cuIpcOpenMemHandle(&opened, handle, 1) != CUDA_SUCCESS);
        check(cuIpcCloseMemHandle(pointer) != CUDA_SUCCESS);
        DONE(cuMemFree_v2(pointer));
}

static void ask_for_attributes(unsigned int thread, unsigned int random)
{
        CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                             CU_POINTER_ATTRIBUTE_CONTEXT };
        const unsigned int on = 1;
        CUdeviceptr pointer, start;
        CUcontext context;
        void *data[] = { &start, &context };

        (void)thread;
        DONE(cuMemAlloc_v2(&pointer, 2 + random % 5000));
        DONE(cuPointerGetAttributes(2, attributes, data, pointer + 1));
        check(start == pointer && context);
        (void)cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer);
        DONE(cuMemFree_v2(pointer));
}

const struct hammer hammer_memory[] = {
        { "cuMemAlloc_v2 cuMemFree_v2 cuMemGetAddressRange_v2", NULL, allocate, NULL },
        { "cuMemAllocPitch_v2", NULL, allocate_rows, NULL },
        { "cuMemAllocManaged", NULL, allocate_managed, NULL },
        { "cuMemAllocAsync cuMemAllocAsync_ptsz cuMemAllocFromPoolAsync "
          "cuMemAllocFromPoolAsync_ptsz cuMemFreeAsync cuMemFreeAsync_ptsz",
          NULL, allocate_in_order, NULL },
        { "cuArray3DCreate_v2 cuArrayCreate_v2 cuArrayDestroy cuMipmappedArrayCreate "
          "cuMipmappedArrayDestroy",
          NULL, make_arrays, NULL },
        { "cuMemGetInfo_v2 cuDeviceTotalMem_v2", NULL, ask_how_much, NULL },
        { "cuMemCreate cuMemMap cuMemSetAccess cuMemRetainAllocationHandle cuMemUnmap cuMemRelease "
          "cuMemAddressFree",
          NULL, map, NULL },
        { "cuMemRelease", NULL, release_one_of_two, release_second },
        { "cuMemUnmap cuMemAddressFree cuMemSetAccess cuMemRetainAllocationHandle "
          "cuPointerGetAttribute",
          NULL, ask_for_what_goes, free_shared },
        { "cuMemUnmap cuMemAddressFree cuMemSetAccess cuMemRetainAllocationHandle, without an arena",
          prepare_without_arena, ask_for_what_goes, free_shared },
        { "cuGraphAddMemAllocNode cuGraphAddNode cuGraphAddNode_v2 cuGraphInstantiate "
          "cuGraphInstantiate_v2 cuGraphDestroy cuGraphExecDestroy",
          NULL, build_graphs, NULL },
        { "cuMemAllocAsync cuMemFreeAsync cuStreamBeginCapture_v2 cuStreamEndCapture "
          "cuGraphInstantiateWithFlags cuStreamDestroy_v2",
          NULL, capture_memory, NULL },
        { "cuMemGetHandleForAddressRange", NULL, register_memory, NULL },
        { "cuMemPoolExportToShareableHandle cuMemPoolExportPointer "
          "cuMemPoolImportFromShareableHandle cuMemPoolImportPointer cuMemPoolDestroy",
          NULL, share_pools, NULL },
        { "cuMemImportFromShareableHandle", NULL, share_handles, NULL },
        { "cuIpcGetMemHandle cuIpcOpenMemHandle cuIpcOpenMemHandle_v2 cuIpcCloseMemHandle", NULL,
          ask_for_handles, NULL },
        { "cuPointerGetAttributes cuPointerSetAttribute", NULL, ask_for_attributes, NULL },
        { NULL, NULL, NULL, NULL },
};
