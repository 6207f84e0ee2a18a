/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every question that the library can put to NVML, three times: it is answered; it is not in the
 * driver; and it is answered with every code that there is.
 */
#include <stdio.h>
#include <string.h>

#include <openvgpu/accounting.h>
#include <openvgpu/device.h>
#include <openvgpu/gpu-instance.h>
#include <openvgpu/instance.h>
#include <openvgpu/licence.h>
#include <openvgpu/metadata.h>
#include <openvgpu/placement.h>
#include <openvgpu/scheduler.h>
#include <openvgpu/session.h>
#include <openvgpu/type.h>
#include <openvgpu/utilization.h>

#include "base/test.h"
#include "fake/nvml-host.h"
#include "lib/nvml-code.h"

#define ALL VGPU_WHOLE_DEVICE
#define GPU FAKE_GPU_INSTANCE

/* A question that fills a plain value, two of them, or a piece of memory that is freed at once. */
#define PLAIN(name_, type_, ...)                                \
        static int name_(struct vgpu_host *host)                \
        {                                                       \
                type_ value = 0;                                \
                                                                \
                return vgpu_##name_(host, __VA_ARGS__, &value); \
        }
#define PIECE(name_, type_, ...)                                 \
        static int name_(struct vgpu_host *host)                 \
        {                                                        \
                CLEANUP(freep) type_ *piece = NULL;              \
                int r = vgpu_##name_(host, __VA_ARGS__, &piece); \
                                                                 \
                assert_true((r == 0) == (piece != NULL));        \
                return r;                                        \
        }
#define WRITE(name_, ...)                               \
        static int name_(struct vgpu_host *host)        \
        {                                               \
                return vgpu_##name_(host, __VA_ARGS__); \
        }

