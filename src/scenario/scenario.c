/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/scenario.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario/link.h"
#include "scenario/parse.h"

/* A file of more than this is something else. */
#define FILE_SIZE_MAX (4 * 1024 * 1024)

/* Of host 19.0, from the guide of that release. */
#define VERSION_MIN (0x14u << 16 | 1)
#define VERSION_MAX (0x1au << 16 | 1)

/* "26.1" is 26 << 16 | 1. */
static int parse_version(struct reader *reader, const json_t *value, void *to)
{
        const char *text = json_string_value(value);
        unsigned int major, minor;
        int at = 0;

        if (!text || sscanf(text, "%5u.%5u%n", &major, &minor, &at) != 2 || text[at] ||
            major > UINT16_MAX || minor > UINT16_MAX)
                return reader_fail(reader, "is not a version; allowed: text as \"26.1\"");
        *(uint32_t *)to = major << 16 | minor;
        return 0;
}

#define VERSION(word, member)                                                                  \
        {                                                                                      \
                .name = word, .kind = FIELD_OTHER, .is_required = true, .read = parse_version, \
                .offset = offsetof(struct scenario, host.member)                               \
        }

static int parse_supported(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = { VERSION("min", supported_min),
                                               VERSION("max", supported_max),
                                               { 0 } };

        return reader_fields(reader, value, fields, to);
}

static int parse_current(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = { VERSION("min", current_min),
                                               VERSION("max", current_max),
                                               { 0 } };

        return reader_fields(reader, value, fields, to);
}

static int check_versions(const struct state_host *host, struct reader *reader)
{
        if (host->supported_min > host->supported_max || host->current_min > host->current_max)
                return reader_fail(reader, "the min of a range of versions is above its max");
        if (host->current_min < host->supported_min || host->current_max > host->supported_max)
                return reader_fail(reader, "the versions in force are not within those supported");
        return 0;
}

static int parse_host(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                { .name = "driver_version",
                  .kind = FIELD_TEXT,
                  .size = 80,
                  .offset = offsetof(struct scenario, driver_version) },
                { .name = "vgpu_versions_supported",
                  .kind = FIELD_OBJECT,
                  .read = parse_supported },
                { .name = "vgpu_versions", .kind = FIELD_OBJECT, .read = parse_current },
                { .name = "heterogeneous_multi_vgpu",
                  .kind = FIELD_SWITCH,
                  .offset = offsetof(struct scenario, host.can_mix_sizes) },
                { .name = "warm_update",
                  .kind = FIELD_SWITCH,
                  .offset = offsetof(struct scenario, host.can_warm_update) },
                { 0 },
        };
        struct scenario *scenario = to;
        int r = reader_fields(reader, value, fields, scenario);

        if (r == 0 && !json_object_get(value, "vgpu_versions")) {
                scenario->host.current_min = scenario->host.supported_min;
                scenario->host.current_max = scenario->host.supported_max;
        }
        return r == 0 ? check_versions(&scenario->host, reader) : r;
}

static int parse_format(struct reader *reader, const json_t *value, void *to)
{
        (void)to;
        if (json_is_integer(value) && json_integer_value(value) == SCENARIO_VERSION)
                return 0;
        return reader_fail(reader,
                           "is not a version of scenarios that this program knows; "
                           "allowed: %d",
                           SCENARIO_VERSION);
}

static const struct field fields[] = {
        { .name = "openvgpu_scenario",
          .kind = FIELD_OTHER,
          .is_required = true,
          .read = parse_format },
        { .name = "description",
          .kind = FIELD_TEXT,
          .size = 512,
          .offset = offsetof(struct scenario, description) },
        { .name = "host", .kind = FIELD_OBJECT, .read = parse_host },
        { .name = "devices", .kind = FIELD_LIST, .is_required = true, .read = parse_device },
        { .name = "vgpus", .kind = FIELD_LIST, .read = parse_vgpu },
        { 0 },
};

static int read_file(json_t **ret_document, const char *path, char *problem)
{
        FILE *file = fopen(path, "re");
        json_error_t error;
        int r = -errno;

        if (!file) {
                snprintf(problem, SCENARIO_PROBLEM_MAX, "cannot open it: %s", strerror(-r));
                return r;
        }
        if (fseek(file, 0, SEEK_END) == 0 && ftell(file) > FILE_SIZE_MAX) {
                snprintf(problem, SCENARIO_PROBLEM_MAX, "is too long to be a scenario");
                fclose(file);
                return -EFBIG;
        }
        rewind(file);
        *ret_document = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
        fclose(file);
        if (*ret_document)
                return 0;
        snprintf(problem, SCENARIO_PROBLEM_MAX, "line %d, column %d: %s", error.line, error.column,
                 error.text);
        return -EINVAL;
}

