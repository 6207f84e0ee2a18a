/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-board PATH: publish a board as a manager would, for clients of NVML to read.
 *
 * Two devices, three vGPUs (the third is suspended), two processes. The values are chosen to be
 * recognizable in a client's output; check-clients.py looks for them.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/size.h"
#include "board/board.h"
#include "catalog/catalog.h"

static void make_device(struct board *board, uint32_t index)
{
        struct board_device device = { .index = index,
                                       .pci_bus = 0x17 + index * 0x10,
                                       .pci_device_id = 0x233510de,
                                       .pci_subsystem_id = 0x18be10de,
                                       .n_instances = index == 0 ? 2 : 0,
                                       .utilization_gpu = 37,
                                       .utilization_memory = 12,
                                       .driver_version = 13000,
                                       .memory_total = 143771 * MIB,
                                       .memory_used = index == 0 ? 9000 * MIB : 0 };

        snprintf(device.uuid, sizeof(device.uuid), "GPU-11111111-2222-3333-4444-55555555555%u",
                 index);
        snprintf(device.name, sizeof(device.name), "NVIDIA H200");
        board_write_device(board, index, &device);
        catalog_publish(board, &device);
}

static void make_instance(struct board *board, uint32_t slot, const char *name, uint64_t quota,
                          uint64_t used, uint32_t state)
{
        struct board_instance instance = { .id = 3251634213u + slot,
                                           .state = state,
                                           .n_processes = 1,
                                           .tenant_uid = 1000 + slot,
                                           .utilization_gpu = 20 + slot,
                                           .utilization_memory = 5 + slot,
                                           .frame_buffer_quota = quota,
                                           .frame_buffer_used = used };

        snprintf(instance.name, sizeof(instance.name), "%s", name);
        snprintf(instance.uuid, sizeof(instance.uuid), "e5c1b1a0-0000-4000-8000-00000000000%u",
                 slot);
        instance.type_id = catalog_type_of_quota(board, 0, quota);
        board_write_instance(board, slot, &instance);
}

static void make_process(struct board *board, uint32_t slot, uint32_t pid, uint64_t used)
{
        struct board_process process = { .pid = pid,
                                         .instance = 3251634213u + slot,
                                         .utilization_gpu = 20 + slot,
                                         .memory_used = used,
                                         .start_ns = 1700000000000000000 };

        snprintf(process.name, sizeof(process.name), "train-%u", slot);
        board_write_process(board, slot, &process);
}

static void beat(struct board *board)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        board->heartbeat_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
        struct board *board;
        int r = argc == 2 ? board_create(&board, argv[1]) : -1;

        if (r < 0) {
                fprintf(stderr, "make-board: cannot create the board: %s\n",
                        argc == 2 ? strerror(-r) : "want one argument, its path");
                return 1;
        }
        board->simulated = 1;
        snprintf(board->driver_name, sizeof(board->driver_name), "580.159.04");
        for (uint32_t i = 0; i < 2; i++)
                make_device(board, i);
        board->n_devices = 2;
        make_instance(board, 0, "tenant-a", 32 * GIB, 6000 * MIB, BOARD_RUNNING);
        make_instance(board, 1, "tenant-b", 17 * GIB, 3000 * MIB, BOARD_RUNNING);
        make_instance(board, 2, "tenant-c", 8 * GIB, 0, BOARD_SUSPENDED);
        make_process(board, 0, 4242, 6000 * MIB);
        make_process(board, 1, 4343, 3000 * MIB);
        beat(board);
        return 0;
}