/* clang-format off */
PLAIN(host_get_capability, bool, VGPU_HOST_WARM_UPDATE)
WRITE(host_set_version_range, 1, 2)
PIECE(device_get_uuid, char, 0)
PIECE(device_get_name, char, 0)
PIECE(device_get_pci_bus_id, char, 0)
PLAIN(device_get_mode, enum vgpu_device_mode, 0)
PLAIN(device_get_capability, uint32_t, 0, VGPU_DEVICE_STREAMING)
WRITE(device_set_capability, 0, VGPU_DEVICE_MINI_QUARTER, true)
PIECE(device_lookup_types, struct vgpu_number_list, 0)
PIECE(device_lookup_creatable_types, struct vgpu_number_list, 0, ALL)
PIECE(device_lookup_instances, struct vgpu_number_list, 0, ALL)
PIECE(gpu_instance_lookup_all, struct vgpu_gpu_instance_list, 1)
PIECE(placement_lookup_possible, struct vgpu_placement_list, 0, FAKE_TYPE_BIG, VGPU_PLACEMENT_HETEROGENEOUS)
PIECE(placement_lookup_creatable, struct vgpu_placement_list, 0, ALL, FAKE_TYPE_BIG, VGPU_PLACEMENT_HETEROGENEOUS)
PLAIN(placement_get_heterogeneous, bool, 0, ALL)
WRITE(placement_set_heterogeneous, 0, ALL, true)
PIECE(scheduler_lookup_capabilities, struct vgpu_scheduler_capabilities, 0)
PIECE(scheduler_lookup_state, struct vgpu_scheduler_state, 0, ALL, VGPU_SCHEDULER_GRAPHICS)
PIECE(scheduler_lookup_log, struct vgpu_scheduler_log, 0, ALL, VGPU_SCHEDULER_GRAPHICS)
PIECE(utilization_lookup_instances, struct vgpu_utilization_list, 0, 0)
PIECE(utilization_lookup_processes, struct vgpu_utilization_list, 0, 0)
PIECE(metadata_lookup_device, struct vgpu_metadata, 0)
PIECE(metadata_lookup_instance, struct vgpu_metadata, FAKE_TRAIN)
PIECE(metadata_get_device_text, char, 0)
PIECE(type_get_name, char, FAKE_TYPE_SMALL)
PIECE(type_get_class, char, FAKE_TYPE_SMALL)
PIECE(type_get_licence, char, FAKE_TYPE_SMALL)
PLAIN(type_get_profile_id, uint32_t, FAKE_TYPE_SMALL)
PLAIN(type_get_frame_buffer, uint64_t, FAKE_TYPE_SMALL)
PLAIN(type_get_heads, uint32_t, FAKE_TYPE_SMALL)
PLAIN(type_get_frame_rate_limit, uint32_t, FAKE_TYPE_SMALL)
PLAIN(type_get_max_instances, uint32_t, 0, FAKE_TYPE_SMALL)
PLAIN(type_get_max_instances_per_vm, uint32_t, FAKE_TYPE_SMALL)
PLAIN(type_get_max_instances_per_gpu_instance, uint32_t, FAKE_TYPE_MIG)
PLAIN(type_get_bar1, uint64_t, FAKE_TYPE_SMALL)
PLAIN(type_get_gsp_heap, uint64_t, FAKE_TYPE_SMALL)
PLAIN(type_get_reservation, uint64_t, FAKE_TYPE_SMALL)
PLAIN(type_get_capability, bool, FAKE_TYPE_SMALL, VGPU_TYPE_GPUDIRECT)
WRITE(instance_check, FAKE_TRAIN)
PLAIN(instance_get_type, uint32_t, FAKE_TRAIN)
PLAIN(instance_get_placement, uint32_t, FAKE_TRAIN)
PLAIN(instance_get_gpu_instance, uint32_t, FAKE_TRAIN)
PIECE(instance_get_uuid, char, FAKE_TRAIN)
PIECE(instance_lookup_vm, struct vgpu_vm, FAKE_TRAIN)
PIECE(instance_get_vm_driver_version, char, FAKE_TRAIN)
PIECE(instance_get_mdev_uuid, char, FAKE_TRAIN)
PIECE(instance_get_pci_bus_id, char, FAKE_TRAIN)
PLAIN(instance_get_frame_buffer_used, uint64_t, FAKE_TRAIN)
PLAIN(instance_get_runtime_state_size, uint64_t, FAKE_TRAIN)
PLAIN(instance_get_frame_rate_limit, uint32_t, FAKE_INFER)
PLAIN(instance_get_ecc, bool, FAKE_TRAIN)
PLAIN(instance_get_encoder_capacity, uint32_t, FAKE_TRAIN)
WRITE(instance_set_encoder_capacity, FAKE_TRAIN, 50)
PIECE(session_lookup_encoder_stats, struct vgpu_session_stats, FAKE_TRAIN)
PIECE(session_lookup_capture_stats, struct vgpu_session_stats, FAKE_TRAIN)
PIECE(session_lookup_encoders, struct vgpu_encoder_session_list, FAKE_TRAIN)
PIECE(session_lookup_captures, struct vgpu_capture_session_list, FAKE_TRAIN)
PLAIN(licence_get_status, bool, FAKE_TRAIN)
PIECE(licence_lookup, struct vgpu_licence, FAKE_TRAIN)
PLAIN(accounting_get_mode, bool, FAKE_TRAIN)
PIECE(accounting_lookup_pids, struct vgpu_number_list, FAKE_TRAIN)
PIECE(accounting_lookup_stats, struct vgpu_accounting_stats, FAKE_TRAIN, 4242)
WRITE(accounting_clear, FAKE_TRAIN)
/* clang-format on */

static int device_count(struct vgpu_host *host)
{
        uint32_t count;

        return vgpu_device_count(host, &count);
}

static int driver_version(struct vgpu_host *host)
{
        const char *version;

        return vgpu_host_get_driver_version(host, &version);
}

static int version_range(struct vgpu_host *host)
{
        CLEANUP(freep) struct vgpu_host_versions *versions = NULL;

        return vgpu_host_lookup_versions(host, &versions);
}

static int device_id(struct vgpu_host *host)
{
        uint32_t id, subsystem_id;

        return vgpu_type_get_device_id(host, FAKE_TYPE_SMALL, &id, &subsystem_id);
}

