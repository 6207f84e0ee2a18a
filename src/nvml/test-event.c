/* SPDX-License-Identifier: Apache-2.0 */
/* GPU operational events (R615), and the wait that tells them and NVML's bits. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/nvml-device.h"
#include "abi/nvml-event.h"
#include "base/test.h"
#include "nvml/fixture.h"

#define WAIT_MS 60000u

static nvmlEventSet_t new_set(void)
{
        nvmlEventSet_t set;

        assert_int_equal(nvmlEventSetCreate(&set), NVML_SUCCESS);
        return set;
}

static nvmlReturn_t subscribe(nvmlEventSet_t set, const char *uuid, unsigned int log_level,
                              unsigned int severity)
{
        nvmlGpuOperationalEventConfig_v1_t config = { .minLogLevel = log_level,
                                                      .minSeverity = severity };

        snprintf(config.uuid, sizeof(config.uuid), "%s", uuid);
        return nvmlEventSetRegisterGpuOperationalEvents_v1(set, &config);
}

static nvmlReturn_t wait_for(nvmlEventSet_t set, unsigned int timeout_ms,
                             nvmlEventSetWait_v3_t *event)
{
        *event = (nvmlEventSetWait_v3_t){ .timeoutMs = timeout_ms, .scope = 7 };
        return nvmlEventSetWait_v3(set, event);
}

static void happen(struct fixture *fixture, uint32_t severity, uint32_t code, uint64_t xid)
{
        const struct state_event event = {
                .timestamp_us = 1234,
                .data = xid,
                .operational = { "GPU-RAS", severity, NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_ERROR, 2,
                                 code },
        };

        state_append_event(fixture->state_page, 0, &event);
}

static void happen_bit(struct fixture *fixture, uint64_t kind, uint64_t data)
{
        const struct state_event event = { .timestamp_us = 1235, .kind = kind, .data = data };

        state_append_event(fixture->state_page, 0, &event);
}

static void test_the_newest_wait_tells_bits(void **state)
{
        struct fixture *fixture = *state;
        nvmlEventSetGetContextCount_v1_t count = { 9 };
        nvmlEventSetWait_v3_t event;
        nvmlEventSet_t set = new_set();
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceRegisterEvents(device, NVML_EVENT_TYPE_XID_CRITICAL_ERROR, set),
                         NVML_SUCCESS);
        assert_int_equal(wait_for(set, 0, &event), NVML_ERROR_TIMEOUT);
        assert_int_equal(event.scope, 7); /* nothing is written */
        assert_int_equal(nvmlEventSetGetContextCount_v1(set, &count), NVML_ERROR_NOT_FOUND);
        happen_bit(fixture, NVML_EVENT_TYPE_XID_CRITICAL_ERROR, 79);
        happen(fixture, NVML_OPERATIONAL_EVENT_SEVERITY_FATAL, 1, 79); /* not subscribed */
        assert_int_equal(wait_for(set, WAIT_MS, &event), NVML_SUCCESS);
        assert_int_equal(event.dataType, NVML_EVENT_DATA_TYPE_NVML_EVENT);
        assert_int_equal(event.eventType, NVML_EVENT_TYPE_XID_CRITICAL_ERROR);
        assert_int_equal(event.eventData, 79);
        assert_string_equal(event.uuid, FIXTURE_GPU_0_UUID);
        assert_int_equal(event.gpuInstanceId, NVML_GPU_INSTANCE_ID_ANY);
        assert_int_equal(event.timeoutMs, WAIT_MS);
        assert_int_equal(event.timestampUsec, 1235);
        assert_int_equal(event.scope, 0);
        assert_int_equal(event.groupSize, 0);
        assert_int_equal(nvmlEventSetGetContextCount_v1(set, &count), NVML_SUCCESS);
        assert_int_equal(count.count, 0);
        assert_int_equal(wait_for(set, 1, &event), NVML_ERROR_TIMEOUT);
}

