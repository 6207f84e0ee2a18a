/* SPDX-License-Identifier: Apache-2.0 */
/* Memory limits of control groups: who sets them, who is told. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/nvml-limit.h"
#include "base/cleanup.h"
#include "base/test.h"
#include "fake/manager.h"
#include "nvml/fixture.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);

static nvmlDevice_t device_0(void)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
        return device;
}

static void limit(struct fixture *fixture, uint32_t slot, const char *path, uint64_t hard)
{
        struct state_memory_limit record = { .device = 0, .soft = GIB, .hard = hard };

        snprintf(record.path, sizeof(record.path), "%s", path);
        state_write_memory_limit(fixture->state_page, slot, &record);
}

static void test_the_manager_keeps_a_limit(void **state)
{
        const struct fake_step step = { .answers = { "{'parameters':{}}" } };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        nvmlSetMemoryLimits_v1_t limits = { "/proc//", 1, 2 };

        (void)state;
        setenv("OPENVGPU_RUN", fake_manager_get_directory(fake), 1);
        assert_int_equal(nvmlDeviceSetMemoryLimits_v1(device_0(), &limits), NVML_SUCCESS);
        assert_string_equal(
                fake_manager_get_call(fake, 0),
                "{'method':'org.openvgpu.SetMemoryLimit','parameters':{'device':'" FIXTURE_GPU_0_UUID
                "','path':'/proc','soft':1,'hard':2}}");
}

static void test_no_limit_takes_one_away(void **state)
{
        const struct fake_step step = { .answers = { "{'parameters':{}}" } };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        nvmlSetMemoryLimits_v1_t limits = { "/proc", 0, ULLONG_MAX };

        (void)state;
        setenv("OPENVGPU_RUN", fake_manager_get_directory(fake), 1);
        assert_int_equal(nvmlDeviceSetMemoryLimits_v1(device_0(), &limits), NVML_SUCCESS);
        assert_non_null(strstr(fake_manager_get_call(fake, 0), "'path':'/proc'}}"));
}

static void test_arguments_are_checked(void **state)
{
        static const nvmlSetMemoryLimits_v1_t wrong[] = {
                { NULL, 0, 1 },       { "", 0, 1 },           { "proc", 0, 1 },
                { "/no/such", 0, 1 }, { "/proc/stat", 0, 1 }, { "/proc\"", 0, 1 },
                { "/proc", 2, 1 },    { "/proc", 0, 0 },
        };

        (void)state;
        setenv("OPENVGPU_RUN", "/nonexistent", 1); /* asking would be UNKNOWN */
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                nvmlSetMemoryLimits_v1_t limits = wrong[i];

                assert_int_equal(nvmlDeviceSetMemoryLimits_v1(device_0(), &limits),
                                 NVML_ERROR_INVALID_ARGUMENT);
        }
        assert_int_equal(nvmlDeviceSetMemoryLimits_v1(device_0(), NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetMemoryLimits_v1(device_0(), NULL),
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_a_limit_is_told_by_its_control_group(void **state)
{
        nvmlGetMemoryLimits_v1_t limits = { .nameSpace = "/proc/" };

        limit(*state, 3, "/proc", 40 * GIB);
        assert_int_equal(nvmlDeviceGetMemoryLimits_v1(device_0(), &limits), NVML_SUCCESS);
        assert_true(limits.softLimit == GIB && limits.hardLimit == 40 * GIB);
        assert_int_equal(limits.currentUsed, 0);
        limits.nameSpace = "/sys";
        assert_int_equal(nvmlDeviceGetMemoryLimits_v1(device_0(), &limits), NVML_SUCCESS);
        assert_true(limits.softLimit == 0 && limits.hardLimit == ULLONG_MAX);
}

/* The folder at the top is one that every process is within. */
static void test_who_is_within_a_limit_sees_it_as_the_memory(void **state)
{
        const char *top = access("/sys/fs/cgroup/unified", F_OK) == 0 ? "/sys/fs/cgroup/unified"
                                                                      : "/sys/fs/cgroup";
        FILE *file = fopen("/proc/self/cgroup", "re");
        nvmlMemory_v2_t memory = { .version = 0x2000028 };
        nvmlMemory_t plain;
        char line[4096];
        bool has = false;

        while (file && fgets(line, sizeof(line), file))
                has |= strncmp(line, "0::", 3) == 0;
        if (file)
                fclose(file);
        limit(*state, 3, "/proc", GIB); /* not ours */
        assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device_0(), &memory), NVML_SUCCESS);
        assert_true(memory.total == FIXTURE_MEMORY);
        if (!has || access(top, F_OK) < 0)
                skip();
        limit(*state, 4, top, 40 * GIB);
        assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device_0(), &memory), NVML_SUCCESS);
        assert_true(memory.total == 40 * GIB);
        assert_true(memory.free == 40 * GIB && memory.used == 0);
        limit(*state, 4, top, 200 * GIB); /* more than there is */
        assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device_0(), &memory), NVML_SUCCESS);
        assert_true(memory.total == FIXTURE_MEMORY);
        assert_int_equal(nvmlDeviceGetMemoryInfo(device_0(), &plain), NVML_SUCCESS);
        assert_true(plain.total == FIXTURE_MEMORY);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_the_manager_keeps_a_limit),
                with_state_page(test_no_limit_takes_one_away),
                with_state_page(test_arguments_are_checked),
                with_state_page(test_a_limit_is_told_by_its_control_group),
                with_state_page(test_who_is_within_a_limit_sees_it_as_the_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
