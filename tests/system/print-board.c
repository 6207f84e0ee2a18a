/* SPDX-License-Identifier: Apache-2.0 */
/* print-board PATH: what is on a board, as lines of "noun place field=value ...", for tests to read. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "board/board.h"

static void print_host(const struct board *board)
{
        struct board_host host;

        if (board_read_host(board, 0, &host))
                printf("host 0 supported_min=%u supported_max=%u current_min=%u current_max=%u\n",
                       host.supported_min, host.supported_max, host.current_min, host.current_max);
}

static void print_device(const struct board *board, uint32_t index)
{
        struct board_device_detail detail;
        struct board_device device;

        if (!board_read_device(board, index, &device) ||
            !board_read_device_detail(board, index, &detail))
                return;
        printf("device %u name=%s lost=%u mixes_sizes=%u mig=%u ecc=%u instances=%u "
               "memory_total=%" PRIu64 " memory_used=%" PRIu64
               " gpu=%u capability_6=%u capability_7=%u capability_11=%u\n",
               index, device.name, device.is_lost, device.mixes_sizes, device.mig, device.ecc,
               device.n_instances, device.memory_total, device.memory_used, device.utilization_gpu,
               detail.capability[6], detail.capability[7], detail.capability[11]);
}

static void print_site(const struct board *board, const char *noun, uint32_t place, uint32_t site)
{
        struct board_scheduler scheduler;
        struct board_offers offers;
        struct board_type type;

        for (uint32_t engine = 1; engine <= BOARD_ENGINES; engine++)
                if (board_read_scheduler(board, board_slot_of_scheduler(site, engine), &scheduler))
                        printf("scheduler %s/%u/%u policy=%u arr=%u averaging=%u frequency=%u "
                               "time_slice=%u\n",
                               noun, place, engine, scheduler.policy, scheduler.arr,
                               scheduler.averaging_factor, scheduler.frequency,
                               scheduler.time_slice);
        if (!board_read_offers(board, site, &offers))
                return;
        for (uint32_t i = 0; i < offers.n; i++)
                if (board_read_type(board, offers.offer[i].type, &type))
                        printf("offer %s/%u/%u max=%u creatable=%u frame_buffer=%" PRIu64 "\n",
                               noun, place, type.id, offers.offer[i].max_instances,
                               offers.offer[i].n_creatable, type.frame_buffer);
}

static void print_events(const struct board *board, uint32_t index)
{
        uint64_t count = board_count_event(board, index);
        struct board_event event;

        for (uint64_t i = board_first_event(board, index); i < count; i++)
                if (board_read_event(board, index, i, &event))
                        printf("event %u/%" PRIu64 " kind=%" PRIu64 " data=%" PRIu64 "\n", index, i,
                               event.kind, event.data);
}

static void print_gpu_instance(const struct board *board, uint32_t slot)
{
        struct board_gpu_instance gpu_instance;

        if (!board_read_gpu_instance(board, slot, &gpu_instance))
                return;
        printf("gpu_instance %u/%u mixes_sizes=%u profile=%u\n", gpu_instance.device,
               gpu_instance.id, gpu_instance.mixes_sizes, gpu_instance.profile_id);
        print_site(board, "gpu_instance", gpu_instance.id, board_site_of_gpu_instance(slot));
}

static void print_instance(const struct board *board, uint32_t slot)
{
        struct board_instance instance;
        struct board_vm vm;

        if (!board_read_instance(board, slot, &instance) || !board_read_vm(board, slot, &vm))
                return;
        printf("instance %s slot=%u id=%u device=%u state=%u type=%u virtual=%u placement=%u "
               "placement_size=%u version=%u encoder_capacity=%u gpu=%u used=%" PRIu64
               " accounts=%" PRIu64 " samples=%" PRIu64 " vm=%s\n",
               instance.name, slot, instance.id, instance.device, instance.state, instance.type_id,
               instance.is_virtual, instance.placement, instance.placement_size,
               instance.vgpu_version, instance.encoder_capacity, instance.utilization_gpu,
               instance.frame_buffer_used, board_count_account(board, slot),
               board_count_sample(board, slot), vm.id);
}

static void print_accounts(const struct board *board, uint32_t slot)
{
        uint64_t count = board_count_account(board, slot);
        struct board_account account;

        for (uint64_t i = board_first_account(board, slot); i < count; i++)
                if (board_read_account(board, slot, i, &account))
                        printf("account %u/%u running=%u gpu=%u max_memory=%" PRIu64
                               " time_ms=%" PRIu64 "\n",
                               account.instance, account.pid, account.is_running,
                               account.utilization_gpu, account.max_memory, account.time_ms);
}

static void print_process(const struct board *board, uint32_t slot)
{
        struct board_process process;

        if (board_read_process(board, slot, &process))
                printf("process %u instance=%u gpu=%u used=%" PRIu64 " name=%s\n", process.pid,
                       process.instance, process.utilization_gpu, process.memory_used,
                       process.name);
}

int main(int argc, char **argv)
{
        const struct board *board;
        int r = argc == 2 ? board_map(&board, argv[1]) : -1;

        if (r < 0) {
                fprintf(stderr, "print-board: %s\n", argc == 2 ? strerror(-r) : "want a path");
                return 1;
        }
        print_host(board);
        for (uint32_t i = 0; i < board->n_devices; i++) {
                print_device(board, i);
                print_events(board, i);
                print_site(board, "device", i, board_site_of_device(i));
        }
        for (uint32_t i = 0; i < BOARD_GPU_INSTANCES_MAX; i++)
                print_gpu_instance(board, i);
        for (uint32_t i = 0; i < BOARD_INSTANCES_MAX; i++) {
                print_instance(board, i);
                print_accounts(board, i);
        }
        for (uint32_t i = 0; i < BOARD_PROCESSES_MAX; i++)
                print_process(board, i);
        return 0;
}
