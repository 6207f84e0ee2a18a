/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of encoder and capture, of a vGPU and of its device. */
#include "base/test.h"
#include "nvml/fixture.h"

static nvmlDevice_t device(void)
{
        nvmlDevice_t handle;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &handle), NVML_SUCCESS);
        return handle;
}

/* Three encoders and a capture, each in the slot after an empty one. */
static void add_sessions(struct fixture *fixture)
{
        struct state_encoder_session encoder = { .instance = FIXTURE_TRAIN,
                                                 .pid = 777,
                                                 .codec = 2,
                                                 .width = 1920,
                                                 .height = 1080,
                                                 .fps = 30,
                                                 .latency = 2000 };
        const struct state_capture_session capture = { .instance = FIXTURE_INFER,
                                                       .id = 9,
                                                       .pid = 888,
                                                       .display = 1,
                                                       .kind = 4,
                                                       .flags = 9,
                                                       .max_width = 3840,
                                                       .max_height = 2160 };

        for (encoder.id = 1; encoder.id <= 3; encoder.id++) {
                encoder.instance = encoder.id == 3 ? FIXTURE_INFER : FIXTURE_TRAIN;
                encoder.fps = 30 * encoder.id;
                state_write_encoder_session(fixture->state_page, 2 * encoder.id, &encoder);
        }
        state_write_capture_session(fixture->state_page, 1, &capture);
}

static void test_a_vgpu_has_its_own_sessions(void **state)
{
        nvmlEncoderSessionInfo_t sessions[3];
        unsigned int count = 0;

        add_sessions(*state);
        assert_int_equal(nvmlVgpuInstanceGetEncoderSessions(FIXTURE_TRAIN, &count, NULL), 0);
        assert_int_equal(count, 2);
        count = 1;
        assert_int_equal(nvmlVgpuInstanceGetEncoderSessions(FIXTURE_TRAIN, &count, sessions),
                         NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 2);
        count = 3;
        assert_int_equal(nvmlVgpuInstanceGetEncoderSessions(FIXTURE_TRAIN, &count, sessions), 0);
        assert_int_equal(count, 2);
        assert_int_equal(sessions[1].sessionId, 2);
        assert_int_equal(sessions[1].pid, 777);
        assert_int_equal(sessions[1].vgpuInstance, FIXTURE_TRAIN);
        assert_int_equal(sessions[1].codecType, NVML_ENCODER_QUERY_AV1);
        assert_int_equal(sessions[1].vResolution, 1080);
        assert_int_equal(sessions[1].averageFps, 60);
        assert_int_equal(sessions[1].averageLatency, 2000);
}

static void test_the_averages_of_a_vgpu_are_of_its_own(void **state)
{
        unsigned int count = 7, fps = 7, latency = 7;
        nvmlFBCStats_t stats;

        assert_int_equal(nvmlVgpuInstanceGetEncoderStats(FIXTURE_TRAIN, &count, &fps, &latency), 0);
        assert_true(count == 0 && fps == 0 && latency == 0);
        add_sessions(*state);
        assert_int_equal(nvmlVgpuInstanceGetEncoderStats(FIXTURE_TRAIN, &count, &fps, &latency), 0);
        assert_int_equal(count, 2);
        assert_int_equal(fps, 45);
        assert_int_equal(latency, 2000);
        assert_int_equal(nvmlVgpuInstanceGetFBCStats(FIXTURE_TRAIN, &stats), NVML_SUCCESS);
        assert_int_equal(stats.sessionsCount, 0);
        assert_int_equal(nvmlVgpuInstanceGetFBCStats(FIXTURE_INFER, &stats), NVML_SUCCESS);
        assert_int_equal(stats.sessionsCount, 1);
}

static void test_a_device_has_those_of_all_its_vgpus(void **state)
{
        nvmlEncoderSessionInfo_t sessions[3];
        unsigned int count = 3, fps, latency;

        add_sessions(*state);
        assert_int_equal(nvmlDeviceGetEncoderSessions(device(), &count, sessions), NVML_SUCCESS);
        assert_int_equal(count, 3);
        assert_int_equal(sessions[2].vgpuInstance, FIXTURE_INFER);
        assert_int_equal(nvmlDeviceGetEncoderStats(device(), &count, &fps, &latency), 0);
        assert_int_equal(count, 3);
        assert_int_equal(fps, 60);
        assert_int_equal(latency, 2000);
}

static void test_a_capture_may_have_no_frame_yet(void **state)
{
        nvmlFBCSessionInfo_t session;
        unsigned int count = 1;
        nvmlFBCStats_t stats;

        add_sessions(*state);
        assert_int_equal(nvmlVgpuInstanceGetFBCSessions(FIXTURE_INFER, &count, &session), 0);
        assert_int_equal(count, 1);
        assert_int_equal(session.sessionId, 9);
        assert_int_equal(session.displayOrdinal, 1);
        assert_int_equal(session.sessionType, NVML_FBC_SESSION_TYPE_HWENC);
        assert_int_equal(session.sessionFlags, 9);
        assert_int_equal(session.hMaxResolution, 3840);
        assert_int_equal(session.hResolution, 0);
        assert_int_equal(nvmlDeviceGetFBCStats(device(), &stats), NVML_SUCCESS);
        assert_int_equal(stats.sessionsCount, 1);
        assert_int_equal(stats.averageFPS, 0);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_a_vgpu_has_its_own_sessions),
                with_state_page(test_the_averages_of_a_vgpu_are_of_its_own),
                with_state_page(test_a_device_has_those_of_all_its_vgpus),
                with_state_page(test_a_capture_may_have_no_frame_yet),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
