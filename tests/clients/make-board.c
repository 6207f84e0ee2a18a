/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-board PATH: publish a board as a manager would, for clients of NVML to read.
 *
 * Two devices, three vGPUs (the third is suspended), two processes, sessions, samples, accounts, a
 * scheduler with turns, sensors. The values are chosen to be recognizable in a client's output;
 * test_clients.py looks for them.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "board/board.h"
#include "catalog/catalog.h"

#define FIRST_ID     3251634213u
#define VGPU_VERSION 0x1c0001u

static const struct board_device_detail detail = {
        .capability = { [BOARD_CAN_FRACTIONAL] = 1,
                        [BOARD_CAN_MIX_PROFILES] = 1,
                        [BOARD_CAN_MIX_SIZES] = 1 },
        .scheduler = { .policy = { BOARD_POLICY_BEST_EFFORT, BOARD_POLICY_EQUAL_SHARE,
                                   BOARD_POLICY_FIXED_SHARE },
                       .time_slice_min = 1000000,
                       .time_slice_max = 30000000,
                       .can_arr = 1,
                       .frequency_min = 63,
                       .frequency_max = 960,
                       .averaging_min = 1,
                       .averaging_max = 60 },
        .brand = BOARD_NONE,
        .architecture = BOARD_NONE,
        .compute_major = BOARD_NONE,
        .n_cores = 16896,
        .memory_bus_width = 6016,
        .bar1_total = 256 * GIB,
        .metadata_text = "233518BE00000001",
        .serial = "1654422005434",
        .vbios = "96.00.BC.00.01",
        .part_number = "900-21010-0040-000",
};

static const struct board_sensors sensors = { .temperature = 34,
                                              .temperature_slowdown = 90,
                                              .temperature_shutdown = 95,
                                              .fan = BOARD_NONE,
                                              .power = 121500,
                                              .power_limit = 700000,
                                              .power_limit_min = 200000,
                                              .power_limit_max = 700000,
                                              .clock_graphics = 1980,
                                              .clock_sm = 1980,
                                              .clock_memory = 3201,
                                              .clock_video = 1545,
                                              .clock_graphics_max = 1980,
                                              .clock_sm_max = 1980,
                                              .clock_memory_max = 3201,
                                              .clock_video_max = 1545,
                                              .pcie_generation = 5,
                                              .pcie_generation_max = 5,
                                              .pcie_width = 16,
                                              .pcie_width_max = 16,
                                              .pcie_tx = 1000,
                                              .pcie_rx = 2000 };

static void make_scheduler(struct board *board, uint32_t device)
{
        const struct board_scheduler scheduler = { .policy = BOARD_POLICY_EQUAL_SHARE,
                                                   .arr = BOARD_ARR_DISABLED,
                                                   .time_slice = 2083000 };
        const struct board_turn turn = { .timestamp = 1700000000000000000,
                                         .run = 1234567,
                                         .run_total = 7654321,
                                         .target = 2083000,
                                         .run_list = FIRST_ID,
                                         .weight = 1 };
        uint32_t slot =
                board_slot_of_scheduler(board_site_of_device(device), BOARD_ENGINE_GRAPHICS);

        board_write_scheduler(board, slot, &scheduler);
        board_append_turn(board, slot, &turn);
}

