/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "scenario/parse.h"

#define VGPU(member)    .offset = offsetof(struct scenario_vgpu, member)
#define VM(member)      .offset = offsetof(struct scenario_vgpu, vm.member)
#define TEXT_OF(object) .kind = FIELD_TEXT, .size = sizeof(object)

static const struct choice states[] = {
        { "running", STATE_RUNNING }, { "idle", STATE_IDLE },     { "suspended", STATE_SUSPENDED },
        { "evicted", STATE_EVICTED }, { "failed", STATE_FAILED }, { 0 },
};

static const struct choice driver_states[] = {
        { "running", STATE_GUEST_DRIVER_RUNNING },
        { "stopped", STATE_GUEST_DRIVER_STOPPED },
        { "none", STATE_GUEST_DRIVER_NONE },
        { 0 },
};

static const struct choice licence_states[] = {
        { "licensed", STATE_LICENCE_LICENSED },
        { "unlicensed", STATE_LICENCE_UNLICENSED },
        { "unlicensed restricted", STATE_LICENCE_UNLICENSED_RESTRICTED },
        { "unlicensed unrestricted", STATE_LICENCE_UNLICENSED_UNRESTRICTED },
        { "uninitialized", STATE_LICENCE_UNINITIALIZED },
        { "unknown", STATE_LICENCE_UNKNOWN },
        { 0 },
};

int parse_expiry(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice words[] = {
                { "permanent", STATE_EXPIRY_PERMANENT },
                { "not available", STATE_EXPIRY_NOT_AVAILABLE },
                { "not applicable", STATE_EXPIRY_NOT_APPLICABLE },
                { "invalid", STATE_EXPIRY_INVALID },
                { 0 },
        };
        const char *text = json_string_value(value);
        unsigned int year, month, day, hour, minute, second;
        struct state_expiry *expiry = to;
        int at = 0;

        if (!text || text[0] < '0' || text[0] > '9')
                return reader_choice(reader, value, words, &expiry->status);
        if (sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2uZ%n", &year, &month, &day, &hour, &minute, &second,
                   &at) != 6 ||
            at == 0 || text[at] || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 ||
            minute > 59 || second > 60)
                return reader_fail(reader,
                                   "'%.40s' is not a date in GMT; allowed: "
                                   "2026-11-23T05:02:12Z, permanent, not available, not "
                                   "applicable, invalid",
                                   text);
        *expiry = (struct state_expiry){ .status = STATE_EXPIRY_VALID,
                                         .year = (uint16_t)year,
                                         .month = (uint16_t)month,
                                         .day = (uint16_t)day,
                                         .hour = (uint16_t)hour,
                                         .minute = (uint16_t)minute,
                                         .second = (uint16_t)second };
        return 0;
}

static int parse_licence(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                { .name = "state", .kind = FIELD_CHOICE, .choices = licence_states, VGPU(licence) },
                { .name = "expires",
                  .kind = FIELD_OTHER,
                  .read = parse_expiry,
                  VM(licence_expiry) },
                { 0 },
        };
        struct scenario_vgpu *vgpu = to;
        int r = reader_fields(reader, value, fields, vgpu);

        if (r == 0 && !json_object_get(value, "expires"))
                vgpu->vm.licence_expiry.status = vgpu->licence == STATE_LICENCE_LICENSED
                                                         ? STATE_EXPIRY_PERMANENT
                                                         : STATE_EXPIRY_NOT_APPLICABLE;
        return r;
}

static int parse_driver(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                { .name = "state",
                  .kind = FIELD_CHOICE,
                  .choices = driver_states,
                  VGPU(guest_driver) },
                { .name = "version",
                  TEXT_OF(((struct state_vm *)0)->driver_version),
                  VM(driver_version) },
                { 0 },
        };
        struct scenario_vgpu *vgpu = to;
        int r = reader_fields(reader, value, fields, vgpu);

        if (r == 0 && vgpu->guest_driver == STATE_GUEST_DRIVER_NONE && vgpu->vm.driver_version[0])
                return reader_fail(reader, "a driver that is not there has no version");
        return r;
}

/* A number is a domain's, text a UUID. */
static int parse_vm_id(struct reader *reader, const json_t *value, void *to)
{
        struct scenario_vgpu *vgpu = to;

        if (json_is_integer(value) && json_integer_value(value) >= 0 &&
            json_integer_value(value) <= UINT32_MAX) {
                vgpu->vm.id_kind = STATE_VM_DOMAIN;
                snprintf(vgpu->vm.id, sizeof(vgpu->vm.id), "%u",
                         (unsigned int)json_integer_value(value));
                return 0;
        }
        vgpu->vm.id_kind = STATE_VM_UUID;
        return reader_uuid(reader, value, vgpu->vm.id, sizeof(vgpu->vm.id));
}

static int parse_vm(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                { .name = "id", .kind = FIELD_OTHER, .read = parse_vm_id },
                { .name = "name", TEXT_OF(((struct state_vm *)0)->name), VM(name) },
                { .name = "driver", .kind = FIELD_OBJECT, .read = parse_driver },
                { .name = "mdev_uuid", .kind = FIELD_UUID, .size = STATE_UUID_MAX, VM(mdev_uuid) },
                { .name = "pci_bus_id",
                  TEXT_OF(((struct state_vm *)0)->pci_bus_id),
                  VM(pci_bus_id) },
                { 0 },
        };

        return reader_fields(reader, value, fields, to);
}

