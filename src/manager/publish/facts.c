/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where NVML says "virtual machine", we have the tenant: its id is the user id of the
 * owner, its name that of the vGPU. The guest driver is the host's, loaded from the start; a vGPU of ours
 * needs no licence, which NVML's clients understand best as a permanent one.
 */
#include "manager/publish/facts.h"

#include <stdio.h>
#include <string.h>

#include "catalog/board.h"
#include "catalog/catalog.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/session.h"

void facts_of_host(struct state_host *ret_record, const struct manager *manager)
{
        (void)manager;
        *ret_record = (struct state_host){
                .supported_min = FACTS_VGPU_VERSION,
                .supported_max = FACTS_VGPU_VERSION,
                .current_min = FACTS_VGPU_VERSION,
                .current_max = FACTS_VGPU_VERSION,
                .can_mix_sizes = 1,
        };
}

static uint32_t read_pci_id(const char *pci_bus_id, const char *device, const char *vendor)
{
        unsigned int domain, bus, slot, value[2] = { 0 };
        const char *const names[2] = { device, vendor };

        if (sscanf(pci_bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3)
                return 0;
        for (int i = 0; i < 2; i++) {
                char path[128];
                FILE *file;

                snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.0/%s", domain,
                         bus, slot, names[i]);
                file = fopen(path, "re");
                if (!file || fscanf(file, "%x", &value[i]) != 1)
                        value[i] = 0;
                if (file)
                        fclose(file);
        }
        return value[0] << 16 | value[1];
}

static void read_pci_ids(const struct device *device, struct state_device *record)
{
        record->pci_device_id = read_pci_id(device->pci_bus_id, "device", "vendor");
        record->pci_subsystem_id =
                read_pci_id(device->pci_bus_id, "subsystem_device", "subsystem_vendor");
}

#define VENDOR 0x10deu

static void simulate_pci_ids(const struct device *device, struct state_device *record)
{
        const struct catalog_board *board = catalog_find_product(device->name);

        if (!board)
                return;
        record->pci_device_id = (uint32_t)board->pci_device << 16 | VENDOR;
        record->pci_subsystem_id = (uint32_t)board->pci_subsystem << 16 | VENDOR;
}

/* ECC is NONE: NVIDIA's library knows, simulated memory has none. */
void facts_of_device(struct state_device *ret_record, const struct device *device)
{
        const struct catalog_board *board = catalog_find_product(device->name);
        const state_switch mig = board && board->mig ? 0 : STATE_NONE;

        *ret_record = (struct state_device){
                .index = device->index,
                .driver_version = device->driver_version,
                .virtualization = STATE_VIRTUALIZATION_HOST_VGPU,
                .is_heterogeneous = 1, /* memory is mapped page by page: any mix fits */
                .mig = mig,
                .mig_pending = mig,
                .ecc = STATE_NONE,
                .ecc_pending = STATE_NONE,
                .accounting = 1,
                .can_migrate = 1,
                .memory_total = device->memory_total,
        };
        (void)sscanf(device->pci_bus_id, "%x:%x:%x", &ret_record->pci_domain, &ret_record->pci_bus,
                     &ret_record->pci_device);
        if (device->manager->simulation[0])
                simulate_pci_ids(device, ret_record);
        else
                read_pci_ids(device, ret_record);
        snprintf(ret_record->uuid, sizeof(ret_record->uuid), "%s", device->uuid);
        snprintf(ret_record->name, sizeof(ret_record->name), "%s", device->name);
}

/* The text's last word has bits for ECC and SR-IOV: neither concerns a move of ours. */
void facts_of_device_detail(struct state_device_detail *ret_record, const struct device *device,
                            const struct state_device *record)
{
        *ret_record = (struct state_device_detail){
                .capability = { [STATE_CAN_FRACTIONAL] = 1,
                                [STATE_CAN_MIX_PROFILES] = 1,
                                [STATE_CAN_MIX_SIZES] = 1 },
                .scheduler = catalog_scheduler_limits,
                .brand = STATE_NONE,
                .architecture = STATE_NONE,
                .compute_major = STATE_NONE,
                .compute_minor = STATE_NONE,
                .n_cores = STATE_NONE,
                .memory_bus_width = STATE_NONE,
                .minor_number = device->index,
        };
        snprintf(ret_record->metadata_text, sizeof(ret_record->metadata_text), "%04X%04X%08X",
                 record->pci_device_id >> 16, record->pci_subsystem_id >> 16, 0u);
}