static int resolution(struct vgpu_host *host)
{
        uint32_t width, height;

        return vgpu_type_get_resolution(host, FAKE_TYPE_SMALL, 0, &width, &height);
}

static int scheduler_set(struct vgpu_host *host)
{
        struct vgpu_scheduler_settings settings = VGPU_SCHEDULER_SETTINGS_INIT;

        return vgpu_scheduler_set_state(host, 0, ALL, &settings);
}

static int part_creatable(struct vgpu_host *host)
{
        CLEANUP(freep) struct vgpu_number_list *list = NULL;

        return vgpu_device_lookup_creatable_types(host, 1, GPU, &list);
}

static int part_active(struct vgpu_host *host)
{
        CLEANUP(freep) struct vgpu_number_list *list = NULL;

        return vgpu_device_lookup_instances(host, 1, GPU, &list);
}

static int part_placements(struct vgpu_host *host)
{
        CLEANUP(freep) struct vgpu_placement_list *list = NULL;

        return vgpu_placement_lookup_creatable(host, 1, GPU, FAKE_TYPE_MIG,
                                               VGPU_PLACEMENT_HETEROGENEOUS, &list);
}

static int part_get_heterogeneous(struct vgpu_host *host)
{
        bool is_on;

        return vgpu_placement_get_heterogeneous(host, 1, GPU, &is_on);
}

static int part_set_heterogeneous(struct vgpu_host *host)
{
        return vgpu_placement_set_heterogeneous(host, 1, GPU, true);
}

static int part_state(struct vgpu_host *host)
{
        CLEANUP(freep) struct vgpu_scheduler_state *state = NULL;

        return vgpu_scheduler_lookup_state(host, 1, GPU, VGPU_SCHEDULER_GRAPHICS, &state);
}

static int part_log(struct vgpu_host *host)
{
        CLEANUP(freep) struct vgpu_scheduler_log *log = NULL;

        return vgpu_scheduler_lookup_log(host, 1, GPU, VGPU_SCHEDULER_GRAPHICS, &log);
}

static int part_set(struct vgpu_host *host)
{
        struct vgpu_scheduler_settings settings = VGPU_SCHEDULER_SETTINGS_INIT;

        return vgpu_scheduler_set_state(host, 1, GPU, &settings);
}

static int compatibility(struct vgpu_host *host)
{
        CLEANUP(freep) struct vgpu_metadata *instance = NULL, *device = NULL;
        CLEANUP(freep) struct vgpu_compatibility *answer = NULL;
        int r;

        r = vgpu_metadata_lookup_instance(host, FAKE_TRAIN, &instance);
        if (r == 0)
                r = vgpu_metadata_lookup_device(host, 0, &device);
        return r < 0 ? r : vgpu_metadata_check(host, instance, device, &answer);
}

/*
 * @needs: the driver from which on the question can be answered at all. @falls_back: where the newest
 * call is not there, an older one is.
 */
