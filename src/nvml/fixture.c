/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "catalog/catalog.h"

static void add_device(struct board *board, uint32_t index)
{
        struct board_device_detail detail = {
                .capability = { [BOARD_CAN_FRACTIONAL] = 1,
                                [BOARD_CAN_MIX_PROFILES] = 1,
                                [BOARD_CAN_MIX_SIZES] = 1,
                                [BOARD_CAN_READ_BANDWIDTH] = 25000 },
                .scheduler = catalog_scheduler_limits,
                .brand = BOARD_NONE,
                .architecture = BOARD_NONE,
                .compute_major = BOARD_NONE,
                .n_cores = BOARD_NONE,
                .memory_bus_width = BOARD_NONE,
                .minor_number = index,
                .metadata_text = "233518BE00000000",
        };
        struct board_device device = { .index = index,
                                       .virtualization = BOARD_VIRTUALIZATION_HOST_VGPU,
                                       .mixes_sizes = 1,
                                       .ecc = BOARD_NONE,
                                       .accounting = 1,
                                       .can_migrate = 1,
                                       .pci_bus = 0x17 + index * 0x10,
                                       .pci_device_id = 0x233510de,
                                       .pci_subsystem_id = 0x18be10de,
                                       .utilization_gpu = 37,
                                       .utilization_memory = 12,
                                       .driver_version = 13000,
                                       .memory_total = FIXTURE_MEMORY,
                                       .memory_used = index == 0 ? 9 * GIB : 0,
                                       .name = "NVIDIA H200" };

        snprintf(device.uuid, sizeof(device.uuid), "%s",
                 index == 0 ? FIXTURE_GPU_0_UUID : FIXTURE_GPU_1_UUID);
        board_write_device(board, index, &device);
        board_write_device_detail(board, index, &detail);
        assert_int_equal(catalog_publish(board, &device), 0);
}

static const struct board_instance instances[] = {
        { .id = FIXTURE_TRAIN,
          .state = BOARD_RUNNING,
          .n_processes = 1,
          .tenant_uid = 1000,
          .utilization_gpu = 20,
          .utilization_memory = 5,
          .frame_buffer_quota = 32 * GIB,
          .frame_buffer_used = 6 * GIB,
          .uuid = FIXTURE_TRAIN_UUID,
          .name = "train" },
        { .id = FIXTURE_INFER,
          .state = BOARD_IDLE,
          .n_processes = 1,
          .tenant_uid = 1001,
          .frame_buffer_quota = 17 * GIB,
          .frame_buffer_used = 3 * GIB,
          .uuid = "e5c1b1a0-0000-4000-8000-000000000001",
          .name = "infer" },
        { .id = FIXTURE_ASLEEP,
          .state = BOARD_SUSPENDED,
          .tenant_uid = 1000,
          .frame_buffer_quota = 8 * GIB,
          .uuid = "e5c1b1a0-0000-4000-8000-000000000002",
          .name = "asleep" },
};

static const struct board_host host = { .supported_min = FIXTURE_VGPU_VERSION,
                                        .supported_max = FIXTURE_VGPU_VERSION,
                                        .current_min = FIXTURE_VGPU_VERSION,
                                        .current_max = FIXTURE_VGPU_VERSION,
                                        .can_mix_sizes = 1 };

static const struct board_process processes[] = {
        { .pid = 4242,
          .instance = FIXTURE_TRAIN,
          .utilization_gpu = 20,
          .memory_used = 6 * GIB,
          .start_ns = 1700000000000000000,
          .name = "train.py" },
        { .pid = 4343, .instance = FIXTURE_INFER, .memory_used = 3 * GIB, .name = "server" },
};