int scenario_load(struct scenario **ret_scenario, const char *path, char *problem)
{
        CLEANUP(scenario_freep) struct scenario *scenario = calloc(1, sizeof(*scenario));
        struct reader reader = { 0 };
        json_t *document = NULL;
        int r;

        if (!scenario)
                return -ENOMEM;
        strcpy(scenario->driver_version, SCENARIO_DRIVER_VERSION);
        scenario->host = (struct state_host){ .supported_min = VERSION_MIN,
                                              .supported_max = VERSION_MAX,
                                              .current_min = VERSION_MIN,
                                              .current_max = VERSION_MAX,
                                              .can_mix_sizes = 1 };
        r = read_file(&document, path, problem);
        if (r < 0)
                return r;
        r = reader_fields(&reader, document, fields, scenario);
        json_decref(document);
        if (r == 0)
                r = scenario_check(scenario, &reader);
        if (r < 0) {
                snprintf(problem, SCENARIO_PROBLEM_MAX, "%s", reader.problem);
                return r;
        }
        *ret_scenario = TAKE(scenario);
        return 0;
}

/* Freeing. */

static void deinit_utilization(struct scenario_utilization *utilization)
{
        curve_deinit(&utilization->gpu);
        curve_deinit(&utilization->memory);
        curve_deinit(&utilization->encoder);
        curve_deinit(&utilization->decoder);
        curve_deinit(&utilization->jpeg);
        curve_deinit(&utilization->ofa);
}

static void deinit_vgpu(struct scenario_vgpu *vgpu)
{
        curve_deinit(&vgpu->memory);
        deinit_utilization(&vgpu->utilization);
        for (size_t i = 0; i < vgpu->n_processes; i++) {
                curve_deinit(&vgpu->processes[i].memory);
                deinit_utilization(&vgpu->processes[i].utilization);
        }
        for (size_t i = 0; i < vgpu->n_encoder_sessions; i++) {
                curve_deinit(&vgpu->encoder_sessions[i].fps);
                curve_deinit(&vgpu->encoder_sessions[i].latency);
        }
        for (size_t i = 0; i < vgpu->n_capture_sessions; i++) {
                curve_deinit(&vgpu->capture_sessions[i].fps);
                curve_deinit(&vgpu->capture_sessions[i].latency);
        }
        free(vgpu->processes);
        free(vgpu->encoder_sessions);
        free(vgpu->capture_sessions);
        free(vgpu->accounts);
}

static void deinit_device(struct scenario_device *device)
{
        link_deinit(&device->links);
#define SENSOR(name) curve_deinit(&device->sensors.name);
        SCENARIO_SENSORS(SENSOR)
        SCENARIO_COUNTERS(SENSOR)
#undef SENSOR
        for (size_t i = 0; i < device->n_gpu_instances; i++) {
                free(device->gpu_instances[i].schedulers);
                free(device->gpu_instances[i].compute_instances);
        }
        free(device->gpu_instances);
        free(device->schedulers);
        free(device->types);
        free(device->events);
}

struct scenario *scenario_free(struct scenario *scenario)
{
        if (!scenario)
                return NULL;
        for (size_t i = 0; i < scenario->n_vgpus; i++)
                deinit_vgpu(&scenario->vgpus[i]);
        for (size_t i = 0; i < scenario->n_devices; i++)
                deinit_device(&scenario->devices[i]);
        free(scenario->vgpus);
        free(scenario->devices);
        free(scenario);
        return NULL;
}

int scenario_format_devices(const struct scenario *scenario, char *text, size_t size)
{
        size_t length = 0;

        text[0] = '\0';
        for (size_t i = 0; i < scenario->n_devices; i++) {
                const struct scenario_device *device = &scenario->devices[i];
                int n = snprintf(text + length, size - length, "%s%s", i ? "," : "", device->kind);

                length += (size_t)n;
                if (length < size && device->memory) {
                        n = snprintf(text + length, size - length, ":%" PRIu64, device->memory);
                        length += (size_t)n;
                }
                if (length >= size)
                        return -ENAMETOOLONG;
        }
        return 0;
}
