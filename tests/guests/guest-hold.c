/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that holds what it is told, by words on its standard input:
 *
 *     guest-hold [SIZE]
 *
 *     device      SIZE bytes of device memory, 16 MiB unless said otherwise
 *     attempt     the same, but prints "refused" and goes on where there is none, else "got"
 *     managed     as many of managed memory
 *     managed-pool  a pool of managed memory, with nothing allocated from it
 *     host-pool   a piece of memory of a pool on the host that has a maximum size
 *     array       as many of an array
 *     mipmapped   about a third more of one with levels
 *     imported    a pool that it exports to itself: one for decompression, for other pools are the gate's
 *     registered  a dma-buf of a piece of memory, closed at once: a network card would keep it
 *     mapped      the same, of memory that it has made and mapped itself
 *     exported    such a pool that it exports, with a piece of its memory
 *     given       a handle of legacy IPC for a piece of memory
 *     named       a descriptor for a piece of memory that it has made itself, closed at once
 *     graph       an executable graph, after device: it is launched, and its result is right
 *     code        that of a kernel, after device, for the same
 *     nothing     frees all of that
 *
 * It prints "ready", and each word again when that is done.
 */
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "tests/guests/driver.h"
#include "tests/guests/kernels.h"

#define PIECE (2 * MIB)

/* The driver's word for memory of a pool that its engine can decompress into: the gate leaves such a pool to the driver. */
#define HARDWARE_DECOMPRESSION 2

#define WORDS 1024 /* that kernels work on */

static struct {
        uint64_t size;
        CUdeviceptr device, managed, registered, mapped, pooled;
        CUmemGenericAllocationHandle made;
        CUmemoryPool pool, imported;
        CUarray array;
        CUmipmappedArray mipmapped;
        CUmodule module;
        CUgraphExec graph;
} held = { .size = 16 * MIB };

static void make(void)
{
        CUmemAllocationProp prop;

        memset(&prop, 0, sizeof(prop));
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        must(DRIVER(cuMemCreate)(&held.made, PIECE, &prop, 0));
}

static void make_managed_pool(void)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_MANAGED };

        must(DRIVER(cuMemPoolCreate)(&held.pool, &props));
}

static void make_host_pool(void)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { CU_MEM_LOCATION_TYPE_HOST, 0 },
                                       .maxSize = PIECE };

        must(DRIVER(cuMemPoolCreate)(&held.pool, &props));
        must(DRIVER(cuMemAllocFromPoolAsync)(&held.pooled, 1024, held.pool, NULL));
}

