/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of other processes: what is imported, what is not, and what it looks like. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"
#include "gate/fake-maker.h"
#include "gate/pool-ticket.h"
#include "gate/ticket.h"

#define OTHER "the other's name"

static struct instance_page *page;

static void start(void)
{
        page = fake_guest_start(GIB);
        fake_maker_start(0);
}

static CUstream new_stream(void)
{
        CUstream stream;

        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
        return stream;
}

FAKE_TEST(test_an_imported_pool_gives_no_memory)
{
        CUmemoryPool pool, current;
        CUdeviceptr pointer;
        uint64_t threshold = GIB;
        int fd;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        check_answer(cuMemAllocFromPoolAsync(&pointer, MIB, pool, NULL), CUDA_ERROR_INVALID_VALUE);
        check_answer(cuMemAllocFromPoolAsync_ptsz(&pointer, MIB, pool, NULL),
                     CUDA_ERROR_INVALID_VALUE);
        check_answer(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
        check(cuDeviceGetMemPool(&current, 0) == CUDA_SUCCESS && current != pool);
        check_answer(cuMemPoolExportToShareableHandle(&fd, pool,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                     CUDA_ERROR_INVALID_VALUE);
        check(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold) ==
              CUDA_SUCCESS);
        check(cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
        check(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
        check_answer(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
}

static uint64_t attribute(CUmemoryPool pool, int which)
{
        uint64_t value = 0;

        check(cuMemPoolGetAttribute(pool, which, &value) == CUDA_SUCCESS);
        return value;
}

FAKE_TEST(test_an_imported_pointer_says_what_it_is)
{
        CUmemPoolPtrExportData data;
        CUmemoryPool pool, of = NULL;
        unsigned long long types = 1;
        CUdeviceptr pointer, base;
        CUcontext context;
        size_t size;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 1);
        pointer = fake_maker_import_at(pool, MIB, 5000);
        check(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 5000);
        check(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == FAKE_PIECE);
        check(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer + 4999) ==
              CUDA_SUCCESS);
        check(of == pool);
        check(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, pointer) ==
              CUDA_SUCCESS);
        check(types == 0);
        check(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer) ==
              CUDA_SUCCESS);
        check(context == NULL);
        check(cuMemGetAddressRange_v2(&base, &size, pointer + 100) == CUDA_SUCCESS);
        check(base == pointer && size == 5000);
        check(cuMemGetAddressRange_v2(&base, &size, pointer + 5000) != CUDA_SUCCESS);
        check_answer(cuMemPoolExportPointer(&data, pointer), CUDA_ERROR_INVALID_VALUE);
        check_answer(cuMemUnmap(pointer - MIB, FAKE_PIECE), CUDA_ERROR_INVALID_VALUE);
        check(cuMemPoolDestroy(pool) == CUDA_SUCCESS);
        check(cuMemsetD8_v2(pointer, 1, 5000) == CUDA_SUCCESS); /* it outlives its pool */
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0);
        fake_maker_wait();
}

