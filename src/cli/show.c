/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <openvgpu/accounting.h>
#include <openvgpu/device.h>
#include <openvgpu/licence.h>
#include <openvgpu/session.h>
#include <openvgpu/type.h>
#include <openvgpu/utilization.h>

#include "base/size.h"
#include "cli/document.h"
#include "cli/duration.h"
#include "cli/facts.h"
#include "cli/host.h"
#include "cli/instance-devices.h"
#include "cli/usage.h"
#include "record/records.h"

/* What it does of its own accord at this moment, and why not what it should. */
static const char *describe_demand(const char *demand)
{
        static const struct {
                const char *demand, *words;
        } all[] = {
                { "", "does nothing by itself" },
                { "leaving", "leaves its device by itself" },
                { "away", "has left its device by itself" },
                { "waiting for memory", "waits for memory on its device" },
                { "coming in", "comes back to its device by itself" },
        };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                if (strcmp(all[i].demand, demand) == 0)
                        return all[i].words;
        return demand;
}

#define TIMES_MAX 32

static char *describe_times(char text[TIMES_MAX], uint64_t times)
{
        if (times == 1)
                snprintf(text, TIMES_MAX, "once");
        else
                snprintf(text, TIMES_MAX, "%llu times", (unsigned long long)times);
        return text;
}

/* When it leaves its device by itself, how it waits for room, and what that came to. */
static void add_residency(struct facts *facts, struct vgpu_client *client,
                          const struct vgpu_instance *record)
{
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *devices = NULL;
        const char *never = "never";
        char time[DURATION_TEXT_MAX], bytes[SIZE_TEXT_MAX], times[TIMES_MAX];

        if (!record->swap_class[0])
                return; /* the vgpud is older, and tells none of this */
        (void)vgpu_device_lookup_all(client, &devices); /* if not, they are unknown */
        if (instance_devices_are_overcommitted(record, devices))
                never = "when others need the GPU";
        facts_add(facts, "idle_after", "leaves by itself", json_real(record->idle_after),
                  "%s%s%s%s", record->idle_after > 0 ? "after " : "",
                  record->idle_after > 0 ? duration_format(time, record->idle_after) : never,
                  record->idle_after > 0 ? " without work" : "",
                  record->idle_keeps_context ? "; its context stays" : "");
        facts_add(facts, "idle_keep_context", NULL, json_boolean(record->idle_keeps_context), "%s",
                  "");
        facts_add(facts, "swap_class", "class", json_string(record->swap_class), "%s",
                  record->swap_class);
        facts_add(facts, "demand", "now", json_string(record->demand), "%s%s%s",
                  describe_demand(record->demand), record->demand_reason[0] ? ": " : "",
                  record->demand_reason);
        facts_add(facts, "demand_reason", NULL, json_string(record->demand_reason), "%s", "");
        facts_add(facts, "swaps", "swapped", json_integer((json_int_t)record->n_swaps), "%s, %s",
                  describe_times(times, record->n_swaps),
                  size_format(bytes, record->swapped_bytes));
        facts_add(facts, "swapped_bytes", NULL, json_integer((json_int_t)record->swapped_bytes),
                  "%s", "");
        facts_add(facts, "waits", "waited for room", json_integer((json_int_t)record->n_waits),
                  "%s, %.1f s", describe_times(times, record->n_waits), record->waited_seconds);
        facts_add(facts, "waited_seconds", NULL, json_real(record->waited_seconds), "%s", "");
        facts_add(facts, "resident_seconds", "on a device", json_real(record->resident_seconds),
                  "%.0f s", record->resident_seconds);
}

/* NVML shows each of them as a vGPU of its own, under the same UUID; the other facts are of the first. */
static void add_parts(struct facts *facts, const struct vgpu_instance *record)
{
        CLEANUP(json_decrefp) json_t *parts = json_array();
        char text[64 * 8] = "", used[SIZE_TEXT_MAX];
        size_t length = 0;

        for (size_t i = 0; i < record->n_parts; i++) {
                const struct vgpu_instance_part *part = record->parts[i];

                json_array_append_new(parts, record_make(&record_instance_part, part));
                if (length < sizeof(text))
                        length += (size_t)snprintf(text + length, sizeof(text) - length,
                                                   "%sGPU %u: id %u, %s, %.1f s of its time",
                                                   i ? "; " : "", part->device, part->id,
                                                   size_format(used, part->frame_buffer_used),
                                                   part->gpu_seconds_total);
        }
        if (record->n_parts > 1)
                facts_add(facts, "parts", "on its devices", json_incref(parts), "%s", text);
}

