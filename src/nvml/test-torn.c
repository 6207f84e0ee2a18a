/* SPDX-License-Identifier: Apache-2.0 */
/* A million answers while the manager writes: no answer is made of two states. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/test.h"
#include "nvml/fixture.h"

#define READERS 2
#define READS   500000

static _Atomic bool stop;

/* Each state has memory_total == 2 * memory_used, and the vGPU's name says its use. */
static void *write_states(void *context)
{
        struct fixture *fixture = context;
        struct state_instance instance;
        struct state_device device;

        state_read_device(fixture->state_page, 0, &device);
        state_read_instance(fixture->state_page, 5, &instance);
        for (uint64_t i = 1; !atomic_load(&stop); i++) {
                device.memory_used = i;
                device.memory_total = 2 * i;
                state_write_device(fixture->state_page, 0, &device);
                instance.frame_buffer_used = i % 1000;
                snprintf(instance.uuid, sizeof(instance.uuid), "%016u-%016u", (unsigned)(i % 1000),
                         (unsigned)(i % 1000));
                state_write_instance(fixture->state_page, 5, &instance);
        }
        return NULL;
}

static void *read_states(void *context)
{
        _Atomic unsigned int *torn = context;
        unsigned int a, b;
        nvmlMemory_t memory;
        nvmlDevice_t device;
        char uuid[80];

        nvmlDeviceGetHandleByIndex_v2(0, &device);
        for (int i = 0; i < READS; i++) {
                nvmlDeviceGetMemoryInfo(device, &memory);
                if (memory.total != 2 * memory.used)
                        atomic_fetch_add(torn, 1);
                nvmlVgpuInstanceGetUUID(FIXTURE_TRAIN, uuid, sizeof(uuid));
                if (sscanf(uuid, "%16u-%16u", &a, &b) != 2 || a != b)
                        atomic_fetch_add(torn, 1);
        }
        return NULL;
}

static void test_no_answer_is_torn(void **state)
{
        struct fixture *fixture = *state;
        struct state_instance instance;
        struct state_device device;
        pthread_t writer, reader[READERS];
        _Atomic unsigned int torn = 0;

        state_read_device(fixture->state_page, 0, &device);
        device.memory_total = 2 * device.memory_used;
        state_write_device(fixture->state_page, 0, &device);
        state_read_instance(fixture->state_page, 5, &instance);
        snprintf(instance.uuid, sizeof(instance.uuid), "%016u-%016u", 1u, 1u);
        state_write_instance(fixture->state_page, 5, &instance);

        pthread_create(&writer, NULL, write_states, fixture);
        for (int i = 0; i < READERS; i++)
                pthread_create(&reader[i], NULL, read_states, &torn);
        for (int i = 0; i < READERS; i++)
                pthread_join(reader[i], NULL);
        atomic_store(&stop, true);
        pthread_join(writer, NULL);
        assert_int_equal(torn, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_no_answer_is_torn, fixture_setup,
                                                fixture_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
