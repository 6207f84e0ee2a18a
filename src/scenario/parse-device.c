/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "scenario/compute.h"
#include "scenario/link.h"
#include "scenario/parse.h"

#define DEVICE(member) .offset = offsetof(struct scenario_device, member)
#define NUMBER         .kind = FIELD_NUMBER
#define SWITCH         .kind = FIELD_SWITCH

/* Schedulers. */

static const struct choice policies[] = {
        { "best effort", STATE_POLICY_BEST_EFFORT },
        { "equal share", STATE_POLICY_EQUAL_SHARE },
        { "fixed share", STATE_POLICY_FIXED_SHARE },
        { 0 },
};

#define SCHEDULER(member) .offset = offsetof(struct scenario_scheduler, member)

static int parse_scheduler(struct reader *reader, const json_t *value,
                           struct scenario_scheduler **list, size_t *n)
{
        static const struct choice engines[] = { { "graphics", STATE_ENGINE_GRAPHICS },
                                                 { "encoder 0", STATE_ENGINE_NVENC0 },
                                                 { "encoder 1", STATE_ENGINE_NVENC1 },
                                                 { 0 } };
        static const struct field fields[] = {
                { .name = "engine", .kind = FIELD_CHOICE, .choices = engines, SCHEDULER(engine) },
                { .name = "policy",
                  .kind = FIELD_CHOICE,
                  .choices = policies,
                  .is_required = true,
                  SCHEDULER(policy) },
                { .name = "arr", SWITCH, SCHEDULER(arr) },
                { .name = "averaging_factor", NUMBER, .max = 60, SCHEDULER(averaging_factor) },
                { .name = "frequency", NUMBER, .max = 960, SCHEDULER(frequency) },
                { .name = "time_slice", NUMBER, .max = 30000000, SCHEDULER(time_slice) },
                { 0 },
        };
        struct scenario_scheduler *scheduler = reader_grow((void **)list, n, sizeof(*scheduler));

        if (!scheduler)
                return reader_fail(reader, "out of memory");
        scheduler->engine = STATE_ENGINE_GRAPHICS;
        scheduler->arr = SCENARIO_NOTHING;
        return reader_fields(reader, value, fields, scheduler);
}

static int parse_device_scheduler(struct reader *reader, const json_t *value, void *to)
{
        struct scenario_device *device = to;

        return parse_scheduler(reader, value, &device->schedulers, &device->n_schedulers);
}

static int parse_gpu_instance_scheduler(struct reader *reader, const json_t *value, void *to)
{
        struct scenario_gpu_instance *gpu_instance = to;

        return parse_scheduler(reader, value, &gpu_instance->schedulers,
                               &gpu_instance->n_schedulers);
}

/* Types. */

#define TYPE(member)   .offset = offsetof(struct catalog_type, type.member)
#define TEXT(member)   .kind = FIELD_TEXT, .offset = offsetof(struct catalog_type, text.member)
#define PLACES(member) .offset = offsetof(struct catalog_type, placements.member)

static int parse_type_capability(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice words[] = {
                { "NVLink P2P", STATE_TYPE_NVLINK_P2P },
                { "GPUDirect", STATE_TYPE_GPUDIRECT },
                { "multi-vGPU exclusive", STATE_TYPE_MULTI_EXCLUSIVE },
                { "exclusive type", STATE_TYPE_EXCLUSIVE_TYPE },
                { "exclusive size", STATE_TYPE_EXCLUSIVE_SIZE },
                { 0 },
        };
        struct catalog_type *type = to;
        uint32_t bit = 0;
        int r = reader_choice(reader, value, words, &bit);

        type->type.capabilities |= bit;
        return r;
}

static int parse_place(struct reader *reader, const json_t *value, uint16_t *places, uint32_t *n)
{
        json_int_t place = json_integer_value(value);

        if (!json_is_integer(value) || place < 0 || place >= STATE_PLACEMENT_NONE)
                return reader_fail(reader, "must be a slot, 0 to 65534");
        if (*n == STATE_PLACEMENTS_MAX)
                return reader_fail(reader, "there are too many; allowed: %d", STATE_PLACEMENTS_MAX);
        places[(*n)++] = (uint16_t)place;
        return 0;
}

