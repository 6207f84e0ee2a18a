/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vgpu says of NVML's answers where vgpud has a word too, where files come in, and where NVML fails.
 * What it prints without any of that is in tests/cli/nvml.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/command.h"
#include "fake/nvml.h"

static void choose_driver(const char *age)
{
        char path[512];

        assert_non_null(getenv("TEST_FAKE_NVML"));
        snprintf(path, sizeof(path), "%s-%s.so", getenv("TEST_FAKE_NVML"), age);
        setenv("OPENVGPU_NVML", path, 1);
}

/* The vGPU that NVML knows as 11, as vgpud tells of it. */
#define TRAIN_11(state)                                                                             \
        "{'id':11,'name':'train','uuid':'e5c1b1a0-0000-4000-8000-000000000000','device':0,"         \
        "'device_uuid':'GPU-aaaa','state':'" state "','frame_buffer':42949672960,"                  \
        "'frame_buffer_used':6442450944,'transient':false,'owner':3999999999,'created':1764000000," \
        "'processes':[]}"

static void test_a_running_vgpud_gives_the_names(void **state)
{
        const struct fake_step list = {
                .method = "ListVgpus", .answers = { ANSWER("'vgpus':[" TRAIN_11("running") "]") }
        };
        const struct fake_step steps[] = { list, list };
        const struct outcome *outcome;
        (void)state;

        choose_driver("610");
        command_expect(vgpu(steps, 2, WORDS("licence", "train")), 0,
                       "VGPU   ID  DEVICE  LICENSED  STATE     EXPIRES\n"
                       "train  11       0  yes       licensed  2026-11-23 05:02:12 GMT\n",
                       "");
        outcome = vgpu(steps, 1, WORDS("nvml", "utilization", "--device", "0"));
        assert_non_null(strstr(outcome->out, "\n     0  train          11  20 %"));
        assert_non_null(strstr(outcome->out, "\n     0  -      3251634327   7 %"));
        outcome = vgpu(steps, 1, WORDS("show", "train"));
        assert_int_equal(outcome->code, 0);
        assert_memory_equal(outcome->out,
                            "vGPU\n"
                            "  name                  train\n"
                            "  state                 running\n"
                            "  quota                 40 GiB, of which 6 GiB is used\n"
                            "  owner                 3999999999\n"
                            "  id                    11\n",
                            160);
}

static void test_a_suspended_vgpu_is_on_no_device(void **state)
{
        const struct fake_step step = {
                .method = "ListVgpus", .answers = { ANSWER("'vgpus':[" TRAIN_11("suspended") "]") }
        };
        (void)state;

        choose_driver("610");
        command_expect(vgpu(&step, 1, WORDS("show", "train")), 0,
                       "vGPU\n"
                       "  name                  train\n"
                       "  state                 suspended\n"
                       "  quota                 40 GiB, of which 6 GiB is used\n"
                       "  owner                 3999999999\n"
                       "  id                    11\n"
                       "  UUID                  e5c1b1a0-0000-4000-8000-000000000000\n"
                       "  device                none: the other facts exist only on a device\n",
                       "");
        command_expect(vgpu(&step, 1, WORDS("sessions", "train")), 7, "",
                       "vgpu: nvml sessions: vGPU train is suspended: NVML does not know it\n"
                       "hint: resume it: vgpu resume\n");
}