FAKE_TEST(test_what_is_no_pointer_of_this_pool_is_refused)
{
        struct gate_ticket good, bad;
        CUmemoryPool pool, other, own;
        CUdeviceptr pointer;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        other = fake_maker_import_pool(OTHER);
        check(cuDeviceGetDefaultMemPool(&own, 0) == CUDA_SUCCESS);
        good = fake_maker_ticket(FAKE_POOL, FAKE_PIECE_NAME, 0, MIB);
        check_answer(fake_maker_import(&pointer, other, &good), CUDA_ERROR_INVALID_VALUE);
        check_answer(fake_maker_import(&pointer, own, &good), CUDA_ERROR_INVALID_VALUE);
        bad = good;
        bad.process.start_time++; /* of another process */
        check_answer(fake_maker_import(&pointer, pool, &bad), CUDA_ERROR_INVALID_VALUE);
        bad = good;
        bad.process.mark++; /* no ticket */
        check_answer(fake_maker_import(&pointer, pool, &bad), CUDA_ERROR_INVALID_VALUE);
        bad = good;
        bad.offset = 0; /* of legacy IPC */
        bad.size = MIB;
        check_answer(fake_maker_import(&pointer, pool, &bad), CUDA_ERROR_INVALID_VALUE);
        bad = good;
        bad.offset += FAKE_PIECE / 512; /* beyond its piece */
        check_answer(fake_maker_import(&pointer, pool, &bad), CUDA_ERROR_INVALID_VALUE);
        check(fake_maker.n_asked == 0);

        fake_maker.error = ENOENT; /* freed, or forged */
        fake_maker_expect(1, 0);
        check_answer(fake_maker_import(&pointer, pool, &good), CUDA_ERROR_INVALID_VALUE);
        fake_maker_wait();
        fake_maker.error = EPERM;
        fake_maker_expect(1, 0);
        check_answer(fake_maker_import(&pointer, pool, &good), CUDA_ERROR_NOT_PERMITTED);
        fake_maker_wait();
        fake_maker.error = 0;
        fake_maker_expect(1, 1);
        check_answer(fake_maker_import(&pointer, pool, &good), CUDA_SUCCESS);
        good = fake_maker_ticket(FAKE_POOL, FAKE_PIECE_NAME, 0, MIB);
        good.size += (uint64_t)1 << 41; /* of a piece that is larger than it was */
        check_answer(fake_maker_import(&pointer, pool, &good), CUDA_ERROR_INVALID_VALUE);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0);
        fake_maker_wait();
}

/* A ticket of one kind is none of the others. */
FAKE_TEST(test_tickets_of_pools_are_told_from_others)
{
        CUmemGenericAllocationHandle handle;
        struct gate_ticket pool_ticket, pointer_ticket, memory;
        CUipcMemHandle ipc;
        CUdeviceptr pointer;
        CUmemoryPool pool;
        int fd;

        start();
        fake_maker_identify(&pool_ticket, FAKE_POOL);
        pool_ticket_write(&pool_ticket, MIB);
        pointer_ticket = fake_maker_ticket(FAKE_POOL, FAKE_PIECE_NAME, 0, MIB);
        fake_maker_identify(&memory, FAKE_PIECE_NAME);
        memory.size = FAKE_PIECE;
        check_answer(fake_maker_import_ticket(&pool, &memory), CUDA_ERROR_INVALID_VALUE);
        check_answer(fake_maker_import_ticket(&pool, &pointer_ticket), CUDA_ERROR_INVALID_VALUE);
        for (int i = 0; i < 2; i++) {
                const struct gate_ticket *ticket = i ? &pool_ticket : &pointer_ticket;

                memcpy(&ipc, ticket, sizeof(ipc));
                check_answer(cuIpcOpenMemHandle_v2(&pointer, ipc, 1), CUDA_ERROR_INVALID_VALUE);
                fd = ticket_to_fd(ticket);
                check_answer(
                        cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                        CUDA_ERROR_INVALID_VALUE);
                close(fd);
        }
        check(fake_maker_import_ticket(&pool, &pool_ticket) == CUDA_SUCCESS);
        check_answer(fake_maker_import(&pointer, pool, &pool_ticket), CUDA_ERROR_INVALID_VALUE);
}

static CUmemoryPool new_pool(int handle_types)
{
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .handleTypes = handle_types,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
        CUmemoryPool pool;

        check(cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS);
        return pool;
}

