/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "catalog/catalog.h"

static void add_device(struct state_page *state_page, uint32_t index)
{
        struct state_device_detail detail = {
                .capability = { [STATE_CAN_FRACTIONAL] = 1,
                                [STATE_CAN_MIX_PROFILES] = 1,
                                [STATE_CAN_MIX_SIZES] = 1,
                                [STATE_CAN_READ_BANDWIDTH] = 25000 },
                .scheduler = catalog_scheduler_limits,
                .brand = STATE_NONE,
                .architecture = STATE_NONE,
                .compute_major = STATE_NONE,
                .n_cores = STATE_NONE,
                .memory_bus_width = STATE_NONE,
                .minor_number = index,
                .metadata_text = "233518BE00000000",
        };
        struct state_device device = { .index = index,
                                       .virtualization = STATE_VIRTUALIZATION_HOST_VGPU,
                                       .is_heterogeneous = 1,
                                       .ecc = STATE_NONE,
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
        state_write_device(state_page, index, &device);
        state_write_device_detail(state_page, index, &detail);
        assert_int_equal(catalog_publish(state_page, &device), 0);
}

static const struct state_instance instances[] = {
        { .id = FIXTURE_TRAIN,
          .state = STATE_RUNNING,
          .n_processes = 1,
          .tenant_uid = 1000,
          .utilization_gpu = 20,
          .utilization_memory = 5,
          .frame_buffer_quota = 32 * GIB,
          .frame_buffer_used = 6 * GIB,
          .uuid = FIXTURE_TRAIN_UUID,
          .name = "train" },
        { .id = FIXTURE_INFER,
          .state = STATE_IDLE,
          .n_processes = 1,
          .tenant_uid = 1001,
          .frame_buffer_quota = 17 * GIB,
          .frame_buffer_used = 3 * GIB,
          .uuid = "e5c1b1a0-0000-4000-8000-000000000001",
          .name = "infer" },
        { .id = FIXTURE_ASLEEP,
          .state = STATE_SUSPENDED,
          .tenant_uid = 1000,
          .frame_buffer_quota = 8 * GIB,
          .uuid = "e5c1b1a0-0000-4000-8000-000000000002",
          .name = "asleep" },
};

static const struct state_host host = { .supported_min = FIXTURE_VGPU_VERSION,
                                        .supported_max = FIXTURE_VGPU_VERSION,
                                        .current_min = FIXTURE_VGPU_VERSION,
                                        .current_max = FIXTURE_VGPU_VERSION,
                                        .can_mix_sizes = 1 };

static const struct state_process processes[] = {
        { .pid = 4242,
          .instance = FIXTURE_TRAIN,
          .utilization_gpu = 20,
          .memory_used = 6 * GIB,
          .start_ns = 1700000000000000000,
          .name = "train.py" },
        { .pid = 4343, .instance = FIXTURE_INFER, .memory_used = 3 * GIB, .name = "server" },
};

/* A vGPU of the manager's own, whose machine is the tenant. */
static void add_instance(struct state_page *state_page, uint32_t slot,
                         const struct state_instance *like)
{
        struct state_instance instance = *like;
        struct state_vm vm = { .id_kind = STATE_VM_DOMAIN,
                               .licence_expiry = { .status = STATE_EXPIRY_PERMANENT },
                               .driver_version = "580.159.04",
                               .pci_bus_id = "0000:1a:00.0" };

        instance.type_id = catalog_type_of_quota(state_page, 0, instance.frame_buffer_quota);
        instance.guest_driver = STATE_GUEST_DRIVER_RUNNING;
        instance.licence = STATE_LICENCE_LICENSED;
        instance.gpu_instance = STATE_NONE;
        instance.placement = STATE_PLACEMENT_NONE;
        instance.ecc = STATE_NONE;
        instance.accounting = 1;
        instance.encoder_capacity = 100;
        instance.vgpu_version = FIXTURE_VGPU_VERSION;
        instance.can_migrate = 1;
        snprintf(vm.id, sizeof(vm.id), "%u", instance.tenant_uid);
        snprintf(vm.name, sizeof(vm.name), "%s", instance.name);
        state_write_instance(state_page, slot, &instance);
        state_write_vm(state_page, slot, &vm);
}

static void add_process(struct state_page *state_page, uint32_t i)
{
        struct state_account account = { .instance = processes[i].instance,
                                         .pid = processes[i].pid,
                                         .is_running = 1,
                                         .utilization_gpu = STATE_NONE,
                                         .utilization_memory = STATE_NONE,
                                         .max_memory = processes[i].memory_used,
                                         .start_us = processes[i].start_ns / 1000 };

        state_write_process(state_page, 7 + i, &processes[i]);
        state_append_account(state_page, 5 + i, &account);
}

void fixture_beat(struct fixture *fixture, uint64_t ago_ns)
{
        fixture->state_page->heartbeat_ns = clock_now(CLOCK_MONOTONIC) - ago_ns;
}

void fixture_update_offers(struct fixture *fixture, uint32_t device)
{
        struct state_instance instance;
        uint64_t left = FIXTURE_MEMORY;

        for (uint32_t i = 0; i < STATE_INSTANCES_MAX; i++)
                if (state_read_instance(fixture->state_page, i, &instance) &&
                    instance.device == device && instance.state != STATE_SUSPENDED)
                        left -= instance.frame_buffer_quota;
        catalog_update_offers(fixture->state_page, state_site_of_device(device), left, true);
}

void fixture_publish(struct fixture *fixture)
{
        state_close(fixture->state_page);
        assert_int_equal(state_create(&fixture->state_page, fixture->path, NULL), 0);
        fixture->state_page->simulated = 1;
        state_write_host(fixture->state_page, 0, &host);
        snprintf(fixture->state_page->driver_name, sizeof(fixture->state_page->driver_name),
                 "580.159.04");
        for (uint32_t i = 0; i < 2; i++)
                add_device(fixture->state_page, i);
        fixture->state_page->n_devices = 2;
        for (uint32_t i = 0; i < 3; i++)
                add_instance(fixture->state_page, 5 + i, &instances[i]);
        fixture_update_offers(fixture, 0);
        for (uint32_t i = 0; i < 2; i++)
                add_process(fixture->state_page, i);
        fixture_beat(fixture, 0);
}

struct fixture *fixture_new(void)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        /* A state page is a large file of holes: where files are memory it costs nothing. */
        snprintf(fixture->directory, sizeof(fixture->directory), "%s/openvgpu-test-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert_non_null(mkdtemp(fixture->directory));
        assert_int_equal(paths_join(fixture->path, fixture->directory, PATHS_STATE_PAGE), 0);
        setenv("OPENVGPU_RUN", fixture->directory, 1);
        fixture_publish(fixture);
        return fixture;
}

struct fixture *fixture_free(struct fixture *fixture)
{
        if (!fixture)
                return NULL;
        state_close(fixture->state_page);
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