/* What vgpud says; it may not be there. */
static void add_record(struct facts *facts, struct vgpu_client *client,
                       const struct vgpu_instance *record)
{
        char used[SIZE_TEXT_MAX], quota[SIZE_TEXT_MAX], owner[USAGE_USER_MAX];
        const char *state = vgpu_instance_state_get_name(record->state);

        facts_add(facts, "name", "name", json_string(record->name), "%s", record->name);
        facts_add(facts, "state", "state", json_string(state), "%s", state);
        facts_add(facts, "quota", "quota", json_integer((json_int_t)record->frame_buffer),
                  record->n_parts > 1 ? "%s on each of its devices; %s is used"
                                      : "%s, of which %s is used",
                  size_format(quota, record->frame_buffer),
                  size_format(used, record->frame_buffer_used));
        add_parts(facts, record);
        facts_add(facts, "owner", "owner", json_integer(record->owner), "%s",
                  usage_format_user(owner, record->owner));
        if (record->pool_group[0])
                facts_add(facts, "pool_group", "pool group", json_string(record->pool_group), "%s",
                          record->pool_group);
        add_residency(facts, client, record);
}

static void add_suspended(struct facts *facts, struct vgpu_client *client,
                          const struct vgpu_instance *record)
{
        facts_begin(facts, NULL, "vGPU");
        add_record(facts, client, record);
        facts_add(facts, "id", "id", json_integer(record->id), "%u", record->id);
        facts_add(facts, "uuid", "UUID", json_string(record->uuid), "%s", record->uuid);
        facts_add(facts, "device", "device", json_null(),
                  "none: the other facts exist only on a device");
}

static void add_vm(struct facts *facts, struct vgpu_host *host, uint32_t instance)
{
        CLEANUP(freep) struct vgpu_vm *vm = NULL;

        if (vgpu_instance_lookup_vm(host, instance, &vm) < 0) {
                facts_add_unknown(facts, "vm_id", "virtual machine", host);
                return;
        }
        facts_add(facts, "vm_id", "virtual machine", json_string(vm->id), "%s %s",
                  vm->id_kind == VGPU_VM_ID_UUID ? "UUID" : "domain", vm->id);
        facts_add(facts, "vm_id_kind", NULL,
                  json_string(vm->id_kind == VGPU_VM_ID_UUID ? "uuid" : "domain"), "%s", "");
}

/* Slots of the device, as many as its type takes: `vgpu nvml placements` has them. */
static void add_placement(struct facts *facts, struct vgpu_host *host, uint32_t instance)
{
        uint32_t slot = 0;
        int r = vgpu_instance_get_placement(host, instance, &slot);

        if (r == 0 && slot != VGPU_UNKNOWN)
                facts_add(facts, "placement", "placement", json_integer(slot), "from slot %u on",
                          slot);
        else
                facts_add_number(facts, "placement", "placement", host, r, slot, "");
}

/* @is_first: of several parts, and so of the GPU of the first. */
static void add_identity(struct facts *facts, struct vgpu_host *host, uint32_t instance,
                         bool is_first)
{
        CLEANUP(freep) char *uuid = NULL, *mdev = NULL, *driver = NULL, *bus_id = NULL;
        uint32_t number = 0;
        int r;

        facts_add(facts, "id", "id", json_integer(instance), "%u", instance);
        r = vgpu_instance_get_uuid(host, instance, &uuid);
        facts_add_text(facts, "uuid", "UUID", host, r, uuid);
        r = vgpu_instance_get_mdev_uuid(host, instance, &mdev);
        facts_add_text(facts, "mdev_uuid", "mdev UUID", host, r, mdev);
        add_vm(facts, host, instance);
        r = vgpu_instance_get_vm_driver_version(host, instance, &driver);
        facts_add_text(facts, "vm_driver_version", "guest's driver", host, r, driver);
        r = vgpu_instance_get_pci_bus_id(host, instance, &bus_id);
        facts_add_text(facts, "pci_bus_id", "guest's PCI address", host, r, bus_id);
        r = vgpu_instance_get_device(host, instance, &number);
        facts_add_number(facts, "device", is_first ? "first device" : "device", host, r, number,
                         is_first ? ", whose part of the vGPU these facts are of" : "");
        r = vgpu_instance_get_gpu_instance(host, instance, &number);
        facts_add_number(facts, "gpu_instance", "GPU instance", host, r, number, "");
        add_placement(facts, host, instance);
}

