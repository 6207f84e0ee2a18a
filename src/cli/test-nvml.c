/* SPDX-License-Identifier: Apache-2.0 */
/* What vgpu says of NVML's answers, against drivers of several ages that play a host. */
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

/* @err may end where a path begins that the test does not know. */
static void expect_outcome(const struct outcome *outcome, int code, const char *out,
                           const char *err)
{
        const char *path = strstr(err, "its library ");

        if (path)
                assert_memory_equal(outcome->err, err, strlen(err));
        else
                assert_string_equal(outcome->err, err);
        assert_string_equal(outcome->out, out);
        assert_int_equal(outcome->code, code);
}

/* Without vgpud, with the driver of @age. */
static void expect(const char *age, int code, const char *const *words, const char *out,
                   const char *err)
{
        choose_driver(age);
        expect_outcome(vgpu(NULL, 0, words), code, out, err);
}

static void test_types_are_a_table_of_all_devices_that_can(void **state)
{
        (void)state;

        expect("610", 0, WORDS("types", "--device", "0"),
               "DEVICE  TYPE  NAME             FRAME BUFFER  MAX  PER VM  PROFILE  HEADS  CLASS    CREATABLE\n"
               "     0   500  NVIDIA H200-70C        70 GiB    2      16        -      1  Compute  no\n"
               "     0   501  NVIDIA H200-35C        35 GiB    4      16        -      1  Compute  yes\n",
               "");
        expect("610", 0, WORDS("types", "--creatable", "--device", "GPU-aaab"),
               "DEVICE  TYPE  NAME               FRAME BUFFER  MAX  PER VM  PROFILE  HEADS  CLASS    CREATABLE\n"
               "     1   700  NVIDIA H200-1-18C        18 GiB    7      16       19      1  Compute  yes\n",
               "");
        expect("610", 1, WORDS("types"),
               "DEVICE  TYPE  NAME               FRAME BUFFER  MAX  PER VM  PROFILE  HEADS  CLASS    CREATABLE\n"
               "     0   500  NVIDIA H200-70C          70 GiB    2      16        -      1  Compute  no\n"
               "     0   501  NVIDIA H200-35C          35 GiB    4      16        -      1  Compute  yes\n"
               "     1   700  NVIDIA H200-1-18C        18 GiB    7      16       19      1  Compute  yes\n",
               "vgpu: types: device 2: the device fell off the bus (nvmlDeviceGetSupportedVgpus: GPU_IS_LOST, 15)\n"
               "hint: see the kernel's log; a reboot of the host may bring it back\n");
}

static void test_one_vgpu_is_shown_whole(void **state)
{
        (void)state;

        expect("610", 0, WORDS("show", "11"),
               "vGPU\n"
               "  id                    11\n"
               "  UUID                  e5c1b1a0-0000-4000-8000-000000000000\n"
               "  mdev UUID             99999999-0000-4000-8000-000000000000\n"
               "  virtual machine       domain 1000\n"
               "  guest's driver        550.54\n"
               "  guest's PCI address   00000000:02:04.0\n"
               "  device                0\n"
               "  GPU instance          none\n"
               "  placement             70\n"
               "  type                  500\n"
               "  type's name           NVIDIA H200-70C\n"
               "  frame buffer          70 GiB\n"
               "  frame buffer used     6 GiB\n"
               "  state besides it      77 MiB\n"
               "  frame-rate limit      (not supported)\n"
               "  ECC                   yes\n"
               "  encoder capacity      100 %\n"
               "  accounting            yes\n"
               "\n"
               "Licence\n"
               "  licensed              yes\n"
               "  state                 licensed\n"
               "  expires               2026-11-23 05:02:12 GMT\n"
               "\n"
               "Encoder\n"
               "  sessions              2\n"
               "  average               59 frames/s\n"
               "  latency               1234 us\n"
               "\n"
               "Frame-buffer capture\n"
               "  sessions              1\n"
               "  average               30 frames/s\n"
               "  latency               900 us\n"
               "\n"
               "Utilization\n"
               "  SM                    20 %\n"
               "  memory                5 %\n"
               "  encoder               0 %\n"
               "  decoder               1 %\n"
               "  JPEG                  8 %\n"
               "  OFA                   9 %\n",
               "");
        expect("610", 0, WORDS("show", "e5c1b1a0-0000-4000-8000-000000000001"),
               "vGPU\n"
               "  id                    3251634327\n"
               "  UUID                  e5c1b1a0-0000-4000-8000-000000000001\n"
               "  mdev UUID             99999999-0000-4000-8000-000000000000\n"
               "  virtual machine       UUID vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\n"
               "  guest's driver        none\n"
               "  guest's PCI address   (no driver runs in the guest)\n"
               "  device                0\n"
               "  GPU instance          none\n"
               "  placement             none\n"
               "  type                  501\n"
               "  type's name           NVIDIA H200-35C\n"
               "  frame buffer          35 GiB\n"
               "  frame buffer used     6 GiB\n"
               "  state besides it      77 MiB\n"
               "  frame-rate limit      60/s\n"
               "  ECC                   yes\n"
               "  encoder capacity      100 %\n"
               "  accounting            (no driver runs in the guest)\n"
               "\n"
               "Licence\n"
               "  licensed              no\n"
               "  state                 (no driver runs in the guest)\n"
               "\n"
               "Encoder\n"
               "  sessions              0\n"
               "  average               0 frames/s\n"
               "  latency               0 us\n"
               "\n"
               "Frame-buffer capture\n"
               "  sessions              0\n"
               "  average               0 frames/s\n"
               "  latency               0 us\n"
               "\n"
               "Utilization\n"
               "  SM                    7 %\n"
               "  memory                3 %\n"
               "  encoder               2 %\n"
               "  decoder               0 %\n"
               "  JPEG                  0 %\n"
               "  OFA                   0 %\n",
               "");
}

