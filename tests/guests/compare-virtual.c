/* SPDX-License-Identifier: Apache-2.0 */
/* guest-compare: the virtual-memory calls, on their own memory and on ordinary memory. */
#include <unistd.h>

#include "tests/guests/compare.h"

#define PAGE ((size_t)2 << 20)

static const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
static const CUmemAccessDesc access_desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                             CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

static void own(void)
{
        CUmemGenericAllocationHandle handle, again;
        CUdeviceptr address;

        compare_start();
        must(DRIVER(cuMemAddressReserve)(&address, 2 * PAGE, 0, 0, 0));
        must(CALL(cuMemCreate, "two pages", &handle, 2 * PAGE, &prop, 0));
        must(CALL(cuMemMap, "it", address, 2 * PAGE, 0, handle, 0));
        CALL(cuMemMap, "it, where it is", address, 2 * PAGE, 0, handle, 0);
        CALL(cuMemAddressFree, "mapped", address, 2 * PAGE);
        CALL(cuMemSetAccess, "it", address, 2 * PAGE, &access_desc, 1);
        CALL(cuMemFree_v2, "mapped", address);
        CALL(cuMemUnmap, "half of it", address, PAGE);
        if (CALL(cuMemRetainAllocationHandle, "it", &again, (void *)(uintptr_t)(address + PAGE)) ==
            CUDA_SUCCESS) {
                SAY("the handle is the same: %d", again == handle);
                CALL(cuMemRelease, "the second handle", again);
        }
        CALL(cuMemRelease, "the first handle", handle);
        if (CALL(cuMemRetainAllocationHandle, "of a mapping alone", &again,
                 (void *)(uintptr_t)address) == CUDA_SUCCESS)
                CALL(cuMemRelease, "of a mapping alone", again);
        CALL(cuMemUnmap, "it", address, 2 * PAGE);
        CALL(cuMemUnmap, "it again", address, 2 * PAGE);
        CALL(cuMemAddressFree, "it", address, 2 * PAGE);
        CALL(cuMemAddressFree, "it again", address, 2 * PAGE);
}

static void on_ordinary(size_t size)
{
        CUmemGenericAllocationHandle handle = 0;
        CUdeviceptr pointer;

        must(DRIVER(cuMemAlloc_v2)(&pointer, size));
        SAY("%zu bytes", size);
        CALL(cuMemUnmap, "ordinary memory", pointer, PAGE);
        CALL(cuMemAddressFree, "ordinary memory", pointer, PAGE);
        CALL(cuMemSetAccess, "ordinary memory", pointer, PAGE, &access_desc, 1);
        CALL(cuMemRetainAllocationHandle, "ordinary memory", &handle, (void *)(uintptr_t)pointer);
        CALL(cuMemFree_v2, "with an offset", pointer + 512);
        CALL(cuMemFree_v2, "ordinary memory", pointer);
}

static void ordinary(void)
{
        compare_start();
        on_ordinary(1000);
        on_ordinary(2 * PAGE);
}

static void wrong_arguments(void)
{
        CUmemAllocationProp wrong = prop;
        CUmemGenericAllocationHandle handle;
        CUdeviceptr address;

        compare_start();
        CALL(cuMemCreate, "no bytes", &handle, 0, &prop, 0);
        CALL(cuMemCreate, "odd size", &handle, 1000, &prop, 0);
        CALL(cuMemCreate, "no properties", &handle, PAGE, NULL, 0);
        CALL(cuMemCreate, "to nowhere", NULL, PAGE, &prop, 0);
        CALL(cuMemCreate, "more than there is", &handle, (size_t)1 << 46, &prop, 0);
        wrong.location.id = 99;
        CALL(cuMemCreate, "no such device", &handle, PAGE, &wrong, 0);
        wrong = prop;
        wrong.type = 0;
        CALL(cuMemCreate, "no type", &handle, PAGE, &wrong, 0);
        must(DRIVER(cuMemAddressReserve)(&address, PAGE, 0, 0, 0));
        CALL(cuMemUnmap, "not mapped", address, PAGE);
        CALL(cuMemSetAccess, "not mapped", address, PAGE, &access_desc, 1);
        CALL(cuMemSetAccess, "no list", address, PAGE, NULL, 0);
}

static void shared(void)
{
        CUmemGenericAllocationHandle handle, imported, multicast;
        CUmemAllocationProp props = { .type = 0 };
        int fd = -1;

        compare_start();
        must(CALL(cuMemCreate, "to be shared", &handle, PAGE, &prop, 0));
        must(CALL(cuMemExportToShareableHandle, "of it", &fd, handle, 1, 0));
        must(CALL(cuMemGetAllocationPropertiesFromHandle, "of it", &props, handle));
        SAY("what it can be exported as: %d", props.requestedHandleTypes);
        CALL(cuMulticastCreate, "of nothing", &multicast, NULL);
        CALL(cuMulticastBindMem, "no object", 0, 0, handle, 0, PAGE, 0);
        if (CALL(cuMemImportFromShareableHandle, "own", &imported, (void *)(intptr_t)fd, 1) ==
            CUDA_SUCCESS)
                CALL(cuMemRelease, "imported", imported);
        CALL(cuMemImportFromShareableHandle, "no descriptor", &imported, (void *)(intptr_t)-1, 1);
        CALL(cuMemImportFromShareableHandle, "to nowhere", NULL, (void *)(intptr_t)fd, 1);
        CALL(cuMemRelease, "it", handle);
        (void)close(fd);
}

static void not_shared(void)
{
        const CUmemAllocationProp private = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                              .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
        unsigned long long types = 99;
        CUmemGenericAllocationHandle handle;
        CUmemAllocationProp props = { .type = 0 };
        CUdeviceptr address;
        int fd = -1;

        compare_start();
        must(CALL(cuMemCreate, "not to be shared", &handle, PAGE, &private, 0));
        CALL(cuMemExportToShareableHandle, "not to be shared", &fd, handle, 1, 0);
        must(CALL(cuMemGetAllocationPropertiesFromHandle, "not to be shared", &props, handle));
        SAY("not to be shared, what it can be exported as: %d", props.requestedHandleTypes);
        must(DRIVER(cuMemAddressReserve)(&address, PAGE, 0, 0, 0));
        must(CALL(cuMemMap, "not to be shared", address, PAGE, 0, handle, 0));
        must(CALL(cuMemSetAccess, "not to be shared", address, PAGE, &access_desc, 1));
        CALL(cuPointerGetAttribute, "not to be shared", &types,
             CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address);
        SAY("not to be shared, what the pointer can be exported as: %llu", types);
        CALL(cuMemsetD8_v2, "not to be shared", address, 1, PAGE);
        CALL(cuMemUnmap, "not to be shared", address, PAGE);
        CALL(cuMemRelease, "not to be shared", handle);
        CALL(cuMemRelease, "not to be shared, again", handle);
}

const struct compare_case compare_virtual[] = {
        { "own", own },       { "ordinary", ordinary },     { "wrong-arguments", wrong_arguments },
        { "shared", shared }, { "not-shared", not_shared }, { NULL, NULL },
};