static int parse_mixed_place(struct reader *reader, const json_t *value, void *to)
{
        struct state_placements *placements = &((struct catalog_type *)to)->placements;

        return parse_place(reader, value, placements->mixed, &placements->n_mixed);
}

static int parse_uniform_place(struct reader *reader, const json_t *value, void *to)
{
        struct state_placements *placements = &((struct catalog_type *)to)->placements;

        return parse_place(reader, value, placements->uniform, &placements->n_uniform);
}

static int parse_type(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                { .name = "id", NUMBER, .is_required = true, .min = 1, TYPE(id) },
                { .name = "name", .is_required = true, .size = 64, TEXT(name) },
                { .name = "class", .size = STATE_LABEL_MAX, TEXT(class) },
                { .name = "licence", .size = STATE_TEXT_MAX, TEXT(licence) },
                { .name = "frame_buffer",
                  .kind = FIELD_SIZE,
                  .is_required = true,
                  TYPE(frame_buffer) },
                { .name = "max_instances",
                  NUMBER,
                  .is_required = true,
                  .min = 1,
                  .max = 48,
                  TYPE(max_instances) },
                { .name = "max_instances_vm", NUMBER, .max = 48, TYPE(max_instances_vm) },
                { .name = "heads", NUMBER, .max = 16, TYPE(n_heads) },
                { .name = "width", NUMBER, .max = 65536, TYPE(width) },
                { .name = "height", NUMBER, .max = 65536, TYPE(height) },
                { .name = "frame_rate_limit", NUMBER, .max = 1000, TYPE(frame_rate_limit) },
                { .name = "bar1", .kind = FIELD_SIZE, TYPE(bar1) },
                { .name = "gsp_heap", .kind = FIELD_SIZE, TYPE(gsp_heap) },
                { .name = "reservation", .kind = FIELD_SIZE, TYPE(reservation) },
                { .name = "pci_device_id", NUMBER, TYPE(pci_device_id) },
                { .name = "pci_subsystem_id", NUMBER, TYPE(pci_subsystem_id) },
                { .name = "placement_size", NUMBER, .min = 1, .max = 1024, TYPE(placement_size) },
                { .name = "placements", .kind = FIELD_LIST, .read = parse_mixed_place },
                { .name = "homogeneous_placements",
                  .kind = FIELD_LIST,
                  .read = parse_uniform_place },
                { .name = "capabilities", .kind = FIELD_LIST, .read = parse_type_capability },
                { 0 },
        };
        struct scenario_device *device = to;
        struct catalog_type *type;

        if (device->n_types == 32)
                return reader_fail(reader, "there are too many types; allowed: 32");
        type = reader_grow((void **)&device->types, &device->n_types, sizeof(*type));
        if (!type)
                return reader_fail(reader, "out of memory");
        type->type.profile_id = STATE_NONE;
        type->type.n_heads = 1;
        type->type.width = 3840;
        type->type.height = 2400;
        strcpy(type->text.class, "Compute");
        return reader_fields(reader, value, fields, type);
}

/* GPU instances. */

#define GPU_INSTANCE(member) .offset = offsetof(struct scenario_gpu_instance, member)

static int parse_gpu_instance(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                { .name = "profile",
                  .kind = FIELD_TEXT,
                  .is_required = true,
                  .size = STATE_LABEL_MAX,
                  GPU_INSTANCE(profile_name) },
                { .name = "id",
                  NUMBER,
                  .is_required = true,
                  .min = 1,
                  .max = 255,
                  GPU_INSTANCE(id) },
                { .name = "placement", NUMBER, .max = 7, GPU_INSTANCE(placement) },
                { .name = "heterogeneous", SWITCH, GPU_INSTANCE(is_heterogeneous) },
                { .name = "schedulers", .kind = FIELD_LIST, .read = parse_gpu_instance_scheduler },
                { .name = "compute_instances", .kind = FIELD_LIST, .read = compute_parse },
                { 0 },
        };
        struct scenario_device *device = to;
        struct scenario_gpu_instance *gpu_instance = reader_grow(
                (void **)&device->gpu_instances, &device->n_gpu_instances, sizeof(*gpu_instance));

        if (!gpu_instance)
                return reader_fail(reader, "out of memory");
        gpu_instance->placement = SCENARIO_NOTHING;
        return reader_fields(reader, value, fields, gpu_instance);
}

