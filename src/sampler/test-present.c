/* SPDX-License-Identifier: Apache-2.0 */
/* What a device cannot tell is not asked for again. An error that may pass is. */
#include <string.h>

#include "base/test.h"
#include "sampler/library.h"
#include "sampler/present.h"
#include "sampler/tell.h"

struct library library;

static struct fixture {
        struct present present;
        nvmlReturn_t answer;
        unsigned int n_asked;
        unsigned int n_told;
        struct {
                enum sampler_message message;
                struct sampler_packet packet;
        } told[8];
        unsigned int n_fine; /* so many are sent, then the manager has hung up */
} fixture;

int __wrap_tell(struct sampler_packet *packet, enum sampler_message message, uint32_t device);
int __wrap_tell(struct sampler_packet *packet, enum sampler_message message, uint32_t device)
{
        assert_int_equal(device, 1);
        if (fixture.n_told == fixture.n_fine)
                return -32;
        fixture.told[fixture.n_told].message = message;
        fixture.told[fixture.n_told++].packet = *packet;
        return 0;
}

static nvmlReturn_t list_processes(nvmlDevice_t device, unsigned int *count,
                                   nvmlProcessInfo_t *processes)
{
        (void)device;
        fixture.n_asked++;
        assert_true(*count >= 2);
        processes[0] = (nvmlProcessInfo_t){ .pid = 7, .usedGpuMemory = 4096 };
        processes[1] = (nvmlProcessInfo_t){ .pid = 8,
                                            .usedGpuMemory =
                                                    (unsigned long long)NVML_VALUE_NOT_AVAILABLE };
        *count = 2;
        return fixture.answer;
}

static nvmlReturn_t list_encoders(nvmlDevice_t device, unsigned int *count,
                                  nvmlEncoderSessionInfo_t *sessions)
{
        (void)device;
        sessions[0] = (nvmlEncoderSessionInfo_t){
                .sessionId = 5, .pid = 9, .hResolution = 1920, .vResolution = 1080, .averageFps = 60
        };
        *count = 1;
        return NVML_SUCCESS;
}

static int set_up(void **state)
{
        (void)state;
        memset(&fixture, 0, sizeof(fixture));
        fixture.n_fine = 8;
        library = (struct library){ .list_processes = list_processes };
        return 0;
}

static int ask(void)
{
        fixture.n_told = 0;
        return present_tell(&fixture.present, NULL, 1);
}

static void test_memory_that_is_not_known_is_not_told(void **state)
{
        (void)state;

        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.n_told, 2);
        assert_int_equal(fixture.told[0].message, SAMPLER_MEMORY);
        assert_int_equal(fixture.told[0].packet.pid, 7);
        assert_int_equal(fixture.told[0].packet.memory, 4096);
        assert_int_equal(fixture.told[1].message, SAMPLER_THAT_IS_ALL);
}

static void test_a_session_is_told_with_what_it_is(void **state)
{
        (void)state;

        library = (struct library){ .list_encoders = list_encoders };
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.n_told, 2);
        assert_int_equal(fixture.told[0].message, SAMPLER_ENCODER);
        assert_int_equal(fixture.told[0].packet.pid, 9);
        assert_int_equal(fixture.told[0].packet.session.id, 5);
        assert_int_equal(fixture.told[0].packet.session.width, 1920);
        assert_int_equal(fixture.told[0].packet.session.height, 1080);
        assert_int_equal(fixture.told[0].packet.session.fps, 60);
}

static void test_what_is_not_supported_is_not_asked_for_again(void **state)
{
        static const nvmlReturn_t answers[] = { NVML_ERROR_NOT_SUPPORTED,
                                                NVML_ERROR_FUNCTION_NOT_FOUND };
        (void)state;

        for (size_t i = 0; i < 2; i++) {
                (void)set_up(NULL);
                fixture.answer = answers[i];
                assert_int_equal(ask(), 0);
                assert_int_equal(ask(), 0);
                assert_int_equal(fixture.n_asked, 1);
                assert_int_equal(fixture.n_told, 1);
                assert_int_equal(fixture.told[0].message, SAMPLER_THAT_IS_ALL);
        }
}

static void test_an_error_that_may_pass_is_asked_about_again(void **state)
{
        (void)state;

        fixture.answer = NVML_ERROR_UNKNOWN;
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.n_told, 1);
        fixture.answer = NVML_SUCCESS;
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.n_asked, 2);
        assert_int_equal(fixture.n_told, 2);
}

static void test_a_manager_that_hung_up_ends_it(void **state)
{
        (void)state;

        library.list_encoders = list_encoders;
        fixture.n_fine = 1;
        assert_int_equal(ask(), -32);
        assert_int_equal(fixture.n_told, 1);
        assert_int_equal(fixture.told[0].message, SAMPLER_MEMORY);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_memory_that_is_not_known_is_not_told, set_up),
                cmocka_unit_test_setup(test_a_session_is_told_with_what_it_is, set_up),
                cmocka_unit_test_setup(test_what_is_not_supported_is_not_asked_for_again, set_up),
                cmocka_unit_test_setup(test_an_error_that_may_pass_is_asked_about_again, set_up),
                cmocka_unit_test_setup(test_a_manager_that_hung_up_ends_it, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
