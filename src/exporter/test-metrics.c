/* SPDX-License-Identifier: Apache-2.0 */
/* What the library answers stands in the metrics, in base units; what it does not know is left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "exporter/metrics.h"

#define GIB    ((uint64_t)1 << 30)
#define DEVICE "device=\"0\",device_uuid=\"GPU-1\""
#define LASTS  "vgpu=\"train\",uuid=\"u\",tenant=\"1000\""
#define NOW    LASTS ",device=\"0\""

static const struct vgpu_usage_percents percents = { .gpu = 74, .memory = 40, .encoder = 3 };
static const struct vgpu_usage_seconds seconds = { .gpu = 12.5 };

static const struct vgpu_usage_process process = {
        .pid = 42,
        .name = "a\"b\n",
        .memory_used = 4096,
        .percents = &percents,
        .seconds = &seconds,
        .container = "0123456789ab",
};
static const struct vgpu_usage_process *const processes[] = { &process };

static const struct vgpu_usage_instance instance = {
        .name = "train",
        .uuid = "u",
        .state = VGPU_INSTANCE_RUNNING,
        .frame_buffer = 40 * GIB,
        .frame_buffer_used = 30 * GIB,
        .entitled = 75,
        .percents = &percents,
        .seconds = &seconds,
        .n_processes = 1,
        .processes = processes,
        .share = 60,
        .owner = 1000,
        .n_programs = 2,
        .n_whole = 1,
        .n_unwhole = 3,
        .gpu_seconds_total = 99.25,
        .idle = 1.5,
        .demand = "waiting for memory",
        .host_memory = 17,
        .n_swaps = 3,
        .swapped_bytes = 4096,
        .n_waits = 2,
        .waited_seconds = 0.25,
        .resident_seconds = 12.5,
        .swap_class = "batch",
        .container = "",
};

/* Of Slurm's plugin, in a container; and one that only begins like it. */
static const struct vgpu_usage_instance of_job = {
        .name = "job-120-0.3",
        .uuid = "j",
        .percents = &percents,
        .container = "0123456789ab",
};
static const struct vgpu_usage_instance of_none = {
        .name = "job-7b-0",
        .uuid = "n",
        .percents = &percents,
};
static const struct vgpu_usage_instance *const instances[] = { &instance, &of_job, &of_none };

static const struct vgpu_usage_device device = {
        .uuid = "GPU-1",
        .name = "NVIDIA H200",
        .source = "turns",
        .memory_total = 140 * GIB,
        .memory_used = 30 * GIB,
        .percents = &percents,
        .memory_promised = 40 * GIB,
        .is_overcommitted = true,
        .n_turns = 5,
        .turns_mode = "hardware",
};
static const struct vgpu_usage_device *const devices[] = { &device };

static const struct vgpu_usage_snapshot snapshot = {
        .n_devices = 1,
        .devices = devices,
        .n_instances = 3,
        .instances = instances,
};

static const struct vgpu_device_sensors all_sensors = {
        .temperature = 55,
        .power_mw = 412500,
        .power_limit_mw = 700000,
        .clock_sm_mhz = 1980,
        .clock_memory_mhz = 3201,
        .energy_mj = 123456,
        .memory_used = 31 * GIB,
        .memory_free = 109 * GIB,
        .ecc_corrected = 3,
        .ecc_uncorrected = 0,
};

static const uint64_t buckets[] = { 1 };
static const double bounds[] = { 0.5 };
static const uint64_t byte_buckets[] = { 0, 1 }, byte_bounds[] = { 0, 1 << 20 };
static const struct vgpu_statistics_operation operation = {
        .last_vgpu = "train",
        .last_seconds = 3,
        .last_time = 1764000001,
        .operation = "suspend",
        .result = "done",
        .count = 2,
        .seconds = 3.5,
        .bytes = 1000,
        .buckets = buckets,
        .byte_buckets = byte_buckets,
        .last_bytes = 900,
        .n_pre_copies = 2,
        .n_pre_copy_rounds = 5,
        .pre_copy_bytes = 4096,
        .pre_copy_seconds = 2.25,
        .pre_copy_stopped_seconds = 0.75,
};
static const struct vgpu_statistics_operation *const operations[] = { &operation };
static const struct vgpu_statistics statistics = {
        .started = 1764000000,
        .is_ledger_fine = true,
        .n_bounds = 1,
        .bounds = bounds,
        .n_operations = 1,
        .operations = operations,
        .n_byte_bounds = 2,
        .byte_bounds = byte_bounds,
};