/* The rest of a device. */

#define CAPABILITY(word, number)                                            \
        {                                                                   \
                .name = word, NUMBER, .offset = (number) * sizeof(uint32_t) \
        }

static int parse_capabilities(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                CAPABILITY("fractional_multi_vgpu", STATE_CAN_FRACTIONAL),
                CAPABILITY("heterogeneous_profiles", STATE_CAN_MIX_PROFILES),
                CAPABILITY("heterogeneous_sizes", STATE_CAN_MIX_SIZES),
                CAPABILITY("read_bandwidth", STATE_CAN_READ_BANDWIDTH),
                CAPABILITY("write_bandwidth", STATE_CAN_WRITE_BANDWIDTH),
                CAPABILITY("device_streaming", STATE_CAN_STREAM),
                CAPABILITY("mini_quarter", STATE_CAN_MINI_QUARTER),
                CAPABILITY("compute_media_engine", STATE_CAN_COMPUTE_MEDIA_ENGINE),
                CAPABILITY("warm_update", STATE_CAN_WARM_UPDATE),
                CAPABILITY("homogeneous_placements", STATE_CAN_HOMOGENEOUS_PLACEMENTS),
                CAPABILITY("mig_time_slicing", STATE_CAN_MIG_TIME_SLICING),
                CAPABILITY("mig_time_slicing_enabled", STATE_CAN_MIG_TIME_SLICING_ENABLED),
                { 0 },
        };

        return reader_fields(reader, value, fields, to);
}

static int parse_sensors(struct reader *reader, const json_t *value, void *to)
{
#define SENSOR(member)         \
        { .name = #member,     \
          .kind = FIELD_OTHER, \
          .read = curve_read,  \
          .offset = offsetof(struct scenario_sensors, member) },
        static const struct field fields[] = { SCENARIO_SENSORS(SENSOR)
                                                       SCENARIO_COUNTERS(SENSOR){ 0 } };
#undef SENSOR

        return reader_fields(reader, value, fields, to);
}

#define FEATURE(member) .offset = offsetof(struct state_feature, member)

static int parse_feature(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice codes[] = { { "unknown", 0 },     { "vGPU", 1 },
                                               { "workstation", 2 }, { "gaming", 3 },
                                               { "compute", 4 },     { 0 } };
        static const struct field fields[] = {
                { .name = "feature",
                  .kind = FIELD_CHOICE,
                  .choices = codes,
                  .is_required = true,
                  FEATURE(code) },
                { .name = "product", .kind = FIELD_TEXT, .size = STATE_TEXT_MAX, FEATURE(product) },
                { .name = "licensed", SWITCH, FEATURE(is_licensed) },
                { .name = "enabled", SWITCH, FEATURE(is_enabled) },
                { .name = "expires", .kind = FIELD_OTHER, .read = parse_expiry, FEATURE(expiry) },
                { 0 },
        };
        struct state_features *features = &((struct scenario_device *)to)->features;

        if (features->n == STATE_FEATURES_MAX)
                return reader_fail(reader, "there are too many; allowed: %d", STATE_FEATURES_MAX);
        features->is_supported = 1;
        return reader_fields(reader, value, fields, &features->feature[features->n++]);
}

#define EVENT(member) .offset = offsetof(struct scenario_event, member)

/* What only operational events have; without a word of the scenario a notice. */
static int complete_event(struct reader *reader, struct scenario_event *event)
{
        static const struct state_operational nothing = { 0 };
        struct state_operational *operational = &event->operational;

        if (event->kind != 0 && memcmp(operational, &nothing, sizeof(nothing)) != 0)
                return reader_fail(reader,
                                   "only an event of the kind \"operational\" has a module, "
                                   "severity, log_level, category or code");
        if (event->kind != 0)
                return 0;
        if (operational->module[0] == '\0')
                return reader_fail(reader, "an operational event needs the module that reports it, "
                                           "such as \"GPU-RAS\"");
        if (operational->severity == 0)
                operational->severity = 10; /* informational */
        if (operational->log_level == 0)
                operational->log_level = 30; /* notice */
        return 0;
}