/* The driver's own time slicing. */
void facts_of_scheduler(struct state_scheduler *ret_record)
{
        *ret_record = (struct state_scheduler){
                .policy = STATE_POLICY_BEST_EFFORT,
                .arr = STATE_ARR_DISABLED,
        };
}

static uint32_t add_percent(uint32_t a, uint32_t b)
{
        return a + b > 100 ? 100 : a + b;
}

void facts_of_usage(struct state_device *record, const struct device *device)
{
        const struct state_sample *load = &device->virtual_load;
        const uint32_t *percent = device->meter.percent;

        record->utilization_gpu = add_percent(percent[METER_SM], load->gpu);
        record->utilization_memory = add_percent(percent[METER_MEMORY], load->memory);
        record->utilization_encoder = add_percent(percent[METER_ENCODER], load->encoder);
        record->utilization_decoder = add_percent(percent[METER_DECODER], load->decoder);
        record->utilization_jpeg = add_percent(percent[METER_JPEG], load->jpeg);
        record->utilization_ofa = add_percent(percent[METER_OFA], load->ofa);
}

/* Where @part is among the parts of its vGPU. */
static size_t get_number(const struct instance *instance, const struct instance_part *part)
{
        return (size_t)(part - instance->part);
}

static uint64_t get_runtime_state(const struct instance *instance, const struct instance_part *part)
{
        const struct guest *guest;
        uint64_t sum = 0;

        list_for_each(guest, &instance->guests, link)
                if (!guest_is_dead(guest))
                        sum += guest->meter.part[get_number(instance, part)].context_bytes;
        return sum;
}

void facts_of_instance(struct state_instance *ret_record, const struct instance *instance,
                       const struct instance_part *part)
{
        *ret_record = (struct state_instance){
                .id = part->id,
                .device = part->device->index,
                .state = instance->state,
                .n_processes = (uint32_t)guests_count(instance),
                .tenant_uid = instance->owner,
                .guest_driver = STATE_GUEST_DRIVER_RUNNING,
                .licence = STATE_LICENCE_LICENSED,
                .gpu_instance = STATE_NONE,
                .placement = STATE_PLACEMENT_NONE,
                .ecc = STATE_NONE,
                .accounting = 1,
                .encoder_capacity = instance->encoder_capacity,
                .can_migrate = 1,
                .frame_buffer_quota = instance->frame_buffer,
                .frame_buffer_used = guests_get_used_of(instance, part),
                .runtime_state_size = get_runtime_state(instance, part),
                .utilization_gpu = part->meter.percent[METER_SM],
                .utilization_memory = part->meter.percent[METER_MEMORY],
                .utilization_encoder = part->meter.percent[METER_ENCODER],
                .utilization_decoder = part->meter.percent[METER_DECODER],
                .utilization_jpeg = part->meter.percent[METER_JPEG],
                .utilization_ofa = part->meter.percent[METER_OFA],
                .created_ns = instance->created_ns,
        };
        snprintf(ret_record->uuid, sizeof(ret_record->uuid), "%s", instance->uuid);
        snprintf(ret_record->name, sizeof(ret_record->name), "%s", instance->name);
}

/* The same words of the gates for which vgpud refuses to suspend or to move (broadcast.c). */
uint64_t facts_get_uses(const struct instance *instance)
{
        const struct guest *guest;
        uint64_t uses = 0;

        list_for_each(guest, &instance->guests, link) {
                struct page_use use;

                if (guest_is_dead(guest))
                        continue;
                guest_get_use(guest, &use);
                uses |= (use.holds & (GATE_HOLDS_MANAGED | GATE_HOLDS_MANAGED_POOL)
                                 ? STATE_USES_MANAGED
                                 : 0) |
                        (use.holds & (GATE_HOLDS_IMPORTED | GATE_HOLDS_FABRIC |
                                      GATE_HOLDS_EXPORTED | GATE_HOLDS_UNPROVEN)
                                 ? STATE_USES_IMPORTED
                                 : 0) |
                        (use.holds & (GATE_HOLDS_REGISTERED | GATE_HOLDS_MULTICAST |
                                      GATE_HOLDS_HOST_POOL)
                                 ? STATE_USES_REGISTERED
                                 : 0);
        }
        return uses;
}