static int parse_type_name(struct reader *reader, const json_t *value, void *to)
{
        struct scenario_vgpu *vgpu = to;
        const char *text = json_string_value(value);

        if (json_is_integer(value) && json_integer_value(value) > 0 &&
            json_integer_value(value) <= UINT32_MAX) {
                vgpu->type.id = (uint32_t)json_integer_value(value);
                return 0;
        }
        if (!text || strlen(text) >= sizeof(vgpu->type_name))
                return reader_fail(reader, "must be the name or the number of a type");
        strcpy(vgpu->type_name, text);
        return 0;
}

static int parse_use(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice uses[] = {
                { "managed memory", STATE_USES_MANAGED },
                { "imported memory", STATE_USES_IMPORTED },
                { "registered memory", STATE_USES_REGISTERED },
                { 0 },
        };
        struct scenario_vgpu *vgpu = to;
        uint32_t use = 0;
        int r = reader_choice(reader, value, uses, &use);

        vgpu->vm.uses |= use;
        return r;
}

static const struct field fields[] = {
        { .name = "name",
          .is_required = true,
          TEXT_OF(((struct scenario_vgpu *)0)->name),
          VGPU(name) },
        { .name = "device", .kind = FIELD_NUMBER, .max = STATE_DEVICES_MAX - 1, VGPU(device) },
        { .name = "type", .kind = FIELD_OTHER, .is_required = true, .read = parse_type_name },
        { .name = "id", .kind = FIELD_NUMBER, .min = SCENARIO_LEAST_ID, VGPU(id) },
        { .name = "uuid", .kind = FIELD_UUID, .size = STATE_UUID_MAX, VGPU(uuid) },
        { .name = "owner", .kind = FIELD_NUMBER, VGPU(owner) },
        { .name = "gpu_instance", .kind = FIELD_NUMBER, VGPU(gpu_instance) },
        { .name = "placement",
          .kind = FIELD_NUMBER,
          .max = STATE_PLACEMENT_NONE - 1,
          VGPU(placement) },
        { .name = "state", .kind = FIELD_CHOICE, .choices = states, VGPU(state) },
        { .name = "from", .kind = FIELD_SECONDS, VGPU(life.from) },
        { .name = "until", .kind = FIELD_SECONDS, VGPU(life.until) },
        { .name = "vm", .kind = FIELD_OBJECT, .read = parse_vm },
        { .name = "licence", .kind = FIELD_OBJECT, .read = parse_licence },
        { .name = "frame_rate_limit", .kind = FIELD_NUMBER, .max = 1000, VGPU(frame_rate_limit) },
        { .name = "ecc", .kind = FIELD_SWITCH, VGPU(ecc) },
        { .name = "accounting", .kind = FIELD_SWITCH, VGPU(accounting) },
        { .name = "can_migrate", .kind = FIELD_SWITCH, VGPU(can_migrate) },
        { .name = "uses", .kind = FIELD_LIST, .read = parse_use },
        { .name = "encoder_capacity", .kind = FIELD_NUMBER, .max = 100, VGPU(encoder_capacity) },
        { .name = "runtime_state_size", .kind = FIELD_SIZE, VGPU(runtime_state_size) },
        { .name = "memory", .kind = FIELD_OTHER, .read = curve_read_size, VGPU(memory) },
        { .name = "utilization",
          .kind = FIELD_OBJECT,
          .read = parse_utilization,
          VGPU(utilization) },
        { .name = "processes", .kind = FIELD_LIST, .read = parse_processes },
        { .name = "encoder_sessions", .kind = FIELD_LIST, .read = parse_encoder_session },
        { .name = "capture_sessions", .kind = FIELD_LIST, .read = parse_capture_session },
        { .name = "accounts", .kind = FIELD_LIST, .read = parse_account },
        { 0 },
};

int parse_vgpu(struct reader *reader, const json_t *value, void *to)
{
        struct scenario *scenario = to;
        struct scenario_vgpu *vgpu;

        if (scenario->n_vgpus == SCENARIO_VGPUS_MAX)
                return reader_fail(reader, "there are too many vGPUs; allowed: %d",
                                   SCENARIO_VGPUS_MAX);
        vgpu = reader_grow((void **)&scenario->vgpus, &scenario->n_vgpus, sizeof(*vgpu));
        if (!vgpu)
                return reader_fail(reader, "out of memory");
        vgpu->gpu_instance = STATE_NONE;
        vgpu->placement = SCENARIO_NOTHING;
        vgpu->state = STATE_RUNNING;
        vgpu->guest_driver = STATE_GUEST_DRIVER_RUNNING;
        vgpu->licence = STATE_LICENCE_LICENSED;
        vgpu->vm.licence_expiry.status = STATE_EXPIRY_PERMANENT;
        vgpu->frame_rate_limit = SCENARIO_NOTHING;
        vgpu->encoder_capacity = 100;
        vgpu->ecc = SCENARIO_NOTHING;
        vgpu->accounting = 1;
        vgpu->can_migrate = 1;
        return reader_fields(reader, value, fields, vgpu);
}