static void make_device(struct board *board, uint32_t index)
{
        struct board_device device = { .index = index,
                                       .virtualization = BOARD_VIRTUALIZATION_HOST_VGPU,
                                       .mixes_sizes = 1,
                                       .ecc = 1,
                                       .ecc_pending = 1,
                                       .accounting = 1,
                                       .can_migrate = 1,
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
        board_write_device_detail(board, index, &detail);
        board_write_sensors(board, index, &sensors);
        catalog_publish(board, &device);
        make_scheduler(board, index);
}

static void make_vm(struct board *board, uint32_t slot, const char *name)
{
        struct board_vm vm = { .id_kind = BOARD_VM_DOMAIN,
                               .licence_expiry = { .status = BOARD_EXPIRY_PERMANENT },
                               .driver_version = "570.86.10",
                               .pci_bus_id = "00000000:02:04.0" };

        if (slot == 1)
                vm.licence_expiry = (struct board_expiry){ .status = BOARD_EXPIRY_VALID,
                                                           .year = 2031,
                                                           .month = 12,
                                                           .day = 24,
                                                           .hour = 5,
                                                           .minute = 6,
                                                           .second = 7 };
        snprintf(vm.id, sizeof(vm.id), "%u", 1000 + slot);
        snprintf(vm.name, sizeof(vm.name), "%s", name);
        snprintf(vm.mdev_uuid, sizeof(vm.mdev_uuid), "a5c1b1a0-0000-4000-8000-00000000000%u", slot);
        board_write_vm(board, slot, &vm);
}

static void make_instance(struct board *board, uint32_t slot, const char *name, uint64_t quota,
                          uint64_t used, uint32_t state)
{
        struct board_instance instance = { .id = FIRST_ID + slot,
                                           .state = state,
                                           .n_processes = 1,
                                           .tenant_uid = 1000 + slot,
                                           .utilization_gpu = 20 + slot,
                                           .utilization_memory = 5 + slot,
                                           .guest_driver = BOARD_GUEST_DRIVER_RUNNING,
                                           .licence = BOARD_LICENCE_LICENSED,
                                           .gpu_instance = BOARD_NONE,
                                           .placement = 35 * slot,
                                           .placement_size = 35,
                                           .ecc = 1,
                                           .accounting = 1,
                                           .encoder_capacity = 70,
                                           .vgpu_version = VGPU_VERSION,
                                           .can_migrate = 1,
                                           .frame_buffer_quota = quota,
                                           .frame_buffer_used = used };
        const struct board_sample sample = { .timestamp_us = clock_now(CLOCK_REALTIME) / 1000,
                                             .instance = instance.id,
                                             .gpu = 20 + slot,
                                             .memory = 5 + slot,
                                             .encoder = 1 + slot,
                                             .decoder = 2 + slot };

        snprintf(instance.name, sizeof(instance.name), "%s", name);
        snprintf(instance.uuid, sizeof(instance.uuid), "e5c1b1a0-0000-4000-8000-00000000000%u",
                 slot);
        instance.type_id = catalog_type_of_quota(board, 0, quota);
        board_write_instance(board, slot, &instance);
        board_append_sample(board, slot, &sample);
        make_vm(board, slot, name);
}

static void make_process(struct board *board, uint32_t slot, uint32_t pid, uint64_t used)
{
        struct board_process process = { .pid = pid,
                                         .instance = FIRST_ID + slot,
                                         .utilization_gpu = 20 + slot,
                                         .memory_used = used,
                                         .start_ns = 1700000000000000000 };
        const struct board_sample sample = { .timestamp_us = clock_now(CLOCK_REALTIME) / 1000,
                                             .instance = FIRST_ID + slot,
                                             .pid = pid,
                                             .gpu = 20 + slot,
                                             .memory = 5 + slot };
        const struct board_account account = { .instance = FIRST_ID + slot,
                                               .pid = pid,
                                               .is_running = 1,
                                               .utilization_gpu = 19,
                                               .utilization_memory = 4,
                                               .max_memory = used,
                                               .start_us = 1700000000000000 };

        snprintf(process.name, sizeof(process.name), "train-%u", slot);
        board_write_process(board, slot, &process);
        board_append_process_sample(board, slot, &sample);
        board_append_account(board, slot, &account);
}

static void make_sessions(struct board *board, uint32_t slot)
{
        const struct board_encoder_session encoder = { .instance = FIRST_ID + slot,
                                                       .id = 1 + slot,
                                                       .pid = 777,
                                                       .codec = 0,
                                                       .width = 1920,
                                                       .height = 1080,
                                                       .fps = 30,
                                                       .latency = 2000 };
        const struct board_capture_session capture = { .instance = FIRST_ID + slot,
                                                       .id = 5 + slot,
                                                       .pid = 778,
                                                       .kind = 1,
                                                       .max_width = 3840,
                                                       .max_height = 2160,
                                                       .width = 2560,
                                                       .height = 1440,
                                                       .fps = 25,
                                                       .latency = 3000 };

        board_write_encoder_session(board, slot, &encoder);
        board_write_capture_session(board, slot, &capture);
}

int main(int argc, char **argv)
{
        struct board *board;
        int r = argc == 2 ? board_create(&board, argv[1], NULL) : -1;

        if (r < 0) {
                fprintf(stderr, "make-board: cannot create the board: %s\n",
                        argc == 2 ? strerror(-r) : "want one argument, its path");
                return 1;
        }
        board->simulated = 1;
        snprintf(board->driver_name, sizeof(board->driver_name), "580.159.04");
        board_write_host(board, 0,
                         &(struct board_host){ .supported_min = 0x180001,
                                               .supported_max = VGPU_VERSION,
                                               .current_min = 0x180001,
                                               .current_max = VGPU_VERSION,
                                               .can_mix_sizes = 1 });
        for (uint32_t i = 0; i < 2; i++)
                make_device(board, i);
        board->n_devices = 2;
        make_instance(board, 0, "tenant-a", 32 * GIB, 6000 * MIB, BOARD_RUNNING);
        make_instance(board, 1, "tenant-b", 17 * GIB, 3000 * MIB, BOARD_RUNNING);
        make_instance(board, 2, "tenant-c", 8 * GIB, 0, BOARD_SUSPENDED);
        catalog_update_offers(board, board_site_of_device(0), 143771 * MIB - 49 * GIB, true);
        make_process(board, 0, 4242, 6000 * MIB);
        make_process(board, 1, 4343, 3000 * MIB);
        for (uint32_t i = 0; i < 2; i++)
                make_sessions(board, i);
        board->heartbeat_ns = clock_now(CLOCK_MONOTONIC);
        return 0;
}
