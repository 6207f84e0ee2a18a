/* SPDX-License-Identifier: Apache-2.0 */
/* What monitors ask of a device: fields, errors, fans, clocks, where it is; and what MIG forbids. */
#include <string.h>
#include <unistd.h>

#include "abi/nvml-accounting.h"
#include "abi/nvml-device.h"
#include "abi/nvml-mig.h"
#include "base/test.h"
#include "nvml/fixture.h"

#define GONE ((nvmlDevice_t)(uintptr_t)1)

static const struct state_sensors measured = { .fan = 41,
                                               .power = 121500,
                                               .power_limit = 600000,
                                               .power_limit_min = 200000,
                                               .power_limit_max = 700000,
                                               .energy = 12345,
                                               .clock_graphics = 1200,
                                               .clock_graphics_max = 1980,
                                               .clock_sm = 1200,
                                               .clock_memory_max = 3201,
                                               .ecc_corrected_volatile = 17,
                                               .ecc_corrected_aggregate = 2017,
                                               .ecc_uncorrected_volatile = 1,
                                               .ecc_uncorrected_aggregate = 3 };

static nvmlDevice_t device_0(void)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
        return device;
}

/* The first device measures all of this, the second measures nothing. */
static nvmlDevice_t measure(struct fixture *fixture, state_switch mig)
{
        struct state_device device;

        assert_true(state_read_device(fixture->state_page, 0, &device));
        device.ecc = device.ecc_pending = 1;
        device.mig = device.mig_pending = mig;
        state_write_device(fixture->state_page, 0, &device);
        state_write_sensors(fixture->state_page, 0, &measured);
        return device_0();
}

static nvmlFieldValue_t get_field(nvmlDevice_t device, unsigned int id)
{
        nvmlFieldValue_t value = { .fieldId = id };

        assert_int_equal(nvmlDeviceGetFieldValues(device, 1, &value), NVML_SUCCESS);
        return value;
}

static void test_fields_are_what_the_functions_say(void **state)
{
        static const struct {
                unsigned int id, value;
                bool is_long;
        } rows[] = {
                { NVML_FI_DEV_ECC_CURRENT, 1, false },
                { NVML_FI_DEV_ECC_PENDING, 1, false },
                { NVML_FI_DEV_ECC_SBE_VOL_TOTAL, 17, true },
                { NVML_FI_DEV_ECC_DBE_VOL_TOTAL, 1, true },
                { NVML_FI_DEV_ECC_SBE_AGG_TOTAL, 2017, true },
                { NVML_FI_DEV_ECC_DBE_AGG_TOTAL, 3, true },
                { NVML_FI_DEV_ECC_SBE_AGG_DEV, 2017, true },
                { NVML_FI_DEV_REMAPPED_COR, 0, false },
                { NVML_FI_DEV_REMAPPED_FAILURE, 0, false },
                { NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 12345, true },
                { NVML_FI_DEV_POWER_AVERAGE, 121500, false },
                { NVML_FI_DEV_POWER_INSTANT, 121500, false },
                { NVML_FI_DEV_POWER_MIN_LIMIT, 200000, false },
                { NVML_FI_DEV_POWER_MAX_LIMIT, 700000, false },
                { NVML_FI_DEV_POWER_CURRENT_LIMIT, 600000, false },
                { NVML_FI_DEV_PERF_POLICY_POWER, 0, true },
                { NVML_FI_DEV_NVLINK_LINK_COUNT, 0, false },
                { NVML_FI_DEV_PCIE_REPLAY_COUNTER, 0, false },
        };
        nvmlFieldValue_t module = { .fieldId = NVML_FI_DEV_POWER_INSTANT, .scopeId = 1 };
        nvmlDevice_t device = measure(*state, 0);

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                nvmlFieldValue_t value = get_field(device, rows[i].id);

                assert_int_equal(value.nvmlReturn, NVML_SUCCESS);
                assert_int_equal(value.valueType, rows[i].is_long
                                                          ? NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
                                                          : NVML_VALUE_TYPE_UNSIGNED_INT);
                assert_int_equal(rows[i].is_long ? value.value.ullVal : value.value.uiVal,
                                 rows[i].value);
                assert_true(value.timestamp > 0);
        }
        assert_int_equal(get_field(device, NVML_FI_DEV_RETIRED_SBE).nvmlReturn,
                         NVML_ERROR_NOT_SUPPORTED); /* it remaps rows */
        assert_int_equal(get_field(device, 82).nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetFieldValues(device, 1, &module), NVML_SUCCESS);
        assert_int_equal(module.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetFieldValues(device, 0, NULL), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_a_device_that_measures_nothing_has_no_fields(void **state)
{
        nvmlDevice_t device;

        (void)state;
        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &device), NVML_SUCCESS);
        for (unsigned int id = 1; id < 303; id++)
                assert_int_equal(get_field(device, id).nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
}

