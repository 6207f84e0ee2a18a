/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest does and has done, and what goes with it: samples, sessions, accounting, licence, metadata. */
#include <string.h>

#include <openvgpu/accounting.h>
#include <openvgpu/licence.h>
#include <openvgpu/metadata.h>
#include <openvgpu/session.h>
#include <openvgpu/utilization.h>

#include "abi/nvml-vgpu.h"
#include "base/size.h"
#include "lib/test-nvml.h"

static void test_utilization_new_and_old(void **state)
{
        CLEANUP(freep) struct vgpu_utilization_list *all = NULL, *processes = NULL, *later = NULL;
        CLEANUP(freep) struct vgpu_utilization_list *old_all = NULL, *old_processes = NULL;
        struct fixture old;
        (void)state;

        assert_int_equal(vgpu_utilization_lookup_instances(fixture.host, 0, 0, &all), 0);
        assert_int_equal(all->n_samples, 2);
        assert_int_equal(all->last_us, 5000000);
        assert_int_equal(all->samples[0]->instance, FAKE_TRAIN);
        assert_int_equal(all->samples[0]->sm, 20);
        assert_int_equal(all->samples[0]->decoder, 1);
        assert_int_equal(all->samples[0]->ofa, 9);
        assert_int_equal(all->samples[0]->pid, 0);
        assert_string_equal(all->samples[0]->name, "");
        assert_int_equal(all->samples[1]->instance, FAKE_INFER);

        assert_int_equal(vgpu_utilization_lookup_processes(fixture.host, 0, 0, &processes), 0);
        assert_int_equal(processes->n_samples, 2);
        assert_int_equal(processes->samples[0]->pid, 4242);
        assert_string_equal(processes->samples[0]->name, "train.py");
        assert_int_equal(processes->samples[0]->jpeg, 8);
        assert_int_equal(strlen(processes->samples[1]->name), 64);

        assert_int_equal(vgpu_utilization_lookup_instances(fixture.host, 0, all->last_us, &later),
                         0);
        assert_int_equal(later->n_samples, 0);
        assert_int_equal(later->last_us, 5000000);
        assert_int_equal(vgpu_host_get_error(fixture.host)->kind, VGPU_ERROR_NONE);

        fixture_open(&old, "535");
        assert_int_equal(vgpu_utilization_lookup_instances(old.host, 0, 0, &old_all), 0);
        assert_int_equal(old_all->n_samples, 2);
        assert_int_equal(old_all->samples[1]->memory, 3);
        assert_int_equal(old_all->samples[1]->jpeg, VGPU_UNKNOWN);
        assert_int_equal(vgpu_utilization_lookup_processes(old.host, 0, 0, &old_processes), 0);
        assert_int_equal(old_processes->n_samples, 1);
        assert_string_equal(old_processes->samples[0]->name, "train.py");
        assert_int_equal(old_processes->samples[0]->ofa, VGPU_UNKNOWN);
        fixture_close(&old);
}

static void test_sessions(void **state)
{
        CLEANUP(freep) struct vgpu_session_stats *encoder = NULL, *capture = NULL;
        CLEANUP(freep) struct vgpu_encoder_session_list *encoders = NULL, *none = NULL;
        CLEANUP(freep) struct vgpu_capture_session_list *captures = NULL;
        (void)state;

        assert_int_equal(vgpu_session_lookup_encoder_stats(fixture.host, FAKE_TRAIN, &encoder), 0);
        assert_int_equal(encoder->n_sessions, 2);
        assert_int_equal(encoder->average_fps, 59);
        assert_int_equal(encoder->average_latency_us, 1234);
        assert_int_equal(vgpu_session_lookup_capture_stats(fixture.host, FAKE_TRAIN, &capture), 0);
        assert_int_equal(capture->average_latency_us, 900);

        assert_int_equal(vgpu_session_lookup_encoders(fixture.host, FAKE_TRAIN, &encoders), 0);
        assert_int_equal(encoders->n_sessions, 2);
        assert_int_equal(encoders->sessions[1]->pid, 4243);
        assert_int_equal(encoders->sessions[1]->width, 3840);
        assert_string_equal(vgpu_codec_get_name(encoders->sessions[1]->codec), "av1");
        assert_string_equal(vgpu_codec_get_name(VGPU_CODEC_UNKNOWN), "unknown");
        assert_int_equal(vgpu_session_lookup_encoders(fixture.host, FAKE_INFER, &none), 0);
        assert_int_equal(none->n_sessions, 0);
        assert_int_equal(vgpu_session_lookup_captures(fixture.host, FAKE_TRAIN, &captures), 0);
        assert_int_equal(captures->n_sessions, 1);
        assert_int_equal(captures->sessions[0]->max_width, 4096);
        assert_int_equal(captures->sessions[0]->flags,
                         VGPU_CAPTURE_DIFFERENCE_MAP | VGPU_CAPTURE_NO_WAIT);
        assert_string_equal(vgpu_capture_kind_get_name(captures->sessions[0]->kind), "cuda");
}

