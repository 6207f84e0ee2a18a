/* SPDX-License-Identifier: Apache-2.0 */
/* Percent times period adds up to busy time, whatever the library tells again, late or not at all. */
#include <string.h>

#include "base/test.h"
#include "sampler/library.h"
#include "sampler/tell.h"
#include "sampler/use.h"

#define DEVICE 3
#define SECOND 1000000ull

struct library library;

static struct fixture {
        struct use use;
        nvmlReturn_t answer;
        unsigned int n; /* samples that the library has */
        nvmlProcessUtilizationInfo_v1_t samples[4];
        unsigned long long asked_since;
        unsigned int n_told;
        struct {
                enum sampler_message message;
                struct sampler_packet packet;
        } told[4];
        int result; /* of telling */
} fixture;

int __wrap_tell(struct sampler_packet *packet, enum sampler_message message, uint32_t device);
int __wrap_tell(struct sampler_packet *packet, enum sampler_message message, uint32_t device)
{
        assert_int_equal(device, DEVICE);
        assert_true(fixture.n_told < 4);
        fixture.told[fixture.n_told].message = message;
        fixture.told[fixture.n_told++].packet = *packet;
        return fixture.result;
}

static nvmlReturn_t sample(nvmlDevice_t device, nvmlProcessesUtilizationInfo_v1_t *info)
{
        (void)device;
        fixture.asked_since = info->lastSeenTimeStamp;
        memcpy(info->procUtilArray, fixture.samples, sizeof(fixture.samples));
        info->processSamplesCount = fixture.n;
        return fixture.answer;
}

static nvmlReturn_t sample_before_550(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                      unsigned int *count, unsigned long long last_seen_us)
{
        (void)device;
        fixture.asked_since = last_seen_us;
        *count = fixture.n;
        for (unsigned int i = 0; i < fixture.n; i++)
                samples[i] = (nvmlProcessUtilizationSample_t){
                        .pid = fixture.samples[i].pid,
                        .timeStamp = fixture.samples[i].timeStamp,
                        .smUtil = fixture.samples[i].smUtil,
                };
        return fixture.answer;
}

static int set_up(void **state)
{
        (void)state;
        memset(&fixture, 0, sizeof(fixture));
        fixture.use.seen_us = 10 * SECOND;
        library = (struct library){ .sample = sample };
        return 0;
}

static void set_sample(unsigned int i, unsigned int pid, unsigned long long at_us,
                       unsigned int percent)
{
        fixture.samples[i] = (nvmlProcessUtilizationInfo_v1_t){ .pid = pid,
                                                                .timeStamp = at_us,
                                                                .smUtil = percent };
        fixture.n = i + 1;
}

static int ask(void)
{
        fixture.n_told = 0;
        return use_tell(&fixture.use, NULL, DEVICE);
}

static void check_told(unsigned int i, uint32_t pid, uint32_t percent, uint64_t period_us)
{
        assert_true(i < fixture.n_told);
        assert_int_equal(fixture.told[i].message, SAMPLER_USE);
        assert_int_equal(fixture.told[i].packet.pid, pid);
        assert_int_equal(fixture.told[i].packet.use.percent[0], percent);
        assert_int_equal(fixture.told[i].packet.use.period_us, period_us);
}

static void test_each_process_has_a_period_of_its_own(void **state)
{
        (void)state;

        set_sample(0, 7, 11 * SECOND, 50);
        set_sample(1, 8, 10 * SECOND + 700000, 20);
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.n_told, 2);
        check_told(0, 7, 50, SECOND);
        check_told(1, 8, 20, 700000);

        /* The question goes back to the process that lags. What was told already is not told again. */
        set_sample(0, 7, 11 * SECOND, 50);
        set_sample(1, 8, 11 * SECOND + 700000, 30);
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.asked_since, 10 * SECOND + 700000);
        assert_int_equal(fixture.n_told, 1);
        check_told(0, 8, 30, SECOND);
}

static void test_who_is_gone_for_long_holds_nobody_up(void **state)
{
        (void)state;

        set_sample(0, 7, 11 * SECOND, 50);
        set_sample(1, 8, 14 * SECOND, 50);
        assert_int_equal(ask(), 0);
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.asked_since, 14 * SECOND);
}

static void test_a_long_silence_is_no_use(void **state)
{
        (void)state;

        set_sample(0, 7, 100 * SECOND, 50);
        assert_int_equal(ask(), 0);
        check_told(0, 7, 50, 5 * SECOND);
}

static void test_nobody_s_samples_are_not_told(void **state)
{
        (void)state;

        set_sample(0, 0, 11 * SECOND, 50);
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.n_told, 0);

        fixture.answer = NVML_ERROR_NOT_FOUND; /* nothing is new */
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.n_told, 0);
}

static void test_an_error_is_told_once_until_there_are_samples_again(void **state)
{
        (void)state;

        fixture.answer = NVML_ERROR_GPU_IS_LOST;
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.told[0].message, SAMPLER_LOST);
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.n_told, 0);

        fixture.answer = NVML_SUCCESS;
        assert_int_equal(ask(), 0);
        fixture.answer = NVML_ERROR_UNKNOWN;
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.n_told, 1);
        assert_int_equal(fixture.told[0].message, SAMPLER_ERROR);
        assert_int_equal(fixture.told[0].packet.error, NVML_ERROR_UNKNOWN);
}

static void test_an_older_driver_is_asked_the_older_way(void **state)
{
        (void)state;

        library = (struct library){ .sample_before_550 = sample_before_550 };
        set_sample(0, 7, 11 * SECOND, 40);
        assert_int_equal(ask(), 0);
        assert_int_equal(fixture.asked_since, 10 * SECOND);
        check_told(0, 7, 40, SECOND);
}

static void test_a_manager_that_hung_up_ends_it(void **state)
{
        (void)state;

        fixture.result = -32;
        set_sample(0, 7, 11 * SECOND, 40);
        set_sample(1, 8, 11 * SECOND, 40);
        assert_int_equal(ask(), -32);
        assert_int_equal(fixture.n_told, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_each_process_has_a_period_of_its_own, set_up),
                cmocka_unit_test_setup(test_who_is_gone_for_long_holds_nobody_up, set_up),
                cmocka_unit_test_setup(test_a_long_silence_is_no_use, set_up),
                cmocka_unit_test_setup(test_nobody_s_samples_are_not_told, set_up),
                cmocka_unit_test_setup(test_an_error_is_told_once_until_there_are_samples_again,
                                       set_up),
                cmocka_unit_test_setup(test_an_older_driver_is_asked_the_older_way, set_up),
                cmocka_unit_test_setup(test_a_manager_that_hung_up_ends_it, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
