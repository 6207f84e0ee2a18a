/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: stream-ordered memory, pools, and memory of graphs. */
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "tests/guests/compare.h"

#define SIZE ((size_t)3 << 20)

static void of_devices(void)
{
        CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                      nowhere = { CU_MEM_LOCATION_TYPE_DEVICE, 77 };
        CUmemoryPool pool = NULL;

        compare_start();
        CALL(cuDeviceGetDefaultMemPool, "here", &pool, 0);
        CALL(cuDeviceGetDefaultMemPool, "device 77", &pool, 77);
        CALL(cuDeviceGetMemPool, "here", &pool, 0);
        CALL(cuDeviceGetMemPool, "device 77", &pool, 77);
        CALL(cuMemGetDefaultMemPool, "here", &pool, &here, CU_MEM_ALLOCATION_TYPE_PINNED);
        CALL(cuMemGetDefaultMemPool, "device 77", &pool, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED);
        CALL(cuMemGetMemPool, "here", &pool, &here, CU_MEM_ALLOCATION_TYPE_PINNED);
        CALL(cuMemGetMemPool, "device 77", &pool, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED);
        CALL(cuGreenCtxCreate, "of nothing", NULL, NULL, 0, 0);
        CALL(cuMulticastAddDevice, "to none", 0, 0);
}

static void ordered(void)
{
        CUdeviceptr pointer = 0;
        CUmemoryPool pool;
        CUstream stream;

        compare_start();
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0));
        must(CALL(cuMemAllocAsync, "a stream's", &pointer, SIZE, stream));
        SAY("aligned to 512: %d", pointer % 512 == 0);
        CALL(cuMemFreeAsync, "a stream's", pointer, stream);
        must(CALL(cuMemAllocAsync_ptsz, "the thread's", &pointer, 100, NULL));
        CALL(cuMemFreeAsync_ptsz, "the thread's", pointer, NULL);
        must(CALL(cuMemAllocFromPoolAsync, "the default pool", &pointer, 100, pool, stream));
        CALL(cuMemFreeAsync, "the default pool", pointer, stream);
        must(CALL(cuMemAllocFromPoolAsync_ptsz, "the default pool", &pointer, 100, pool, NULL));
        CALL(cuMemFree_v2, "of a pool", pointer);
        must(DRIVER(cuMemAlloc_v2)(&pointer, 100));
        CALL(cuMemFreeAsync, "ordinary memory", pointer, stream);
        must(DRIVER(cuStreamSynchronize)(stream));
        CALL(cuMemFreeAsync, "again", pointer, stream);
        CALL(cuMemFreeAsync, "nothing", 4096, stream);
        CALL(cuMemAllocAsync, "no bytes", &pointer, 0, stream);
        CALL(cuMemAllocAsync, "to nowhere", NULL, SIZE, stream);
        CALL(cuMemAllocAsync, "more than there is", &pointer, (size_t)1 << 46, stream);
        CALL(cuMemAllocFromPoolAsync, "no pool", &pointer, SIZE, NULL, stream);
}

