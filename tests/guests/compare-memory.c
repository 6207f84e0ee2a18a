/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: ordinary allocations. */
#include "tests/guests/compare.h"

/* The highest power of two, up to 2 MiB, that all of the addresses are multiples of. */
static CUdeviceptr alignment_of(const CUdeviceptr *pointers, size_t n)
{
        CUdeviceptr bits = (CUdeviceptr)2 << 20;

        for (size_t i = 0; i < n; i++)
                bits |= pointers[i];
        return bits & -bits;
}

static void sizes(void)
{
        static const size_t sizes[] = { 1, 255, 256, 257, 511, 512, 513, 4097, 1 << 20, 3 << 20 };
        CUdeviceptr pointers[compare_count(sizes)];

        compare_start();
        for (size_t i = 0; i < compare_count(sizes); i++) {
                CUdeviceptr base = 0;
                size_t size = 0;

                must(CALL(cuMemAlloc_v2, "of many sizes", &pointers[i], sizes[i]));
                CALL(cuMemGetAddressRange_v2, "of the last byte", &base, &size,
                     pointers[i] + sizes[i] - 1);
                SAY("%zu bytes: base is %d, size %zu", sizes[i], base == pointers[i], size);
        }
        SAY("all are aligned to 512: %d", alignment_of(pointers, compare_count(sizes)) >= 512);
        for (size_t i = 0; i < compare_count(sizes); i++)
                CALL(cuMemFree_v2, "of many sizes", pointers[i]);
}

static void wrong_arguments(void)
{
        CUdeviceptr pointer = 0;
        size_t size;

        CALL(cuMemAlloc_v2, "before cuInit", &pointer, 1);
        CALL(cuMemFree_v2, "before cuInit", pointer);
        CALL(cuMemGetInfo_v2, "before cuInit", &size, NULL);
        must(DRIVER(cuInit)(0));
        CALL(cuMemAlloc_v2, "without a context", &pointer, 1);
        CALL(cuMemFree_v2, "without a context", 512);
        CALL(cuMemGetInfo_v2, "without a context", &size, NULL);
        compare_start();
        CALL(cuMemAlloc_v2, "no bytes", &pointer, 0);
        CALL(cuMemAlloc_v2, "to nowhere", NULL, 1);
        CALL(cuMemAlloc_v2, "all there is", &pointer, SIZE_MAX);
        CALL(cuMemAlloc_v2, "more than there is", &pointer, (size_t)1 << 46);
        CALL(cuMemFree_v2, "nothing", 0);
        CALL(cuMemFree_v2, "an address that is none", 4096);
}

static void rows(void)
{
        static const unsigned int elements[] = { 4, 8, 16, 0, 1, 2, 5, 32 };
        CUdeviceptr pointer;
        size_t pitch;

        compare_start();
        for (size_t i = 0; i < compare_count(elements); i++)
                for (size_t width = 1; width < 40000; width = width * 3 + 1) {
                        pitch = 0;
                        if (CALL(cuMemAllocPitch_v2, "rows", &pointer, &pitch, width, 3,
                                 elements[i]) != CUDA_SUCCESS)
                                continue;
                        SAY("elements of %u, width %zu: pitch %zu", elements[i], width, pitch);
                        must(DRIVER(cuMemFree_v2)(pointer));
                }
        CALL(cuMemAllocPitch_v2, "no width", &pointer, &pitch, 0, 3, 4);
        CALL(cuMemAllocPitch_v2, "no height", &pointer, &pitch, 3, 0, 4);
        CALL(cuMemAllocPitch_v2, "too wide", &pointer, &pitch, SIZE_MAX, 2, 4);
        CALL(cuMemAllocPitch_v2, "too much", &pointer, &pitch, (size_t)1 << 40, (size_t)1 << 10, 4);
        CALL(cuMemAllocPitch_v2, "no pitch", &pointer, NULL, 3, 3, 4);
        CALL(cuMemAllocPitch_v2, "to nowhere", NULL, &pitch, 3, 3, 4);
}