static const struct question {
        const char *call; /* that the newest driver gets */
        int (*ask)(struct vgpu_host *host);
        enum about_kind about;
        const char *needs;
        bool falls_back;
} questions[] = {
        { "nvmlSystemGetDriverVersion", driver_version, ABOUT_THE_HOST, "R285", false },
        { "nvmlGetVgpuDriverCapabilities", host_get_capability, ABOUT_THE_HOST, "R525", false },
        { "nvmlGetVgpuVersion", version_range, ABOUT_THE_HOST, "R410", false },
        { "nvmlSetVgpuVersion", host_set_version_range, ABOUT_THE_HOST, "R410", false },
        { "nvmlDeviceGetCount_v2", device_count, ABOUT_THE_HOST, "R285", true },
        { "nvmlDeviceGetUUID", device_get_uuid, ABOUT_A_DEVICE, "R285", false },
        { "nvmlDeviceGetName", device_get_name, ABOUT_A_DEVICE, "R285", false },
        { "nvmlDeviceGetPciInfo_v3", device_get_pci_bus_id, ABOUT_A_DEVICE, "R285", true },
        { "nvmlDeviceGetHostVgpuMode", device_get_mode, ABOUT_A_DEVICE, "R450", false },
        { "nvmlDeviceGetVgpuCapabilities", device_get_capability, ABOUT_A_DEVICE, "R525", false },
        { "nvmlDeviceSetVgpuCapabilities", device_set_capability, ABOUT_A_DEVICE, "R550", false },
        { "nvmlDeviceGetSupportedVgpus", device_lookup_types, ABOUT_A_DEVICE, "R390", false },
        { "nvmlDeviceGetCreatableVgpus", device_lookup_creatable_types, ABOUT_A_DEVICE, "R390",
          false },
        { "nvmlDeviceGetActiveVgpus", device_lookup_instances, ABOUT_A_DEVICE, "R390", false },
        { "nvmlGpuInstanceGetInfo", gpu_instance_lookup_all, ABOUT_A_DEVICE, "R450", false },
        { "nvmlDeviceGetVgpuTypeSupportedPlacements", placement_lookup_possible, ABOUT_A_TYPE,
          "R550", false },
        { "nvmlDeviceGetVgpuTypeCreatablePlacements", placement_lookup_creatable, ABOUT_A_TYPE,
          "R550", false },
        { "nvmlDeviceGetVgpuHeterogeneousMode", placement_get_heterogeneous, ABOUT_A_DEVICE, "R550",
          false },
        { "nvmlDeviceSetVgpuHeterogeneousMode", placement_set_heterogeneous, ABOUT_A_DEVICE, "R550",
          false },
        { "nvmlDeviceGetVgpuSchedulerCapabilities", scheduler_lookup_capabilities, ABOUT_A_DEVICE,
          "R530", false },
        { "nvmlDeviceGetVgpuSchedulerState_v2", scheduler_lookup_state, ABOUT_A_DEVICE, "R530",
          true },
        { "nvmlDeviceGetVgpuSchedulerLog_v2", scheduler_lookup_log, ABOUT_A_DEVICE, "R530", true },
        { "nvmlDeviceSetVgpuSchedulerState_v2", scheduler_set, ABOUT_A_DEVICE, "R535", true },
        { "nvmlDeviceGetVgpuInstancesUtilizationInfo", utilization_lookup_instances, ABOUT_A_DEVICE,
          "R390", true },
        { "nvmlDeviceGetVgpuProcessesUtilizationInfo", utilization_lookup_processes, ABOUT_A_DEVICE,
          "R390", true },
        { "nvmlDeviceGetVgpuMetadata", metadata_lookup_device, ABOUT_A_DEVICE, "R390", false },
        { "nvmlDeviceGetPgpuMetadataString", metadata_get_device_text, ABOUT_A_DEVICE, "R450",
          false },
        { "nvmlGetVgpuCompatibility", compatibility, ABOUT_THE_HOST, "R390", false },
        { "nvmlGpuInstanceGetCreatableVgpus", part_creatable, ABOUT_A_GPU_INSTANCE, "R575", false },
        { "nvmlGpuInstanceGetActiveVgpus", part_active, ABOUT_A_GPU_INSTANCE, "R575", false },
        { "nvmlGpuInstanceGetVgpuTypeCreatablePlacements", part_placements, ABOUT_A_GPU_INSTANCE,
          "R575", false },
        { "nvmlGpuInstanceGetVgpuHeterogeneousMode", part_get_heterogeneous, ABOUT_A_GPU_INSTANCE,
          "R575", false },
        { "nvmlGpuInstanceSetVgpuHeterogeneousMode", part_set_heterogeneous, ABOUT_A_GPU_INSTANCE,
          "R575", false },
        { "nvmlGpuInstanceGetVgpuSchedulerState_v2", part_state, ABOUT_A_GPU_INSTANCE, "R575",
          true },
        { "nvmlGpuInstanceGetVgpuSchedulerLog_v2", part_log, ABOUT_A_GPU_INSTANCE, "R575", true },
        { "nvmlGpuInstanceSetVgpuSchedulerState_v2", part_set, ABOUT_A_GPU_INSTANCE, "R575", true },
        { "nvmlVgpuTypeGetName", type_get_name, ABOUT_A_TYPE, "R390", false },
        { "nvmlVgpuTypeGetClass", type_get_class, ABOUT_A_TYPE, "R390", false },
        { "nvmlVgpuTypeGetLicense", type_get_licence, ABOUT_A_TYPE, "R390", false },
        { "nvmlVgpuTypeGetGpuInstanceProfileId", type_get_profile_id, ABOUT_A_TYPE, "R455", false },
        { "nvmlVgpuTypeGetDeviceID", device_id, ABOUT_A_TYPE, "R390", false },
        { "nvmlVgpuTypeGetFramebufferSize", type_get_frame_buffer, ABOUT_A_TYPE, "R390", false },
        { "nvmlVgpuTypeGetNumDisplayHeads", type_get_heads, ABOUT_A_TYPE, "R390", false },
        { "nvmlVgpuTypeGetResolution", resolution, ABOUT_A_TYPE, "R390", false },
        { "nvmlVgpuTypeGetFrameRateLimit", type_get_frame_rate_limit, ABOUT_A_TYPE, "R390", false },
        { "nvmlVgpuTypeGetMaxInstances", type_get_max_instances, ABOUT_A_TYPE, "R390", false },
        { "nvmlVgpuTypeGetMaxInstancesPerVm", type_get_max_instances_per_vm, ABOUT_A_TYPE, "R410",
          false },
        { "nvmlVgpuTypeGetMaxInstancesPerGpuInstance", type_get_max_instances_per_gpu_instance,
          ABOUT_A_TYPE, "R575", false },
        { "nvmlVgpuTypeGetBAR1Info", type_get_bar1, ABOUT_A_TYPE, "R560", false },
        { "nvmlVgpuTypeGetGspHeapSize", type_get_gsp_heap, ABOUT_A_TYPE, "R550", false },
        { "nvmlVgpuTypeGetFbReservation", type_get_reservation, ABOUT_A_TYPE, "R550", false },
        { "nvmlVgpuTypeGetCapabilities", type_get_capability, ABOUT_A_TYPE, "R515", false },
        { "nvmlVgpuInstanceGetType", instance_check, ABOUT_AN_INSTANCE, "R390", false },
        { "nvmlVgpuInstanceGetType", instance_get_type, ABOUT_AN_INSTANCE, "R390", false },
        { "nvmlVgpuInstanceGetPlacementId", instance_get_placement, ABOUT_AN_INSTANCE, "R550",
          false },
        { "nvmlVgpuInstanceGetGpuInstanceId", instance_get_gpu_instance, ABOUT_AN_INSTANCE, "R460",
          false },
        { "nvmlVgpuInstanceGetUUID", instance_get_uuid, ABOUT_AN_INSTANCE, "R390", false },
        { "nvmlVgpuInstanceGetVmID", instance_lookup_vm, ABOUT_AN_INSTANCE, "R390", false },
        { "nvmlVgpuInstanceGetVmDriverVersion", instance_get_vm_driver_version, ABOUT_AN_INSTANCE,
          "R390", false },
        { "nvmlVgpuInstanceGetMdevUUID", instance_get_mdev_uuid, ABOUT_AN_INSTANCE, "R450", false },
        { "nvmlVgpuInstanceGetGpuPciId", instance_get_pci_bus_id, ABOUT_AN_INSTANCE, "R510",
          false },
        { "nvmlVgpuInstanceGetFbUsage", instance_get_frame_buffer_used, ABOUT_AN_INSTANCE, "R390",
          false },
        { "nvmlVgpuInstanceGetRuntimeStateSize", instance_get_runtime_state_size, ABOUT_AN_INSTANCE,
          "R565", false },
        { "nvmlVgpuInstanceGetFrameRateLimit", instance_get_frame_rate_limit, ABOUT_AN_INSTANCE,
          "R390", false },
        { "nvmlVgpuInstanceGetEccMode", instance_get_ecc, ABOUT_AN_INSTANCE, "R450", false },
        { "nvmlVgpuInstanceGetEncoderCapacity", instance_get_encoder_capacity, ABOUT_AN_INSTANCE,
          "R390", false },
        { "nvmlVgpuInstanceSetEncoderCapacity", instance_set_encoder_capacity, ABOUT_AN_INSTANCE,
          "R390", false },
        { "nvmlVgpuInstanceGetEncoderStats", session_lookup_encoder_stats, ABOUT_AN_INSTANCE,
          "R390", false },
        { "nvmlVgpuInstanceGetEncoderSessions", session_lookup_encoders, ABOUT_AN_INSTANCE, "R390",
          false },
        { "nvmlVgpuInstanceGetFBCStats", session_lookup_capture_stats, ABOUT_AN_INSTANCE, "R410",
          false },
        { "nvmlVgpuInstanceGetFBCSessions", session_lookup_captures, ABOUT_AN_INSTANCE, "R410",
          false },
        { "nvmlVgpuInstanceGetLicenseStatus", licence_get_status, ABOUT_AN_INSTANCE, "R390", true },
        { "nvmlVgpuInstanceGetLicenseInfo_v2", licence_lookup, ABOUT_AN_INSTANCE, "R495", true },
        { "nvmlVgpuInstanceGetAccountingMode", accounting_get_mode, ABOUT_AN_INSTANCE, "R410",
          false },
        { "nvmlVgpuInstanceGetAccountingPids", accounting_lookup_pids, ABOUT_AN_INSTANCE, "R410",
          false },
        { "nvmlVgpuInstanceGetAccountingStats", accounting_lookup_stats, ABOUT_A_PROCESS, "R410",
          false },
        { "nvmlVgpuInstanceClearAccountingPids", accounting_clear, ABOUT_AN_INSTANCE, "R450",
          false },
        { "nvmlVgpuInstanceGetMetadata", metadata_lookup_instance, ABOUT_AN_INSTANCE, "R390",
          false },
};