static void say_attributes(const char *when, CUmemoryPool pool)
{
        uint64_t used = 0, used_high = 0, reserved = 0, threshold = 0;

        CALL(cuMemPoolGetAttribute, when, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
        CALL(cuMemPoolGetAttribute, when, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &used_high);
        CALL(cuMemPoolGetAttribute, when, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
        CALL(cuMemPoolGetAttribute, when, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
        SAY("%s: used %lu, at most %lu, enough is reserved: %d, threshold %lu", when,
            (unsigned long)used, (unsigned long)used_high, reserved >= used,
            (unsigned long)threshold);
}

static void say_pointer(const char *when, CUdeviceptr pointer, CUmemoryPool pool)
{
        CUmemoryPool of = NULL;
        CUcontext context = NULL;
        CUdeviceptr start = 0;
        size_t size = 0;

        CALL(cuPointerGetAttribute, when, &of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer);
        CALL(cuPointerGetAttribute, when, &context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
        SAY("%s: of the pool %d, of a context %d", when, of == pool, context != NULL);
        CALL(cuMemGetAddressRange_v2, when, &start, &size, pointer);
        SAY("%s: %lu behind its start, of %lu", when, (unsigned long)(pointer - start),
            (unsigned long)size);
}

/* A pool that cannot be shared: of such a one the gate gives memory itself. */
static void own(void)
{
        uint64_t threshold = 64 << 20, reserved = 1, nothing = 0;
        CUdeviceptr pointer = 0, small = 0;
        CUmemAccessDesc access;
        CUmemPoolProps props;
        CUmemoryPool pool = NULL, current = NULL;
        CUcontext context;
        CUstream stream;
        int off = 0;

        context = compare_start();
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        memset(&props, 0, sizeof(props));
        props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        must(CALL(cuMemPoolCreate, "own", &pool, &props));
        CALL(cuMemPoolCreate, "to nowhere", NULL, &props);
        CALL(cuMemPoolSetAttribute, "threshold", pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
             &threshold);
        CALL(cuMemPoolSetAttribute, "reuse", pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off);
        CALL(cuMemPoolSetAttribute, "what cannot be", pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
             &threshold);
        CALL(cuDeviceSetMemPool, "own", 0, pool);
        CALL(cuMemSetMemPool, "own", &props.location, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
        CALL(cuDeviceGetMemPool, "own", &current, 0);
        SAY("it is the current one: %d", current == pool);
        must(CALL(cuMemAllocAsync, "from the current one", &pointer, 2 * SIZE, stream));
        must(CALL(cuMemAllocFromPoolAsync, "own", &small, 1024, pool, stream));
        access.location = props.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        CALL(cuMemPoolSetAccess, "its own device", pool, &access, 1);
        CALL(cuMemPoolSetAccess, "no pool", NULL, &access, 1);
        say_attributes("allocated", pool);
        say_pointer("large", pointer + SIZE, pool);
        say_pointer("small", small, pool);
        CALL(cuMemFreeAsync, "not its start", pointer + 512, stream);
        CALL(cuMemFreeAsync, "own", pointer, stream);
        CALL(cuMemFreeAsync, "again", pointer, stream);
        CALL(cuMemFree_v2, "own", small);
        CALL(cuStreamSynchronize, "after the free", stream);
        say_attributes("freed", pool);
        CALL(cuMemPoolSetAttribute, "most", pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &nothing);
        say_attributes("reset", pool);
        CALL(cuMemPoolTrimTo, "own", pool, 0);
        CALL(cuMemPoolGetAttribute, "trimmed", pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
             &reserved);
        SAY("reserved after that: %lu", (unsigned long)reserved);
        must(CALL(cuMemAllocFromPoolAsync, "to be left", &pointer, SIZE, pool, stream));
        CALL(cuMemPoolDestroy, "the current one", pool);
        CALL(cuDeviceGetMemPool, "after its end", &current, 0);
        must(DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0));
        SAY("the default one is current: %d", current == pool);
        CALL(cuStreamSynchronize_ptsz, "the thread's", NULL);
        CALL(cuEventSynchronize, "none", NULL);
        CALL(cuCtxSynchronize, "all");
        CALL(cuCtxSynchronize_v2, "all", context);
}

static void shared(void)
{
        CUmemPoolProps props;
        CUmemPoolPtrExportData data;
        CUdeviceptr pointer, opened = 0;
        CUmemoryPool pool, imported = NULL;
        int fd = -1;

        compare_start();
        memset(&props, 0, sizeof(props));
        props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        must(CALL(cuMemPoolCreate, "to be shared", &pool, &props));
        must(CALL(cuMemAllocFromPoolAsync, "to be shared", &pointer, SIZE, pool, NULL));
        must(DRIVER(cuStreamSynchronize)(NULL));
        CALL(cuMemPoolExportToShareableHandle, "of it", &fd, pool, 1, 0);
        CALL(cuMemPoolExportToShareableHandle, "flags", &fd, pool, 1, 1);
        CALL(cuMemPoolExportToShareableHandle, "as nothing", &fd, pool, 0, 0);
        CALL(cuMemPoolExportToShareableHandle, "to nowhere", NULL, pool, 1, 0);
        CALL(cuMemPoolExportPointer, "not its start", &data, pointer + 512);
        CALL(cuMemPoolExportPointer, "of it", &data, pointer);
        CALL(cuMemPoolImportPointer, "no pool of another", &opened, pool, &data);
        if (CALL(cuMemPoolImportFromShareableHandle, "own", &imported, (void *)(intptr_t)fd, 1,
                 0) == CUDA_SUCCESS) {
                if (CALL(cuMemPoolImportPointer, "own", &opened, imported, &data) == CUDA_SUCCESS)
                        CALL(cuMemFree_v2, "imported", opened);
                CALL(cuMemPoolDestroy, "imported", imported);
        }
        CALL(cuMemPoolImportFromShareableHandle, "no descriptor", &imported, (void *)(intptr_t)-1,
             1, 0);
        CALL(cuMemFreeAsync, "shared", pointer, NULL);
        must(DRIVER(cuStreamSynchronize)(NULL));
        CALL(cuMemPoolDestroy, "shared", pool);
        must(DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0));
        CALL(cuMemPoolExportToShareableHandle, "the default one", &fd, pool, 1, 0);
        CALL(cuMemPoolDestroy, "the default one", pool);
}

static void use_imported_pool(CUmemoryPool pool)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        CUmemPoolPtrExportData nothing;
        CUdeviceptr pointer = 0;
        int fd = -1;

        memset(&nothing, 0, sizeof(nothing));
        CALL(cuMemAllocFromPoolAsync, "imported", &pointer, SIZE, pool, NULL);
        CALL(cuMemAllocFromPoolAsync_ptsz, "imported", &pointer, SIZE, pool, NULL);
        CALL(cuDeviceSetMemPool, "imported", 0, pool);
        CALL(cuMemPoolExportToShareableHandle, "imported", &fd, pool, 1, 0);
        CALL(cuMemPoolSetAccess, "imported", pool, &access, 1);
        CALL(cuMemPoolTrimTo, "imported", pool, 0);
        CALL(cuMemPoolImportPointer, "of nothing", &pointer, pool, &nothing);
}

static void use_imported_pointer(CUdeviceptr pointer, CUmemoryPool pool)
{
        CUmemPoolPtrExportData data;
        CUdeviceptr start = 0;
        unsigned int word = 0;
        uint64_t used = 0;
        size_t size = 0;

        CALL(cuMemcpyDtoH_v2, "imported", &word, pointer + SIZE - 4, sizeof(word));
        SAY("it is what the other has written: %x", word);
        CALL(cuMemGetAddressRange_v2, "imported", &start, &size, pointer + 4);
        SAY("it starts there: %d, and has %zu bytes", start == pointer, size);
        say_pointer("imported", pointer + 4, pool);
        CALL(cuMemPoolGetAttribute, "imported", pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
        SAY("imported, used: %lu", (unsigned long)used);
        CALL(cuMemPoolExportPointer, "imported", &data, pointer);
        CALL(cuMemUnmap, "imported", pointer, (size_t)4 << 20);
        CALL(cuMemFreeAsync, "not its start", pointer + 512, NULL);
        CALL(cuMemsetD8Async, "imported", pointer, 7, 1, NULL);
        CALL(cuMemFreeAsync, "imported", pointer, NULL);
        CALL(cuStreamSynchronize, "after that", NULL);
        CALL(cuMemFreeAsync, "again", pointer, NULL);
        CALL(cuMemFree_v2, "again", pointer);
        CALL(cuMemPoolDestroy, "imported", pool);
        CALL(cuMemPoolDestroy, "again", pool);
}

/* In a process of its own. */
static void use(int from)
{
        char message[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX] = { -1 };
        CUmemPoolPtrExportData data;
        CUmemoryPool pool = NULL;
        CUdeviceptr pointer = 0;
        size_t size, n_fds;

        compare_start();
        if (packet_receive(from, message, &size, fds, &n_fds) < 0 || size != sizeof(data))
                _exit(1);
        memcpy(&data, message, sizeof(data));
        must(CALL(cuMemPoolImportFromShareableHandle, "of another", &pool, (void *)(intptr_t)fds[0],
                  1, 0));
        use_imported_pool(pool);
        must(CALL(cuMemPoolImportPointer, "of another", &pointer, pool, &data));
        use_imported_pointer(pointer, pool);
        (void)fflush(stdout);
        _exit(0);
}

static void make_for_another(int to)
{
        CUmemPoolPtrExportData data;
        CUmemPoolProps props;
        CUdeviceptr pointer;
        CUmemoryPool pool;
        int fd = -1;

        compare_start();
        memset(&props, 0, sizeof(props));
        props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        must(DRIVER(cuMemPoolCreate)(&pool, &props));
        must(DRIVER(cuMemAllocFromPoolAsync)(&pointer, SIZE, pool, NULL));
        must(DRIVER(cuMemsetD32Async)(pointer, 0x5a5a, SIZE / 4, NULL));
        must(DRIVER(cuStreamSynchronize)(NULL));
        must(DRIVER(cuMemPoolExportToShareableHandle)(&fd, pool, 1, 0));
        must(DRIVER(cuMemPoolExportPointer)(&data, pointer));
        (void)packet_send(to, &data, sizeof(data), &fd, 1);
}

static void of_another(void)
{
        int ends[2], status = -1;
        pid_t user;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return;
        (void)fflush(stdout);
        user = fork();
        if (user == 0)
                use(ends[1]);
        make_for_another(ends[0]);
        (void)waitpid(user, &status, 0);
        SAY("the other one has ended as it should: %d", status == 0);
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

static void graphs(void)
{
        CUgraphNodeParams params = allocation_of(SIZE), none = allocation_of(0);
        uint64_t how[8] = { 0 }; /* CUDA_GRAPH_INSTANTIATE_PARAMS, without flags and stream */
        CUgraphNode nodes[3], freed;
        CUgraphExec exec;
        CUgraph graph;

        compare_start();
        must(DRIVER(cuGraphCreate)(&graph, 0));
        must(CALL(cuGraphAddNode, "allocation", &nodes[0], graph, NULL, 0, &params));
        CALL(cuGraphAddMemFreeNode, "of it", &freed, graph, &nodes[0], 1, params.alloc.dptr);
        must(CALL(cuGraphAddNode_v2, "allocation", &nodes[1], graph, NULL, NULL, 0, &params));
        CALL(cuGraphAddMemFreeNode, "of it", &freed, graph, &nodes[1], 1, params.alloc.dptr);
        must(CALL(cuGraphAddMemAllocNode, "allocation", &nodes[2], graph, NULL, 0, &params.alloc));
        CALL(cuGraphAddMemFreeNode, "of it", &freed, graph, &nodes[2], 1, params.alloc.dptr);
        CALL(cuGraphAddMemAllocNode, "no bytes", &nodes[2], graph, NULL, 0, &none.alloc);
        CALL(cuGraphAddMemAllocNode, "no parameters", &nodes[2], graph, NULL, 0, NULL);
        if (CALL(cuGraphInstantiate, "it", &exec, graph, NULL, NULL, 0) == CUDA_SUCCESS)
                CALL(cuGraphExecDestroy, "it", exec);
        if (CALL(cuGraphInstantiateWithParams, "it", &exec, graph, how) == CUDA_SUCCESS)
                CALL(cuGraphExecDestroy, "it", exec);
        if (CALL(cuGraphInstantiateWithParams_ptsz, "it", &exec, graph, how) == CUDA_SUCCESS)
                CALL(cuGraphExecDestroy, "it", exec);
        CALL(cuGraphExecDestroy, "nothing", NULL);
        CALL(cuGraphDestroy, "nothing", NULL);
        if (CALL(cuGraphInstantiateWithFlags, "it", &exec, graph, 0) == CUDA_SUCCESS) {
                CALL(cuGraphLaunch, "it", exec, NULL);
                CALL(cuStreamSynchronize, "of it", NULL);
                CALL(cuGraphDestroy, "instantiated", graph);
                CALL(cuGraphLaunch, "without its graph", exec, NULL);
                CALL(cuStreamSynchronize, "of it", NULL);
                CALL(cuGraphExecDestroy, "it", exec);
        }
}

static void captured(void)
{
        CUgraph seen = NULL, graph = NULL;
        CUdeviceptr pointer;
        CUgraphExec exec;
        CUstream stream;
        uint64_t id;
        int status;

        compare_start();
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CALL(cuMemAllocAsync, "captured", &pointer, SIZE, stream);
        CALL(cuMemFreeAsync, "captured", pointer, stream);
        CALL(cuStreamGetCaptureInfo_v2, "captured", stream, &status, &id, &seen, NULL, NULL);
        must(CALL(cuStreamEndCapture, "with memory", stream, &graph));
        SAY("the graph is the one that was told: %d", graph == seen);
        if (CALL(cuGraphInstantiate_v2, "it", &exec, graph, NULL, NULL, 0) == CUDA_SUCCESS) {
                CALL(cuGraphDestroy, "instantiated", graph);
                CALL(cuGraphLaunch, "it", exec, stream);
                CALL(cuStreamSynchronize, "of it", stream);
                CALL(cuGraphExecDestroy, "it", exec);
        }
}

static void of_a_size(void)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                       .maxSize = 64 << 20 };
        CUdeviceptr first, second;
        CUmemoryPool pool;

        compare_start();
        must(CALL(cuMemPoolCreate, "of 64 MiB", &pool, &props));
        CALL(cuMemAllocFromPoolAsync, "65 MiB of 64", &first, 65 << 20, pool, NULL);
        must(CALL(cuMemAllocFromPoolAsync, "60 MiB of 64", &first, 60 << 20, pool, NULL));
        CALL(cuMemAllocFromPoolAsync, "60 MiB more", &second, 60 << 20, pool, NULL);
        CALL(cuMemFreeAsync, "60 MiB of 64", first, NULL);
        CALL(cuStreamSynchronize, "behind that", NULL);
        CALL(cuMemAllocFromPoolAsync, "60 MiB, freed", &first, 60 << 20, pool, NULL);
        CALL(cuMemFreeAsync, "60 MiB of 64", first, NULL);
        CALL(cuMemPoolDestroy, "of 64 MiB", pool);
        CALL(cuCtxSynchronize, "behind a pool of a size", );
}

const struct compare_case compare_pool[] = {
        { "of-devices", of_devices }, { "ordered", ordered },       { "own", own },
        { "shared", shared },         { "of-another", of_another }, { "graphs", graphs },
        { "captured", captured },     { "of-a-size", of_a_size },   { NULL, NULL },
};