#define ADVISE_READ_MOSTLY        1
#define ADVISE_PREFERRED_LOCATION 3

/* NVIDIA's driver takes them from 12.8 and 13.0 on, the simulated one refuses them. */
static void placed_together(CUdeviceptr pointer, CUmemLocation here)
{
        size_t size = 4096, first = 0;

        CALL(cuMemPrefetchBatchAsync, "here", &pointer, &size, 1, &here, &first, 1, 0, NULL);
        CALL(cuMemPrefetchBatchAsync_ptsz, "here", &pointer, &size, 1, &here, &first, 1, 0, NULL);
        CALL(cuMemDiscardAndPrefetchBatchAsync, "here", &pointer, &size, 1, &here, &first, 1, 0,
             NULL);
        CALL(cuMemDiscardAndPrefetchBatchAsync_ptsz, "here", &pointer, &size, 1, &here, &first, 1,
             0, NULL);
}

static void placed(void)
{
        const CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                            nowhere = { CU_MEM_LOCATION_TYPE_DEVICE, 77 };
        CUdeviceptr pointer = 0;

        compare_start();
        must(CALL(cuMemAllocManaged, "to be placed", &pointer, 4096, CU_MEM_ATTACH_GLOBAL));
        CALL(cuMemAdvise, "read mostly, any device", pointer, 4096, ADVISE_READ_MOSTLY, 0);
        CALL(cuMemAdvise, "preferred", pointer, 4096, ADVISE_PREFERRED_LOCATION, 0);
        CALL(cuMemAdvise, "preferred, device 77", pointer, 4096, ADVISE_PREFERRED_LOCATION, 77);
        CALL(cuMemAdvise_v2, "preferred", pointer, 4096, ADVISE_PREFERRED_LOCATION, here);
        CALL(cuMemAdvise_v2, "preferred, device 77", pointer, 4096, ADVISE_PREFERRED_LOCATION,
             nowhere);
        CALL(cuMemPrefetchAsync, "here", pointer, 4096, 0, NULL);
        CALL(cuMemPrefetchAsync, "device 77", pointer, 4096, 77, NULL);
        CALL(cuMemPrefetchAsync_ptsz, "here", pointer, 4096, 0, NULL);
        CALL(cuMemPrefetchAsync_v2, "here", pointer, 4096, here, 0, NULL);
        CALL(cuMemPrefetchAsync_v2, "device 77", pointer, 4096, nowhere, 0, NULL);
        CALL(cuMemPrefetchAsync_v2_ptsz, "here", pointer, 4096, here, 0, NULL);
        placed_together(pointer, here);
        CALL(cuCtxSynchronize, "after it", );
        CALL(cuMemFree_v2, "placed", pointer);
}

static void managed(void)
{
        CUdeviceptr pointer = 0;

        compare_start();
        must(CALL(cuMemAllocManaged, "global", &pointer, 1000, CU_MEM_ATTACH_GLOBAL));
        CALL(cuMemFree_v2, "managed", pointer);
        CALL(cuMemAllocManaged, "no flags", &pointer, 1000, 0);
        CALL(cuMemAllocManaged, "no bytes", &pointer, 0, CU_MEM_ATTACH_GLOBAL);
        CALL(cuMemAllocManaged, "to nowhere", NULL, 1000, CU_MEM_ATTACH_GLOBAL);
}

static void freed_twice(void)
{
        static const size_t sizes[] = { 1000, (size_t)3 << 20 };
        CUdeviceptr pointer;

        compare_start();
        for (size_t i = 0; i < compare_count(sizes); i++) {
                must(DRIVER(cuMemAlloc_v2)(&pointer, sizes[i]));
                CALL(cuMemFree_v2, "in the middle", pointer + 256);
                CALL(cuMemFree_v2, "once", pointer);
                CALL(cuMemFree_v2, "twice", pointer);
        }
}

