/* SPDX-License-Identifier: Apache-2.0 */
/* print-state-page PATH: what is on a state page, as lines of "noun place field=value ...", for tests to read. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "state/state-page.h"

static void print_host(const struct state_page *state_page)
{
        struct state_host host;

        if (state_read_host(state_page, 0, &host))
                printf("host 0 supported_min=%u supported_max=%u current_min=%u current_max=%u\n",
                       host.supported_min, host.supported_max, host.current_min, host.current_max);
}

static void print_device(const struct state_page *state_page, uint32_t index)
{
        struct state_device_detail detail;
        struct state_device device;

        if (!state_read_device(state_page, index, &device) ||
            !state_read_device_detail(state_page, index, &detail))
                return;
        printf("device %u name=%s lost=%u is_heterogeneous=%u mig=%u ecc=%u instances=%u "
               "memory_total=%" PRIu64 " memory_used=%" PRIu64
               " gpu=%u capability_6=%u capability_7=%u capability_11=%u\n",
               index, device.name, device.is_lost, device.is_heterogeneous, device.mig, device.ecc,
               device.n_instances, device.memory_total, device.memory_used, device.utilization_gpu,
               detail.capability[6], detail.capability[7], detail.capability[11]);
}

static void print_site(const struct state_page *state_page, const char *noun, uint32_t place,
                       uint32_t site)
{
        struct state_scheduler scheduler;
        struct state_offers offers;
        struct state_type type;

        for (uint32_t engine = 1; engine <= STATE_ENGINES; engine++)
                if (state_read_scheduler(state_page, state_slot_of_scheduler(site, engine),
                                         &scheduler))
                        printf("scheduler %s/%u/%u policy=%u arr=%u averaging=%u frequency=%u "
                               "time_slice=%u\n",
                               noun, place, engine, scheduler.policy, scheduler.arr,
                               scheduler.averaging_factor, scheduler.frequency,
                               scheduler.time_slice);
        if (!state_read_offers(state_page, site, &offers))
                return;
        for (uint32_t i = 0; i < offers.n; i++)
                if (state_read_type(state_page, offers.offer[i].type, &type))
                        printf("offer %s/%u/%u max=%u creatable=%u frame_buffer=%" PRIu64 "\n",
                               noun, place, type.id, offers.offer[i].max_instances,
                               offers.offer[i].n_creatable, type.frame_buffer);
}

static void print_events(const struct state_page *state_page, uint32_t index)
{
        uint64_t count = state_count_event(state_page, index);
        struct state_event event;

        for (uint64_t i = state_first_event(state_page, index); i < count; i++)
                if (state_read_event(state_page, index, i, &event))
                        printf("event %u/%" PRIu64 " kind=%" PRIu64 " data=%" PRIu64
                               " severity=%u log_level=%u module=%.16s\n",
                               index, i, event.kind, event.data, event.operational.severity,
                               event.operational.log_level, event.operational.module);
}

static void print_gpu_instance(const struct state_page *state_page, uint32_t slot)
{
        struct state_gpu_instance gpu_instance;

        if (!state_read_gpu_instance(state_page, slot, &gpu_instance))
                return;
        printf("gpu_instance %u/%u is_heterogeneous=%u profile=%u\n", gpu_instance.device,
               gpu_instance.id, gpu_instance.is_heterogeneous, gpu_instance.profile_id);
        print_site(state_page, "gpu_instance", gpu_instance.id, state_site_of_gpu_instance(slot));
}

static void print_instance(const struct state_page *state_page, uint32_t slot)
{
        struct state_instance instance;
        struct state_vm vm;

        if (!state_read_instance(state_page, slot, &instance) ||
            !state_read_vm(state_page, slot, &vm))
                return;
        printf("instance %s slot=%u id=%u device=%u state=%u type=%u virtual=%u placement=%u "
               "placement_size=%u version=%u encoder_capacity=%u gpu=%u used=%" PRIu64
               " accounts=%" PRIu64 " samples=%" PRIu64 " vm=%s\n",
               instance.name, slot, instance.id, instance.device, instance.state, instance.type_id,
               instance.is_virtual, instance.placement, instance.placement_size,
               instance.vgpu_version, instance.encoder_capacity, instance.utilization_gpu,
               instance.frame_buffer_used, state_count_account(state_page, slot),
               state_count_sample(state_page, slot), vm.id);
}

static void print_accounts(const struct state_page *state_page, uint32_t slot)
{
        uint64_t count = state_count_account(state_page, slot);
        struct state_account account;

        for (uint64_t i = state_first_account(state_page, slot); i < count; i++)
                if (state_read_account(state_page, slot, i, &account))
                        printf("account %u/%u running=%u gpu=%u max_memory=%" PRIu64
                               " time_ms=%" PRIu64 "\n",
                               account.instance, account.pid, account.is_running,
                               account.utilization_gpu, account.max_memory, account.time_ms);
}

static void print_process(const struct state_page *state_page, uint32_t slot)
{
        struct state_process process;

        if (state_read_process(state_page, slot, &process))
                printf("process %u instance=%u gpu=%u used=%" PRIu64 " name=%s\n", process.pid,
                       process.instance, process.utilization_gpu, process.memory_used,
                       process.name);
}

int main(int argc, char **argv)
{
        const struct state_page *state_page;
        int r = argc == 2 ? state_map(&state_page, argv[1]) : -1;

        if (r < 0) {
                fprintf(stderr, "print-state-page: %s\n", argc == 2 ? strerror(-r) : "want a path");
                return 1;
        }
        print_host(state_page);
        for (uint32_t i = 0; i < state_page->n_devices; i++) {
                print_device(state_page, i);
                print_events(state_page, i);
                print_site(state_page, "device", i, state_site_of_device(i));
        }
        for (uint32_t i = 0; i < STATE_GPU_INSTANCES_MAX; i++)
                print_gpu_instance(state_page, i);
        for (uint32_t i = 0; i < STATE_INSTANCES_MAX; i++) {
                print_instance(state_page, i);
                print_accounts(state_page, i);
        }
        for (uint32_t i = 0; i < STATE_PROCESSES_MAX; i++)
                print_process(state_page, i);
        return 0;
}
