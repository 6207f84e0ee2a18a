/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: what can be asked about an address. */
#include <string.h>

#include "tests/guests/compare.h"

#define SMALL 1000
#define LARGE (((size_t)3 << 20) + 12345)

static CUcontext context;

/* Answers that are the same in every process; the rest by what they are compared with. */
static void ask(const char *what, CUdeviceptr pointer, CUdeviceptr start)
{
        static const struct {
                CUpointer_attribute attribute;
                const char *name;
        } plain[] = {
                { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "memory type" },
                { CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "sync memops" },
                { CU_POINTER_ATTRIBUTE_IS_MANAGED, "managed" },
                { CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "ordinal" },
                { CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, "legacy IPC" },
                { CU_POINTER_ATTRIBUTE_RANGE_SIZE, "range size" },
                { CU_POINTER_ATTRIBUTE_MAPPED, "mapped" },
                { CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, "handle types" },
                { CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, "RDMA" },
                { CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, "access" },
        };
        CUdeviceptr address = 0;
        CUcontext found = NULL;

        for (size_t i = 0; i < compare_count(plain); i++) {
                uint64_t value = 0;

                CALL(cuPointerGetAttribute, what, &value, plain[i].attribute, pointer);
                SAY("%s, %s: %llu", what, plain[i].name, (unsigned long long)value);
        }
        CALL(cuPointerGetAttribute, what, &found, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
        SAY("%s, context is ours: %d", what, found == context);
        CALL(cuPointerGetAttribute, what, &address, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer);
        SAY("%s, range starts there: %d", what, address == start);
        CALL(cuPointerGetAttribute, what, &address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer);
        SAY("%s, device pointer is itself: %d", what, address == pointer);
        CALL(cuPointerGetAttribute, what, &address, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer);
}

static void ask_at_once(const char *what, CUdeviceptr pointer)
{
        CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                             CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                             CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
        uint64_t size = 1;
        int type = 1, ordinal = 1;
        void *data[] = { &type, &size, &ordinal };

        CALL(cuPointerGetAttributes, what, 3, attributes, data, pointer);
        /* What is no memory has no size: a real driver tells that of the addresses that are reserved there. */
        SAY("%s, at once: %d %llu %d", what, type, type ? (unsigned long long)size : 0, ordinal);
}

static void set(const char *what, CUdeviceptr pointer)
{
        const unsigned int on = 1;

        CALL(cuPointerSetAttribute, what, &on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer);
        CALL(cuPointerSetAttribute, what, &on, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer);
}

/* What only memory of the host answers. */
static void ask_host(const char *what, CUdeviceptr pointer)
{
        void *host = (void *)(uintptr_t)pointer;
        CUdeviceptr device;
        unsigned int flags;

        CALL(cuMemHostGetDevicePointer_v2, what, &device, host, 0);
        CALL(cuMemHostGetFlags, what, &flags, host);
}

static void all(void)
{
        CUdeviceptr small, large, pooled, managed;
        uint64_t id[2] = { 0, 0 };
        void *host;

        context = compare_start();
        must(DRIVER(cuMemAlloc_v2)(&small, SMALL));
        must(DRIVER(cuMemAlloc_v2)(&large, LARGE));
        must(DRIVER(cuMemAllocAsync)(&pooled, LARGE, NULL));
        must(DRIVER(cuStreamSynchronize)(NULL));
        must(DRIVER(cuMemAllocManaged)(&managed, LARGE, CU_MEM_ATTACH_GLOBAL));
        must(DRIVER(cuMemHostAlloc)(&host, SMALL, 0));
        ask("small", small, small);
        ask("last byte of small", small + SMALL - 1, small);
        ask("behind small", small + SMALL, small);
        ask("large", large + LARGE / 2, large);
        ask("pooled", pooled, pooled);
        ask("managed", managed, managed);
        ask("host", (CUdeviceptr)(uintptr_t)host, (CUdeviceptr)(uintptr_t)host);
        ask("nothing", 4096, 4096);
        ask_host("small", small);
        ask_host("large", large);
        ask_host("pooled", pooled);
        ask_host("host", (CUdeviceptr)(uintptr_t)host);
        ask_at_once("small", small + 1);
        ask_at_once("behind small", small + SMALL);
        ask_at_once("large", large);
        ask_at_once("nothing", 4096);
        set("small", small);
        set("large", large);
        set("pooled", pooled);
        set("nothing", 4096);
        must(DRIVER(cuPointerGetAttribute)(&id[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, small));
        must(DRIVER(cuPointerGetAttribute)(&id[1], CU_POINTER_ATTRIBUTE_BUFFER_ID, large));
        SAY("buffer ids differ: %d", id[0] != id[1]);
        must(DRIVER(cuMemFree_v2)(small));
        must(DRIVER(cuMemFree_v2)(large));
        ask("freed", large, large);
        ask_at_once("freed", large);
}

static void ranges(void)
{
        CUdeviceptr pointer, base;
        size_t size;

        compare_start();
        must(DRIVER(cuMemAlloc_v2)(&pointer, SMALL));
        CALL(cuMemGetAddressRange_v2, "only base", &base, NULL, pointer);
        CALL(cuMemGetAddressRange_v2, "only size", NULL, &size, pointer);
        CALL(cuMemGetAddressRange_v2, "neither", NULL, NULL, pointer);
        CALL(cuMemGetAddressRange_v2, "behind the end", &base, &size, pointer + SMALL);
        CALL(cuMemGetAddressRange_v2, "of nothing", &base, &size, 4096);
        must(DRIVER(cuMemFree_v2)(pointer));
        CALL(cuMemGetAddressRange_v2, "freed", &base, &size, pointer);
}

static void wrong_arguments(void)
{
        CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        CUdeviceptr pointer;
        uint64_t value = 0;
        void *data[] = { &value };

        compare_start();
        must(DRIVER(cuMemAlloc_v2)(&pointer, SMALL));
        CALL(cuPointerGetAttribute, "to nowhere", NULL, attribute, pointer);
        CALL(cuPointerGetAttribute, "none there is", &value, (CUpointer_attribute)99, pointer);
        CALL(cuPointerGetAttributes, "none", 0, &attribute, data, pointer);
        CALL(cuPointerGetAttributes, "no list", 1, NULL, data, pointer);
        CALL(cuPointerSetAttribute, "no value", NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer);
}

const struct compare_case compare_pointer[] = {
        { "all", all },
        { "ranges", ranges },
        { "wrong-arguments", wrong_arguments },
        { NULL, NULL },
};