static void test_modes_are_those_in_force(void **state)
{
        nvmlDeviceAddressingMode_v1_t addressing = { .version = 0x1000008, .value = 9 };
        struct fixture *fixture = *state;
        struct state_device record;
        unsigned int now, pending;
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetAddressingMode(device, &addressing), NVML_SUCCESS);
        assert_int_equal(addressing.value, NVML_DEVICE_ADDRESSING_MODE_NONE);
        addressing.version = 1;
        assert_int_equal(nvmlDeviceGetAddressingMode(device, &addressing),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        if (geteuid() == 0)
                assert_int_equal(nvmlDeviceSetPersistenceMode(device, NVML_FEATURE_ENABLED),
                                 NVML_SUCCESS);
        assert_int_equal(nvmlDeviceSetPersistenceMode(device, NVML_FEATURE_DISABLED),
                         geteuid() == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_NO_PERMISSION);
        assert_int_equal(nvmlDeviceSetPersistenceMode(device, (nvmlEnableState_t)2),
                         NVML_ERROR_INVALID_ARGUMENT);

        assert_int_equal(nvmlDeviceGetMigMode(device, &now, &pending), NVML_SUCCESS);
        assert_true(state_read_device(fixture->state_page, 0, &record));
        record.mig = record.mig_pending = STATE_NONE;
        state_write_device(fixture->state_page, 0, &record);
        assert_int_equal(nvmlDeviceGetMigMode(device, &now, &pending), NVML_ERROR_NOT_SUPPORTED);
}