#define N_QUESTIONS (sizeof(questions) / sizeof(questions[0]))

static const int codes[] = { 1,  2,  3,  4,  5,  6,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17,
                             18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 77, 999 };

static void test_the_newest_driver_answers_everything(void **state)
{
        struct fixture fixture;
        (void)state;

        fixture_open(&fixture, "610");
        for (size_t i = 0; i < N_QUESTIONS; i++) {
                fixture.fake->watch = questions[i].call;
                fixture.fake->was_called = false;
                if (questions[i].ask(fixture.host) != 0)
                        fail_msg("%s: %s", questions[i].call,
                                 vgpu_host_get_error(fixture.host)->message);
                assert_true(fixture.fake->was_called);
                assert_int_equal(vgpu_host_get_error(fixture.host)->kind, VGPU_ERROR_NONE);
        }
        fixture_close(&fixture);
}

/* R390 has no GPU instances at all, which is what it says first. */
static const char *get_needs(const struct question *question, const char *age)
{
        return question->about == ABOUT_A_GPU_INSTANCE && strcmp(age, "390") == 0 ? "R450"
                                                                                  : question->needs;
}

static void test_what_a_driver_lacks_is_named_with_the_driver_that_has_it(void **state)
{
        static const char *const ages[] = { "390", "535", "550" };
        (void)state;

        for (size_t age = 0; age < sizeof(ages) / sizeof(ages[0]); age++) {
                struct fixture fixture;

                fixture_open(&fixture, ages[age]);
                for (size_t i = 0; i < N_QUESTIONS; i++) {
                        const struct question *question = &questions[i];
                        int r = question->ask(fixture.host);
                        char needs[64];

                        if (atoi(question->needs + 1) <= atoi(ages[age])) {
                                if (r != 0)
                                        fail_msg("R%s: %s: %s", ages[age], question->call,
                                                 vgpu_host_get_error(fixture.host)->message);
                                continue;
                        }
                        snprintf(needs, sizeof(needs), "is not in this driver (needs %s or newer)",
                                 get_needs(question, ages[age]));
                        fixture_expect(&fixture, r, VGPU_ERROR_NOT_IN_DRIVER, needs);
                        assert_int_equal(r, -ENOSYS);
                        assert_non_null(strstr(vgpu_host_get_error(fixture.host)->hint, ages[age]));
                }
                fixture_close(&fixture);
        }
}

