/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: who holds how much, and what the calls answer. */

#include "sim/test-guest.h"

#define PAGE (2 * MIB)

static CUmemAllocationProp shareable_on(int ordinal)
{
        CUmemAllocationProp prop = { 0 };

        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        prop.location.id = ordinal;
        return prop;
}

static CUresult allow(CUdeviceptr pointer, size_t size, int ordinal)
{
        CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, ordinal },
                                   CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

        return cuMemSetAccess(pointer, size, &access, 1);
}

static CUmemGenericAllocationHandle create(size_t size)
{
        CUmemAllocationProp prop = shareable_on(0);
        CUmemGenericAllocationHandle handle;

        must(cuMemCreate(&handle, size, &prop, 0));
        return handle;
}

static CUdeviceptr map_at_new_address(CUmemGenericAllocationHandle handle, size_t size)
{
        CUdeviceptr pointer;

        must(cuMemAddressReserve(&pointer, size, 0, 0, 0));
        must(cuMemMap(pointer, size, 0, handle, 0));
        must(allow(pointer, size, 0));
        return pointer;
}

static int export(CUmemGenericAllocationHandle handle)
{
        int fd = -1;

        must(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                          0));
        return fd;
}

static CUresult import(CUmemGenericAllocationHandle *handle, int fd)
{
        return cuMemImportFromShareableHandle(handle, (void *)(intptr_t)fd,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static uint32_t read_word(CUdeviceptr pointer)
{
        uint32_t word;

        must(cuMemcpyDtoH_v2(&word, pointer, sizeof(word)));
        return word;
}

static void count_ordinary(int socket)
{
        CUdeviceptr small[100], large, again;
        uint64_t before, pitch;

        (void)socket;
        (void)guest_init(0);
        before = guest_get_free();
        must_equal(before, 1 * GIB - 64 * MIB); /* a context takes a sixteenth */

        must(cuMemAlloc_v2(&large, 3 * MIB));
        must_equal(before - guest_get_free(), 4 * MIB);
        for (int i = 0; i < 100; i++) {
                must(cuMemAlloc_v2(&small[i], 300));
                must_equal(small[i] % 256, 0);
        }
        must_equal(before - guest_get_free(), 6 * MIB); /* they share a block */
        for (int i = 0; i < 100; i++)
                must(cuMemFree_v2(small[i]));
        must(cuMemFree_v2(large));
        must_equal(guest_get_free(), before);
        must_equal(cuMemFree_v2(large), CUDA_ERROR_INVALID_VALUE);
        must(cuMemFree_v2(0));

        must(cuMemAlloc_v2(&large, before));
        must_equal(guest_get_free(), 0);
        must_equal(cuMemAlloc_v2(&again, 1), CUDA_ERROR_OUT_OF_MEMORY);
        must_equal(cuMemAlloc_v2(&again, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
        must(cuMemFree_v2(large));
        must_equal(cuMemAlloc_v2(&again, 0), CUDA_ERROR_INVALID_VALUE);
        must(cuMemAllocPitch_v2(&again, &pitch, 1000, 10, 4));
        must_equal(pitch, 1024);
}

static void test_ordinary_memory_is_counted_exactly(void **state)
{
        (void)state;
        guest_run(count_ordinary);
}

static void hold(int socket)
{
        CUdeviceptr pointer;
        int fd;

        (void)guest_init(0);
        must(cuMemAlloc_v2(&pointer, 256 * MIB));
        fd = export(create(128 * MIB));
        guest_tell(socket, guest_get_free(), fd);
        (void)guest_hear(socket, NULL);
}

static void see_free(int socket)
{
        (void)guest_init(0);
        for (;;) {
                guest_tell(socket, guest_get_free(), -1);
                (void)guest_hear(socket, NULL);
        }
}

static uint64_t ask_free(struct guest *watcher)
{
        guest_tell(watcher->socket, 0, -1);
        return guest_hear(watcher->socket, NULL);
}

static void test_a_killed_process_holds_nothing_but_what_others_hold(void **state)
{
        struct guest watcher = guest_start(see_free), guest;
        uint64_t before = guest_hear(watcher.socket, NULL), left;
        int fd;

        (void)state;
        guest = guest_start(hold);
        left = guest_hear(guest.socket, &fd);
        assert_int_equal(before - left, (256 + 128 + 64) * MIB);
        assert_int_equal(ask_free(&watcher), left);

        assert_int_equal(guest_kill(&guest), 128 + SIGKILL);
        assert_int_equal(before - ask_free(&watcher), 128 * MIB); /* the descriptor is here */
        (void)close(fd);
        assert_int_equal(ask_free(&watcher), before);
        (void)guest_kill(&watcher);
}

static void give_memory_away(int socket)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;

        (void)guest_init(0);
        handle = create(PAGE);
        pointer = map_at_new_address(handle, PAGE);
        must(cuMemsetD32_v2(pointer, 17, PAGE / 4));
        guest_tell(socket, 0, export(handle));
        must_equal(guest_hear(socket, NULL), 1);
        must_equal(read_word(pointer), 18);
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void take_memory(int socket)
{
        CUmemGenericAllocationHandle handle, same;
        CUdeviceptr pointer;
        uint64_t before;
        int fd, other;

        (void)guest_init(0);
        (void)guest_hear(socket, &fd);
        before = guest_get_free();
        must(import(&handle, fd));
        pointer = map_at_new_address(handle, PAGE);
        must_equal(read_word(pointer), 17);
        must(cuMemsetD32_v2(pointer, 18, 1));
        must_equal(guest_get_free(), before); /* it was counted already */
        must_equal(cuMemExportToShareableHandle(&other, handle, 1, 0), CUDA_ERROR_INVALID_VALUE);
        must(cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)pointer));
        must_equal(same, handle);
        must_equal(cuMemExportToShareableHandle(&other, same, 1, 0), CUDA_ERROR_INVALID_VALUE);
        must(cuMemRelease(same));
        guest_tell(socket, 0, -1);

        (void)guest_hear(socket, NULL); /* the creator is dead */
        must_equal(read_word(pointer), 18);
        (void)close(fd);
        before = guest_get_free();
        must(cuMemUnmap(pointer, PAGE));
        must_equal(guest_get_free(), before);
        must(cuMemRelease(handle));
        must_equal(guest_get_free(), before + PAGE);
}

static void test_memory_is_shared_through_its_descriptor(void **state)
{
        struct guest giver = guest_start(give_memory_away), taker = guest_start(take_memory);
        int fd;

        (void)state;
        (void)guest_hear(giver.socket, &fd);
        guest_tell(taker.socket, 0, fd);
        (void)close(fd);
        (void)guest_hear(taker.socket, NULL);
        guest_tell(giver.socket, 1, -1);
        (void)guest_hear(giver.socket, NULL);
        assert_int_equal(guest_kill(&giver), 128 + SIGKILL);
        guest_tell(taker.socket, 0, -1);
        assert_int_equal(guest_end(&taker), 0);
}

/* Of a small allocation: its neighbours come along, and it is found between them. */
static void give_handle_away(int socket)
{
        CUdeviceptr first, pointer, opened;
        CUipcMemHandle handle;

        (void)guest_init(0);
        must(cuMemAlloc_v2(&first, 4096));
        must(cuMemAlloc_v2(&pointer, 4096));
        must(cuMemsetD32_v2(first, 16, 1024));
        must(cuMemsetD32_v2(pointer, 17, 1024));
        must(cuIpcGetMemHandle(&handle, pointer));
        must_equal(cuIpcOpenMemHandle_v2(&opened, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
        must_equal(packet_send(socket, &handle, sizeof(handle), NULL, 0), 0);
        must_equal(guest_hear(socket, NULL), 1);
        must_equal(read_word(pointer), 18);
        must_equal(read_word(first), 16);
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void open_handle(int socket)
{
        CUdeviceptr pointer, again;
        char buffer[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX];
        CUipcMemHandle handle;
        size_t size, n_fds;

        (void)guest_init(0);
        must_equal(packet_receive(socket, buffer, &size, fds, &n_fds), 0);
        must_equal(size, sizeof(handle));
        memcpy(&handle, buffer, sizeof(handle));
        must_equal(cuIpcOpenMemHandle_v2(&pointer, handle, 0), CUDA_ERROR_INVALID_VALUE);
        must(cuIpcOpenMemHandle_v2(&pointer, handle, 1));
        must(cuIpcOpenMemHandle_v2(&again, handle, 1));
        must_equal(again, pointer);
        must_equal(read_word(pointer), 17);
        must(cuMemsetD32_v2(pointer, 18, 1024));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL); /* who made it is dead */
        must(cuIpcCloseMemHandle(pointer));
        must_equal(read_word(pointer), 18);
        must(cuIpcCloseMemHandle(pointer));
        must_equal(cuIpcCloseMemHandle(pointer), CUDA_ERROR_INVALID_VALUE);
        must_equal(cuIpcOpenMemHandle_v2(&pointer, handle, 1), CUDA_ERROR_INVALID_VALUE);
}

static void test_memory_is_shared_by_legacy_ipc(void **state)
{
        struct guest giver = guest_start(give_handle_away), taker = guest_start(open_handle);
        char buffer[PACKET_SIZE_MAX];
        int fds[PACKET_FDS_MAX];
        size_t size, n_fds;

        (void)state;
        must_equal(packet_receive(giver.socket, buffer, &size, fds, &n_fds), 0);
        must_equal(packet_send(taker.socket, buffer, size, NULL, 0), 0);
        (void)guest_hear(taker.socket, NULL);
        guest_tell(giver.socket, 1, -1);
        (void)guest_hear(giver.socket, NULL);
        assert_int_equal(guest_kill(&giver), 128 + SIGKILL);
        guest_tell(taker.socket, 0, -1);
        assert_int_equal(guest_end(&taker), 0);
}

static void use_virtual_memory(int socket)
{
        CUmemAllocationProp prop = shareable_on(0), far = shareable_on(7);
        CUmemGenericAllocationHandle handle, other;
        CUdeviceptr at, base, unused;
        size_t size;
        uint32_t word;

        (void)socket;
        must(cuInit(0));
        /* none of this needs a context */
        must(cuMemGetAllocationGranularity(&size, &prop, 0));
        must_equal(size, PAGE);
        must_equal(cuMemCreate(&handle, PAGE + 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
        must_equal(cuMemCreate(&handle, PAGE, &far, 0), CUDA_ERROR_INVALID_DEVICE);
        must_equal(cuMemCreate(&handle, 2 * GIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
        must(cuMemCreate(&handle, PAGE, &prop, 0));
        must(cuMemCreate(&other, 2 * PAGE, &prop, 0));
        must(cuMemAddressReserve(&at, 4 * PAGE, 0, 0, 0));
        must_equal(at % PAGE, 0);
        must_equal(cuMemMap(at, 2 * PAGE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
        must_equal(cuMemMap(at + 3 * PAGE, 2 * PAGE, 0, other, 0), CUDA_ERROR_INVALID_VALUE);
        must(cuMemMap(at, PAGE, 0, handle, 0));
        must_equal(cuMemMap(at, PAGE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
        must(cuMemMap(at + PAGE, 2 * PAGE, 0, other, 0));
        must_equal(cuMemcpyDtoH_v2(&word, at, 4), CUDA_ERROR_INVALID_CONTEXT);

        (void)guest_init(0);
        must_equal(cuMemcpyDtoH_v2(&word, at, 4), CUDA_ERROR_INVALID_VALUE); /* no access yet */
        must_equal(allow(at, 2 * PAGE, 0), CUDA_ERROR_INVALID_VALUE);        /* a part of one */
        must_equal(allow(at, 4 * PAGE, 0), CUDA_ERROR_INVALID_VALUE);        /* a hole */
        must(allow(at, 3 * PAGE, 0));
        must(cuMemsetD8_v2(at, 3, 3 * PAGE));
        must_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
        must(cuMemGetAddressRange_v2(&base, &size, at + PAGE + 5));
        must_equal(base, at + PAGE);
        must_equal(size, 2 * PAGE);
        must_equal(cuMemGetAddressRange_v2(&base, &size, at + 3 * PAGE), CUDA_ERROR_NOT_FOUND);

        must_equal(cuMemUnmap(at + PAGE, PAGE), CUDA_ERROR_INVALID_VALUE);
        must_equal(cuMemAddressFree(at, 4 * PAGE), CUDA_ERROR_INVALID_VALUE);
        must(cuMemUnmap(at, 3 * PAGE));
        must_equal(cuMemAddressFree(at, PAGE), CUDA_ERROR_INVALID_VALUE);
        must(cuMemMap(at + 2 * PAGE, PAGE, 0, handle, 0)); /* the same memory elsewhere */
        must(allow(at + 2 * PAGE, PAGE, 0));
        must(cuMemRelease(handle));
        must_equal(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
        must_equal(read_word(at + 2 * PAGE), 0x03030303);
        must(cuMemUnmap(at + 2 * PAGE, PAGE));
        must(cuMemAddressFree(at, 4 * PAGE));
        must_equal(cuMemAddressReserve(&unused, 5, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);

        must(cuMemAlloc_v2(&at, PAGE));
        must_equal(cuMemUnmap(at, PAGE), CUDA_ERROR_INVALID_VALUE);
        must_equal(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)at),
                   CUDA_ERROR_INVALID_VALUE);
}

static void test_virtual_memory_answers_as_measured(void **state)
{
        (void)state;
        guest_run(use_virtual_memory);
}

static uint64_t get(CUdeviceptr pointer, CUpointer_attribute attribute)
{
        uint64_t value = 0;

        must(cuPointerGetAttribute(&value, attribute, pointer));
        return value;
}

static void look_at_attributes(int socket)
{
        CUcontext context = guest_init(0);
        CUmemGenericAllocationHandle handle = create(PAGE);
        CUdeviceptr plain, mapped, reserved;
        CUipcMemHandle ipc;
        uint64_t value;

        (void)socket;
        must(cuMemAlloc_v2(&plain, 4 * MIB + 12345));
        must(cuMemAddressReserve(&reserved, 4 * PAGE, 0, 0, 0));
        mapped = reserved + PAGE;
        must(cuMemMap(mapped, PAGE, 0, handle, 0));
        must(allow(mapped, PAGE, 0));

        const struct {
                CUpointer_attribute attribute;
                uint64_t plain, mapped;
        } cases[] = {
                { CU_POINTER_ATTRIBUTE_CONTEXT, (uint64_t)(uintptr_t)context, 0 },
                { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE },
                { CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, plain, reserved },
                { CU_POINTER_ATTRIBUTE_RANGE_SIZE, 4 * MIB + 12345, 4 * PAGE },
                { CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 6 * MIB, PAGE },
                { CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, plain, mapped },
                { CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 1, 0 },
                { CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 1, 0 },
                { CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 0, 1 },
                { CU_POINTER_ATTRIBUTE_IS_MANAGED, 0, 0 },
                { CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 0, 0 },
                { CU_POINTER_ATTRIBUTE_DEVICE_POINTER, plain + 1, mapped + 1 },
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                must_equal(get(plain + 1, cases[i].attribute), cases[i].plain);
                must_equal(get(mapped + 1, cases[i].attribute), cases[i].mapped);
                must_equal(cuPointerGetAttribute(&value, cases[i].attribute, reserved),
                           CUDA_ERROR_INVALID_VALUE);
        }
        must(cuIpcGetMemHandle(&ipc, plain));
        must_equal(cuIpcGetMemHandle(&ipc, mapped), CUDA_ERROR_INVALID_VALUE);
}

static void test_attributes_tell_ordinary_from_virtual_memory(void **state)
{
        (void)state;
        guest_run(look_at_attributes);
}

static void use_host_memory(int socket)
{
        static uint32_t words[4096];
        CUdeviceptr device;
        unsigned int flags;
        void *host;

        (void)socket;
        (void)guest_init(0);
        must(cuMemHostAlloc(&host, 100000, CU_MEMHOSTALLOC_PORTABLE));
        must(cuMemHostGetDevicePointer_v2(&device, host, 0));
        must(cuMemsetD32_v2(device, 9, 25000));
        must_equal(((uint32_t *)host)[24999], 9);
        must(cuMemHostGetFlags(&flags, host));
        must_equal(flags & CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
        must(cuMemFreeHost(host));
        must_equal(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);

        must(cuMemHostRegister_v2(words, sizeof(words), 0));
        must_equal(cuMemHostRegister_v2(words, sizeof(words), 0),
                   CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        must(cuMemHostUnregister(words));
        must_equal(cuMemHostUnregister(words), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        must_equal(cuMemHostRegister_v2((void *)8, 100, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_host_memory_is_allocated_and_registered(void **state)
{
        (void)state;
        guest_run(use_host_memory);
}

static void copy_rows(int socket)
{
        uint8_t from[64], to[64] = { 0 };
        CUDA_MEMCPY2D copy = { 0 };
        CUdeviceptr device;

        (void)socket;
        (void)guest_init(0);
        for (int i = 0; i < 64; i++)
                from[i] = (uint8_t)i;
        must(cuMemAlloc_v2(&device, 8 * 512));
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = from;
        copy.srcPitch = 8;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = device;
        copy.dstPitch = 512;
        copy.WidthInBytes = 8;
        copy.Height = 8;
        must(cuMemcpy2D_v2(&copy));
        must_equal(read_word(device + 512), 0x0b0a0908);

        copy = (CUDA_MEMCPY2D){ 0 };
        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice = device;
        copy.srcPitch = 512;
        copy.srcXInBytes = 4;
        copy.srcY = 1;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = to;
        copy.WidthInBytes = 4;
        copy.Height = 7;
        must(cuMemcpy2DAsync_v2(&copy, NULL));
        must_equal(to[0], 12);
        must_equal(to[27], 63);
        copy.Height = 9;
        must_equal(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);

        must(cuMemsetD2D16_v2(device, 512, 0x1234, 2, 8));
        must_equal(read_word(device + 7 * 512), 0x12341234);
        must_equal(read_word(device + 7 * 512 + 4), 0x3f3e3d3c);
        must_equal(cuMemsetD32_v2(device + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
        must_equal(cuMemsetD32_v2(device, 1, 8 * 128 + 1), CUDA_ERROR_INVALID_VALUE);
}

static void test_rows_are_copied_and_set(void **state)
{
        (void)state;
        guest_run(copy_rows);
}

static void use_other_kinds(int socket)
{
        CUDA_ARRAY3D_DESCRIPTOR volume = { 256, 256, 16, CU_AD_FORMAT_FLOAT, 1, 0 };
        CUDA_ARRAY_DESCRIPTOR plane = { 1024, 1024, CU_AD_FORMAT_UNSIGNED_INT8, 4 };
        CUmipmappedArray mipmapped;
        CUmemoryPool pool;
        CUdeviceptr managed, pooled;
        uint64_t before, used;
        CUarray array;

        (void)socket;
        (void)guest_init(0);
        before = guest_get_free();
        must(cuArrayCreate_v2(&array, &plane));
        must_equal(before - guest_get_free(), 4 * MIB);
        must(cuArrayDestroy(array));
        must_equal(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
        must(cuMipmappedArrayCreate(&mipmapped, &volume, 4));
        must_equal(before - guest_get_free(), 6 * MIB);
        must(cuMipmappedArrayDestroy(mipmapped));

        must(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
        *(uint32_t *)(uintptr_t)managed = 5; /* the host may */
        must_equal(read_word(managed), 5);
        must(cuMemFree_v2(managed));

        must(cuMemAllocAsync(&pooled, 8 * MIB, NULL));
        must(cuDeviceGetDefaultMemPool(&pool, 0));
        must(cuMemPoolGetAttribute(pool, 7, &used));
        must_equal(used, 8 * MIB);
        must(cuMemFreeAsync(pooled, NULL));
        must(cuStreamSynchronize(NULL));
        must_equal(guest_get_free(), before);
}

static void test_arrays_pools_and_managed_memory_are_counted(void **state)
{
        (void)state;
        guest_run(use_other_kinds);
}

static void end_contexts(int socket)
{
        CUcontext primary = guest_init(0), own;
        CUdeviceptr pointer;
        uint64_t before = guest_get_free();

        (void)socket;
        must(cuCtxCreate_v2(&own, 0, 0));
        must(cuMemAlloc_v2(&pointer, 64 * MIB));
        must_equal(before - guest_get_free(), 128 * MIB);
        must(cuCtxDestroy_v2(own));
        must_equal(cuCtxDestroy_v2(own), CUDA_ERROR_INVALID_CONTEXT);
        must(cuCtxSetCurrent(primary));
        must_equal(guest_get_free(), before);
        must(cuMemAlloc_v2(&pointer, 64 * MIB));
        must(cuDevicePrimaryCtxRelease_v2(0));
        must_equal(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_CONTEXT);
        must_equal(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
        must_equal(guest_init(0) == primary, 1);
        must_equal(guest_get_free(), before);
}

static void test_a_context_takes_its_memory_with_it(void **state)
{
        (void)state;
        guest_run(end_contexts);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ordinary_memory_is_counted_exactly),
                cmocka_unit_test(test_a_killed_process_holds_nothing_but_what_others_hold),
                cmocka_unit_test(test_memory_is_shared_through_its_descriptor),
                cmocka_unit_test(test_memory_is_shared_by_legacy_ipc),
                cmocka_unit_test(test_virtual_memory_answers_as_measured),
                cmocka_unit_test(test_attributes_tell_ordinary_from_virtual_memory),
                cmocka_unit_test(test_host_memory_is_allocated_and_registered),
                cmocka_unit_test(test_rows_are_copied_and_set),
                cmocka_unit_test(test_arrays_pools_and_managed_memory_are_counted),
                cmocka_unit_test(test_a_context_takes_its_memory_with_it),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
