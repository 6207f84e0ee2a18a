/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices the driver sees, and so the program; and what the program can do with which. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/fake-manager.h"

#define VISIBLE "CUDA_VISIBLE_DEVICES"

static void set_visible(const char *value)
{
        check((value ? setenv(VISIBLE, value, 1) : unsetenv(VISIBLE)) == 0);
}

/* What the variable is after joining, if it was @before (NULL: not there). */
static const char *visible_after_joining(const char *before)
{
        fake_host("1xH200:1G");
        set_visible(before);
        fake_manager_start(GIB);
        fake_manager_name_device("GPU-00000000-0000-0000-0000-000000000000");
        (void)cuInit(0); /* there is no such device */
        return getenv(VISIBLE);
}

FAKE_TEST(test_a_vgpu_that_has_moved_is_found_on_its_new_device)
{
        check(strcmp(visible_after_joining("GPU-ffffffff-ffff-ffff-ffff-ffffffffffff"),
                     "GPU-00000000-0000-0000-0000-000000000000") == 0);
}

FAKE_TEST(test_device_0_is_the_device_of_the_vgpu)
{
        check(strcmp(visible_after_joining("0"), "GPU-00000000-0000-0000-0000-000000000000") == 0);
}

FAKE_TEST(test_a_guest_without_the_variable_sees_the_device_of_the_vgpu_alone)
{
        const char *visible = visible_after_joining(NULL);

        check(visible && strcmp(visible, "GPU-00000000-0000-0000-0000-000000000000") == 0);
        check(getenv("OPENVGPU_VGPU")); /* the rest is still there, and can be changed */
        check(setenv("OPENVGPU_OTHER", "1", 1) == 0 && unsetenv(VISIBLE) == 0);
        check(getenv("OPENVGPU_OTHER") && !getenv(VISIBLE));
}

FAKE_TEST(test_a_guest_that_wants_no_device_gets_none)
{
        check(strcmp(visible_after_joining(""), "") == 0);
}

/* Of a host with 3 devices, the vGPU has the last one; the first is named as well. */
static void prepare_one(const char *all)
{
        fake_host("3xH200:1G");
        check(all ? setenv("OPENVGPU_ALL_DEVICES", all, 1) == 0 : true);
        fake_manager_start(GIB);
        fake_manager_name_device("2");
        fake_manager_name_other("0");
}

/* The last and the second one, with a quota of 64 MiB and of 8 MiB. */
static void prepare_two(const char *all)
{
        fake_host("3xH200:1G");
        check(all ? setenv("OPENVGPU_ALL_DEVICES", all, 1) == 0 : true);
        fake_manager_start(64 * MIB);
        fake_manager_name_device("2");
        fake_manager_add_device("1", 8 * MIB);
        fake_manager_name_other("0");
}

static bool has_marks(const struct gate_seen *seen, const char *first, const char *second,
                      const char *third)
{
        const char *const names[] = { first, second, third };
        uint32_t n = 0;

        for (; n < 3 && names[n]; n++)
                if (seen->mark[n] != gate_mark(names[n]))
                        return false;
        return seen->mark[n] == 0;
}

/* By the host's numbers of the devices that it sees. */
static void must_see(int first, int second, int third)
{
        const int wanted[] = { first, second, third };
        int count = 0, n = 0, bus, first_bus;
        CUdevice device;
        char id[32];

        while (n < 3 && wanted[n] >= 0)
                n++;
        check(cuDeviceGetCount(&count) == CUDA_SUCCESS && count == n);
        for (int i = 0; i < n; i++) {
                check(cuDeviceGet(&device, i) == CUDA_SUCCESS && device == i);
                check(cuDeviceGetPCIBusId(id, sizeof(id), i) == CUDA_SUCCESS);
                check(cuDeviceGetByPCIBusId(&device, id) == CUDA_SUCCESS && device == i);
                check(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i) == 0);
                check(cuDeviceGetAttribute(&first_bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0) == 0);
                check(bus - first_bus == wanted[i] - first);
        }
        check(cuDeviceGet(&device, n) == CUDA_ERROR_INVALID_DEVICE);
}

FAKE_TEST(test_a_program_sees_the_devices_of_its_vgpu_and_no_others)
{
        struct gate_seen seen;

        prepare_two(NULL);
        check(cuInit(0) == CUDA_SUCCESS);
        must_see(2, 1, -1);
        check(strcmp(getenv(VISIBLE), "2,1") == 0);
        seen = fake_manager_wait_for_seen();
        check(has_marks(&seen, "2", "1", NULL));
}

FAKE_TEST(test_nothing_else_than_1_means_all_devices)
{
        prepare_one("0");
        check(cuInit(0) == CUDA_SUCCESS);
        must_see(2, -1, -1);
}