/* Where the library reads a code as "nothing new", or as "try the older call". */
static bool is_no_error(const struct question *question, int code)
{
        if (strstr(question->call, "UtilizationInfo") && code == NVML_ERROR_NOT_FOUND)
                return true;
        return question->falls_back && (code == NVML_ERROR_FUNCTION_NOT_FOUND ||
                                        code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static void test_every_code_becomes_an_error_that_says_what_it_was_about(void **state)
{
        struct fixture fixture;
        (void)state;

        fixture_open(&fixture, "610");
        for (size_t i = 0; i < N_QUESTIONS; i++) {
                const struct question *question = &questions[i];

                fixture.fake->answer_of = question->call;
                for (size_t j = 0; j < sizeof(codes) / sizeof(codes[0]); j++) {
                        const struct nvml_code *explained = nvml_code_explain(
                                (nvmlReturn_t)codes[j], question->about, question->call);
                        const struct vgpu_error *error = vgpu_host_get_error(fixture.host);
                        int r;

                        fixture.fake->answer = (nvmlReturn_t)codes[j];
                        r = question->ask(fixture.host);
                        if (is_no_error(question, codes[j])) {
                                assert_int_equal(r, 0);
                                continue;
                        }
                        fixture_expect(&fixture, r, explained->kind, question->call);
                        assert_string_equal(error->driver_call, question->call);
                        assert_int_equal(error->driver_code, codes[j]);
                        if (explained->kind != VGPU_ERROR_NOT_IN_DRIVER)
                                assert_non_null(strstr(error->message, explained->name));
                }
        }
        fixture_close(&fixture);
}

static void test_nothing_is_asked_of_a_device_or_vgpu_that_is_not_there(void **state)
{
        struct fixture fixture;
        uint32_t number;
        uint64_t bytes;
        struct vgpu_number_list *list = NULL;
        char *text = NULL;
        (void)state;

        fixture_open(&fixture, "610");
        fixture_expect(&fixture, vgpu_device_get_uuid(fixture.host, 7, &text),
                       VGPU_ERROR_NO_SUCH_DEVICE, "device 7: there is no such device");
        fixture_expect(&fixture, vgpu_device_get_uuid(fixture.host, 2, &text),
                       VGPU_ERROR_DEVICE_LOST, "device 2: the device fell off the bus");
        fixture_expect(&fixture, vgpu_instance_get_frame_buffer_used(fixture.host, 99, &bytes),
                       VGPU_ERROR_NO_SUCH_VGPU, "vGPU 99: there is no such active vGPU");
        fixture_expect(&fixture, vgpu_instance_get_type(fixture.host, 0, &number),
                       VGPU_ERROR_NO_SUCH_VGPU, "vGPU 0: there is no such active vGPU");
        fixture_expect(&fixture, vgpu_type_get_heads(fixture.host, 4, &number),
                       VGPU_ERROR_NO_SUCH_TYPE, "vGPU type 4: there is no such vGPU type");
        fixture_expect(&fixture, vgpu_device_lookup_instances(fixture.host, 1, 77, &list),
                       VGPU_ERROR_NO_SUCH_DEVICE, "GPU instance 77 of device 1: there is no such");
        fixture_expect(&fixture, vgpu_device_lookup_instances(fixture.host, 0, 5, &list),
                       VGPU_ERROR_NOT_SUPPORTED,
                       "GPU instance 5 of device 0: the device has no GPU instances");
        assert_null(text);
        assert_null(list);
        fixture_close(&fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_newest_driver_answers_everything),
                cmocka_unit_test(test_what_a_driver_lacks_is_named_with_the_driver_that_has_it),
                cmocka_unit_test(test_every_code_becomes_an_error_that_says_what_it_was_about),
                cmocka_unit_test(test_nothing_is_asked_of_a_device_or_vgpu_that_is_not_there),
        };

        return cmocka_run_group_tests_name("lib-nvml-codes", tests, NULL, NULL);
}
