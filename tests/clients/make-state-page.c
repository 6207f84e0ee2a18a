/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make-state-page PATH: publish a state page as a manager would, for clients of NVML to read.
 *
 * Two devices, three vGPUs (the third is suspended), two processes, sessions, samples, accounts, a
 * scheduler with turns, sensors. The values are chosen to be recognizable in a client's output;
 * test_clients.py looks for them.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "catalog/catalog.h"
#include "state/state-page.h"

#define FIRST_ID     3251634213u
#define VGPU_VERSION 0x1c0001u

static const struct state_device_detail detail = {
        .capability = { [STATE_CAN_FRACTIONAL] = 1,
                        [STATE_CAN_MIX_PROFILES] = 1,
                        [STATE_CAN_MIX_SIZES] = 1 },
        .scheduler = { .policy = { STATE_POLICY_BEST_EFFORT, STATE_POLICY_EQUAL_SHARE,
                                   STATE_POLICY_FIXED_SHARE },
                       .time_slice_min = 1000000,
                       .time_slice_max = 30000000,
                       .can_arr = 1,
                       .frequency_min = 63,
                       .frequency_max = 960,
                       .averaging_min = 1,
                       .averaging_max = 60 },
        .brand = STATE_NONE,
        .architecture = STATE_NONE,
        .compute_major = STATE_NONE,
        .n_cores = 16896,
        .memory_bus_width = 6016,
        .bar1_total = 256 * GIB,
        .metadata_text = "233518BE00000001",
        .serial = "1654422005434",
        .vbios = "96.00.BC.00.01",
        .part_number = "900-21010-0040-000",
};