static void add_type(struct facts *facts, struct vgpu_host *host, uint32_t instance)
{
        CLEANUP(freep) char *name = NULL;
        uint64_t bytes = 0;
        uint32_t type = 0;
        int r;

        if (vgpu_instance_get_type(host, instance, &type) < 0) {
                facts_add_unknown(facts, "type", "type", host);
                return;
        }
        facts_add(facts, "type", "type", json_integer(type), "%u", type);
        r = vgpu_type_get_name(host, type, &name);
        facts_add_text(facts, "type_name", "type's name", host, r, name);
        r = vgpu_type_get_frame_buffer(host, type, &bytes);
        facts_add_bytes(facts, "frame_buffer", "type's frame buffer", host, r, bytes);
}

static void add_state(struct facts *facts, struct vgpu_host *host, uint32_t instance)
{
        uint64_t bytes = 0;
        uint32_t number = 0;
        bool flag = false;
        int r;

        r = vgpu_instance_get_frame_buffer_used(host, instance, &bytes);
        facts_add_bytes(facts, "frame_buffer_used", "frame buffer used", host, r, bytes);
        r = vgpu_instance_get_runtime_state_size(host, instance, &bytes);
        facts_add_bytes(facts, "runtime_state", "runtime state", host, r, bytes);
        r = vgpu_instance_get_frame_rate_limit(host, instance, &number);
        facts_add_number(facts, "frame_rate_limit", "frame-rate limit", host, r, number, "/s");
        r = vgpu_instance_get_ecc(host, instance, &flag);
        facts_add_flag(facts, "ecc", "ECC", host, r, flag);
        r = vgpu_instance_get_encoder_capacity(host, instance, &number);
        facts_add_number(facts, "encoder_capacity", "encoder capacity", host, r, number, " %");
        r = vgpu_accounting_get_mode(host, instance, &flag);
        facts_add_flag(facts, "accounting", "accounting", host, r, flag);
}

static void add_licence(struct facts *facts, struct vgpu_host *host, uint32_t instance)
{
        CLEANUP(freep) struct vgpu_licence *licence = NULL;
        bool is_licensed = false;
        const char *expiry;
        int r;

        facts_begin(facts, "licence", "Licence");
        r = vgpu_licence_get_status(host, instance, &is_licensed);
        facts_add_flag(facts, "licensed", "licensed", host, r, is_licensed);
        if (vgpu_licence_lookup(host, instance, &licence) < 0) {
                facts_add_unknown(facts, "state", "state", host);
                return;
        }
        facts_add_text(facts, "state", "state", host, 0,
                       vgpu_licence_state_get_name(licence->state));
        expiry = *licence->expiry_text ? licence->expiry_text
                                       : vgpu_licence_expiry_get_name(licence->expiry);
        facts_add_text(facts, "expiry", "expires", host, 0, expiry);
}

static void add_sessions(struct facts *facts, struct vgpu_host *host, uint32_t instance,
                         const char *key, const char *title,
                         int (*lookup)(struct vgpu_host *, uint32_t, struct vgpu_session_stats **))
{
        CLEANUP(freep) struct vgpu_session_stats *stats = NULL;

        facts_begin(facts, key, title);
        if (lookup(host, instance, &stats) < 0) {
                facts_add_unknown(facts, "sessions", "sessions", host);
                return;
        }
        facts_add_number(facts, "sessions", "sessions", host, 0, stats->n_sessions, "");
        facts_add_number(facts, "average_fps", "average", host, 0, stats->average_fps, " frames/s");
        facts_add_number(facts, "average_latency_us", "latency", host, 0, stats->average_latency_us,
                         " us");
}