static const struct vgpu_pool pool = {
        .limit = 8 * GIB, .size = GIB, .ready = 5, .used = 6, .saved = 3, .spilled = 9
};
static const struct vgpu_manager manager = {
        .version = "0.1.0",
        .cuda_driver_version = 13040,
        .pool = &pool,
        .descriptors_used = 7,
        .descriptors_limit = 100,
};

static const struct xid_count xids[] = {
        { "GPU-1", 79, 2, 1764000001.5 },
        { "GPU-gone", 31, 7, 1764000002 },
        { "GPU-1", XID_OTHERS, 1, 1764000003 },
};

static char *write_out(const struct metrics_input *input, const struct metrics_options *options)
{
        struct text text = { 0 };
        char *copy;

        metrics_write(&text, input, options);
        assert_int_equal(text_end(&text), 0);
        copy = strndup(text.bytes, text.size);
        text_deinit(&text);
        return copy;
}

static void expect_line(const char *text, const char *line)
{
        const char *at = text;
        size_t n = strlen(line);

        while ((at = strstr(at, line))) {
                if ((at == text || at[-1] == '\n') && at[n] == '\n')
                        return;
                at++;
        }
        fail_msg("there is no line '%s' in:\n%s", line, text);
}

static const char *const base_unit_lines[] = {
        "openvgpu_up 1",
        "openvgpu_exporter_collect_seconds 0.5",
        "openvgpu_exporter_cpu_seconds_total 2",
        "openvgpu_manager_build_info{version=\"0.1.0\",cuda_version=\"13.4\",simulated=\"false\"} 1",
        "openvgpu_manager_start_time_seconds 1764000000",
        "openvgpu_manager_descriptors 7",
        "openvgpu_ledger_working 1",
        "openvgpu_pool_limit_bytes 8589934592",
        "openvgpu_pool_used_bytes 6",
        "openvgpu_pool_saved_bytes 3",
        "openvgpu_pool_spilled_bytes 9",
        "openvgpu_operation_duration_seconds_bucket{operation=\"suspend\",result=\"done\",le=\"0.5\"} 1",
        "openvgpu_operation_duration_seconds_bucket{operation=\"suspend\",result=\"done\",le=\"+Inf\"} 2",
        "openvgpu_operation_duration_seconds_sum{operation=\"suspend\",result=\"done\"} 3.5",
        "openvgpu_operation_moved_bytes_bucket{operation=\"suspend\",result=\"done\",le=\"0.0\"} 0",
        "openvgpu_operation_moved_bytes_bucket{operation=\"suspend\",result=\"done\",le=\"1048576.0\"} 1",
        "openvgpu_operation_moved_bytes_bucket{operation=\"suspend\",result=\"done\",le=\"+Inf\"} 2",
        "openvgpu_operation_moved_bytes_sum{operation=\"suspend\",result=\"done\"} 1000",
        "openvgpu_pre_copy_operations_total{operation=\"suspend\",result=\"done\"} 2",
        "openvgpu_pre_copy_rounds_total{operation=\"suspend\",result=\"done\"} 5",
        "openvgpu_pre_copy_bytes_total{operation=\"suspend\",result=\"done\"} 4096",
        "openvgpu_pre_copy_seconds_total{operation=\"suspend\",result=\"done\"} 2.25",
        "openvgpu_pre_copy_stopped_seconds_total{operation=\"suspend\",result=\"done\"} 0.75",
        "openvgpu_device_overcommitted{" DEVICE "} 1",
        "openvgpu_device_turns_total{" DEVICE "} 5",
        "openvgpu_device_turns_mode{" DEVICE ",mode=\"hardware\"} 1",
        "openvgpu_device_info{" DEVICE ",model=\"NVIDIA H200\",metering=\"turns\"} 1",
        "openvgpu_device_memory_bytes{" DEVICE "} 150323855360",
        "openvgpu_device_memory_promised_bytes{" DEVICE "} 42949672960",
        "openvgpu_device_memory_used_bytes{" DEVICE "} 32212254720",
        "openvgpu_device_memory_free_bytes{" DEVICE "} 117037858816",
        "openvgpu_device_utilization_ratio{" DEVICE ",engine=\"gpu\"} 0.74",
        "openvgpu_device_temperature_celsius{" DEVICE "} 55",
        "openvgpu_device_power_watts{" DEVICE "} 412.5",
        "openvgpu_device_power_limit_watts{" DEVICE "} 700",
        "openvgpu_device_energy_joules_total{" DEVICE "} 123.456",
        "openvgpu_device_clock_hertz{" DEVICE ",clock=\"sm\"} 1980000000",
        "openvgpu_device_clock_hertz{" DEVICE ",clock=\"memory\"} 3201000000",
        "openvgpu_device_ecc_errors_total{" DEVICE ",kind=\"corrected\"} 3",
        "openvgpu_device_ecc_errors_total{" DEVICE ",kind=\"uncorrected\"} 0",
        "openvgpu_device_xid_errors_total{" DEVICE ",xid=\"79\"} 2",
        "openvgpu_device_xid_errors_total{" DEVICE ",xid=\"other\"} 1",
        "openvgpu_device_xid_last_timestamp_seconds{" DEVICE ",xid=\"79\"} 1764000001.5",
        "openvgpu_vgpu_info{" NOW ",device_uuid=\"GPU-1\",swap_class=\"batch\"} 1",
        "openvgpu_vgpu_info{vgpu=\"job-120-0.3\",uuid=\"j\",tenant=\"0\",device=\"0\",device_uuid=\"GPU-1\","
        "container=\"0123456789ab\",slurm_job=\"120\"} 1",
        "openvgpu_vgpu_info{vgpu=\"job-7b-0\",uuid=\"n\",tenant=\"0\",device=\"0\",device_uuid=\"GPU-1\"} 1",
        "openvgpu_vgpu_state{" NOW ",state=\"running\"} 1",
        "openvgpu_vgpu_memory_quota_bytes{" NOW "} 42949672960",
        "openvgpu_vgpu_memory_used_bytes{" NOW "} 32212254720",
        "openvgpu_vgpu_share_ratio{" NOW "} 0.6",
        "openvgpu_vgpu_entitled_ratio{" NOW "} 0.75",
        "openvgpu_vgpu_utilization_ratio{" NOW ",engine=\"gpu\"} 0.74",
        "openvgpu_vgpu_gpu_seconds_total{" LASTS "} 99.25",
        "openvgpu_vgpu_processes{" NOW "} 2",
        "openvgpu_vgpu_restored_processes{" NOW ",context=\"whole\"} 1",
        "openvgpu_vgpu_restored_processes{" NOW ",context=\"unwhole\"} 3",
        "openvgpu_vgpu_idle_seconds{" NOW "} 1.5",
        "openvgpu_vgpu_waiting{" NOW "} 1",
        "openvgpu_vgpu_host_memory_bytes{" NOW "} 17",
        "openvgpu_vgpu_swaps_total{" LASTS "} 3",
        "openvgpu_vgpu_swapped_bytes_total{" LASTS "} 4096",
        "openvgpu_vgpu_waits_total{" LASTS "} 2",
        "openvgpu_vgpu_waited_seconds_total{" LASTS "} 0.25",
        "openvgpu_vgpu_resident_seconds_total{" LASTS "} 12.5",
        "openvgpu_device_memory_swapped_bytes{" DEVICE "} 17",
        "openvgpu_pool_spare_bytes 0",
        "openvgpu_process_memory_used_bytes{" LASTS
        ",pid=\"42\",process=\"a\\\"b\\n\",container=\"0123456789ab\"} 4096",
        "openvgpu_process_gpu_seconds_total{" LASTS
        ",pid=\"42\",process=\"a\\\"b\\n\",container=\"0123456789ab\"} 12.5",
};