static const struct state_sensors sensors = { .temperature = 34,
                                              .temperature_slowdown = 90,
                                              .temperature_shutdown = 95,
                                              .fan = STATE_NONE,
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

static void make_scheduler(struct state_page *state_page, uint32_t device)
{
        const struct state_scheduler scheduler = { .policy = STATE_POLICY_EQUAL_SHARE,
                                                   .arr = STATE_ARR_DISABLED,
                                                   .time_slice = 2083000 };
        const struct state_turn turn = { .timestamp = 1700000000000000000,
                                         .run = 1234567,
                                         .run_total = 7654321,
                                         .target = 2083000,
                                         .run_list = FIRST_ID,
                                         .weight = 1 };
        uint32_t slot =
                state_slot_of_scheduler(state_site_of_device(device), STATE_ENGINE_GRAPHICS);

        state_write_scheduler(state_page, slot, &scheduler);
        state_append_turn(state_page, slot, &turn);
}

static void make_device(struct state_page *state_page, uint32_t index)
{
        struct state_device device = { .index = index,
                                       .virtualization = STATE_VIRTUALIZATION_HOST_VGPU,
                                       .is_heterogeneous = 1,
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
        state_write_device(state_page, index, &device);
        state_write_device_detail(state_page, index, &detail);
        state_write_sensors(state_page, index, &sensors);
        catalog_publish(state_page, &device);
        make_scheduler(state_page, index);
}

static void make_vm(struct state_page *state_page, uint32_t slot, const char *name)
{
        struct state_vm vm = { .id_kind = STATE_VM_DOMAIN,
                               .licence_expiry = { .status = STATE_EXPIRY_PERMANENT },
                               .driver_version = "570.86.10",
                               .pci_bus_id = "00000000:02:04.0" };

        if (slot == 1)
                vm.licence_expiry = (struct state_expiry){ .status = STATE_EXPIRY_VALID,
                                                           .year = 2031,
                                                           .month = 12,
                                                           .day = 24,
                                                           .hour = 5,
                                                           .minute = 6,
                                                           .second = 7 };
        snprintf(vm.id, sizeof(vm.id), "%u", 1000 + slot);
        snprintf(vm.name, sizeof(vm.name), "%s", name);
        snprintf(vm.mdev_uuid, sizeof(vm.mdev_uuid), "a5c1b1a0-0000-4000-8000-00000000000%u", slot);
        state_write_vm(state_page, slot, &vm);
}

static void make_instance(struct state_page *state_page, uint32_t slot, const char *name,
                          uint64_t quota, uint64_t used, uint32_t state)
{
        struct state_instance instance = { .id = FIRST_ID + slot,
                                           .state = state,
                                           .n_processes = 1,
                                           .tenant_uid = 1000 + slot,
                                           .utilization_gpu = 20 + slot,
                                           .utilization_memory = 5 + slot,
                                           .guest_driver = STATE_GUEST_DRIVER_RUNNING,
                                           .licence = STATE_LICENCE_LICENSED,
                                           .gpu_instance = STATE_NONE,
                                           .placement = 35 * slot,
                                           .placement_size = 35,
                                           .ecc = 1,
                                           .accounting = 1,
                                           .encoder_capacity = 70,
                                           .vgpu_version = VGPU_VERSION,
                                           .can_migrate = 1,
                                           .frame_buffer_quota = quota,
                                           .frame_buffer_used = used };
        const struct state_sample sample = { .timestamp_us = clock_now(CLOCK_REALTIME) / 1000,
                                             .instance = instance.id,
                                             .gpu = 20 + slot,
                                             .memory = 5 + slot,
                                             .encoder = 1 + slot,
                                             .decoder = 2 + slot };

        snprintf(instance.name, sizeof(instance.name), "%s", name);
        snprintf(instance.uuid, sizeof(instance.uuid), "e5c1b1a0-0000-4000-8000-00000000000%u",
                 slot);
        instance.type_id = catalog_type_of_quota(state_page, 0, quota);
        state_write_instance(state_page, slot, &instance);
        state_append_sample(state_page, slot, &sample);
        make_vm(state_page, slot, name);
}

static void make_process(struct state_page *state_page, uint32_t slot, uint32_t pid, uint64_t used)
{
        struct state_process process = { .pid = pid,
                                         .instance = FIRST_ID + slot,
                                         .utilization_gpu = 20 + slot,
                                         .memory_used = used,
                                         .start_ns = 1700000000000000000 };
        const struct state_sample sample = { .timestamp_us = clock_now(CLOCK_REALTIME) / 1000,
                                             .instance = FIRST_ID + slot,
                                             .pid = pid,
                                             .gpu = 20 + slot,
                                             .memory = 5 + slot };
        const struct state_account account = { .instance = FIRST_ID + slot,
                                               .pid = pid,
                                               .is_running = 1,
                                               .utilization_gpu = 19,
                                               .utilization_memory = 4,
                                               .max_memory = used,
                                               .start_us = 1700000000000000 };

        snprintf(process.name, sizeof(process.name), "train-%u", slot);
        state_write_process(state_page, slot, &process);
        state_append_process_sample(state_page, slot, &sample);
        state_append_account(state_page, slot, &account);
}

static void make_sessions(struct state_page *state_page, uint32_t slot)
{
        const struct state_encoder_session encoder = { .instance = FIRST_ID + slot,
                                                       .id = 1 + slot,
                                                       .pid = 777,
                                                       .codec = 0,
                                                       .width = 1920,
                                                       .height = 1080,
                                                       .fps = 30,
                                                       .latency = 2000 };
        const struct state_capture_session capture = { .instance = FIRST_ID + slot,
                                                       .id = 5 + slot,
                                                       .pid = 778,
                                                       .kind = 1,
                                                       .max_width = 3840,
                                                       .max_height = 2160,
                                                       .width = 2560,
                                                       .height = 1440,
                                                       .fps = 25,
                                                       .latency = 3000 };

        state_write_encoder_session(state_page, slot, &encoder);
        state_write_capture_session(state_page, slot, &capture);
}

int main(int argc, char **argv)
{
        struct state_page *state_page;
        int r = argc == 2 ? state_create(&state_page, argv[1], NULL) : -1;

        if (r < 0) {
                fprintf(stderr, "make-state-page: cannot create the state page: %s\n",
                        argc == 2 ? strerror(-r) : "want one argument, its path");
                return 1;
        }
        state_page->simulated = 1;
        snprintf(state_page->driver_name, sizeof(state_page->driver_name), "580.159.04");
        state_write_host(state_page, 0,
                         &(struct state_host){ .supported_min = 0x180001,
                                               .supported_max = VGPU_VERSION,
                                               .current_min = 0x180001,
                                               .current_max = VGPU_VERSION,
                                               .can_mix_sizes = 1 });
        for (uint32_t i = 0; i < 2; i++)
                make_device(state_page, i);
        state_page->n_devices = 2;
        make_instance(state_page, 0, "tenant-a", 32 * GIB, 6000 * MIB, STATE_RUNNING);
        make_instance(state_page, 1, "tenant-b", 17 * GIB, 3000 * MIB, STATE_RUNNING);
        make_instance(state_page, 2, "tenant-c", 8 * GIB, 0, STATE_SUSPENDED);
        catalog_update_offers(state_page, state_site_of_device(0), 143771 * MIB - 49 * GIB, true);
        make_process(state_page, 0, 4242, 6000 * MIB);
        make_process(state_page, 1, 4343, 3000 * MIB);
        for (uint32_t i = 0; i < 2; i++)
                make_sessions(state_page, i);
        state_page->heartbeat_ns = clock_now(CLOCK_MONOTONIC);
        return 0;
}