/* One that only the newer of two calls tells. */
static void add_engine(struct facts *facts, const char *key, const char *label,
                       const struct vgpu_host *host, uint32_t percent)
{
        if (percent == VGPU_UNKNOWN)
                facts_add(facts, key, label, json_null(), "(needs R550 or newer)");
        else
                facts_add_number(facts, key, label, host, 0, percent, " %");
}

static void add_utilization(struct facts *facts, struct vgpu_host *host, uint32_t instance)
{
        CLEANUP(freep) struct vgpu_utilization_list *list = NULL;
        uint32_t device = 0;
        int r;

        facts_begin(facts, "utilization", "Utilization");
        r = vgpu_instance_get_device(host, instance, &device);
        if (r == 0)
                r = vgpu_utilization_lookup_instances(host, device, 0, &list);
        if (r < 0) {
                facts_add_unknown(facts, "sm", "SM", host);
                return;
        }
        for (size_t i = 0; i < list->n_samples; i++) {
                const struct vgpu_utilization *sample = list->samples[i];

                if (sample->instance != instance)
                        continue;
                facts_add_number(facts, "sm", "SM", host, 0, sample->sm, " %");
                facts_add_number(facts, "memory", "memory", host, 0, sample->memory, " %");
                facts_add_number(facts, "encoder", "encoder", host, 0, sample->encoder, " %");
                facts_add_number(facts, "decoder", "decoder", host, 0, sample->decoder, " %");
                add_engine(facts, "jpeg", "JPEG", host, sample->jpeg);
                add_engine(facts, "ofa", "OFA", host, sample->ofa);
                return;
        }
        facts_add(facts, "sm", "SM", json_null(), "(no sample)");
}

static void add_active(struct facts *facts, struct vgpu_client *client, struct vgpu_host *host,
                       uint32_t instance, const struct vgpu_instance *record)
{
        facts_begin(facts, NULL, "vGPU");
        if (record)
                add_record(facts, client, record);
        add_identity(facts, host, instance, record && record->n_parts > 1);
        add_type(facts, host, instance);
        add_state(facts, host, instance);
        add_licence(facts, host, instance);
        add_sessions(facts, host, instance, "encoder", "Encoder",
                     vgpu_session_lookup_encoder_stats);
        add_sessions(facts, host, instance, "capture", "Frame-buffer capture",
                     vgpu_session_lookup_capture_stats);
        add_utilization(facts, host, instance);
}

static int run_show(const struct arguments *arguments, struct vgpu_client *client)
{
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *record = NULL;
        CLEANUP(facts_deinitp) struct facts facts = { .root = NULL };
        uint32_t instance;
        int code;

        code = host_new(arguments, &host);
        if (code == 0)
                code = host_find_instance(arguments, client, host, arguments->words[0], &instance,
                                          &record);
        if (code != 0)
                return code;
        /* Ask once before anything is printed: is there an NVML, does it know the vGPU? */
        if (instance != 0 && vgpu_instance_check(host, instance) < 0)
                return host_say_error(arguments, host);

        facts_init(&facts, arguments);
        if (instance == 0)
                add_suspended(&facts, client, record);
        else
                add_active(&facts, client, host, instance, record);
        return arguments->is_json ? document_print(arguments, facts_take(&facts)) : 0;
}

static const struct option options[] = { { .name = NULL } };

const struct command command_show = {
        .name = "show",
        .usage = "NAME|UUID|ID",
        .summary = "show everything about one vGPU",
        .description =
                "Shows everything that vgpud and NVML know about a vGPU: its owner, GPU, memory,\n"
                "licence and use of the encoder. On a host with NVIDIA's vGPU manager and without\n"
                "vgpud, name a vGPU by its UUID or NVML's id.\n"
                "\n"
                "A value in brackets says why the value is not known. With --json such a value is\n"
                "null.\n",
        .examples = "vgpu show train\n",
        .options = options,
        .n_words_min = 1,
        .n_words_max = 1,
        .word = "name of the vGPU",
        .run = run_show,
};