static void test_bad_subscriptions_are_refused(void **state)
{
        nvmlEventSet_t set = new_set();
        nvmlEventSetWait_v3_t event = { 0 };
        nvmlGpuOperationalEventConfig_v1_t endless = { 0 };

        (void)state;
        memset(endless.uuid, 'G', sizeof(endless.uuid));
        assert_int_equal(nvmlEventSetRegisterGpuOperationalEvents_v1(set, &endless),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlEventSetRegisterGpuOperationalEvents_v1(set, NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(subscribe(NULL, FIXTURE_GPU_0_UUID, 0, 0), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(subscribe(set, "GPU-of nobody", 0, 0), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(subscribe(set, "MIG-1", 0, 0), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(subscribe(set, FIXTURE_GPU_0_UUID, 5, 0), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(subscribe(set, FIXTURE_GPU_0_UUID, 0, 50), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(subscribe(set, FIXTURE_GPU_0_UUID, 0, 0),
                         geteuid() == 0 ? NVML_SUCCESS : NVML_ERROR_NO_PERMISSION);
        assert_int_equal(nvmlEventSetWait_v3(set, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlEventSetWait_v3(NULL, &event), NVML_ERROR_INVALID_ARGUMENT);
}

static void test_operational_events_pass_the_filter(void **state)
{
        struct fixture *fixture = *state;
        nvmlEventSetWait_v3_t event;
        nvmlEventData_t old;
        nvmlEventSet_t set = new_set();

        if (geteuid() != 0)
                skip();                                               /* they are for root */
        happen(fixture, NVML_OPERATIONAL_EVENT_SEVERITY_FATAL, 1, 0); /* before anybody waits */
        for (int i = 0; i < 2; i++)                                   /* twice the same */
                assert_int_equal(subscribe(set, FIXTURE_GPU_0_UUID,
                                           NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_WARNING,
                                           NVML_OPERATIONAL_EVENT_SEVERITY_RECOVERABLE),
                                 NVML_SUCCESS);
        happen(fixture, NVML_OPERATIONAL_EVENT_SEVERITY_CORRECTED, 2, 0);
        happen(fixture, NVML_OPERATIONAL_EVENT_SEVERITY_FATAL, 3, 48);
        assert_int_equal(nvmlEventSetWait_v2(set, &old, 0), NVML_ERROR_TIMEOUT); /* takes none */
        assert_int_equal(wait_for(set, WAIT_MS, &event), NVML_SUCCESS);
        assert_int_equal(event.dataType, NVML_EVENT_DATA_TYPE_GPU_OPERATIONAL_EVENT);
        assert_int_equal(event.eventType, NVML_EVENT_TYPE_NONE);
        assert_int_equal(event.moduleEventCode, 3);
        assert_int_equal(event.categoryId, 2);
        assert_int_equal(event.severity, NVML_OPERATIONAL_EVENT_SEVERITY_FATAL);
        assert_int_equal(event.logLevel, NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_ERROR);
        assert_memory_equal(event.sourceModule, "GPU-RAS\0\0\0\0\0\0\0\0", 16);
        assert_string_equal(event.uuid, FIXTURE_GPU_0_UUID);
        assert_int_equal(event.groupSize, 1);
        assert_int_equal(event.groupAttributes, NVML_OPERATIONAL_EVENT_GROUP_ATTR_SIMULATED);
        assert_int_equal(wait_for(set, 1, &event), NVML_ERROR_TIMEOUT);
}

static void test_the_xid_of_an_operational_event_is_its_context(void **state)
{
        struct fixture *fixture = *state;
        nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1_t xid = { .index = 0 };
        nvmlEventSetGetContextCount_v1_t count = { 9 };
        nvmlEventSetGetContextInfo_v1_t info = { .index = 0 };
        nvmlEventSetGetContextData_v1_t data = { .data = NULL };
        unsigned char bytes[512] = { 0 };
        nvmlEventSetWait_v3_t event;
        nvmlEventSet_t set = new_set();

        if (geteuid() != 0)
                skip(); /* they are for root */
        assert_int_equal(subscribe(set, FIXTURE_GPU_0_UUID, 0, 0), NVML_SUCCESS);
        happen(fixture, NVML_OPERATIONAL_EVENT_SEVERITY_FATAL, 3, 48);
        assert_int_equal(wait_for(set, WAIT_MS, &event), NVML_SUCCESS);
        assert_int_equal(nvmlEventSetGetContextCount_v1(set, &count), NVML_SUCCESS);
        assert_int_equal(count.count, 1);
        assert_int_equal(nvmlEventSetGetContextInfo_v1(set, &info), NVML_SUCCESS);
        assert_int_equal(info.nvmlGpuOperationalEventContextType,
                         NVML_GPU_OPERATIONAL_EVENT_CONTEXT_TYPE_LEGACY_XID);
        assert_int_equal(nvmlEventSetGetContextData_v1(set, &data), NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(data.dataSize, info.dataSize);
        data.data = bytes;
        data.dataSize = sizeof(bytes);
        assert_int_equal(nvmlEventSetGetContextData_v1(set, &data), NVML_SUCCESS);
        assert_int_equal(data.dataSize, info.dataSize);
        assert_int_equal(bytes[0], 48);
        assert_int_equal(nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1(set, &xid),
                         NVML_SUCCESS);
        assert_int_equal(xid.xidCode, 48);
        info.index = 1;
        assert_int_equal(nvmlEventSetGetContextInfo_v1(set, &info), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlEventSetGetContextInfo_v1(set, NULL), NVML_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_the_newest_wait_tells_bits, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_bad_subscriptions_are_refused, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_operational_events_pass_the_filter,
                                                fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_the_xid_of_an_operational_event_is_its_context,
                                                fixture_setup, fixture_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
