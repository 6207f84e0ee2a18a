/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that ask everything at once, come and go, while a manager writes and is replaced. Under
 * ThreadSanitizer this finds what the library shares without saying so.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "abi/nvml-mig.h"
#include "base/test.h"
#include "nvml/fixture.h"

#define READERS 4
#define ROUNDS  300

static _Atomic bool stop;
static _Atomic unsigned int n_wrong; /* an assertion would leave the thread by a jump */

static void expect(bool is_right)
{
        if (!is_right)
                atomic_fetch_add(&n_wrong, 1);
}

static void expect_equal(nvmlReturn_t got, nvmlReturn_t wanted)
{
        expect(got == wanted);
}

/* Written anew, with other values: an instance, a process, samples, accounts, turns. */
static void write_round(struct state_page *state_page, uint32_t i)
{
        struct state_instance instance;
        struct state_process process;
        struct state_sample sample = { .timestamp_us = i,
                                       .instance = FIXTURE_TRAIN,
                                       .gpu = i % 100 };
        const struct state_account account = { .instance = FIXTURE_TRAIN, .pid = i };
        const struct state_turn turn = { .timestamp = i };
        const struct state_scheduler scheduler = { .policy = 1 + i % 3 };

        if (state_read_instance(state_page, 5, &instance)) {
                instance.frame_buffer_used = i;
                state_write_instance(state_page, 5, &instance);
        }
        if (state_read_process(state_page, 7, &process)) {
                process.memory_used = i;
                state_write_process(state_page, 7, &process);
        }
        (void)state_append_sample(state_page, 5, &sample);
        sample.pid = 4242;
        (void)state_append_process_sample(state_page, 7, &sample);
        (void)state_append_account(state_page, 5, &account);
        (void)state_append_turn(state_page, state_slot_of_scheduler(0, 1), &turn);
        state_write_scheduler(state_page, state_slot_of_scheduler(0, 1), &scheduler);
}

/* Each second time the manager is another one, which readers find by themselves. */
static void *write_pages(void *context)
{
        struct fixture *fixture = context;

        for (uint32_t i = 1; !atomic_load(&stop); i++) {
                write_round(fixture->state_page, i);
                if (i % 5000 == 0)
                        fixture_publish(fixture);
        }
        return NULL;
}

static void ask_of_device(nvmlDevice_t device)
{
        nvmlVgpuInstanceUtilizationSample_t samples[4];
        nvmlVgpuProcessUtilizationSample_t processes[4];
        nvmlVgpuSchedulerGetState_t scheduler;
        nvmlVgpuInstance_t instances[4];
        nvmlVgpuSchedulerLog_t log;
        unsigned int count = 4;
        nvmlValueType_t type;
        nvmlMemory_t memory;
        nvmlReturn_t r;

        expect_equal(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
        r = nvmlDeviceGetActiveVgpus(device, &count, instances);
        expect(r == NVML_SUCCESS);
        count = 4;
        r = nvmlDeviceGetVgpuUtilization(device, 0, &type, &count, samples);
        expect(r == NVML_SUCCESS);
        count = 4;
        r = nvmlDeviceGetVgpuProcessUtilization(device, 0, &count, processes);
        expect(r == NVML_SUCCESS || r == NVML_ERROR_NOT_FOUND);
        expect_equal(nvmlDeviceGetVgpuSchedulerState(device, &scheduler), NVML_SUCCESS);
        expect_equal(nvmlDeviceGetVgpuSchedulerLog(device, &log), NVML_SUCCESS);
        expect(log.entriesCount <= 200);
}

static void ask_of_vgpu(void)
{
        unsigned int pids[4000], count = 4000;
        unsigned char blob[1024];
        nvmlVgpuLicenseInfo_t licence;
        nvmlAccountingStats_t stats;
        nvmlVgpuTypeId_t type;
        char text[80];
        nvmlReturn_t r;

        expect_equal(nvmlVgpuInstanceGetUUID(FIXTURE_TRAIN, text, sizeof(text)), NVML_SUCCESS);
        expect_equal(nvmlVgpuInstanceGetType(FIXTURE_TRAIN, &type), NVML_SUCCESS);
        expect_equal(nvmlVgpuInstanceGetLicenseInfo_v2(FIXTURE_TRAIN, &licence), NVML_SUCCESS);
        expect_equal(nvmlVgpuInstanceGetAccountingPids(FIXTURE_TRAIN, &count, pids), 0);
        r = nvmlVgpuInstanceGetAccountingStats(FIXTURE_TRAIN, 4242, &stats);
        expect(r == NVML_SUCCESS || r == NVML_ERROR_NOT_FOUND); /* pushed out of the ring */
        count = sizeof(blob);
        expect_equal(nvmlVgpuInstanceGetMetadata(FIXTURE_TRAIN, (void *)blob, &count), 0);
}

static void *read_pages(void *context)
{
        nvmlDevice_t device;

        (void)context;
        for (int i = 0; i < ROUNDS; i++) {
                expect_equal(nvmlInit_v2(), NVML_SUCCESS);
                expect_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
                ask_of_device(device);
                ask_of_vgpu();
                expect_equal(nvmlShutdown(), NVML_SUCCESS);
        }
        return NULL;
}

static void test_readers_share_nothing_but_the_state_page(void **state)
{
        pthread_t writer, reader[READERS];

        assert_int_equal(pthread_create(&writer, NULL, write_pages, *state), 0);
        for (int i = 0; i < READERS; i++)
                assert_int_equal(pthread_create(&reader[i], NULL, read_pages, NULL), 0);
        for (int i = 0; i < READERS; i++)
                pthread_join(reader[i], NULL);
        atomic_store(&stop, true);
        pthread_join(writer, NULL);
        assert_int_equal(n_wrong, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_readers_share_nothing_but_the_state_page,
                                                fixture_setup, fixture_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