static int parse_event(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice event_kinds[] = { { "corrected ECC error", 1 },
                                                     { "uncorrected ECC error", 2 },
                                                     { "performance state", 4 },
                                                     { "XID", 8 },
                                                     { "clock", 16 },
                                                     { "operational", 0 },
                                                     { 0 } };
        static const struct choice severities[] = { { "informational", 10 },
                                                    { "corrected", 20 },
                                                    { "recoverable", 30 },
                                                    { "fatal", 40 },
                                                    { 0 } };
        static const struct choice log_levels[] = { { "telemetry", 10 }, { "diagnostic", 20 },
                                                    { "notice", 30 },    { "warning", 40 },
                                                    { "error", 50 },     { 0 } };
        static const struct field fields[] = {
                { .name = "at", .kind = FIELD_SECONDS, .is_required = true, EVENT(at) },
                { .name = "every", .kind = FIELD_SECONDS, EVENT(every) },
                { .name = "kind",
                  .kind = FIELD_CHOICE,
                  .choices = event_kinds,
                  .is_required = true,
                  EVENT(kind) },
                { .name = "data", NUMBER, .max = UINT32_MAX, EVENT(data) },
                { .name = "module",
                  .kind = FIELD_TEXT,
                  .size = sizeof(((struct state_operational *)0)->module),
                  EVENT(operational.module) },
                { .name = "severity",
                  .kind = FIELD_CHOICE,
                  .choices = severities,
                  EVENT(operational.severity) },
                { .name = "log_level",
                  .kind = FIELD_CHOICE,
                  .choices = log_levels,
                  EVENT(operational.log_level) },
                { .name = "category", NUMBER, .max = UINT16_MAX, EVENT(operational.category) },
                { .name = "code", NUMBER, .max = UINT16_MAX, EVENT(operational.code) },
                { 0 },
        };
        struct scenario_device *device = to;
        struct scenario_event *event =
                reader_grow((void **)&device->events, &device->n_events, sizeof(*event));
        int r;

        if (!event)
                return reader_fail(reader, "out of memory");
        r = reader_fields(reader, value, fields, event);
        return r == 0 ? complete_event(reader, event) : r;
}

static int parse_series(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice words[] = { { "C", CATALOG_COMPUTE },
                                               { "Q", CATALOG_WORKSTATION },
                                               { "B", CATALOG_PC },
                                               { "A", CATALOG_APPS },
                                               { 0 } };
        struct scenario_device *device = to;
        uint32_t bit = 0;
        int r = reader_choice(reader, value, words, &bit);

        device->series |= bit;
        return r;
}

static const struct choice kinds[] = {
        { "H200", 0 },       { "H100", 0 }, { "A100", 0 }, { "L40S", 0 },
        { "RTX6000Ada", 0 }, { "L4", 0 },   { "T4", 0 },   { 0 },
};

static int parse_kind(struct reader *reader, const json_t *value, void *to)
{
        struct scenario_device *device = to;
        uint32_t unused;
        int r = reader_choice(reader, value, kinds, &unused);

        if (r == 0)
                snprintf(device->kind, sizeof(device->kind), "%s", json_string_value(value));
        return r;
}

