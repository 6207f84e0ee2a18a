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

static void ask_everything(nvmlDevice_t device)
{
        nvmlVgpuInstanceUtilizationSample_t samples[4];
        unsigned int number, count = 4, pids[4000];
        nvmlVgpuInstance_t instances[4];
        nvmlProcessInfo_t processes[4];
        unsigned long long bytes;
        nvmlValueType_t type;
        nvmlMemory_t memory;
        char text[96];

        nvmlDeviceGetMemoryInfo(device, &memory);
        nvmlDeviceGetName(device, text, sizeof(text));
        nvmlDeviceGetActiveVgpus(device, &count, instances);
        nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes);
        nvmlDeviceGetVgpuUtilization(device, 0, &type, &count, samples);
        nvmlVgpuInstanceGetFbUsage(FIXTURE_TRAIN, &bytes);
        nvmlVgpuInstanceGetUUID(FIXTURE_TRAIN, text, sizeof(text));
        nvmlVgpuInstanceGetType(FIXTURE_TRAIN, &number);
        count = 4000;
        nvmlVgpuInstanceGetAccountingPids(FIXTURE_TRAIN, &count, pids);
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