static void test_errors_are_those_of_the_device_memory(void **state)
{
        nvmlRemappedRowsInfo_v2_t rows;
        nvmlDevice_t device = measure(*state, 0);
        unsigned int corrected, uncorrected, is_pending, has_failed, n = 0;
        nvmlEccSramErrorStatus_v1_t status = { .version = 0x1000068, .aggregateCor = 7 };
        unsigned long long count;
        nvmlEccErrorCounts_t counts;
        nvmlEnableState_t mode;

        assert_int_equal(nvmlDeviceGetMemoryErrorCounter(device, 0, 1, 2, &count), NVML_SUCCESS);
        assert_int_equal(count, 2017);
        assert_int_equal(nvmlDeviceGetMemoryErrorCounter(device, 0, 1, 7, &count), NVML_SUCCESS);
        assert_int_equal(count, 0);
        assert_int_equal(nvmlDeviceGetMemoryErrorCounter(device, 0, 1, 1, &count),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetMemoryErrorCounter(device, 0, 1, 8, &count),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetDetailedEccErrors(device, 1, 0, &counts), NVML_SUCCESS);
        assert_int_equal(counts.deviceMemory, 1);
        assert_int_equal(counts.l2Cache, 0);
        assert_int_equal(nvmlDeviceGetSramEccErrorStatus(device, &status), NVML_SUCCESS);
        assert_int_equal(status.aggregateCor, 0);
        status.version = 1;
        assert_int_equal(nvmlDeviceGetSramEccErrorStatus(device, &status),
                         NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
        assert_int_equal(nvmlDeviceGetDefaultEccMode(device, &mode), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetRemappedRows(device, &corrected, &uncorrected, &is_pending,
                                                   &has_failed),
                         NVML_SUCCESS);
        assert_int_equal(corrected + uncorrected + is_pending + has_failed, 0);
        assert_int_equal(nvmlDeviceGetRemappedRows_v2(device, &rows), NVML_SUCCESS);
        assert_int_equal(rows.corrActiveRemaps + rows.corrInactiveRemaps + rows.uncActiveRemaps +
                                 rows.uncInactiveRemaps + rows.bPending + rows.bFailureOccurred,
                         0);
        assert_int_equal(nvmlDeviceGetRemappedRows_v2(device, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetRetiredPages(device, 0, &n, NULL), NVML_ERROR_NOT_SUPPORTED);
}

static void test_what_belongs_together_agrees(void **state)
{
        struct fixture *fixture = *state;
        nvmlDevice_t device = measure(fixture, 0);
        struct state_sensors sensors = measured;
        unsigned long long energy;
        unsigned int number;

        assert_int_equal(nvmlDeviceGetNumFans(device, &number), NVML_SUCCESS);
        assert_int_equal(number, 1);
        assert_int_equal(nvmlDeviceGetFanSpeed_v2(device, 0, &number), NVML_SUCCESS);
        assert_int_equal(number, 41);
        assert_int_equal(nvmlDeviceGetFanSpeed_v2(device, 1, &number), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(device, &energy), NVML_SUCCESS);
        assert_int_equal(energy, 12345);
        sensors.fan = sensors.power = STATE_NONE;
        state_write_sensors(fixture->state_page, 0, &sensors);
        assert_int_equal(nvmlDeviceGetFanSpeed(device, &number), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetNumFans(device, &number), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetFanSpeed_v2(device, 0, &number), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetPowerUsage(device, &number), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(device, &energy),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(get_field(device, NVML_FI_DEV_ENERGY).nvmlReturn,
                         NVML_ERROR_NOT_SUPPORTED);
}

/* Hopper's driver answers for the older codecs, though Hopper has no encoder. */
static void test_hopper_does_not_encode_av1(void **state)
{
        nvmlDevice_t device = measure(*state, 0);
        unsigned int percent;

        assert_int_equal(nvmlDeviceGetEncoderCapacity(device, NVML_ENCODER_QUERY_AV1, &percent),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetEncoderCapacity(device, NVML_ENCODER_QUERY_HEVC, &percent),
                         NVML_SUCCESS);
}

/* NVML's header says of each of these that it is not supported then. */
static void test_under_mig_a_device_does_not_tell_what_its_parts_do(void **state)
{
        nvmlDevice_t device = measure(*state, 1);
        nvmlProcessUtilizationSample_t processes[4];
        nvmlUtilization_t utilization;
        unsigned int a = 4, b;
        unsigned long long count;
        nvmlEnableState_t mode;
        nvmlValueType_t type;

        assert_int_equal(nvmlDeviceGetUtilizationRates(device, &utilization),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetEncoderUtilization(device, &a, &b), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetDecoderUtilization(device, &a, &b), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetJpgUtilization(device, &a, &b), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetOfaUtilization(device, &a, &b), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetProcessUtilization(device, processes, &a, 0),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetNumGpuCores(device, &a), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetAccountingMode(device, &mode), NVML_SUCCESS);
        assert_int_equal(mode, NVML_FEATURE_DISABLED);
        assert_int_equal(nvmlDeviceSetAccountingMode(device, NVML_FEATURE_ENABLED),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(
                nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &a, NULL),
                NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetMemoryErrorCounter(device, 0, NVML_VOLATILE_ECC, 2, &count),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetMemoryErrorCounter(device, 0, NVML_AGGREGATE_ECC, 2, &count),
                         NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetRemappedRows(device, &a, &a, &a, &b),
                         NVML_ERROR_NOT_SUPPORTED);
}

static void test_gpu_instances_can_begin_where_their_profile_says(void **state)
{
        const struct state_profile profile = { .id = 14, .memory_slices = 2, .starts = 0x15 };
        nvmlDevice_t device = measure(*state, 1);
        nvmlGpuInstancePlacement_t placements[4] = { [3] = { 99, 99 } };
        unsigned int count = 0;

        state_write_profile(((struct fixture *)*state)->state_page, state_slot_of_profile(0, 1),
                            &profile);
        assert_int_equal(nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, 14, NULL, &count),
                         NVML_SUCCESS);
        assert_int_equal(count, 3);
        assert_int_equal(nvmlDeviceGetGpuInstancePossiblePlacements(device, 14, placements, &count),
                         NVML_SUCCESS);
        assert_int_equal(placements[0].start, 0);
        assert_int_equal(placements[2].start, 4);
        assert_int_equal(placements[2].size, 2);
        assert_int_equal(placements[3].start, 99);
        assert_int_equal(nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, 5, NULL, &count),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_clocks_that_can_be_set_are_the_highest(void **state)
{
        nvmlDevice_t device = measure(*state, 0);
        unsigned int clocks[2] = { 0, 99 }, count = 2;
        unsigned long long reasons;
        nvmlViolationTime_t time;

        assert_int_equal(nvmlDeviceGetSupportedMemoryClocks(device, &count, clocks), NVML_SUCCESS);
        assert_int_equal(count, 1);
        assert_int_equal(clocks[0], 3201);
        assert_int_equal(clocks[1], 99);
        count = 0;
        assert_int_equal(nvmlDeviceGetSupportedGraphicsClocks(device, 3201, &count, NULL),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(nvmlDeviceGetSupportedGraphicsClocks(device, 3201, &count, clocks), 0);
        assert_int_equal(clocks[0], 1980);
        assert_int_equal(nvmlDeviceGetSupportedGraphicsClocks(device, 1, &count, clocks),
                         NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlDeviceGetCurrentClocksEventReasons(device, &reasons), NVML_SUCCESS);
        assert_int_equal(reasons, 0);
        assert_int_equal(nvmlDeviceGetViolationStatus(device, NVML_PERF_POLICY_RELIABILITY, &time),
                         NVML_SUCCESS);
        assert_int_equal(time.violationTime, 0);
        assert_int_equal(nvmlDeviceGetViolationStatus(device, 7, &time),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_the_newest_sample_is_told_once(void **state)
{
        nvmlDevice_t device = measure(*state, 0);
        nvmlSample_t samples[2];
        unsigned int count = 0;
        nvmlValueType_t type;

        assert_int_equal(
                nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &count, NULL),
                NVML_SUCCESS);
        assert_int_equal(count, 1);
        assert_int_equal(nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, 0, &type,
                                              &count, samples),
                         NVML_SUCCESS);
        assert_int_equal(samples[0].sampleValue.uiVal, 37);
        assert_int_equal(nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES,
                                              samples[0].timeStamp, &type, &count, samples),
                         NVML_ERROR_NOT_FOUND);
        assert_int_equal(
                nvmlDeviceGetSamples(device, NVML_TOTAL_POWER_SAMPLES, 0, &type, &count, samples),
                NVML_SUCCESS);
        assert_int_equal(samples[0].sampleValue.uiVal, 121500);
        assert_int_equal(
                nvmlDeviceGetSamples(device, NVML_MODULE_POWER_SAMPLES, 0, &type, &count, samples),
                NVML_ERROR_NOT_SUPPORTED);
}

static void test_of_how_busy_a_device_was_there_is_a_past(void **state)
{
        struct state_sample sample = { .memory = 9 };
        nvmlDevice_t device = measure(*state, 0);
        struct fixture *fixture = *state;
        nvmlSample_t samples[200];
        unsigned int count = 200;
        nvmlValueType_t type;

        for (uint32_t i = 1; i <= 200; i++) {
                sample.timestamp_us = i;
                sample.gpu = i % 100;
                state_append_device_sample(fixture->state_page, 0, &sample);
        }
        assert_int_equal(
                nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &count, NULL),
                NVML_SUCCESS);
        assert_int_equal(count, STATE_SAMPLES_MAX);
        count = 5;
        assert_int_equal(nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, 190, &type,
                                              &count, samples),
                         NVML_SUCCESS);
        assert_int_equal(count, 5);
        assert_int_equal(samples[0].timeStamp, 191);
        assert_int_equal(samples[4].sampleValue.uiVal, 95);
        count = 200;
        assert_int_equal(nvmlDeviceGetSamples(device, NVML_MEMORY_UTILIZATION_SAMPLES, 195, &type,
                                              &count, samples),
                         NVML_SUCCESS);
        assert_int_equal(count, 5);
        assert_int_equal(samples[4].timeStamp, 200);
        assert_int_equal(samples[4].sampleValue.uiVal, 9);
        assert_int_equal(nvmlDeviceGetSamples(device, NVML_GPU_UTILIZATION_SAMPLES, 200, &type,
                                              &count, samples),
                         NVML_ERROR_NOT_FOUND);
}

/* As slurmd asks: it ends without an answer. */
static void test_a_device_is_near_to_cpus_and_memory(void **state)
{
        unsigned long words[16] = { 0 }, same[16];
        unsigned int n_set = 0;

        (void)state;
        assert_int_equal(nvmlDeviceGetCpuAffinity(device_0(), 16, words), NVML_SUCCESS);
        for (int i = 0; i < 16; i++)
                n_set += (unsigned int)__builtin_popcountl(words[i]);
        assert_true(n_set > 0);
        assert_int_equal(nvmlDeviceGetCpuAffinityWithinScope(device_0(), 16, same, 1), 0);
        assert_memory_equal(words, same, sizeof(words));
        words[0] = 0;
        words[1] = 99;
        assert_int_equal(nvmlDeviceGetMemoryAffinity(device_0(), 1, words, 0), NVML_SUCCESS);
        assert_true(words[0] != 0);
        assert_int_equal(words[1], 99);
        assert_int_equal(nvmlDeviceGetCpuAffinity(device_0(), 0, words),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetCpuAffinity(device_0(), 1, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetMemoryAffinity(device_0(), 1, words, 2),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetCpuAffinity(GONE, 1, words), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_others_are_as_far_as_they_can_be(void **state)
{
        nvmlDevice_t list[4];
        unsigned int count = 0;

        (void)state;
        assert_int_equal(
                nvmlDeviceGetTopologyNearestGpus(device_0(), NVML_TOPOLOGY_SYSTEM, &count, NULL),
                NVML_SUCCESS);
        assert_int_equal(count, 1);
        count = 4;
        assert_int_equal(
                nvmlDeviceGetTopologyNearestGpus(device_0(), NVML_TOPOLOGY_NODE, &count, list),
                NVML_SUCCESS);
        assert_int_equal(count, 0);
        count = 1;
        assert_int_equal(nvmlSystemGetTopologyGpuSet(0, &count, list), NVML_SUCCESS);
        assert_int_equal(count, 1);
        assert_ptr_equal(list[0], device_0());
        count = 0;
        assert_int_equal(nvmlSystemGetTopologyGpuSet(0, &count, NULL), NVML_SUCCESS);
        assert_int_equal(count, 2);
}

static void test_the_system_knows_the_processes_of_vgpus_and_no_cards(void **state)
{
        nvmlHwbcEntry_t entries[2];
        unsigned int count = 2;
        char name[64];

        (void)state;
        assert_int_equal(nvmlSystemGetProcessName(4242, name, sizeof(name)), NVML_SUCCESS);
        assert_string_equal(name, "train.py");
        assert_int_equal(nvmlSystemGetProcessName(4343, name, 4), NVML_SUCCESS);
        assert_string_equal(name, "ser");
        assert_int_equal(nvmlSystemGetProcessName(0, name, sizeof(name)), NVML_ERROR_NOT_FOUND);
        assert_int_equal(nvmlSystemGetHicVersion(&count, entries), NVML_SUCCESS);
        assert_int_equal(count, 0);
        assert_int_equal(nvmlSystemGetHicVersion(&count, NULL), NVML_SUCCESS);
        assert_int_equal(nvmlSystemGetHicVersion(NULL, entries), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_events_can_be_registered(void **state)
{
        unsigned long long mask = 0;
        nvmlEventSet_t set;

        (void)state;
        assert_int_equal(nvmlEventSetCreate(&set), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetSupportedEventTypes(device_0(), &mask), NVML_SUCCESS);
        assert_true(mask & NVML_EVENT_TYPE_XID_CRITICAL_ERROR);
        assert_int_equal(nvmlDeviceRegisterEvents(device_0(), mask, set), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceRegisterEvents(device_0(), 1ull << 40, set),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceRegisterEvents(device_0(), mask, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void happen(struct fixture *fixture, uint32_t device, uint64_t kind, uint64_t data)
{
        const struct state_event event = { .timestamp_us = 1, .kind = kind, .data = data };

        state_append_event(fixture->state_page, device, &event);
}

static void test_an_event_reaches_the_sets_that_wait_for_it(void **state)
{
        struct fixture *fixture = *state;
        nvmlEventData_v1_t old;
        nvmlEventData_t event;
        nvmlEventSet_t set, other;

        assert_int_equal(nvmlEventSetCreate(&set), NVML_SUCCESS);
        assert_int_equal(nvmlEventSetCreate(&other), NVML_SUCCESS);
        happen(fixture, 0, NVML_EVENT_TYPE_XID_CRITICAL_ERROR, 13); /* before anybody waits */
        assert_int_equal(
                nvmlDeviceRegisterEvents(device_0(), NVML_EVENT_TYPE_XID_CRITICAL_ERROR, set), 0);
        assert_int_equal(nvmlDeviceRegisterEvents(device_0(), NVML_EVENT_TYPE_CLOCK, other), 0);
        assert_int_equal(nvmlEventSetWait_v2(set, &event, 0), NVML_ERROR_TIMEOUT);
        happen(fixture, 0, NVML_EVENT_TYPE_XID_CRITICAL_ERROR, 79);
        happen(fixture, 0, NVML_EVENT_TYPE_CLOCK, 0);
        happen(fixture, 1, NVML_EVENT_TYPE_XID_CRITICAL_ERROR,
               31); /* of a device that nobody named */
        assert_int_equal(nvmlEventSetWait_v2(set, &event, 60000), NVML_SUCCESS);
        assert_ptr_equal(event.device, device_0());
        assert_int_equal(event.eventType, NVML_EVENT_TYPE_XID_CRITICAL_ERROR);
        assert_int_equal(event.eventData, 79);
        assert_int_equal(event.gpuInstanceId, 0xffffffff);
        assert_int_equal(nvmlEventSetWait_v2(set, &event, 1), NVML_ERROR_TIMEOUT);
        assert_int_equal(nvmlEventSetWait(other, &old, 60000), NVML_SUCCESS);
        assert_int_equal(old.eventType, NVML_EVENT_TYPE_CLOCK);
        assert_int_equal(nvmlEventSetFree(other), NVML_SUCCESS);
        assert_int_equal(nvmlEventSetWait(other, &old, 0), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlEventSetFree(other), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_a_lost_device_ends_a_wait_after_its_last_event(void **state)
{
        struct fixture *fixture = *state;
        struct state_device device;
        nvmlEventData_t event;
        nvmlEventSet_t set;

        assert_int_equal(nvmlEventSetCreate(&set), NVML_SUCCESS);
        assert_int_equal(
                nvmlDeviceRegisterEvents(device_0(), NVML_EVENT_TYPE_XID_CRITICAL_ERROR, set), 0);
        happen(fixture, 0, NVML_EVENT_TYPE_XID_CRITICAL_ERROR, 79);
        assert_true(state_read_device(fixture->state_page, 0, &device));
        device.is_lost = 1;
        state_write_device(fixture->state_page, 0, &device);
        assert_int_equal(nvmlEventSetWait_v2(set, &event, 60000), NVML_SUCCESS);
        assert_int_equal(event.eventData, 79);
        assert_int_equal(nvmlEventSetWait_v2(set, &event, 60000), NVML_ERROR_GPU_IS_LOST);
}

static void test_sets_that_nobody_frees_go_with_the_library(void **state)
{
        nvmlEventSet_t set;
        int n = 0;

        (void)state;
        while (n < 1000 && nvmlEventSetCreate(&set) == NVML_SUCCESS)
                n++;
        assert_int_equal(n, 64);
        assert_int_equal(nvmlShutdown(), NVML_SUCCESS);
        assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
        assert_int_equal(nvmlEventSetFree(set), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlEventSetCreate(&set), NVML_SUCCESS);
}

static void test_an_interrupt_has_a_number_where_it_is_known(void **state)
{
        struct state_device_detail detail;
        struct fixture *fixture = *state;
        unsigned int number = 0;

        assert_int_equal(nvmlDeviceGetIrqNum(device_0(), NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_true(state_read_device_detail(fixture->state_page, 0, &detail));
        detail.irq = 0;
        state_write_device_detail(fixture->state_page, 0, &detail);
        assert_int_equal(nvmlDeviceGetIrqNum(device_0(), &number), NVML_ERROR_NOT_SUPPORTED);
        detail.irq = 77;
        state_write_device_detail(fixture->state_page, 0, &detail);
        assert_int_equal(nvmlDeviceGetIrqNum(device_0(), &number), NVML_SUCCESS);
        assert_int_equal(number, 77);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_fields_are_what_the_functions_say),
                with_state_page(test_a_device_that_measures_nothing_has_no_fields),
                with_state_page(test_modes_are_those_in_force),
                with_state_page(test_errors_are_those_of_the_device_memory),
                with_state_page(test_what_belongs_together_agrees),
                with_state_page(test_hopper_does_not_encode_av1),
                with_state_page(test_under_mig_a_device_does_not_tell_what_its_parts_do),
                with_state_page(test_gpu_instances_can_begin_where_their_profile_says),
                with_state_page(test_clocks_that_can_be_set_are_the_highest),
                with_state_page(test_the_newest_sample_is_told_once),
                with_state_page(test_of_how_busy_a_device_was_there_is_a_past),
                with_state_page(test_a_device_is_near_to_cpus_and_memory),
                with_state_page(test_others_are_as_far_as_they_can_be),
                with_state_page(test_the_system_knows_the_processes_of_vgpus_and_no_cards),
                with_state_page(test_events_can_be_registered),
                with_state_page(test_an_event_reaches_the_sets_that_wait_for_it),
                with_state_page(test_a_lost_device_ends_a_wait_after_its_last_event),
                with_state_page(test_sets_that_nobody_frees_go_with_the_library),
                with_state_page(test_an_interrupt_has_a_number_where_it_is_known),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
