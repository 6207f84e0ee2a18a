/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/test.h"
#include "catalog/catalog.h"

static void add_device(struct board *board, uint32_t index)
{
        struct board_device device = { .index = index,
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

static const struct board_process processes[] = {
        { .pid = 4242,
          .instance = FIXTURE_TRAIN,
          .utilization_gpu = 20,
          .memory_used = 6 * GIB,
          .start_ns = 1700000000000000000,
          .name = "train.py" },
        { .pid = 4343, .instance = FIXTURE_INFER, .memory_used = 3 * GIB, .name = "server" },
};

static void add_instance(struct board *board, uint32_t slot, const struct board_instance *like)
{
        struct board_instance instance = *like;

        instance.type_id = catalog_type_of_quota(board, 0, instance.frame_buffer_quota);
        board_write_instance(board, slot, &instance);
}

void fixture_beat(struct fixture *fixture, uint64_t ago_ns)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        fixture->board->heartbeat_ns =
                (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - ago_ns;
}

void fixture_publish(struct fixture *fixture)
{
        board_close(fixture->board);
        assert_int_equal(board_create(&fixture->board, fixture->path), 0);
        fixture->board->simulated = 1;
        snprintf(fixture->board->driver_name, sizeof(fixture->board->driver_name), "580.159.04");
        fixture_beat(fixture, 0);
        for (uint32_t i = 0; i < 2; i++)
                add_device(fixture->board, i);
        fixture->board->n_devices = 2;
        for (uint32_t i = 0; i < 3; i++)
                add_instance(fixture->board, 5 + i, &instances[i]);
        for (uint32_t i = 0; i < 2; i++)
                board_write_process(fixture->board, 7 + i, &processes[i]);
}

struct fixture *fixture_new(void)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        strcpy(fixture->directory, "/tmp/openvgpu-test-XXXXXX");
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