static void test_metadata_goes_through_files(void **state)
{
        char folder[] = "/tmp/openvgpu-test-XXXXXX", of_train[64], of_infer[64], of_device[64];
        const struct outcome *outcome;
        FILE *file;
        (void)state;

        choose_driver("610");
        assert_non_null(mkdtemp(folder));
        snprintf(of_train, sizeof(of_train), "%s/train", folder);
        snprintf(of_infer, sizeof(of_infer), "%s/infer", folder);
        snprintf(of_device, sizeof(of_device), "%s/device", folder);

        outcome = vgpu(NULL, 0, WORDS("nvml", "metadata", "export", "11", "-o", of_train));
        assert_int_equal(outcome->code, 0);
        assert_memory_equal(outcome->out, "exported 464 bytes to /tmp/", 27);
        outcome = vgpu(
                NULL, 0,
                WORDS("nvml", "metadata", "export", "--device", "0", "-o", of_device, "--json"));
        command_expect(outcome, 0,
                       "{\n  \"of\": \"device\",\n  \"size\": 380,\n  \"version\": 3,\n"
                       "  \"revision\": 1,\n  \"host_driver_version\": \"610.10\",\n"
                       "  \"can_migrate\": true,\n  \"guest_driver_version\": null,\n"
                       "  \"guest_version\": 0,\n  \"version_minimum\": 1572865,\n"
                       "  \"version_maximum\": 1835009\n}\n",
                       "");
        assert_int_equal(
                vgpu(NULL, 0, WORDS("nvml", "metadata", "export", "3251634327", "-o", of_infer))
                        ->code,
                0);

        command_expect(vgpu(NULL, 0, WORDS("nvml", "metadata", "check", of_train, of_device)), 0,
                       "The vGPU and the device\n"
                       "  it can move           live, sleep, hibernate, cold\n"
                       "  limited by            nothing\n",
                       "");
        command_expect(
                vgpu(NULL, 0, WORDS("nvml", "metadata", "check", of_infer, of_device, "--json")), 7,
                "{\n  \"can_move\": [\n    \"cold\"\n  ],\n  \"limited_by\": [\n"
                "    \"other\"\n  ]\n}\n",
                "");
        outcome = vgpu(NULL, 0, WORDS("nvml", "metadata", "check", of_device, of_train));
        assert_int_equal(outcome->code, 2);
        assert_non_null(strstr(outcome->err, "/device is not the metadata of a vGPU\n"));

        /* Cut off. */
        assert_int_equal(truncate(of_train, 300), 0);
        outcome = vgpu(NULL, 0, WORDS("nvml", "metadata", "check", of_train, of_device));
        assert_int_equal(outcome->code, 2);
        assert_non_null(strstr(outcome->err, "the end is missing\n"));
        file = fopen(of_train, "w");
        assert_non_null(file);
        fclose(file);
        assert_int_equal(
                vgpu(NULL, 0, WORDS("nvml", "metadata", "check", of_train, of_device))->code, 2);
        assert_int_equal(
                vgpu(NULL, 0, WORDS("nvml", "metadata", "export", "11", "-o", "/nonexistent/x"))
                        ->code,
                1);

        unlink(of_train);
        unlink(of_infer);
        unlink(of_device);
        assert_int_equal(rmdir(folder), 0);
}

static void test_without_nvml_the_exit_code_is_5(void **state)
{
        (void)state;

        setenv("OPENVGPU_NVML", "/nonexistent/nvml", 1);
        command_expect(
                vgpu(NULL, 0, WORDS("types")), 5, "",
                "vgpu: nvml types: cannot load the NVML library: /nonexistent/nvml: cannot open "
                "shared object file: No such file or directory\n"
                "hint: name an NVML library, or none to have one found\n");
        choose_driver("610");
        setenv("FAKE_NVML", "nvmlInit_v2=9", 1);
        command_expect(vgpu(NULL, 0, WORDS("version-range")), 5, "",
                       "vgpu: nvml version-range: the driver is not loaded (nvmlInit_v2: "
                       "DRIVER_NOT_LOADED, 9)\n"
                       "hint: load NVIDIA's driver, or start vgpud\n");
        setenv("FAKE_NVML", "nvmlSetVgpuVersion=4", 1);
        command_expect(vgpu(NULL, 0, WORDS("version-range", "set", "24.1", "25.1")), 6, "",
                       "vgpu: nvml version-range: permission denied (nvmlSetVgpuVersion: "
                       "NO_PERMISSION, 4)\nhint: try it as root\n");
        setenv("FAKE_NVML", "nvmlDeviceSetVgpuHeterogeneousMode=19", 1);
        command_expect(vgpu(NULL, 0, WORDS("heterogeneous", "on", "--device", "0")), 7, "",
                       "vgpu: nvml heterogeneous: device 0: in use by a vGPU "
                       "(nvmlDeviceSetVgpuHeterogeneousMode: IN_USE, 19)\n"
                       "hint: end or move the vGPUs first\n");
        unsetenv("FAKE_NVML");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_running_vgpud_gives_the_names),
                cmocka_unit_test(test_a_suspended_vgpu_is_on_no_device),
                cmocka_unit_test(test_metadata_goes_through_files),
                cmocka_unit_test(test_without_nvml_the_exit_code_is_5),
        };

        return cmocka_run_group_tests_name("cli-nvml", tests, NULL, NULL);
}