static void test_what_an_old_driver_does_not_know_is_said_in_its_place(void **state)
{
        (void)state;

        expect("390", 0, WORDS("show", "11"),
               "vGPU\n"
               "  id                    11\n"
               "  UUID                  e5c1b1a0-0000-4000-8000-000000000000\n"
               "  mdev UUID             (needs R450 or newer)\n"
               "  virtual machine       domain 1000\n"
               "  guest's driver        550.54\n"
               "  guest's PCI address   (needs R510 or newer)\n"
               "  device                0\n"
               "  GPU instance          (needs R460 or newer)\n"
               "  placement             (needs R550 or newer)\n"
               "  type                  500\n"
               "  type's name           NVIDIA H200-70C\n"
               "  frame buffer          70 GiB\n"
               "  frame buffer used     6 GiB\n"
               "  state besides it      (needs R565 or newer)\n"
               "  frame-rate limit      (not supported)\n"
               "  ECC                   (needs R450 or newer)\n"
               "  encoder capacity      100 %\n"
               "  accounting            (needs R410 or newer)\n"
               "\n"
               "Licence\n"
               "  licensed              yes\n"
               "  state                 (needs R495 or newer)\n"
               "\n"
               "Encoder\n"
               "  sessions              2\n"
               "  average               59 frames/s\n"
               "  latency               1234 us\n"
               "\n"
               "Frame-buffer capture\n"
               "  sessions              (needs R410 or newer)\n"
               "\n"
               "Utilization\n"
               "  SM                    20 %\n"
               "  memory                5 %\n"
               "  encoder               0 %\n"
               "  decoder               1 %\n"
               "  JPEG                  (needs R550 or newer)\n"
               "  OFA                   (needs R550 or newer)\n",
               "");
        expect("390", 0, WORDS("licence", "11"),
               "VGPU  ID  DEVICE  LICENSED  STATE                EXPIRES\n"
               "-     11       0  yes       needs R495 or newer  -\n",
               "");
        expect("535", 0, WORDS("utilization", "--device", "0"),
               "DEVICE  VGPU          ID    SM  MEMORY  ENCODER  DECODER  JPEG  OFA\n"
               "     0  -             11  20 %     5 %      0 %      1 %     -    -\n"
               "     0  -     3251634327   7 %     3 %      2 %      0 %     -    -\n",
               "");
}

static void test_licences_and_sessions_of_one_or_all(void **state)
{
        (void)state;

        expect("610", 0, WORDS("licence", "--device", "0"),
               "VGPU          ID  DEVICE  LICENSED  STATE                        EXPIRES\n"
               "-             11       0  yes       licensed                     2026-11-23 05:02:12 GMT\n"
               "-     3251634327       0  no        no driver runs in the guest  -\n",
               "");
        expect("610", 0, WORDS("licence", "21"),
               "VGPU  ID  DEVICE  LICENSED  STATE     EXPIRES\n"
               "-     21       1  yes       licensed  2026-11-23 05:02:12 GMT\n",
               "");
        expect("610", 0, WORDS("sessions", "11"),
               "VGPU  ID  SESSION  USE      KIND   PID  RESOLUTION  FRAMES/S  LATENCY\n"
               "-     11        1  encoder  h264  4242   1920x1080        60  1200 us\n"
               "-     11        2  encoder  av1   4243   3840x2160        58  1268 us\n"
               "-     11        9  capture  cuda  4242   1920x1080        30   900 us\n",
               "");
        expect("610", 0, WORDS("sessions", "21"),
               "VGPU  ID  SESSION  USE  KIND  PID  RESOLUTION  FRAMES/S  LATENCY\n", "");
        expect("610", 3, WORDS("sessions", "99"), "",
               "vgpu: sessions: vGPU 99: there is no such active vGPU (nvmlVgpuInstanceGetType: NOT_FOUND, 6)\n"
               "hint: 'vgpu ls' lists all; a suspended one is not active\n");
}