static void test_licences(void **state)
{
        CLEANUP(freep) struct vgpu_licence *licence = NULL, *older = NULL;
        struct vgpu_licence *none = NULL;
        struct fixture old;
        bool is_licensed;
        (void)state;

        assert_int_equal(vgpu_licence_get_status(fixture.host, FAKE_TRAIN, &is_licensed), 0);
        assert_true(is_licensed);
        assert_int_equal(vgpu_licence_get_status(fixture.host, FAKE_INFER, &is_licensed), 0);
        assert_false(is_licensed);
        assert_int_equal(vgpu_licence_lookup(fixture.host, FAKE_TRAIN, &licence), 0);
        assert_true(licence->is_licensed);
        assert_int_equal(licence->state, VGPU_LICENCE_LICENSED);
        assert_int_equal(licence->expiry, VGPU_LICENCE_EXPIRY_VALID);
        assert_string_equal(licence->expiry_text, "2026-11-23 05:02:12 GMT");
        assert_int_equal(licence->expiry_seconds, 1795410132);
        assert_string_equal(vgpu_licence_state_get_name(licence->state), "licensed");
        assert_string_equal(vgpu_licence_expiry_get_name(VGPU_LICENCE_EXPIRY_PERMANENT),
                            "permanent");
        fixture_expect(&fixture, vgpu_licence_lookup(fixture.host, FAKE_INFER, &none),
                       VGPU_ERROR_NOT_LOADED, "vGPU 3251634327");
        assert_null(none);

        /* R390 only knows yes and no. */
        fixture_open(&old, "390");
        assert_int_equal(vgpu_licence_get_status(old.host, FAKE_TRAIN, &is_licensed), 0);
        assert_true(is_licensed);
        fixture_expect(&old, vgpu_licence_lookup(old.host, FAKE_TRAIN, &none),
                       VGPU_ERROR_NOT_IN_DRIVER, "needs R495 or newer");
        old.fake->answer_of = "nvmlVgpuInstanceGetLicenseStatus";
        old.fake->answer = NVML_ERROR_FUNCTION_NOT_FOUND;
        fixture_expect(&old, vgpu_licence_get_status(old.host, FAKE_TRAIN, &is_licensed),
                       VGPU_ERROR_NOT_IN_DRIVER, "needs R390 or newer");
        assert_non_null(strstr(vgpu_host_get_error(old.host)->hint, "its library /"));
        fixture_close(&old);
        assert_null(none);

        /* A driver that has dropped the deprecated call. */
        fixture.fake->answer_of = "nvmlVgpuInstanceGetLicenseStatus";
        fixture.fake->answer = NVML_ERROR_FUNCTION_NOT_FOUND;
        assert_int_equal(vgpu_licence_get_status(fixture.host, FAKE_TRAIN, &is_licensed), 0);
        assert_true(is_licensed);

        /* One that has the first form only. */
        fixture.fake->answer_of = "nvmlVgpuInstanceGetLicenseInfo_v2";
        assert_int_equal(vgpu_licence_lookup(fixture.host, FAKE_TRAIN, &older), 0);
        assert_int_equal(older->state, VGPU_LICENCE_LICENSED);
        assert_string_equal(older->expiry_text, "2026-11-23 05:02:12 GMT");
}

static void test_accounting(void **state)
{
        CLEANUP(freep) struct vgpu_number_list *pids = NULL;
        CLEANUP(freep) struct vgpu_accounting_stats *stats = NULL;
        const uint32_t all[] = { 4242, 4243, 4000000000 };
        struct vgpu_accounting_stats *none = NULL;
        bool is_on;
        (void)state;

        assert_int_equal(vgpu_accounting_get_mode(fixture.host, FAKE_TRAIN, &is_on), 0);
        assert_true(is_on);
        assert_int_equal(vgpu_accounting_lookup_pids(fixture.host, FAKE_TRAIN, &pids), 0);
        expect_list(pids, 3, all);
        assert_int_equal(vgpu_accounting_lookup_stats(fixture.host, FAKE_TRAIN, 4242, &stats), 0);
        assert_int_equal(stats->gpu_utilization, 31);
        assert_int_equal(stats->memory_utilization, VGPU_UNKNOWN);
        assert_int_equal(stats->max_memory_used, GIB);
        assert_int_equal(stats->time_ms, 60000);
        assert_false(stats->is_running);
        assert_int_equal(vgpu_accounting_clear(fixture.host, FAKE_TRAIN), 0);

        fixture_expect(&fixture, vgpu_accounting_lookup_stats(fixture.host, FAKE_TRAIN, 1, &none),
                       VGPU_ERROR_NO_SUCH_PROCESS,
                       "process 1 of vGPU 11: nothing is recorded of the process");
        fixture_expect(&fixture, vgpu_accounting_lookup_stats(fixture.host, 99, 4242, &none),
                       VGPU_ERROR_NO_SUCH_VGPU, "vGPU 99");
        fixture_expect(&fixture, vgpu_accounting_get_mode(fixture.host, FAKE_INFER, &is_on),
                       VGPU_ERROR_NOT_LOADED, "guest");
        assert_null(none);
}

