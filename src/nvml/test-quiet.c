/* SPDX-License-Identifier: Apache-2.0 */
/* A getter makes no system call: in strict secure computing a process is killed at its first one. */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "nvml/fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

static void ask_of_vgpu(nvmlVgpuTypeId_t type)
{
        unsigned int number, second, third, count = 4, pids[4000];
        nvmlVgpuPlacementId_v1_t placement = { .version = 0x1000008 };
        unsigned char blob[1024];
        nvmlEncoderSessionInfo_t sessions[4];
        nvmlVgpuLicenseInfo_t licence;
        nvmlAccountingStats_t stats;
        unsigned long long bytes;
        nvmlVgpuVmIdType_t kind;
        char text[128];

        nvmlVgpuInstanceGetFbUsage(FIXTURE_TRAIN, &bytes);
        nvmlVgpuInstanceGetUUID(FIXTURE_TRAIN, text, sizeof(text));
        nvmlVgpuInstanceGetVmID(FIXTURE_TRAIN, text, sizeof(text), &kind);
        nvmlVgpuInstanceGetVmDriverVersion(FIXTURE_TRAIN, text, sizeof(text));
        nvmlVgpuInstanceGetType(FIXTURE_TRAIN, &number);
        nvmlVgpuInstanceGetPlacementId(FIXTURE_TRAIN, &placement);
        nvmlVgpuInstanceGetLicenseInfo_v2(FIXTURE_TRAIN, &licence);
        nvmlVgpuInstanceGetEncoderStats(FIXTURE_TRAIN, &number, &second, &third);
        nvmlVgpuInstanceGetEncoderSessions(FIXTURE_TRAIN, &count, sessions);
        nvmlVgpuInstanceGetFrameRateLimit(FIXTURE_TRAIN, &number);
        count = sizeof(blob);
        nvmlVgpuInstanceGetMetadata(FIXTURE_TRAIN, (nvmlVgpuMetadata_t *)(void *)blob, &count);
        count = 4000;
        nvmlVgpuInstanceGetAccountingPids(FIXTURE_TRAIN, &count, pids);
        nvmlVgpuInstanceGetAccountingStats(FIXTURE_TRAIN, 4242, &stats);
        count = 64;
        nvmlVgpuTypeGetName(type, text, &count);
        nvmlVgpuTypeGetFramebufferSize(type, &bytes);
}

static void ask_everything(nvmlDevice_t device)
{
        nvmlVgpuInstanceUtilizationSample_t samples[4];
        nvmlVgpuPlacementList_v2_t places = { .version = 0x2000020 };
        nvmlVgpuSchedulerGetState_t scheduler;
        nvmlVgpuInstance_t instances[4];
        nvmlProcessInfo_t processes[4];
        nvmlVgpuTypeId_t types[16];
        nvmlVgpuSchedulerLog_t log;
        unsigned int count = 4;
        nvmlValueType_t type;
        nvmlMemory_t memory;
        char text[96];

        nvmlDeviceGetMemoryInfo(device, &memory);
        nvmlDeviceGetName(device, text, sizeof(text));
        nvmlDeviceGetActiveVgpus(device, &count, instances);
        nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes);
        nvmlDeviceGetVgpuUtilization(device, 0, &type, &count, samples);
        nvmlDeviceGetVgpuSchedulerState(device, &scheduler);
        nvmlDeviceGetVgpuSchedulerLog(device, &log);
        count = 16;
        nvmlDeviceGetCreatableVgpus(device, &count, types);
        nvmlDeviceGetVgpuTypeCreatablePlacements(device, types[0], &places);
        ask_of_vgpu(types[0]);
}

static void test_getters_make_no_system_call(void **state)
{
        nvmlDevice_t device;
        int status;
        pid_t pid;

        (void)state;
        if (IS_SANITIZED) /* sanitizers make calls of their own */
                skip();
        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
        ask_everything(device); /* the first call of a function may load it */
        pid = fork();
        if (pid == 0) {
                prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
                ask_everything(device);
                syscall(SYS_exit, 7); /* _exit() makes another call, which is not allowed */
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 7);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_getters_make_no_system_call, fixture_setup,
                                                fixture_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