static void test_placements_and_modes(void **state)
{
        (void)state;

        expect("610", 0, WORDS("placements", "--device", "0"),
               "DEVICE  TYPE  NAME             SLOTS  POSSIBLE  FREE NOW\n"
               "     0   500  NVIDIA H200-70C     35  0,70      0\n"
               "     0   501  NVIDIA H200-35C     35  0,70      0\n",
               "");
        expect("610", 1, WORDS("placements", "--device", "1"), "",
               "vgpu: placements: device 1: not supported, or not in its present state (nvmlDeviceGetVgpuHeterogeneousMode: NOT_SUPPORTED, 3)\n");
        expect("535", 1, WORDS("placements", "--device", "0"), "",
               "vgpu: placements: device 0: nvmlDeviceGetVgpuHeterogeneousMode is not in this driver (needs R550 or newer)\n"
               "hint: the driver is 535.10, its library ");
        expect("610", 0, WORDS("heterogeneous", "--device", "0"),
               "DEVICE  NAME         HETEROGENEOUS\n"
               "     0  NVIDIA H200  on\n",
               "");
        expect("610", 0, WORDS("heterogeneous", "off", "--device", "0"),
               "DEVICE  NAME         HETEROGENEOUS\n"
               "     0  NVIDIA H200  on\n",
               "");
        expect("610", 2, WORDS("heterogeneous", "perhaps"), "",
               "vgpu: heterogeneous: 'perhaps' is neither on nor off\n"
               "hint: write on or off\n");
        expect("610", 0, WORDS("placements", "--device", "1", "--gpu-instance", "5"),
               "DEVICE  TYPE  NAME               SLOTS  POSSIBLE  FREE NOW\n"
               "     1   700  NVIDIA H200-1-18C      3  -         3,6,9\n",
               "");
        expect("610", 0, WORDS("heterogeneous", "on", "--device", "1", "--gpu-instance", "5"),
               "DEVICE  NAME         HETEROGENEOUS\n"
               "     1  NVIDIA H200  off\n",
               "");
        expect("610", 2, WORDS("heterogeneous", "--gpu-instance", "5"), "",
               "vgpu: heterogeneous: --gpu-instance needs a --device\n"
               "hint: add --device DEVICE\n");
        expect("610", 2, WORDS("placements", "--device", "1", "--gpu-instance", "x"), "",
               "vgpu: placements: --gpu-instance: 'x' is not an id\n"
               "hint: 'nvidia-smi mig -lgi' lists them\n");
        expect("610", 3, WORDS("placements", "--device", "1", "--gpu-instance", "77"), "",
               "vgpu: placements: GPU instance 77 of device 1: there is no such GPU instance (nvmlDeviceGetGpuInstanceById: NOT_FOUND, 6)\n"
               "hint: 'nvidia-smi mig -lgi' lists them\n");
}

static void test_capabilities_are_shown_and_switched(void **state)
{
        (void)state;

        expect("610", 0, WORDS("capabilities", "--device", "0"),
               "OF     CAPABILITY                    VALUE\n"
               "host   heterogeneous-multi-vgpu         no\n"
               "host   warm-update                     yes\n"
               "GPU 0  fractional-multi-vgpu            no\n"
               "GPU 0  heterogeneous-profiles          yes\n"
               "GPU 0  heterogeneous-sizes             yes\n"
               "GPU 0  read-bandwidth             300 MB/s\n"
               "GPU 0  write-bandwidth            400 MB/s\n"
               "GPU 0  streaming                       yes\n"
               "GPU 0  mini-quarter                    yes\n"
               "GPU 0  media-engines                   yes\n"
               "GPU 0  warm-update                     yes\n"
               "GPU 0  homogeneous-placements          yes\n"
               "GPU 0  mig-timeslicing-supported       yes\n"
               "GPU 0  mig-timeslicing                 yes\n",
               "");
        expect("390", 0, WORDS("capabilities", "--device", "0"),
               "OF     CAPABILITY                                 VALUE\n"
               "host   heterogeneous-multi-vgpu   (needs R525 or newer)\n"
               "host   warm-update                (needs R525 or newer)\n"
               "GPU 0  fractional-multi-vgpu      (needs R525 or newer)\n"
               "GPU 0  heterogeneous-profiles     (needs R525 or newer)\n"
               "GPU 0  heterogeneous-sizes        (needs R525 or newer)\n"
               "GPU 0  read-bandwidth             (needs R525 or newer)\n"
               "GPU 0  write-bandwidth            (needs R525 or newer)\n"
               "GPU 0  streaming                  (needs R525 or newer)\n"
               "GPU 0  mini-quarter               (needs R525 or newer)\n"
               "GPU 0  media-engines              (needs R525 or newer)\n"
               "GPU 0  warm-update                (needs R525 or newer)\n"
               "GPU 0  homogeneous-placements     (needs R525 or newer)\n"
               "GPU 0  mig-timeslicing-supported  (needs R525 or newer)\n"
               "GPU 0  mig-timeslicing            (needs R525 or newer)\n",
               "");
        expect("610", 2, WORDS("capabilities", "set", "mini-quarter", "on"), "",
               "vgpu: capabilities: --device DEVICE is missing\n"
               "hint: 'vgpu devices' lists the GPUs\n");
        expect("610", 2, WORDS("capabilities", "set", "wings", "on", "--device", "0"), "",
               "vgpu: capabilities: there is no capability 'wings'\n"
               "hint: 'vgpu capabilities' lists them\n");
        expect("610", 2, WORDS("capabilities", "get"), "",
               "vgpu: capabilities: 'get' is not understood here\n"
               "hint: vgpu capabilities set NAME on|off --device DEVICE\n");
}