static void test_metadata(void **state)
{
        CLEANUP(freep) struct vgpu_metadata *train = NULL, *infer = NULL, *device = NULL;
        CLEANUP(freep) struct vgpu_compatibility *live = NULL, *cold = NULL;
        struct vgpu_compatibility *no_answer = NULL;
        struct vgpu_metadata *none = NULL;
        (void)state;

        assert_int_equal(vgpu_metadata_lookup_instance(fixture.host, FAKE_TRAIN, &train), 0);
        assert_int_equal(train->kind, VGPU_METADATA_INSTANCE);
        assert_int_equal(train->size, offsetof(nvmlVgpuMetadata_t, opaqueData) + 256);
        assert_int_equal(train->version, 3);
        assert_true(train->can_migrate);
        assert_true(train->is_guest_known);
        assert_string_equal(train->guest_driver_version, "550.54");
        assert_string_equal(train->host_driver_version, "610.10");
        assert_int_equal(train->guest_version, 0x1a0001);
        assert_int_equal(vgpu_metadata_lookup_instance(fixture.host, FAKE_INFER, &infer), 0);
        assert_false(infer->is_guest_known);
        assert_string_equal(infer->guest_driver_version, "");
        assert_int_equal(vgpu_metadata_lookup_device(fixture.host, 0, &device), 0);
        assert_int_equal(device->version_maximum, 0x1c0001);
        EXPECT_TEXT("233518BE00000002", vgpu_metadata_get_device_text, 0);

        assert_int_equal(vgpu_metadata_check(fixture.host, train, device, &live), 0);
        assert_int_equal(live->power_states, VGPU_POWER_LIVE | VGPU_POWER_SLEEP |
                                                     VGPU_POWER_HIBERNATE | VGPU_POWER_COLD);
        assert_int_equal(live->limits, 0);
        assert_int_equal(vgpu_metadata_check(fixture.host, infer, device, &cold), 0);
        assert_int_equal(cold->power_states, VGPU_POWER_COLD);
        assert_int_equal(cold->limits, VGPU_LIMIT_OTHER);
        fixture_expect(&fixture, vgpu_metadata_check(fixture.host, device, train, &no_answer),
                       VGPU_ERROR_INVALID_PARAMETER, "metadata of a vGPU and of a device");

        fixture.fake->is_crippled = true;
        fixture_expect(&fixture, vgpu_metadata_lookup_instance(fixture.host, FAKE_TRAIN, &none),
                       VGPU_ERROR_DRIVER_FAILED, "has no usable metadata");
        assert_null(none);
}

/* Metadata from another host, with something behind it, or with its end cut off. */
static void test_metadata_of_bytes(void **state)
{
        CLEANUP(freep) struct vgpu_metadata *train = NULL, *device = NULL, *copy = NULL;
        CLEANUP(freep) struct vgpu_metadata *longer = NULL;
        CLEANUP(freep) struct vgpu_compatibility *moved = NULL;
        struct vgpu_metadata *none = NULL;
        char bytes[1024];
        (void)state;

        assert_int_equal(vgpu_metadata_lookup_instance(fixture.host, FAKE_TRAIN, &train), 0);
        assert_int_equal(vgpu_metadata_lookup_device(fixture.host, 0, &device), 0);
        assert_int_equal(vgpu_metadata_new(fixture.host, VGPU_METADATA_INSTANCE, train->bytes,
                                           train->size, &copy),
                         0);
        assert_int_equal(vgpu_metadata_check(fixture.host, copy, device, &moved), 0);
        assert_int_equal(moved->limits, 0);
        memset(bytes, 'x', sizeof(bytes));
        memcpy(bytes, train->bytes, train->size);
        assert_int_equal(vgpu_metadata_new(fixture.host, VGPU_METADATA_INSTANCE, bytes,
                                           sizeof(bytes), &longer),
                         0);
        assert_int_equal(longer->size, train->size);
        fixture_expect(&fixture,
                       vgpu_metadata_new(fixture.host, VGPU_METADATA_INSTANCE, train->bytes,
                                         train->size - 1, &none),
                       VGPU_ERROR_INVALID_PARAMETER, "the end is missing");
        fixture_expect(
                &fixture,
                vgpu_metadata_new(fixture.host, VGPU_METADATA_DEVICE, train->bytes, 20, &none),
                VGPU_ERROR_INVALID_PARAMETER, "they are too short");
        assert_null(none);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_utilization_new_and_old),
                TEST(test_sessions),
                TEST(test_licences),
                TEST(test_accounting),
                TEST(test_metadata),
                TEST(test_metadata_of_bytes),
        };

        return cmocka_run_group_tests_name("lib-nvml-guests", tests, NULL, NULL);
}