/* By one byte, and so far that it must be out of what has been rounded up. */
static void beyond(void)
{
        static const size_t sizes[] = { 100, 1 << 20, 3 << 20 };
        static char host[44 << 20];

        compare_start();
        for (size_t i = 0; i < compare_count(sizes); i++) {
                size_t size = sizes[i], far = size + (40 << 20);
                CUdeviceptr at;

                must(DRIVER(cuMemAlloc_v2)(&at, size));
                CALL(cuMemcpyHtoD_v2, "to the end", at, host, size);
                CALL(cuMemcpyHtoD_v2, "one byte beyond", at, host, size + 1);
                CALL(cuMemcpyDtoH_v2, "one byte beyond", host, at, size + 1);
                CALL(cuMemcpyDtoD_v2, "one byte beyond", at, at, size + 1);
                CALL(cuMemsetD8_v2, "one byte beyond", at, 0, size + 1);
                CALL(cuMemsetD8Async, "one byte beyond", at, 0, size + 1, NULL);
                CALL(cuMemcpyHtoD_v2, "40 MiB beyond", at, host, far);
                CALL(cuMemsetD8_v2, "40 MiB beyond", at, 0, far);
                CALL(cuMemsetD8_v2, "no bytes at the end", at + size, 0, 0);
                CALL(cuCtxSynchronize, "behind what was refused", );
                must(DRIVER(cuMemFree_v2)(at));
        }
}

static void how_much(void)
{
        size_t free = 0, total = 0, device_total = 0;

        compare_start();
        CALL(cuMemGetInfo_v2, "both", &free, &total);
        CALL(cuDeviceTotalMem_v2, "of device 0", &device_total, 0);
        SAY("as much free as there is, or less: %d", free <= total && total <= device_total);
        CALL(cuMemGetInfo_v2, "only free", &free, NULL);
        CALL(cuMemGetInfo_v2, "only total", NULL, &total);
        CALL(cuDeviceTotalMem_v2, "of no device", &device_total, 99);
        CALL(cuDeviceTotalMem_v2, "to nowhere", NULL, 0);
}

/* What the gate relies on where a capture is under way and the device is full: see docs/limits-in-detail.md. */
static void pinned_in_a_capture(void)
{
        CUstream stream;
        CUgraph graph;
        void *host;

        compare_start();
        must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        must(DRIVER(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        if (CALL(cuMemAllocHost_v2, "in a relaxed capture", &host, 1) == CUDA_SUCCESS)
                CALL(cuMemFreeHost, "in a relaxed capture", host);
        CALL(cuStreamEndCapture, "relaxed", stream, &graph);
        must(DRIVER(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        CALL(cuMemAllocHost_v2, "in a global capture", &host, 1);
        CALL(cuStreamEndCapture, "global", stream, &graph);
}

/* The interface before CUDA 3.2. */
static void of_32_bits(void)
{
        unsigned int pointer = 0, pitch = 0;
        CUarray array = NULL;

        compare_start();
        CALL(cuMemAlloc, "of 32 bits", &pointer, 100);
        CALL(cuMemAllocPitch, "of 32 bits", &pointer, &pitch, 100, 10, 4);
        CALL(cuArrayCreate, "of 32 bits", &array, NULL);
        CALL(cuArray3DCreate, "of 32 bits", &array, NULL);
}

const struct compare_case compare_memory[] = {
        { "sizes", sizes },
        { "wrong-arguments", wrong_arguments },
        { "rows", rows },
        { "managed", managed },
        { "placed", placed },
        { "freed-twice", freed_twice },
        { "beyond", beyond },
        { "how-much", how_much },
        { "pinned-in-a-capture", pinned_in_a_capture },
        { "of-32-bits", of_32_bits },
        { NULL, NULL },
};