static void test_versions_are_shown_and_narrowed(void **state)
{
        (void)state;

        expect("610", 0, WORDS("version-range"),
               "vGPU versions\n"
               "  supported             24.1 to 28.1\n"
               "  offered               24.1 to 26.1\n",
               "");
        expect("610", 0, WORDS("version-range", "set", "24.1", "0x190001"),
               "vGPU versions\n"
               "  supported             24.1 to 28.1\n"
               "  offered               24.1 to 26.1\n",
               "");
        expect("610", 2, WORDS("version-range", "set", "2.0", "1.0"), "",
               "vgpu: version-range: not a valid value (nvmlSetVgpuVersion: INVALID_ARGUMENT, 2)\n");
        expect("610", 2, WORDS("version-range", "set", "24", "25.1"), "",
               "vgpu: version-range: '24' is not a vGPU version\n"
               "hint: write it as 24.1 or 0x180001\n");
        expect("610", 2, WORDS("version-range", "set", "0x", "1.0"), "",
               "vgpu: version-range: '0x' is not a vGPU version\n"
               "hint: write it as 24.1 or 0x180001\n");
        expect("610", 2, WORDS("version-range", "24.1"), "",
               "vgpu: version-range: '24.1' is not understood here\n"
               "hint: vgpu version-range set MIN MAX\n");
        expect("390", 1, WORDS("version-range"), "",
               "vgpu: version-range: nvmlGetVgpuVersion is not in this driver (needs R410 or newer)\n"
               "hint: the driver is 390.10, its library ");
}

static void test_utilization_once(void **state)
{
        (void)state;

        expect("610", 0, WORDS("utilization", "--device", "0"),
               "DEVICE  VGPU          ID    SM  MEMORY  ENCODER  DECODER  JPEG  OFA\n"
               "     0  -             11  20 %     5 %      0 %      1 %   8 %  9 %\n"
               "     0  -     3251634327   7 %     3 %      2 %      0 %   0 %  0 %\n",
               "");
        expect("610", 0, WORDS("utilization", "--processes", "--device", "0"),
               "DEVICE  VGPU          ID    SM  MEMORY  ENCODER  DECODER  JPEG  OFA   PID  PROGRAM\n"
               "     0  -             11  20 %     5 %      0 %      1 %   8 %  9 %  4242  train.py\n"
               "     0  -     3251634327   7 %     3 %      2 %      0 %   0 %  0 %  4343  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
               "");
}