static void test_everything_in_base_units(void **state)
{
        const struct vgpu_device_sensors *const sensors[] = { &all_sensors };
        const struct metrics_input input = {
                .snapshot = &snapshot,
                .manager = &manager,
                .statistics = &statistics,
                .sensors = sensors,
                .xids = xids,
                .n_xids = 3,
                .collect_seconds = 0.5,
                .cpu_seconds = 2,
                .hostname = "h",
        };
        const struct metrics_options options = { .has_processes = true };
        char *text = write_out(&input, &options);
        (void)state;

        for (size_t i = 0; i < sizeof(base_unit_lines) / sizeof(base_unit_lines[0]); i++)
                expect_line(text, base_unit_lines[i]);
        assert_null(strstr(text, "xid=\"31\"")); /* of a device that is not there */
        free(text);
}

static const struct vgpu_usage_percents no_percents = { .gpu = 0 };

#define DCGM_OF(index, rest)                                             \
        "{gpu=\"" index "\",UUID=\"GPU-" rest "\",device=\"nvidia" index \
        "\",modelName=\"NVIDIA H200\","                                  \
        "Hostname=\"h\",vgpu=\"train\"}"
#define HAMI_OF(number, uuid)                                                       \
        "{namespace=\"\",pod=\"train\",container=\"train\",vdevice_index=\"" number \
        "\",device_uuid=\"" uuid "\"}"

