/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same facts by the names, units and labels of others, for dashboards that exist already. Those of
 * a device in DCGM's are the device's; with the label vgpu they are a vGPU's, as DCGM has it.
 */
#include <stdio.h>
#include <string.h>

#include "exporter/metrics.h"

#define MIB (1u << 20)

static void write_identity(struct labels *labels, const struct metrics_input *input,
                           const struct vgpu_usage_device *device)
{
        char node[32];

        snprintf(node, sizeof(node), "nvidia%u", device->index);
        labels_add_number(labels, "gpu", device->index);
        labels_add(labels, "UUID", device->uuid);
        labels_add(labels, "device", node);
        labels_add(labels, "modelName", device->name);
        labels_add(labels, "Hostname", input->hostname);
}

/* A vGPU on one of its devices: the same samples for those of one device and of several. */
struct share {
        const struct vgpu_usage_percents *percents;
        uint32_t device;
        size_t number; /* of the device among those of the vGPU */
        uint64_t quota, used;
};

static size_t count_shares(const struct vgpu_usage_instance *instance)
{
        return instance->n_parts > 1 ? instance->n_parts : 1;
}

static struct share get_share(const struct vgpu_usage_instance *instance, size_t number)
{
        const struct vgpu_usage_part *part;

        if (instance->n_parts < 2)
                return (struct share){ .percents = instance->percents,
                                       .device = instance->device,
                                       .quota = instance->frame_buffer,
                                       .used = instance->frame_buffer_used };
        part = instance->parts[number];
        return (struct share){ .percents = part->percents,
                               .device = part->device,
                               .number = number,
                               .quota = instance->frame_buffer / instance->n_parts,
                               .used = part->frame_buffer_used };
}

/* A fact of DCGM's: of a device and its sensors, of which it may be unknown; and of a vGPU. */
struct fact {
        const char *name, *help;
        bool (*of_device)(const struct vgpu_usage_device *device,
                          const struct vgpu_device_sensors *sensors, uint64_t *ret_value);
        uint64_t (*of_vgpu)(const struct share *share); /* or NULL */
};

static bool has_number(uint32_t number, uint64_t *ret_value)
{
        *ret_value = number;
        return number != VGPU_UNKNOWN;
}

#define OF_SENSORS(name_, member_)                                                        \
        static bool name_(const struct vgpu_usage_device *device,                         \
                          const struct vgpu_device_sensors *sensors, uint64_t *ret_value) \
        {                                                                                 \
                (void)device;                                                             \
                return sensors && has_number(sensors->member_, ret_value);                \
        }

OF_SENSORS(get_sm_clock, clock_sm_mhz)
OF_SENSORS(get_memory_clock, clock_memory_mhz)
OF_SENSORS(get_temperature, temperature)
OF_SENSORS(get_encoder, encoder_utilization)
OF_SENSORS(get_decoder, decoder_utilization)

static bool get_gpu(const struct vgpu_usage_device *device,
                    const struct vgpu_device_sensors *sensors, uint64_t *ret_value)
{
        (void)sensors;
        *ret_value = device->percents->gpu;
        return true;
}

static bool get_memory_busy(const struct vgpu_usage_device *device,
                            const struct vgpu_device_sensors *sensors, uint64_t *ret_value)
{
        (void)sensors;
        *ret_value = device->percents->memory;
        return true;
}

static bool get_power(const struct vgpu_usage_device *device,
                      const struct vgpu_device_sensors *sensors, uint64_t *ret_value)
{
        (void)device;
        *ret_value = sensors ? sensors->power_mw / 1000 : 0;
        return sensors && sensors->power_mw != VGPU_UNKNOWN;
}

static bool get_energy(const struct vgpu_usage_device *device,
                       const struct vgpu_device_sensors *sensors, uint64_t *ret_value)
{
        (void)device;
        *ret_value = sensors ? sensors->energy_mj : 0;
        return sensors && sensors->energy_mj != UINT64_MAX;
}