static CUresult export_pool(int *ret_fd, CUmemoryPool pool)
{
        return cuMemPoolExportToShareableHandle(ret_fd, pool,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

FAKE_TEST(test_what_is_exported_is_a_ticket_and_its_own_process_gets_the_same_pointer)
{
        CUmemPoolPtrExportData data, small;
        CUdeviceptr large, pointer, again;
        CUmemoryPool pool, plain, imported;
        unsigned long long types = 0;
        struct gate_ticket ticket;
        struct pool_place place;
        uint64_t device;
        int fd;

        page = fake_guest_start(GIB);
        plain = new_pool(0);
        pool = new_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        check_answer(export_pool(&fd, plain), CUDA_ERROR_INVALID_VALUE);
        check_answer(export_pool(&fd, pool), CUDA_SUCCESS);
        check(ticket_from_fd(&ticket, fd) && pool_ticket_read(&ticket, &device));
        check(ticket_is_own(&ticket));
        check(cuMemAllocFromPoolAsync(&large, 3 * MIB, pool, NULL) == CUDA_SUCCESS);
        check(page->slot[FAKE_SLOT].used[INSTANCE_PAGE_MOVABLE] == 4 * MIB);
        check(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, large) ==
              CUDA_SUCCESS);
        check(types == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        check(cuMemAllocFromPoolAsync(&pointer, 700, pool, NULL) == CUDA_SUCCESS);
        check(cuMemAllocFromPoolAsync(&again, 700, pool, NULL) == CUDA_SUCCESS);
        check_answer(cuMemPoolExportPointer(&data, large + 512), CUDA_ERROR_INVALID_VALUE);
        check_answer(cuMemPoolExportPointer(&data, large), CUDA_SUCCESS);
        check_answer(cuMemPoolExportPointer(&small, again), CUDA_SUCCESS);
        memcpy(&ticket, &small, sizeof(ticket));
        check(pool_place_read(&ticket, &place));
        check(place.offset == again - pointer && place.size == 700 && place.piece == 2 * MIB);

        check_answer(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                        0),
                     CUDA_SUCCESS);
        close(fd);
        check_answer(cuMemPoolImportPointer(&pointer, imported, &small), CUDA_SUCCESS);
        check(pointer == again);
        check(cuMemFreeAsync(pointer, NULL) == CUDA_SUCCESS);
        check(cuMemFreeAsync(pointer, NULL) == CUDA_SUCCESS);
        check(cuMemFreeAsync(pointer, NULL) == CUDA_ERROR_INVALID_VALUE);
        check_answer(cuMemPoolImportPointer(&pointer, imported, &small), CUDA_ERROR_INVALID_VALUE);
        check_answer(cuMemPoolExportPointer(&small, again), CUDA_ERROR_INVALID_VALUE);
        check_answer(cuMemPoolDestroy(imported), CUDA_SUCCESS);
        check(cuMemAllocFromPoolAsync(&pointer, 700, plain, NULL) == CUDA_SUCCESS);
        check_answer(cuMemPoolExportPointer(&data, pointer), CUDA_ERROR_INVALID_VALUE);
        check(cuMemFreeAsync(pointer, NULL) == CUDA_SUCCESS);
}

FAKE_TEST(test_what_was_allocated_beside_a_capture_is_not_exported)
{
        CUmemPoolPtrExportData data;
        CUdeviceptr pointer;
        CUstream captured;
        CUmemoryPool pool;
        CUgraph graph;

        page = fake_guest_start(GIB);
        pool = new_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        captured = new_stream();
        check(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
        check(cuMemAllocFromPoolAsync(&pointer, 700, pool, new_stream()) == CUDA_SUCCESS);
        check(cuStreamEndCapture(captured, &graph) == CUDA_SUCCESS);
        check_answer(cuMemPoolExportPointer(&data, pointer), CUDA_ERROR_NOT_SUPPORTED);
}

static unsigned long long access_of(CUdeviceptr pointer, CUdevice device)
{
        const CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, device };
        unsigned long long flags = 0;

        check(DRIVER(cuMemGetAccess)(&flags, &location, pointer) == CUDA_SUCCESS);
        return flags;
}

FAKE_TEST(test_it_is_for_the_device_where_it_is_and_those_that_the_pool_names)
{
        CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                   CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        CUdeviceptr pointer;
        CUmemoryPool pool;
        CUcontext context;

        fake_host("2xH200:1G");
        page = fake_manager_start(GIB);
        check(cuInit(0) == CUDA_SUCCESS);
        check(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        fake_maker_start(1);
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 0);
        pointer = fake_maker_import_at(pool, 0, MIB);
        fake_maker_wait();
        check(access_of(pointer, 1) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        check(access_of(pointer, 0) == 0);
        check(cuMemPoolSetAccess(pool, &access, 1) == CUDA_SUCCESS);
        check(access_of(pointer, 0) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0);
        fake_maker_expect(1, 0);
        pointer = fake_maker_import_at(pool, 0, MIB);
        fake_maker_wait();
        check(access_of(pointer, 0) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

FAKE_TEST(test_what_is_imported_ends_with_the_last_context)
{
        CUcontext context, second;
        CUdeviceptr pointer;
        CUmemoryPool pool;
        CUstream stream;

        start();
        pool = fake_maker_import_pool(FAKE_POOL);
        fake_maker_expect(1, 1);
        check(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
        check(cuCtxCreate_v2(&second, 0, 0) == CUDA_SUCCESS);
        stream = new_stream();
        pointer = fake_maker_import_at(pool, 0, MIB);
        (void)fake_maker_import_at(pool, MIB, MIB);
        check(cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS);
        check(cuCtxDestroy_v2(second) == CUDA_SUCCESS); /* and the event of the free with it */
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        check(cuCtxSynchronize() == CUDA_SUCCESS);
        check(fake_maker.n_mapped == 1);
        check(cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
        check(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        fake_maker_wait_until_mapped(0);
        fake_maker_wait();
}

/* Tickets alone. */

static void test_a_place_is_read_as_it_was_written(void **state)
{
        const struct pool_place places[] = {
                { 0x7fffffff, 0, 1, 2 * MIB },
                { 1, 2 * MIB - 512, 512, 2 * MIB },
                { 0, 1024 * GIB, 1000 * GIB, 3000 * GIB },
        };
        struct gate_ticket ticket;
        struct pool_place read;
        uint64_t device;
        (void)state;

        memset(&ticket, 0, sizeof(ticket));
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
                assert_true(pool_place_write(&ticket, &places[i]));
                assert_true(pool_place_read(&ticket, &read));
                assert_true(read.pool == places[i].pool && read.offset == places[i].offset);
                assert_true(read.size == places[i].size && read.piece == places[i].piece);
                assert_false(pool_ticket_read(&ticket, &device));
        }
        pool_ticket_write(&ticket, UINT64_MAX);
        assert_true(pool_ticket_read(&ticket, &device));
        assert_true(device == UINT64_MAX);
        assert_false(pool_place_read(&ticket, &read));
}

static void test_a_place_that_does_not_fit_is_not_written(void **state)
{
        const struct pool_place places[] = {
                { 0, 0, 0, 2 * MIB },                   /* no bytes */
                { 0, 100, 1, 2 * MIB },                 /* between granules */
                { 0, 0, 1, 2 * MIB + 512 },             /* no whole piece */
                { 0, 2 * MIB, 1, 2 * MIB },             /* behind it */
                { 0, 0, 2 * MIB + 1, 2 * MIB },         /* too long */
                { 0, 0, 1, (uint64_t)1 << 43 },         /* a piece that is too large, */
                { 0, 0, 3000 * GIB, 3000 * GIB },       /* an allocation, */
                { 0, 3000 * GIB, 1, 3000 * GIB + GIB }, /* and an offset */
        };
        struct gate_ticket ticket;
        (void)state;

        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
                assert_false(pool_place_write(&ticket, &places[i]));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_place_is_read_as_it_was_written),
                cmocka_unit_test(test_a_place_that_does_not_fit_is_not_written),
                cmocka_unit_test(test_an_imported_pool_gives_no_memory),
                cmocka_unit_test(test_an_imported_pointer_says_what_it_is),
                cmocka_unit_test(test_what_is_no_pointer_of_this_pool_is_refused),
                cmocka_unit_test(test_tickets_of_pools_are_told_from_others),
                cmocka_unit_test(
                        test_what_is_exported_is_a_ticket_and_its_own_process_gets_the_same_pointer),
                cmocka_unit_test(test_what_was_allocated_beside_a_capture_is_not_exported),
                cmocka_unit_test(
                        test_it_is_for_the_device_where_it_is_and_those_that_the_pool_names),
                cmocka_unit_test(test_what_is_imported_ends_with_the_last_context),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