/* No sum of both is told of one of them. */
static const char *const part_lines[] = {
        "openvgpu_vgpu_memory_quota_bytes{" LASTS ",device=\"0,3\"} 42949672960",
        "openvgpu_vgpu_part_memory_quota_bytes{" LASTS ",device=\"0\"} 21474836480",
        "openvgpu_vgpu_part_memory_used_bytes{" LASTS ",device=\"0\"} 5242880",
        "openvgpu_vgpu_part_memory_used_bytes{" LASTS ",device=\"3\"} 6291456",
        "openvgpu_vgpu_part_utilization_ratio{" LASTS ",device=\"0\",engine=\"gpu\"} 0.74",
        "openvgpu_vgpu_part_utilization_ratio{" LASTS ",device=\"3\",engine=\"gpu\"} 0",
        "openvgpu_vgpu_part_gpu_seconds_total{" LASTS ",device=\"3\"} 2.5",
        "DCGM_FI_DEV_FB_USED" DCGM_OF("0", "1") " 5",
        "DCGM_FI_DEV_FB_USED" DCGM_OF("3", "3") " 6",
        "DCGM_FI_DEV_FB_FREE" DCGM_OF("3", "3") " 20474",
        "DCGM_FI_DEV_GPU_UTIL" DCGM_OF("0", "1") " 74",
        "DCGM_FI_DEV_GPU_UTIL" DCGM_OF("3", "3") " 0",
        "hami_vgpu_memory_used_bytes" HAMI_OF("0", "GPU-1") " 5242880",
        "hami_vgpu_memory_used_bytes" HAMI_OF("1", "GPU-3") " 6291456",
        "hami_vgpu_memory_limit_bytes" HAMI_OF("1", "GPU-3") " 21474836480",
        "hami_container_device_utilization_ratio" HAMI_OF("0", "GPU-1") " 74",
};

static void test_each_of_several_devices(void **state)
{
        const struct vgpu_usage_part of_part[] = {
                { .device = 0,
                  .frame_buffer_used = 5 << 20,
                  .gpu_seconds_total = 1.5,
                  .percents = &percents },
                { .device = 3,
                  .frame_buffer_used = 6 << 20,
                  .gpu_seconds_total = 2.5,
                  .percents = &no_percents },
        };
        const struct vgpu_usage_device other = { .index = 3,
                                                 .uuid = "GPU-3",
                                                 .name = "NVIDIA H200",
                                                 .source = "turns",
                                                 .turns_mode = "off",
                                                 .percents = &percents };
        const struct vgpu_usage_device *const both[] = { &device, &other };
        const struct vgpu_usage_part *const parts[] = { &of_part[0], &of_part[1] };
        struct vgpu_usage_instance several = *snapshot.instances[0];
        const struct vgpu_usage_instance *const one[] = { &several };
        struct vgpu_usage_snapshot all = snapshot;
        const struct metrics_input input = { .snapshot = &all, .hostname = "h" };
        const struct metrics_options none = { .has_dcgm = true, .has_hami = true };
        char *text;
        (void)state;

        all.n_instances = 1;
        all.instances = one;
        all.n_devices = 2;
        all.devices = both;
        several.n_parts = 1;
        several.parts = parts;
        text = write_out(&input, &none);
        assert_null(strstr(text, "vgpu_part"));
        free(text);
        several.n_parts = 2;
        text = write_out(&input, &none);
        for (size_t i = 0; i < sizeof(part_lines) / sizeof(part_lines[0]); i++)
                expect_line(text, part_lines[i]);
        free(text);
}