static bool get_fb_used(const struct vgpu_usage_device *device,
                        const struct vgpu_device_sensors *sensors, uint64_t *ret_value)
{
        bool is_known = sensors && sensors->memory_used != UINT64_MAX;

        *ret_value = (is_known ? sensors->memory_used : device->memory_used) / MIB;
        return true;
}

static bool get_fb_free(const struct vgpu_usage_device *device,
                        const struct vgpu_device_sensors *sensors, uint64_t *ret_value)
{
        bool is_known = sensors && sensors->memory_free != UINT64_MAX;

        *ret_value =
                (is_known ? sensors->memory_free : device->memory_total - device->memory_used) /
                MIB;
        return true;
}

static uint64_t get_vgpu_gpu(const struct share *share)
{
        return share->percents->gpu;
}

static uint64_t get_vgpu_memory(const struct share *share)
{
        return share->percents->memory;
}

static uint64_t get_vgpu_encoder(const struct share *share)
{
        return share->percents->encoder;
}

static uint64_t get_vgpu_decoder(const struct share *share)
{
        return share->percents->decoder;
}

static uint64_t get_vgpu_used(const struct share *share)
{
        return share->used / MIB;
}

static uint64_t get_vgpu_free(const struct share *share)
{
        return share->used < share->quota ? (share->quota - share->used) / MIB : 0;
}

static const struct fact facts[] = {
        { "DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", get_sm_clock, NULL },
        { "DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", get_memory_clock, NULL },
        { "DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", get_temperature, NULL },
        { "DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", get_power, NULL },
        { "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ).",
          get_energy, NULL },
        { "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", get_gpu, get_vgpu_gpu },
        { "DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", get_memory_busy,
          get_vgpu_memory },
        { "DCGM_FI_DEV_ENC_UTIL", "Encoder utilization (in %).", get_encoder, get_vgpu_encoder },
        { "DCGM_FI_DEV_DEC_UTIL", "Decoder utilization (in %).", get_decoder, get_vgpu_decoder },
        { "DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", get_fb_used, get_vgpu_used },
        { "DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", get_fb_free, get_vgpu_free },
};

static void write_fact_of_devices(struct text *text, const struct metrics_input *input,
                                  const struct fact *fact)
{
        uint64_t value;

        for (size_t i = 0; i < input->snapshot->n_devices; i++) {
                const struct vgpu_usage_device *device = input->snapshot->devices[i];
                struct labels labels = { .size = 0 };

                if (!fact->of_device(device, input->sensors ? input->sensors[i] : NULL, &value))
                        continue;
                write_identity(&labels, input, device);
                text_sample_integer(text, &labels, value);
        }
}

static const struct vgpu_usage_device *find_device(const struct vgpu_usage_snapshot *snapshot,
                                                   uint32_t index)
{
        for (size_t i = 0; i < snapshot->n_devices; i++)
                if (snapshot->devices[i]->index == index)
                        return snapshot->devices[i];
        return NULL;
}

static void write_fact_of_vgpu(struct text *text, const struct metrics_input *input,
                               const struct fact *fact, const struct vgpu_usage_instance *instance)
{
        for (size_t i = 0; i < count_shares(instance); i++) {
                const struct share share = get_share(instance, i);
                const struct vgpu_usage_device *device = find_device(input->snapshot, share.device);
                struct labels labels = { .size = 0 };

                if (!device)
                        continue;
                write_identity(&labels, input, device);
                labels_add(&labels, "vgpu", instance->name);
                text_sample_integer(text, &labels, fact->of_vgpu(&share));
        }
}

static void write_fact_of_vgpus(struct text *text, const struct metrics_input *input,
                                const struct fact *fact)
{
        for (size_t i = 0; fact->of_vgpu && i < input->snapshot->n_instances; i++)
                write_fact_of_vgpu(text, input, fact, input->snapshot->instances[i]);
}