/* "4" is none: as natively, the driver leaves it out with all behind it. */
FAKE_TEST(test_what_the_driver_cannot_open_is_not_said_to_be_seen)
{
        struct gate_seen seen;

        prepare_one("1");
        fake_manager_name_other("4");
        check(cuInit(0) == CUDA_SUCCESS);
        must_see(2, -1, -1);
        seen = fake_manager_wait_for_seen();
        check(has_marks(&seen, "2", "4", NULL));
        seen = fake_manager_wait_for_seen();
        check(has_marks(&seen, "2", NULL, NULL));
}

FAKE_TEST(test_with_all_devices_the_others_are_behind_those_of_the_vgpu)
{
        struct gate_seen seen;

        prepare_two("1");
        set_visible("1,0");
        check(cuInit(0) == CUDA_SUCCESS);
        must_see(1, 2, 0);
        check(strcmp(getenv(VISIBLE), "1,2") == 0); /* for what the program starts */
        seen = fake_manager_wait_for_seen();
        check(has_marks(&seen, "1", "2", "0"));
}

/* One of its own that the program has not chosen is one of the others. */
FAKE_TEST(test_with_all_devices_a_launcher_gives_each_process_one)
{
        CUcontext context;
        struct gate_seen seen;

        prepare_two("1");
        set_visible("1");
        check(cuInit(0) == CUDA_SUCCESS);
        must_see(1, 2, 0);
        check(strcmp(getenv(VISIBLE), "1") == 0);
        check(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        check(cuDevicePrimaryCtxRetain(&context, 1) == CUDA_ERROR_INVALID_DEVICE);
        seen = fake_manager_wait_for_seen();
        check(has_marks(&seen, "1", "2", "0"));
}

FAKE_TEST(test_a_program_that_wants_no_device_sees_none_of_all_devices_either)
{
        prepare_one("1");
        set_visible("");
        check(cuInit(0) == CUDA_ERROR_NO_DEVICE);
        check(strcmp(getenv(VISIBLE), "") == 0);
}

FAKE_TEST(test_another_manager_is_told_what_the_driver_sees)
{
        struct gate_join join;

        prepare_one("1");
        check(cuInit(0) == CUDA_SUCCESS);
        join = fake_manager_wait_for_join();
        check(join.seen[0] == 0); /* it was not known yet */
        fake_manager_hang_up();
        join = fake_manager_wait_for_join();
        check(join.seen[0] == gate_mark("2") && join.seen[1] == gate_mark("0") && !join.seen[2]);
}

/* What the program does to the variable before the driver reads it. */
static void change_before_second_try(const char *value)
{
        check(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
        set_visible(value);
        check(cuInit(0) == CUDA_SUCCESS);
        check(strcmp(getenv(VISIBLE), "1,2") == 0);
}

/* On the driver's device 0, which is the vGPU's second, only 8 MiB may be allocated. */
static void must_have_quotas(void)
{
        CUdeviceptr pointer;
        CUcontext context;

        check(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 16 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
        check(cuDevicePrimaryCtxRetain(&context, 1) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
        check(cuMemAlloc_v2(&pointer, 16 * MIB) == CUDA_SUCCESS);
}

static void try_twice(const char *all, const char *value)
{
        prepare_two(all);
        set_visible("1,0");
        change_before_second_try(value);
        must_see(1, 2, all ? 0 : -1);
        must_have_quotas();
}

FAKE_TEST(test_another_order_before_the_second_try_is_undone)
{
        try_twice(NULL, "0,1");
}

FAKE_TEST(test_another_order_before_the_second_try_is_undone_with_all_devices)
{
        try_twice("1", "0,1");
}

FAKE_TEST(test_a_variable_that_is_gone_before_the_second_try_is_there_again)
{
        try_twice(NULL, NULL);
}

FAKE_TEST(test_a_program_that_wanted_no_device_gets_none_of_the_host_at_the_second_try)
{
        prepare_two(NULL);
        set_visible("");
        check(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
        set_visible("0");
        check(cuInit(0) == CUDA_ERROR_NO_DEVICE);
}

FAKE_TEST(test_what_the_program_puts_there_later_stays)
{
        prepare_one("1");
        check(cuInit(0) == CUDA_SUCCESS);
        set_visible("7");
        check(cuInit(0) == CUDA_SUCCESS);
        check(strcmp(getenv(VISIBLE), "7") == 0);
}

/* Devices that the vGPU does not have. */

/* It sees device 0, which it may use, and device 1. */
static void start(void)
{
        prepare_one("1");
        check(cuInit(0) == CUDA_SUCCESS);
}

static void start_with_context(void)
{
        CUcontext context;

        start();
        check(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
        check(cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

FAKE_TEST(test_other_devices_can_be_asked_what_they_are)
{
        size_t own, other;
        char name[64];
        CUuuid uuid;
        int can;

        start();
        must_see(2, 0, -1);
        check(cuDeviceGetName(name, sizeof(name), 1) == CUDA_SUCCESS);
        check(cuDeviceGetUuid(&uuid, 1) == CUDA_SUCCESS);
        check(cuDeviceTotalMem_v2(&own, 0) == CUDA_SUCCESS);
        check(cuDeviceTotalMem_v2(&other, 1) == CUDA_SUCCESS && other >= own && other == GIB);
        check(cuDeviceCanAccessPeer(&can, 0, 1) == CUDA_SUCCESS);
}

FAKE_TEST(test_there_is_no_context_on_other_devices)
{
        CUcontext context;
        CUgreenCtx green;

        start();
        check(cuDevicePrimaryCtxRetain(&context, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(cuCtxCreate_v2(&context, 0, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(cuCtxCreate_v3(&context, NULL, 0, 0, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(cuCtxCreate_v4(&context, NULL, 0, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(cuGreenCtxCreate(&green, NULL, 1, 0) == CUDA_ERROR_INVALID_DEVICE);
        check(cuGLCtxCreate(&context, 0, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(cuGLCtxCreate_v2(&context, 0, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(cuVDPAUCtxCreate(&context, 0, 1, 0, NULL) == CUDA_ERROR_INVALID_DEVICE);
        check(cuVDPAUCtxCreate_v2(&context, 0, 1, 0, NULL) == CUDA_ERROR_INVALID_DEVICE);
        check(cuGLCtxCreate_v2(&context, 0, 0) == CUDA_ERROR_NOT_SUPPORTED); /* simulated */
        check(cuVDPAUCtxCreate_v2(&context, 0, 0, 0, NULL) == CUDA_ERROR_NOT_SUPPORTED);
}

FAKE_TEST(test_nothing_is_made_on_other_devices)
{
        const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } };
        const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } };
        CUmemGenericAllocationHandle handle;
        CUmemoryPool pool;

        start_with_context();
        check(cuMemCreate(&handle, 2 * MIB, &prop, 0) == CUDA_ERROR_INVALID_DEVICE);
        check(cuMemPoolCreate(&pool, &props) == CUDA_ERROR_INVALID_DEVICE);
        check(cuMulticastAddDevice(1, 1) == CUDA_ERROR_INVALID_DEVICE);
}

FAKE_TEST(test_no_memory_comes_from_pools_of_other_devices)
{
        CUmemLocation other = { CU_MEM_LOCATION_TYPE_DEVICE, 1 };
        CUmemoryPool pool;

        start_with_context();
        check(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
        check(cuDeviceGetMemPool(&pool, 0) == CUDA_SUCCESS);
        check(cuDeviceSetMemPool(0, pool) == CUDA_SUCCESS);
        check(cuDeviceSetMemPool(1, pool) == CUDA_ERROR_INVALID_DEVICE);
        check(cuMemSetMemPool(&other, 1, pool) == CUDA_ERROR_INVALID_DEVICE);
        check(cuDeviceGetDefaultMemPool(&pool, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(cuDeviceGetMemPool(&pool, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(cuMemGetDefaultMemPool(&pool, &other, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(cuMemGetMemPool(&pool, &other, 1) == CUDA_ERROR_INVALID_DEVICE);
}

FAKE_TEST(test_no_node_of_a_graph_allocates_on_or_for_other_devices)
{
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        CUDA_MEM_ALLOC_NODE_PARAMS params = {
                .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } },
                .bytesize = 2 * MIB,
        };
        CUgraphNodeParams node_params = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = params };
        CUgraphNode node;
        CUgraph graph;

        start_with_context();
        check(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
        check(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params) == CUDA_ERROR_INVALID_DEVICE);
        check(cuGraphAddNode(&node, graph, NULL, 0, &node_params) == CUDA_ERROR_INVALID_DEVICE);
        params.poolProps.location.id = 0;
        check(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params) == CUDA_SUCCESS);
        params.accessDescs = &access;
        params.accessDescCount = 1;
        check(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params) == CUDA_ERROR_INVALID_DEVICE);
        check(cuGraphDestroy(graph) == CUDA_SUCCESS);
}

FAKE_TEST(test_managed_memory_does_not_go_to_other_devices)
{
        CUmemLocation other = { CU_MEM_LOCATION_TYPE_DEVICE, 1 };
        size_t size = 2 * MIB, first = 0;
        CUdeviceptr pointer;

        start_with_context();
        check(cuMemAllocManaged(&pointer, size, 1) == CUDA_SUCCESS);
        check(cuMemPrefetchAsync(pointer, size, 0, NULL) == CUDA_SUCCESS);
        check(cuMemPrefetchAsync(pointer, size, -1, NULL) == CUDA_SUCCESS); /* the host */
        check(cuMemPrefetchAsync(pointer, size, 1, NULL) == CUDA_ERROR_INVALID_DEVICE);
        check(cuMemPrefetchAsync_v2(pointer, size, other, 0, NULL) == CUDA_ERROR_INVALID_DEVICE);
        check(cuMemPrefetchBatchAsync(&pointer, &size, 1, &other, &first, 1, 0, NULL) ==
              CUDA_ERROR_INVALID_DEVICE);
        check(cuMemDiscardAndPrefetchBatchAsync(&pointer, &size, 1, &other, &first, 1, 0, NULL) ==
              CUDA_ERROR_INVALID_DEVICE);
        check(cuMemAdvise(pointer, size, 3, 0) == CUDA_SUCCESS);
        check(cuMemAdvise(pointer, size, 3, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(cuMemAdvise(pointer, size, 1, 1) == CUDA_SUCCESS); /* it does not matter there */
        check(cuMemFree_v2(pointer) == CUDA_SUCCESS);
}

static CUresult give_access(CUdeviceptr pointer, CUdevice first, CUdevice second)
{
        const CUmemAccessDesc access[] = {
                { { CU_MEM_LOCATION_TYPE_DEVICE, first }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
                { { CU_MEM_LOCATION_TYPE_DEVICE, second }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
        };

        return cuMemSetAccess(pointer, 2 * MIB, access, first == second ? 1 : 2);
}

FAKE_TEST(test_other_devices_get_no_right_to_memory)
{
        const CUmemAllocationProp prop = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
        };
        const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
                                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;
        CUmemoryPool pool;

        start_with_context();
        check(cuMemCreate(&handle, 2 * MIB, &prop, 0) == CUDA_SUCCESS);
        check(cuMemAddressReserve(&pointer, 2 * MIB, 0, 0, 0) == CUDA_SUCCESS);
        check(cuMemMap(pointer, 2 * MIB, 0, handle, 0) == CUDA_SUCCESS);
        check(give_access(pointer, 1, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(give_access(pointer, 0, 1) == CUDA_ERROR_INVALID_DEVICE);
        check(give_access(pointer, 0, 0) == CUDA_SUCCESS);
        check(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
        check(cuMemPoolSetAccess(pool, &access, 1) == CUDA_ERROR_INVALID_DEVICE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_vgpu_that_has_moved_is_found_on_its_new_device),
                cmocka_unit_test(test_device_0_is_the_device_of_the_vgpu),
                cmocka_unit_test(
                        test_a_guest_without_the_variable_sees_the_device_of_the_vgpu_alone),
                cmocka_unit_test(test_a_guest_that_wants_no_device_gets_none),
                cmocka_unit_test(test_a_program_sees_the_devices_of_its_vgpu_and_no_others),
                cmocka_unit_test(test_nothing_else_than_1_means_all_devices),
                cmocka_unit_test(test_what_the_driver_cannot_open_is_not_said_to_be_seen),
                cmocka_unit_test(test_with_all_devices_the_others_are_behind_those_of_the_vgpu),
                cmocka_unit_test(test_with_all_devices_a_launcher_gives_each_process_one),
                cmocka_unit_test(
                        test_a_program_that_wants_no_device_sees_none_of_all_devices_either),
                cmocka_unit_test(test_another_manager_is_told_what_the_driver_sees),
                cmocka_unit_test(test_another_order_before_the_second_try_is_undone),
                cmocka_unit_test(
                        test_another_order_before_the_second_try_is_undone_with_all_devices),
                cmocka_unit_test(test_a_variable_that_is_gone_before_the_second_try_is_there_again),
                cmocka_unit_test(
                        test_a_program_that_wanted_no_device_gets_none_of_the_host_at_the_second_try),
                cmocka_unit_test(test_what_the_program_puts_there_later_stays),
                cmocka_unit_test(test_other_devices_can_be_asked_what_they_are),
                cmocka_unit_test(test_there_is_no_context_on_other_devices),
                cmocka_unit_test(test_nothing_is_made_on_other_devices),
                cmocka_unit_test(test_no_memory_comes_from_pools_of_other_devices),
                cmocka_unit_test(test_no_node_of_a_graph_allocates_on_or_for_other_devices),
                cmocka_unit_test(test_managed_memory_does_not_go_to_other_devices),
                cmocka_unit_test(test_other_devices_get_no_right_to_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