static void test_nothing_of_a_device_is_guessed(void **state)
{
        (void)state;

        expect("610", 2, WORDS("types", "--device", "GPU-aaa"), "",
               "vgpu: types: several devices begin with 'GPU-aaa'\n"
               "hint: write more of the UUID\n");
        expect("610", 1, WORDS("types", "--device", "2"), "",
               "vgpu: types: device 2: the device fell off the bus (nvmlDeviceGetSupportedVgpus: GPU_IS_LOST, 15)\n"
               "hint: see the kernel's log; a reboot of the host may bring it back\n");
        expect("610", 3, WORDS("show", "nobody"), "",
               "vgpu: show: there is no active vGPU 'nobody'\n"
               "hint: 'vgpu ls' lists all; a suspended one is not active\n");
        expect("610", 2, WORDS("metadata", "export"), "",
               "vgpu: metadata: the name of the vGPU, or --device, is missing\n");
        expect("610", 2, WORDS("metadata", "export", "11", "--device", "0"), "",
               "vgpu: metadata: either a vGPU or a --device, not both\n");
        expect("610", 2, WORDS("metadata", "export", "11", "--json"), "",
               "{\n"
               "  \"error\": {\n"
               "    \"name\": \"Usage\",\n"
               "    \"message\": \"--json and the metadata cannot share standard output\",\n"
               "    \"hint\": \"add --output FILE\",\n"
               "    \"exit_code\": 2\n"
               "  }\n"
               "}\n");
        expect("610", 2, WORDS("metadata", "import"), "",
               "vgpu: metadata: 'import' is neither export nor check\n");
        expect("610", 2, WORDS("metadata", "check", "/nonexistent"), "",
               "vgpu: metadata: check takes the vGPU's file and the device's\n");
        expect("610", 3, WORDS("metadata", "check", "/nonexistent", "/nonexistent"), "",
               "vgpu: metadata: cannot read /nonexistent: No such file or directory\n");
}