static int export_pool(void)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                       .usage = HARDWARE_DECOMPRESSION };
        int fd;

        must(DRIVER(cuMemPoolCreate)(&held.pool, &props));
        must(DRIVER(cuMemPoolExportToShareableHandle)(&fd, held.pool,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        return fd;
}

static void import(void)
{
        int fd = export_pool();

        must(DRIVER(cuMemPoolImportFromShareableHandle)(
                &held.imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        (void)close(fd);
}

static void export_memory_of_pool(void)
{
        CUmemPoolPtrExportData data;

        (void)close(export_pool());
        must(DRIVER(cuMemAllocFromPoolAsync)(&held.pooled, PIECE, held.pool, NULL));
        must(DRIVER(cuMemPoolExportPointer)(&data, held.pooled));
}

static void give(void)
{
        CUipcMemHandle handle;

        must(DRIVER(cuMemAlloc_v2)(&held.registered, PIECE));
        must(DRIVER(cuIpcGetMemHandle)(&handle, held.registered));
}

static void name(void)
{
        int fd;

        make();
        must(DRIVER(cuMemExportToShareableHandle)(&fd, held.made,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        (void)close(fd);
}

static void take_dma_buf(CUdeviceptr pointer)
{
        int fd;

        must(DRIVER(cuMemGetHandleForAddressRange)(&fd, pointer, PIECE,
                                                   CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
        (void)close(fd);
}

static void map(void)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

        make();
        must(DRIVER(cuMemAddressReserve)(&held.mapped, PIECE, 0, 0, 0));
        must(DRIVER(cuMemMap)(held.mapped, PIECE, 0, held.made, 0));
        must(DRIVER(cuMemSetAccess)(held.mapped, PIECE, &access, 1));
        take_dma_buf(held.mapped);
}

static void register_memory(void)
{
        must(DRIVER(cuMemAlloc_v2)(&held.registered, PIECE));
        take_dma_buf(held.registered);
}

static void launch_add(uint32_t value, CUstream stream)
{
        uint64_t n = WORDS;
        void *parameters[] = { &held.device, &value, &n };
        CUfunction add;

        must(DRIVER(cuModuleGetFunction)(&add, held.module, "add"));
        must(DRIVER(cuLaunchKernel)(add, 1, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
}

static void expect_words(uint32_t value)
{
        uint32_t words[WORDS];

        must(DRIVER(cuMemcpyDtoH_v2)(words, held.device, sizeof(words)));
        for (size_t i = 0; i < WORDS; i++) {
                if (words[i] == value)
                        continue;
                fprintf(stderr, "word %zu is %u, not %u\n", i, words[i], value);
                exit(1);
        }
}

static void hold_code(void)
{
        must(DRIVER(cuModuleLoadData)(&held.module, kernels));
        must(DRIVER(cuMemsetD32_v2)(held.device, 1, WORDS));
        launch_add(4, NULL);
        expect_words(5);
}

static void hold_graph(void)
{
        CUstream stream;
        CUgraph graph;

        must(DRIVER(cuModuleLoadData)(&held.module, kernels));
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuStreamBeginCapture_v2)(stream, 0));
        launch_add(6, stream);
        must(DRIVER(cuStreamEndCapture)(stream, &graph));
        must(DRIVER(cuMemsetD32_v2)(held.device, 1, WORDS));
        must(DRIVER(cuGraphInstantiateWithFlags)(&held.graph, graph, 0));
        must(DRIVER(cuGraphLaunch)(held.graph, stream));
        must(DRIVER(cuStreamSynchronize)(stream));
        expect_words(7);
        must(DRIVER(cuGraphDestroy)(graph));
        must(DRIVER(cuStreamDestroy_v2)(stream));
}

static void free_all(void)
{
        if (held.graph)
                must(DRIVER(cuGraphExecDestroy)(held.graph));
        if (held.module)
                must(DRIVER(cuModuleUnload)(held.module));
        if (held.registered)
                must(DRIVER(cuMemFree_v2)(held.registered));
        if (held.mapped) {
                must(DRIVER(cuMemUnmap)(held.mapped, PIECE));
                must(DRIVER(cuMemAddressFree)(held.mapped, PIECE));
        }
        if (held.device)
                must(DRIVER(cuMemFree_v2)(held.device));
        if (held.managed)
                must(DRIVER(cuMemFree_v2)(held.managed));
        if (held.pooled)
                must(DRIVER(cuMemFreeAsync)(held.pooled, NULL));
        if (held.imported)
                must(DRIVER(cuMemPoolDestroy)(held.imported));
        if (held.pool)
                must(DRIVER(cuMemPoolDestroy)(held.pool));
        if (held.made)
                must(DRIVER(cuMemRelease)(held.made));
        if (held.array)
                must(DRIVER(cuArrayDestroy)(held.array));
        if (held.mipmapped)
                must(DRIVER(cuMipmappedArrayDestroy)(held.mipmapped));
        held.graph = NULL;
        held.module = NULL;
        held.array = NULL;
        held.mipmapped = NULL;
        held.device = held.managed = held.registered = held.mapped = held.pooled = 0;
        held.imported = held.pool = NULL;
        held.made = 0;
}

/* In rows of 16 KiB. */
static void make_array(void)
{
        const CUDA_ARRAY_DESCRIPTOR descriptor = { .Width = 4096,
                                                   .Height = held.size / 16384,
                                                   .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                                   .NumChannels = 1 };

        must(DRIVER(cuArrayCreate_v2)(&held.array, &descriptor));
}

static void make_mipmapped(void)
{
        const CUDA_ARRAY3D_DESCRIPTOR descriptor = { .Width = 4096,
                                                     .Height = held.size / 16384,
                                                     .Format = CU_AD_FORMAT_UNSIGNED_INT32,
                                                     .NumChannels = 1 };

        must(DRIVER(cuMipmappedArrayCreate)(&held.mipmapped, &descriptor, 4));
}

/* What is not there is done without. */
static void attempt(void)
{
        CUresult result = DRIVER(cuMemAlloc_v2)(&held.device, held.size);

        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                held.device = 0;
        else
                must_succeed(result, "cuMemAlloc");
        printf("%s\n", held.device ? "got" : "refused");
}

static int do_word(const char *word)
{
        if (strcmp(word, "device") == 0)
                must(DRIVER(cuMemAlloc_v2)(&held.device, held.size));
        else if (strcmp(word, "attempt") == 0)
                attempt();
        else if (strcmp(word, "managed") == 0)
                must(DRIVER(cuMemAllocManaged)(&held.managed, held.size, CU_MEM_ATTACH_GLOBAL));
        else if (strcmp(word, "managed-pool") == 0)
                make_managed_pool();
        else if (strcmp(word, "host-pool") == 0)
                make_host_pool();
        else if (strcmp(word, "array") == 0)
                make_array();
        else if (strcmp(word, "mipmapped") == 0)
                make_mipmapped();
        else if (strcmp(word, "imported") == 0)
                import();
        else if (strcmp(word, "exported") == 0)
                export_memory_of_pool();
        else if (strcmp(word, "given") == 0)
                give();
        else if (strcmp(word, "named") == 0)
                name();
        else if (strcmp(word, "registered") == 0)
                register_memory();
        else if (strcmp(word, "mapped") == 0)
                map();
        else if (strcmp(word, "graph") == 0)
                hold_graph();
        else if (strcmp(word, "code") == 0)
                hold_code();
        else if (strcmp(word, "nothing") == 0)
                free_all();
        else
                return -1;
        return 0;
}

int main(int argc, char **argv)
{
        CUcontext context;
        CUdevice device;
        char word[32];

        if (argc > 2 || (argc == 2 && size_parse(&held.size, argv[1]) < 0)) {
                fprintf(stderr, "usage: guest-hold [SIZE]\n");
                return 2;
        }
        must(DRIVER(cuInit)(0));
        must(DRIVER(cuDeviceGet)(&device, 0));
        must(DRIVER(cuDevicePrimaryCtxRetain)(&context, device));
        must(DRIVER(cuCtxSetCurrent)(context));
        puts("ready");
        (void)fflush(stdout);
        while (scanf("%31s", word) == 1) {
                if (do_word(word) < 0) {
                        fprintf(stderr, "there is no '%s'\n", word);
                        return 2;
                }
                puts(word);
                (void)fflush(stdout);
        }
        return 0;
}