static void test_processes_and_other_names_only_when_asked_for(void **state)
{
        const struct metrics_input input = {
                .snapshot = &snapshot, .xids = xids, .n_xids = 2, .hostname = "h"
        };
        const struct metrics_options none = { 0 }, others = { .has_dcgm = true, .has_hami = true };
        char *text = write_out(&input, &none);
        (void)state;

        assert_null(strstr(text, "pid="));
        assert_null(strstr(text, "DCGM"));
        assert_null(strstr(text, "hami"));
        free(text);

        text = write_out(&input, &others);
        assert_null(strstr(text, "pid="));
        expect_line(text,
                    "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",modelName="
                    "\"NVIDIA H200\",Hostname=\"h\"} 30720");
        expect_line(text,
                    "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",modelName="
                    "\"NVIDIA H200\",Hostname=\"h\",vgpu=\"train\"} 74");
        expect_line(text, "DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\","
                          "modelName=\"NVIDIA H200\",Hostname=\"h\"} 79");
        expect_line(text,
                    "hami_vgpu_memory_limit_bytes{namespace=\"\",pod=\"train\",container=\"train\","
                    "vdevice_index=\"0\",device_uuid=\"GPU-1\"} 42949672960");
        free(text);
}

static void test_what_is_not_known_is_not_there(void **state)
{
        struct vgpu_device_sensors unknown;
        const struct vgpu_device_sensors *const sensors[] = { &unknown };
        const struct vgpu_device_sensors *const silent[] = { NULL };
        struct metrics_input input = { .snapshot = &snapshot, .sensors = sensors, .hostname = "h" };
        const struct metrics_options options = { .has_dcgm = true };
        char *text;
        (void)state;

        memset(&unknown, 0xff, sizeof(unknown));
        for (int i = 0; i < 2; i++) {
                text = write_out(&input, &options);
                assert_null(strstr(text, "celsius"));
                assert_null(strstr(text, "watts"));
                assert_null(strstr(text, "joules"));
                assert_null(strstr(text, "clock"));
                assert_null(strstr(text, "ecc"));
                assert_null(strstr(text, "DCGM_FI_DEV_GPU_TEMP"));
                assert_null(strstr(text, "DCGM_FI_DEV_POWER_USAGE"));
                expect_line(text, "openvgpu_device_memory_bytes{" DEVICE "} 150323855360");
                free(text);
                input.sensors = silent;
        }
}

static void test_an_older_vgpud_has_no_buckets_of_bytes(void **state)
{
        struct vgpu_statistics old = statistics;
        const struct metrics_input input = { .snapshot = &snapshot,
                                             .statistics = &old,
                                             .hostname = "h" };
        const struct metrics_options options = { 0 };
        char *text;
        (void)state;

        old.n_byte_bounds = 0;
        old.byte_bounds = NULL;
        text = write_out(&input, &options);
        expect_line(text,
                    "openvgpu_operation_moved_bytes_bucket{operation=\"suspend\",result=\"done\","
                    "le=\"+Inf\"} 2");
        expect_line(
                text,
                "openvgpu_operation_moved_bytes_sum{operation=\"suspend\",result=\"done\"} 1000");
        free(text);
}

static void test_without_a_manager_it_says_so(void **state)
{
        const struct metrics_input input = { .hostname = "h" };
        const struct metrics_options options = { true, true, true };
        char *text = write_out(&input, &options);
        (void)state;

        expect_line(text, "openvgpu_up 0");
        assert_null(strstr(text, "openvgpu_vgpu"));
        assert_null(strstr(text, "openvgpu_device"));
        assert_null(strstr(text, "openvgpu_manager"));
        free(text);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_everything_in_base_units),
                cmocka_unit_test(test_each_of_several_devices),
                cmocka_unit_test(test_processes_and_other_names_only_when_asked_for),
                cmocka_unit_test(test_what_is_not_known_is_not_there),
                cmocka_unit_test(test_an_older_vgpud_has_no_buckets_of_bytes),
                cmocka_unit_test(test_without_a_manager_it_says_so),
        };

        return cmocka_run_group_tests_name("exporter-metrics", tests, NULL, NULL);
}