static const struct field fields[] = {
        { .name = "board", .kind = FIELD_OTHER, .is_required = true, .read = parse_kind },
        { .name = "count", NUMBER, .min = 1, .max = STATE_DEVICES_MAX, DEVICE(count) },
        { .name = "memory", .kind = FIELD_SIZE, DEVICE(memory) },
        { .name = "series", .kind = FIELD_LIST, .read = parse_series },
        { .name = "types", .kind = FIELD_LIST, .read = parse_type },
        { .name = "ecc", SWITCH, DEVICE(ecc) },
        { .name = "ecc_pending", SWITCH, DEVICE(ecc_pending) },
        { .name = "mig", SWITCH, DEVICE(mig) },
        { .name = "heterogeneous", SWITCH, DEVICE(is_heterogeneous) },
        { .name = "sriov", SWITCH, DEVICE(is_sriov) },
        { .name = "accounting", SWITCH, DEVICE(accounting) },
        { .name = "can_migrate", SWITCH, DEVICE(can_migrate) },
        { .name = "capabilities",
          .kind = FIELD_OBJECT,
          .read = parse_capabilities,
          DEVICE(capability) },
        { .name = "schedulers", .kind = FIELD_LIST, .read = parse_device_scheduler },
        { .name = "gpu_instances", .kind = FIELD_LIST, .read = parse_gpu_instance },
        { .name = "features", .kind = FIELD_LIST, .read = parse_feature },
        { .name = "sensors", .kind = FIELD_OBJECT, .read = parse_sensors, DEVICE(sensors) },
        { .name = "serial", .kind = FIELD_TEXT, .size = 30, DEVICE(texts.serial) },
        { .name = "vbios", .kind = FIELD_TEXT, .size = STATE_LABEL_MAX, DEVICE(texts.vbios) },
        { .name = "part_number",
          .kind = FIELD_TEXT,
          .size = STATE_LABEL_MAX,
          DEVICE(texts.part_number) },
        { .name = "lost_at", .kind = FIELD_SECONDS, DEVICE(lost_at) },
        { .name = "events", .kind = FIELD_LIST, .read = parse_event },
        { .name = "fabric", .kind = FIELD_OBJECT, .read = link_parse_fabric, DEVICE(fabric) },
        { .name = "nvlink", .kind = FIELD_OBJECT, .read = link_parse, DEVICE(links) },
        { .name = "irq", NUMBER, .min = 1, .max = UINT32_MAX, DEVICE(irq) },
        { 0 },
};

static int parse_one(struct reader *reader, const json_t *value, struct scenario *scenario)
{
        struct scenario_device *device;

        if (scenario->n_devices == STATE_DEVICES_MAX)
                return reader_fail(reader, "there are too many devices; allowed: %d",
                                   STATE_DEVICES_MAX);
        device = reader_grow((void **)&scenario->devices, &scenario->n_devices, sizeof(*device));
        if (!device)
                return reader_fail(reader, "out of memory");
        device->count = 1;
        device->ecc = STATE_NONE;
        device->ecc_pending = STATE_NONE;
        device->accounting = 1;
        device->can_migrate = 1;
        device->lost_at = -1;
        device->links.n = SCENARIO_NOTHING;
        device->fabric.state = SCENARIO_NOTHING;
        device->capability[STATE_CAN_FRACTIONAL] = 1;
        device->capability[STATE_CAN_MIX_PROFILES] = 1;
        device->capability[STATE_CAN_MIX_SIZES] = 1;
        return reader_fields(reader, value, fields, device);
}

/* Of several devices of one entry the first has the serial number, the others those that follow. */
static int count_serial(struct reader *reader, char *serial, uint32_t by)
{
        size_t at = strlen(serial);

        for (; by > 0 && at > 0 && serial[at - 1] >= '0' && serial[at - 1] <= '9'; at--) {
                by += (uint32_t)(serial[at - 1] - '0');
                serial[at - 1] = (char)('0' + by % 10);
                by /= 10;
        }
        return by == 0 ? 0
                       : reader_fail(reader,
                                     "the serial is that of the first of several devices; it "
                                     "must end with digits that can be counted up");
}

static int check_counted(struct reader *reader, const struct scenario_device *device)
{
        for (size_t i = 0; i < device->n_gpu_instances; i++)
                for (size_t k = 0; k < device->gpu_instances[i].n_compute_instances; k++)
                        if (device->gpu_instances[i].compute_instances[k].uuid[0])
                                return reader_fail(reader,
                                                   "gpu_instances[%zu].compute_instances[%zu] has "
                                                   "a uuid, which several devices (count %u) "
                                                   "would share; leave it out, or write the "
                                                   "devices one by one",
                                                   i, k, device->count);
        return 0;
}

/* Each of several has all else of it. */
int parse_device(struct reader *reader, const json_t *value, void *to)
{
        struct scenario *scenario = to;
        int r = parse_one(reader, value, scenario);
        uint32_t count = r == 0 ? scenario->devices[scenario->n_devices - 1].count : 0;

        if (count > 1)
                r = check_counted(reader, &scenario->devices[scenario->n_devices - 1]);
        for (uint32_t i = 1; r == 0 && i < count; i++) {
                char *serial;

                r = parse_one(reader, value, scenario);
                serial = scenario->devices[scenario->n_devices - 1].texts.serial;
                if (r == 0 && *serial)
                        r = count_serial(reader, serial, i);
        }
        return r;
}