static void test_what_programs_read_keeps_its_shape(void **state)
{
        (void)state;

        expect("610", 0, WORDS("types", "--creatable", "--device", "1", "--json"),
               "{\n"
               "  \"types\": [\n"
               "    {\n"
               "      \"device\": 1,\n"
               "      \"id\": 700,\n"
               "      \"name\": \"NVIDIA H200-1-18C\",\n"
               "      \"class\": \"Compute\",\n"
               "      \"licence\": \"NVIDIA Virtual Compute,9.0\",\n"
               "      \"frame_buffer\": 19327352832,\n"
               "      \"max_instances\": 7,\n"
               "      \"max_instances_per_vm\": 16,\n"
               "      \"max_instances_per_gpu_instance\": 3,\n"
               "      \"profile\": 19,\n"
               "      \"heads\": 1,\n"
               "      \"width\": 4096,\n"
               "      \"height\": 2160,\n"
               "      \"frame_rate_limit\": null,\n"
               "      \"device_id\": 590680286,\n"
               "      \"subsystem_id\": 415109342,\n"
               "      \"bar1\": 4294967296,\n"
               "      \"gsp_heap\": 104857600,\n"
               "      \"reservation\": 209715200,\n"
               "      \"creatable\": true,\n"
               "      \"capabilities\": {\n"
               "        \"nvlink-p2p\": false,\n"
               "        \"gpudirect\": true,\n"
               "        \"multi-vgpu-exclusive\": false,\n"
               "        \"exclusive-type\": false,\n"
               "        \"exclusive-size\": false\n"
               "      }\n"
               "    }\n"
               "  ]\n"
               "}\n",
               "");
        expect("610", 0, WORDS("show", "21", "--json"),
               "{\n"
               "  \"id\": 21,\n"
               "  \"uuid\": \"e5c1b1a0-0000-4000-8000-000000000002\",\n"
               "  \"mdev_uuid\": null,\n"
               "  \"vm_id\": \"1000\",\n"
               "  \"vm_id_kind\": \"domain\",\n"
               "  \"vm_driver_version\": \"550.54\",\n"
               "  \"pci_bus_id\": \"00000000:02:04.0\",\n"
               "  \"device\": 1,\n"
               "  \"gpu_instance\": 5,\n"
               "  \"placement\": null,\n"
               "  \"type\": 700,\n"
               "  \"type_name\": \"NVIDIA H200-1-18C\",\n"
               "  \"frame_buffer\": 19327352832,\n"
               "  \"frame_buffer_used\": 6442450944,\n"
               "  \"runtime_state\": 80740352,\n"
               "  \"frame_rate_limit\": 60,\n"
               "  \"ecc\": true,\n"
               "  \"encoder_capacity\": 100,\n"
               "  \"accounting\": true,\n"
               "  \"licence\": {\n"
               "    \"licensed\": true,\n"
               "    \"state\": \"licensed\",\n"
               "    \"expiry\": \"2026-11-23 05:02:12 GMT\"\n"
               "  },\n"
               "  \"encoder\": {\n"
               "    \"sessions\": 0,\n"
               "    \"average_fps\": 0,\n"
               "    \"average_latency_us\": 0\n"
               "  },\n"
               "  \"capture\": {\n"
               "    \"sessions\": 0,\n"
               "    \"average_fps\": 0,\n"
               "    \"average_latency_us\": 0\n"
               "  },\n"
               "  \"utilization\": {\n"
               "    \"sm\": null\n"
               "  }\n"
               "}\n",
               "");
        expect("610", 0, WORDS("licence", "21", "--json"),
               "{\n"
               "  \"licences\": [\n"
               "    {\n"
               "      \"name\": \"-\",\n"
               "      \"id\": 21,\n"
               "      \"device\": 1,\n"
               "      \"licensed\": true,\n"
               "      \"state\": \"licensed\",\n"
               "      \"expiry\": \"valid\",\n"
               "      \"expires\": \"2026-11-23 05:02:12 GMT\",\n"
               "      \"expires_seconds\": 1795410132\n"
               "    }\n"
               "  ]\n"
               "}\n",
               "");
        expect("610", 0, WORDS("sessions", "11", "--json"),
               "{\n"
               "  \"sessions\": [\n"
               "    {\n"
               "      \"name\": \"-\",\n"
               "      \"id\": 11,\n"
               "      \"session\": 1,\n"
               "      \"use\": \"encoder\",\n"
               "      \"kind\": \"h264\",\n"
               "      \"pid\": 4242,\n"
               "      \"width\": 1920,\n"
               "      \"height\": 1080,\n"
               "      \"average_fps\": 60,\n"
               "      \"average_latency_us\": 1200\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"-\",\n"
               "      \"id\": 11,\n"
               "      \"session\": 2,\n"
               "      \"use\": \"encoder\",\n"
               "      \"kind\": \"av1\",\n"
               "      \"pid\": 4243,\n"
               "      \"width\": 3840,\n"
               "      \"height\": 2160,\n"
               "      \"average_fps\": 58,\n"
               "      \"average_latency_us\": 1268\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"-\",\n"
               "      \"id\": 11,\n"
               "      \"session\": 9,\n"
               "      \"use\": \"capture\",\n"
               "      \"kind\": \"cuda\",\n"
               "      \"pid\": 4242,\n"
               "      \"width\": 1920,\n"
               "      \"height\": 1080,\n"
               "      \"average_fps\": 30,\n"
               "      \"average_latency_us\": 900\n"
               "    }\n"
               "  ]\n"
               "}\n",
               "");
        expect("550", 0, WORDS("placements", "--device", "0", "--json"),
               "{\n"
               "  \"placements\": [\n"
               "    {\n"
               "      \"device\": 0,\n"
               "      \"type\": 500,\n"
               "      \"name\": \"NVIDIA H200-70C\",\n"
               "      \"slots\": 35,\n"
               "      \"mode\": \"heterogeneous\",\n"
               "      \"possible\": [\n"
               "        0,\n"
               "        70\n"
               "      ],\n"
               "      \"creatable\": [\n"
               "        0\n"
               "      ]\n"
               "    },\n"
               "    {\n"
               "      \"device\": 0,\n"
               "      \"type\": 501,\n"
               "      \"name\": \"NVIDIA H200-35C\",\n"
               "      \"slots\": 35,\n"
               "      \"mode\": \"heterogeneous\",\n"
               "      \"possible\": [\n"
               "        0,\n"
               "        70\n"
               "      ],\n"
               "      \"creatable\": [\n"
               "        0\n"
               "      ]\n"
               "    }\n"
               "  ]\n"
               "}\n",
               "");
        expect("610", 0, WORDS("heterogeneous", "--device", "0", "--json"),
               "{\n"
               "  \"devices\": [\n"
               "    {\n"
               "      \"device\": 0,\n"
               "      \"name\": \"NVIDIA H200\",\n"
               "      \"heterogeneous\": true\n"
               "    }\n"
               "  ]\n"
               "}\n",
               "");
        expect("610", 0, WORDS("version-range", "--json"),
               "{\n"
               "  \"supported\": {\n"
               "    \"minimum\": \"24.1\",\n"
               "    \"maximum\": \"28.1\"\n"
               "  },\n"
               "  \"offered\": {\n"
               "    \"minimum\": \"24.1\",\n"
               "    \"maximum\": \"26.1\"\n"
               "  }\n"
               "}\n",
               "");
        expect("535", 0, WORDS("utilization", "--device", "0", "--json"),
               "{\n"
               "  \"utilization\": [\n"
               "    {\n"
               "      \"device\": 0,\n"
               "      \"name\": \"-\",\n"
               "      \"id\": 11,\n"
               "      \"time_us\": 5000000,\n"
               "      \"sm\": 20,\n"
               "      \"memory\": 5,\n"
               "      \"encoder\": 0,\n"
               "      \"decoder\": 1,\n"
               "      \"jpeg\": null,\n"
               "      \"ofa\": null\n"
               "    },\n"
               "    {\n"
               "      \"device\": 0,\n"
               "      \"name\": \"-\",\n"
               "      \"id\": 3251634327,\n"
               "      \"time_us\": 4999999,\n"
               "      \"sm\": 7,\n"
               "      \"memory\": 3,\n"
               "      \"encoder\": 2,\n"
               "      \"decoder\": 0,\n"
               "      \"jpeg\": null,\n"
               "      \"ofa\": null\n"
               "    }\n"
               "  ]\n"
               "}\n",
               "");
        expect("535", 0, WORDS("utilization", "--device", "0", "--processes", "--json"),
               "{\n"
               "  \"utilization\": [\n"
               "    {\n"
               "      \"device\": 0,\n"
               "      \"name\": \"-\",\n"
               "      \"id\": 11,\n"
               "      \"time_us\": 5000000,\n"
               "      \"sm\": 20,\n"
               "      \"memory\": 5,\n"
               "      \"encoder\": 0,\n"
               "      \"decoder\": 1,\n"
               "      \"jpeg\": null,\n"
               "      \"ofa\": null,\n"
               "      \"pid\": 4242,\n"
               "      \"program\": \"train.py\"\n"
               "    }\n"
               "  ]\n"
               "}\n",
               "");
        expect("535", 0, WORDS("capabilities", "--device", "0", "--json"),
               "{\n"
               "  \"capabilities\": [\n"
               "    {\n"
               "      \"device\": null,\n"
               "      \"capabilities\": {\n"
               "        \"heterogeneous-multi-vgpu\": false,\n"
               "        \"warm-update\": true\n"
               "      }\n"
               "    },\n"
               "    {\n"
               "      \"device\": 0,\n"
               "      \"capabilities\": {\n"
               "        \"fractional-multi-vgpu\": false,\n"
               "        \"heterogeneous-profiles\": true,\n"
               "        \"heterogeneous-sizes\": true,\n"
               "        \"read-bandwidth\": 300,\n"
               "        \"write-bandwidth\": 400,\n"
               "        \"streaming\": true,\n"
               "        \"mini-quarter\": true,\n"
               "        \"media-engines\": true,\n"
               "        \"warm-update\": true,\n"
               "        \"homogeneous-placements\": true,\n"
               "        \"mig-timeslicing-supported\": true,\n"
               "        \"mig-timeslicing\": true\n"
               "      }\n"
               "    }\n"
               "  ]\n"
               "}\n",
               "");
}