/* DCGM's has no number of errors, only that of the last one; 0: none was seen. */
static void write_last_xid(struct text *text, const struct metrics_input *input)
{
        const struct vgpu_usage_snapshot *snapshot = input->snapshot;

        text_family(text, "DCGM_FI_DEV_XID_ERRORS", TEXT_GAUGE, NULL,
                    "Value of the last XID error encountered.");
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const struct xid_count *last = NULL;
                struct labels labels = { .size = 0 };

                for (size_t k = 0; k < input->n_xids; k++)
                        if (strcmp(input->xids[k].uuid, snapshot->devices[i]->uuid) == 0 &&
                            input->xids[k].number != XID_OTHERS &&
                            (!last || last->last < input->xids[k].last))
                                last = &input->xids[k];
                write_identity(&labels, input, snapshot->devices[i]);
                text_sample_integer(text, &labels, last ? last->number : 0);
        }
}

void metrics_write_dcgm(struct text *text, const struct metrics_input *input)
{
        for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
                text_family(text, facts[i].name, TEXT_GAUGE, NULL, facts[i].help);
                write_fact_of_devices(text, input, &facts[i]);
                write_fact_of_vgpus(text, input, &facts[i]);
        }
        write_last_xid(text, input);
}

/* HAMi's: its container is our vGPU; its "ratio" goes from 0 to 100. */

static void write_hami_vgpu(struct text *text, const struct metrics_input *input,
                            const struct vgpu_usage_instance *instance,
                            uint64_t (*get)(const struct share *share))
{
        for (size_t i = 0; i < count_shares(instance); i++) {
                const struct share share = get_share(instance, i);
                const struct vgpu_usage_device *device = find_device(input->snapshot, share.device);
                struct labels labels = { .size = 0 };

                labels_add(&labels, "namespace", "");
                labels_add(&labels, "pod", instance->name);
                labels_add(&labels, "container", instance->name);
                labels_add_number(&labels, "vdevice_index", share.number);
                labels_add(&labels, "device_uuid", device ? device->uuid : "");
                text_sample_integer(text, &labels, get(&share));
        }
}

static void write_hami_vgpus(struct text *text, const struct metrics_input *input, const char *name,
                             const char *help, uint64_t (*get)(const struct share *share))
{
        text_family(text, name, TEXT_GAUGE, NULL, help);
        for (size_t i = 0; i < input->snapshot->n_instances; i++)
                write_hami_vgpu(text, input, input->snapshot->instances[i], get);
}

static void write_hami_devices(struct text *text, const struct metrics_input *input,
                               const char *name, const char *help,
                               uint64_t (*get)(const struct vgpu_usage_device *device))
{
        const struct vgpu_usage_snapshot *snapshot = input->snapshot;

        text_family(text, name, TEXT_GAUGE, NULL, help);
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const struct vgpu_usage_device *device = snapshot->devices[i];
                struct labels labels = { .size = 0 };

                labels_add_number(&labels, "device_index", device->index);
                labels_add(&labels, "device_uuid", device->uuid);
                labels_add(&labels, "device_type", device->name);
                text_sample_integer(text, &labels, get(device));
        }
}

static uint64_t get_quota_bytes(const struct share *share)
{
        return share->quota;
}

static uint64_t get_used_bytes(const struct share *share)
{
        return share->used;
}

static uint64_t get_device_used_bytes(const struct vgpu_usage_device *device)
{
        return device->memory_used;
}

static uint64_t get_device_percent(const struct vgpu_usage_device *device)
{
        return device->percents->gpu;
}

void metrics_write_hami(struct text *text, const struct metrics_input *input)
{
        write_hami_devices(text, input, "hami_host_gpu_memory_used_bytes",
                           "GPU device memory usage in bytes.", get_device_used_bytes);
        write_hami_devices(text, input, "hami_host_gpu_utilization_ratio",
                           "GPU core utilization ratio (0-100).", get_device_percent);
        write_hami_vgpus(text, input, "hami_vgpu_memory_used_bytes",
                         "vGPU device memory usage in bytes.", get_used_bytes);
        write_hami_vgpus(text, input, "hami_vgpu_memory_limit_bytes",
                         "vGPU device memory limit in bytes.", get_quota_bytes);
        write_hami_vgpus(text, input, "hami_container_device_utilization_ratio",
                         "Container device SM utilization ratio (0-100).", get_vgpu_gpu);
}