/* A vGPU of the manager's own, whose machine is the tenant. */
static void add_instance(struct board *board, uint32_t slot, const struct board_instance *like)
{
        struct board_instance instance = *like;
        struct board_vm vm = { .id_kind = BOARD_VM_DOMAIN,
                               .licence_expiry = { .status = BOARD_EXPIRY_PERMANENT },
                               .driver_version = "580.159.04",
                               .pci_bus_id = "00000000:17:00.0" };

        instance.type_id = catalog_type_of_quota(board, 0, instance.frame_buffer_quota);
        instance.guest_driver = BOARD_GUEST_DRIVER_RUNNING;
        instance.licence = BOARD_LICENCE_LICENSED;
        instance.gpu_instance = BOARD_NONE;
        instance.placement = BOARD_PLACEMENT_NONE;
        instance.ecc = BOARD_NONE;
        instance.accounting = 1;
        instance.encoder_capacity = 100;
        instance.vgpu_version = FIXTURE_VGPU_VERSION;
        instance.can_migrate = 1;
        snprintf(vm.id, sizeof(vm.id), "%u", instance.tenant_uid);
        snprintf(vm.name, sizeof(vm.name), "%s", instance.name);
        board_write_instance(board, slot, &instance);
        board_write_vm(board, slot, &vm);
}

static void add_process(struct board *board, uint32_t i)
{
        struct board_account account = { .instance = processes[i].instance,
                                         .pid = processes[i].pid,
                                         .is_running = 1,
                                         .utilization_gpu = BOARD_NONE,
                                         .utilization_memory = BOARD_NONE,
                                         .max_memory = processes[i].memory_used,
                                         .start_us = processes[i].start_ns / 1000 };

        board_write_process(board, 7 + i, &processes[i]);
        board_append_account(board, 5 + i, &account);
}

void fixture_beat(struct fixture *fixture, uint64_t ago_ns)
{
        fixture->board->heartbeat_ns = clock_now(CLOCK_MONOTONIC) - ago_ns;
}

void fixture_update_offers(struct fixture *fixture, uint32_t device)
{
        struct board_instance instance;
        uint64_t left = FIXTURE_MEMORY;

        for (uint32_t i = 0; i < BOARD_INSTANCES_MAX; i++)
                if (board_read_instance(fixture->board, i, &instance) &&
                    instance.device == device && instance.state != BOARD_SUSPENDED)
                        left -= instance.frame_buffer_quota;
        catalog_update_offers(fixture->board, board_site_of_device(device), left, true);
}

void fixture_publish(struct fixture *fixture)
{
        board_close(fixture->board);
        assert_int_equal(board_create(&fixture->board, fixture->path, NULL), 0);
        fixture->board->simulated = 1;
        board_write_host(fixture->board, 0, &host);
        snprintf(fixture->board->driver_name, sizeof(fixture->board->driver_name), "580.159.04");
        for (uint32_t i = 0; i < 2; i++)
                add_device(fixture->board, i);
        fixture->board->n_devices = 2;
        for (uint32_t i = 0; i < 3; i++)
                add_instance(fixture->board, 5 + i, &instances[i]);
        fixture_update_offers(fixture, 0);
        for (uint32_t i = 0; i < 2; i++)
                add_process(fixture->board, i);
        fixture_beat(fixture, 0);
}

struct fixture *fixture_new(void)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        /* A board is a large file of holes: where files are memory it costs nothing. */
        snprintf(fixture->directory, sizeof(fixture->directory), "%s/openvgpu-test-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert_non_null(mkdtemp(fixture->directory));
        assert_int_equal(paths_join(fixture->path, fixture->directory, PATHS_BOARD), 0);
        setenv("OPENVGPU_RUN", fixture->directory, 1);
        fixture_publish(fixture);
        return fixture;
}

struct fixture *fixture_free(struct fixture *fixture)
{
        if (!fixture)
                return NULL;
        board_close(fixture->board);
        unlink(fixture->path);
        rmdir(fixture->directory);
        free(fixture);
        return NULL;
}

int fixture_setup(void **state)
{
        *state = fixture_new();
        return nvmlInit_v2() == NVML_SUCCESS ? 0 : -1;
}

int fixture_teardown(void **state)
{
        nvmlShutdown();
        *state = fixture_free(*state);
        return 0;
}