/* The vGPU that NVML knows as 11, as vgpud tells of it. */
#define TRAIN_11(state)                                                                       \
        "{'id':11,'name':'train','uuid':'e5c1b1a0-0000-4000-8000-000000000000','device':0,"   \
        "'device_uuid':'GPU-aaaa','state':'" state "','frame_buffer':42949672960,"            \
        "'frame_buffer_used':6442450944,'transient':false,'owner':1000,'created':1764000000," \
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
        expect_outcome(vgpu(steps, 2, WORDS("licence", "train")), 0,
                       "VGPU   ID  DEVICE  LICENSED  STATE     EXPIRES\n"
                       "train  11       0  yes       licensed  2026-11-23 05:02:12 GMT\n",
                       "");
        outcome = vgpu(steps, 1, WORDS("utilization", "--device", "0"));
        assert_non_null(strstr(outcome->out, "\n     0  train          11  20 %"));
        assert_non_null(strstr(outcome->out, "\n     0  -      3251634327   7 %"));
        outcome = vgpu(steps, 1, WORDS("show", "train"));
        assert_int_equal(outcome->code, 0);
        assert_memory_equal(outcome->out,
                            "vGPU\n"
                            "  name                  train\n"
                            "  state                 running\n"
                            "  quota                 40 GiB, of which 6 GiB is used\n"
                            "  owner                 user 1000\n"
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
        expect_outcome(vgpu(&step, 1, WORDS("show", "train")), 0,
                       "vGPU\n"
                       "  name                  train\n"
                       "  state                 suspended\n"
                       "  quota                 40 GiB, of which 6 GiB is used\n"
                       "  owner                 user 1000\n"
                       "  id                    11\n"
                       "  UUID                  e5c1b1a0-0000-4000-8000-000000000000\n"
                       "  device                none: the rest is known on a device\n",
                       "");
        expect_outcome(vgpu(&step, 1, WORDS("sessions", "train")), 7, "",
                       "vgpu: sessions: vGPU train is suspended: NVML knows nothing of it\n"
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

        outcome = vgpu(NULL, 0, WORDS("metadata", "export", "11", "-o", of_train));
        assert_int_equal(outcome->code, 0);
        assert_memory_equal(outcome->out, "exported 464 bytes to /tmp/", 27);
        outcome = vgpu(NULL, 0,
                       WORDS("metadata", "export", "--device", "0", "-o", of_device, "--json"));
        expect_outcome(outcome, 0,
                       "{\n  \"of\": \"device\",\n  \"size\": 380,\n  \"version\": 3,\n"
                       "  \"revision\": 1,\n  \"host_driver_version\": \"610.10\",\n"
                       "  \"can_migrate\": true,\n  \"guest_driver_version\": null,\n"
                       "  \"guest_version\": 0,\n  \"version_minimum\": 1572865,\n"
                       "  \"version_maximum\": 1835009\n}\n",
                       "");
        assert_int_equal(
                vgpu(NULL, 0, WORDS("metadata", "export", "3251634327", "-o", of_infer))->code, 0);

        expect_outcome(vgpu(NULL, 0, WORDS("metadata", "check", of_train, of_device)), 0,
                       "The vGPU and the device\n"
                       "  it can move           live, sleep, hibernate, cold\n"
                       "  limited by            nothing\n",
                       "");
        expect_outcome(vgpu(NULL, 0, WORDS("metadata", "check", of_infer, of_device, "--json")), 7,
                       "{\n  \"can_move\": [\n    \"cold\"\n  ],\n  \"limited_by\": [\n"
                       "    \"other\"\n  ]\n}\n",
                       "");
        outcome = vgpu(NULL, 0, WORDS("metadata", "check", of_device, of_train));
        assert_int_equal(outcome->code, 2);
        assert_non_null(strstr(outcome->err, "/device is no metadata of a vGPU\n"));

        /* Cut off. */
        assert_int_equal(truncate(of_train, 300), 0);
        outcome = vgpu(NULL, 0, WORDS("metadata", "check", of_train, of_device));
        assert_int_equal(outcome->code, 2);
        assert_non_null(strstr(outcome->err, "the end is missing\n"));
        file = fopen(of_train, "w");
        assert_non_null(file);
        fclose(file);
        assert_int_equal(vgpu(NULL, 0, WORDS("metadata", "check", of_train, of_device))->code, 2);
        assert_int_equal(
                vgpu(NULL, 0, WORDS("metadata", "export", "11", "-o", "/nonexistent/x"))->code, 1);

        unlink(of_train);
        unlink(of_infer);
        unlink(of_device);
        assert_int_equal(rmdir(folder), 0);
}

static void test_without_nvml_the_exit_code_is_5(void **state)
{
        (void)state;

        setenv("OPENVGPU_NVML", "/nonexistent/nvml", 1);
        command_expect(vgpu(NULL, 0, WORDS("types")), 5, "",
                       "vgpu: types: cannot load the NVML library: /nonexistent/nvml: cannot open "
                       "shared object file: No such file or directory\n"
                       "hint: name an NVML library, or none to have one found\n");
        choose_driver("610");
        setenv("FAKE_NVML", "nvmlInit_v2=9", 1);
        command_expect(vgpu(NULL, 0, WORDS("version-range")), 5, "",
                       "vgpu: version-range: the driver is not loaded (nvmlInit_v2: "
                       "DRIVER_NOT_LOADED, 9)\n"
                       "hint: load NVIDIA's driver, or start vgpud\n");
        setenv("FAKE_NVML", "nvmlSetVgpuVersion=4", 1);
        command_expect(vgpu(NULL, 0, WORDS("version-range", "set", "24.1", "25.1")), 6, "",
                       "vgpu: version-range: permission denied (nvmlSetVgpuVersion: "
                       "NO_PERMISSION, 4)\nhint: try it as root\n");
        setenv("FAKE_NVML", "nvmlDeviceSetVgpuHeterogeneousMode=19", 1);
        command_expect(vgpu(NULL, 0, WORDS("heterogeneous", "on", "--device", "0")), 7, "",
                       "vgpu: heterogeneous: device 0: in use by a vGPU "
                       "(nvmlDeviceSetVgpuHeterogeneousMode: IN_USE, 19)\n"
                       "hint: end or move the vGPUs first\n");
        unsetenv("FAKE_NVML");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_types_are_a_table_of_all_devices_that_can),
                cmocka_unit_test(test_one_vgpu_is_shown_whole),
                cmocka_unit_test(test_what_an_old_driver_does_not_know_is_said_in_its_place),
                cmocka_unit_test(test_licences_and_sessions_of_one_or_all),
                cmocka_unit_test(test_placements_and_modes),
                cmocka_unit_test(test_capabilities_are_shown_and_switched),
                cmocka_unit_test(test_versions_are_shown_and_narrowed),
                cmocka_unit_test(test_utilization_once),
                cmocka_unit_test(test_nothing_of_a_device_is_guessed),
                cmocka_unit_test(test_what_programs_read_keeps_its_shape),
                cmocka_unit_test(test_a_running_vgpud_gives_the_names),
                cmocka_unit_test(test_a_suspended_vgpu_is_on_no_device),
                cmocka_unit_test(test_metadata_goes_through_files),
                cmocka_unit_test(test_without_nvml_the_exit_code_is_5),
        };

        return cmocka_run_group_tests_name("cli-nvml", tests, NULL, NULL);
}