void facts_of_vm(struct state_vm *ret_record, const struct instance *instance,
                 const struct instance_part *part)
{
        *ret_record = (struct state_vm){
                .id_kind = STATE_VM_DOMAIN,
                .licence_expiry = { .status = STATE_EXPIRY_PERMANENT },
                .uses = facts_get_uses(instance),
        };
        snprintf(ret_record->id, sizeof(ret_record->id), "%u", (unsigned int)instance->owner);
        snprintf(ret_record->name, sizeof(ret_record->name), "%s", instance->name);
        snprintf(ret_record->driver_version, sizeof(ret_record->driver_version), "%s",
                 instance->manager->driver_version);
        /* A guest sees the device where the host sees it. */
        snprintf(ret_record->pci_bus_id, sizeof(ret_record->pci_bus_id), "%.31s",
                 part->device->pci_bus_id);
}

static const uint32_t *get_percent(const struct guest *guest, const struct instance_part *part)
{
        return guest->meter.part[get_number(guest->instance, part)].percent;
}

void facts_of_use(struct guest_shown *ret_shown, const struct guest *guest,
                  const struct instance_part *part)
{
        struct page_use use;

        *ret_shown = (struct guest_shown){ 0 };
        guest_get_use_of(guest, part, &use);
        ret_shown->memory_used = use.movable + use.fixed;
        ret_shown->gpu_ns = guest->meter.part[get_number(guest->instance, part)].busy_ns[METER_SM];
        memcpy(ret_shown->percent, get_percent(guest, part), sizeof(ret_shown->percent));
}

void facts_of_guest(struct state_process *ret_record, const struct guest *guest,
                    const struct instance_part *part)
{
        const uint32_t *percent = get_percent(guest, part);
        struct page_use use;

        guest_get_use_of(guest, part, &use);
        *ret_record = (struct state_process){
                .pid = (uint32_t)guest->pid,
                .instance = part->id,
                .device = part->device->index,
                .kind = STATE_COMPUTE,
                .utilization_gpu = percent[METER_SM],
                .utilization_memory = percent[METER_MEMORY],
                .utilization_encoder = percent[METER_ENCODER],
                .utilization_decoder = percent[METER_DECODER],
                .utilization_jpeg = percent[METER_JPEG],
                .utilization_ofa = percent[METER_OFA],
                .memory_used = use.movable + use.fixed,
                .start_ns = guest->joined_ns,
        };
        snprintf(ret_record->name, sizeof(ret_record->name), "%s", guest->name);
}

static const struct instance_part *get_part_of(const struct guest *guest,
                                               const struct session *session)
{
        const struct instance_part *part = instance_find_part(guest->instance, session->device);

        return part ? part : &guest->instance->part[0];
}

void facts_of_encoder_session(struct state_encoder_session *ret_record, const struct guest *guest,
                              const struct session *session)
{
        const struct sampler_session *told = &session->told;

        *ret_record = (struct state_encoder_session){
                .instance = get_part_of(guest, session)->id,
                .device = session->device->index,
                .id = told->id,
                .pid = (uint32_t)guest->pid,
                .codec = told->kind,
                .width = told->width,
                .height = told->height,
                .fps = told->fps,
                .latency = told->latency_us,
                .start_us = session->start_us,
        };
}

void facts_of_capture_session(struct state_capture_session *ret_record, const struct guest *guest,
                              const struct session *session)
{
        const struct sampler_session *told = &session->told;

        *ret_record = (struct state_capture_session){
                .instance = get_part_of(guest, session)->id,
                .device = session->device->index,
                .id = told->id,
                .pid = (uint32_t)guest->pid,
                .display = told->display,
                .kind = told->kind,
                .flags = told->flags,
                .max_width = told->max_width,
                .max_height = told->max_height,
                .width = told->width,
                .height = told->height,
                .fps = told->fps,
                .latency = told->latency_us,
                .start_us = session->start_us,
        };
}
