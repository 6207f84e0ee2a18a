/* SPDX-License-Identifier: Apache-2.0 */
/* What a state page says, also one that says nonsense. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "exporter/facts.h"
#include "state/state-page.h"

static char folder[] = "/tmp/openvgpu-test-XXXXXX";
static char path[64];

struct fixture {
        struct state_page *state_page;
        struct facts_reader *reader;
};

static struct state_manager manager = { .started_ns = 5000000000,
                                        .pool = { .limit = 7, .used = 3 },
                                        .n_buckets = 2,
                                        .n_byte_buckets = UINT32_MAX,
                                        .bucket = { .5, 1 },
                                        .version = "1.2.3" };

static void beat(struct state_page *state_page)
{
        atomic_store(&state_page->heartbeat_ns, clock_now(CLOCK_MONOTONIC));
}

static void write_page(struct state_page *state_page)
{
        const struct state_device device = { .uuid = "GPU-1", .name = "H200", .memory_total = 9 };
        const struct state_device_use use = { .memory_used = 4, .percent = { .gpu = 50 } };
        const struct state_operation operation = {
                .n = 2, .ns = 1500000000, .kind = "suspend", .result = "done"
        };
        struct state_vgpu vgpu = { .id = 11, .state = STATE_SUSPENDED, .name = "train" };

        state_write_device(state_page, 0, &device);
        state_write_device_use(state_page, 0, &use);
        state_write_operation(state_page, 3, &operation);
        state_write_vgpu(state_page, 5, &vgpu);
        vgpu = (struct state_vgpu){ .id = 12,
                                    .state = 77,
                                    .idle_since_ns = UINT64_MAX,
                                    .present_since_ns = 1,
                                    .gpu_ns = 2500000000 };
        memset(vgpu.name, 'x', sizeof(vgpu.name));
        state_write_vgpu(state_page, 9, &vgpu);
        state_write_manager(state_page, 0, &manager);
}

static void write_part(struct state_page *state_page, uint32_t slot, uint32_t number)
{
        const struct state_vgpu_part part = {
                .vgpu = 9, .vgpu_id = 12, .number = number, .device = number, .entitled = 25
        };

        state_write_vgpu_part(state_page, slot, &part);
}

static void write_process(struct state_page *state_page, uint32_t slot, uint32_t vgpu,
                          uint32_t vgpu_id)
{
        const struct state_process process = { .pid = 100 + slot, .name = "train.py" };
        const struct state_process_use use = {
                .vgpu = vgpu, .vgpu_id = vgpu_id, .gpu_ns = 500000000, .memory_used = 8
        };

        state_write_process(state_page, slot, &process);
        state_write_process_use(state_page, slot, &use);
}

static int set_up(void **state)
{
        static struct fixture fixture;

        assert_non_null(mkdtemp(folder));
        setenv("OPENVGPU_RUN", folder, 1);
        snprintf(path, sizeof(path), "%s/state-page", folder);
        assert_int_equal(state_create(&fixture.state_page, path, NULL), 0);
        assert_int_equal(facts_reader_new(&fixture.reader), 0);
        *state = &fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        fixture->reader = facts_reader_free(fixture->reader);
        state_close(fixture->state_page);
        unlink(path);
        assert_int_equal(rmdir(folder), 0);
        strcpy(folder + strlen(folder) - 6, "XXXXXX");
        return 0;
}

static void test_what_it_says(void **state)
{
        struct fixture *fixture = *state;
        const struct vgpu_usage_instance *const *vgpus;
        struct facts *facts = NULL;

        write_page(fixture->state_page);
        write_part(fixture->state_page, 9, 0);
        write_part(fixture->state_page, 1, 2); /* in a slot that was free */
        write_part(fixture->state_page, 10, 1);
        write_process(fixture->state_page, 1, 9, 12);
        write_process(fixture->state_page, 2, 5, 11);
        write_process(fixture->state_page, 3, 9, 12);
        beat(fixture->state_page);
        assert_int_equal(facts_read(fixture->reader, true, &facts), 0);
        assert_string_equal(facts->manager.version, "1.2.3");
        assert_int_equal(facts->manager.pool->limit, 7);
        assert_float_equal(facts->statistics.started, 5, 0);
        assert_int_equal(facts->statistics.n_bounds, 2);
        assert_int_equal(facts->statistics.n_operations, 1);
        assert_string_equal(facts->statistics.operations[0]->operation, "suspend");
        assert_float_equal(facts->statistics.operations[0]->seconds, 1.5, 0);
        assert_int_equal(facts->snapshot.n_devices, 1);
        assert_string_equal(facts->snapshot.devices[0]->uuid, "GPU-1");
        assert_int_equal(facts->snapshot.devices[0]->percents->gpu, 50);
        assert_int_equal(facts->snapshot.n_instances, 2);
        vgpus = facts->snapshot.instances;
        assert_string_equal(vgpus[0]->name, "train");
        assert_int_equal(vgpus[0]->state, VGPU_INSTANCE_SUSPENDED);
        assert_true(vgpus[0]->idle < 0);
        assert_int_equal(vgpus[0]->n_processes, 1);
        assert_int_equal(vgpus[0]->processes[0]->pid, 102);
        assert_float_equal(vgpus[1]->gpu_seconds_total, 2.5, 0);
        assert_true(vgpus[1]->resident_seconds > 0);
        assert_int_equal(vgpus[0]->n_parts, 0);
        assert_int_equal(vgpus[1]->n_parts, 3);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(vgpus[1]->parts[i]->device, i);
        assert_int_equal(vgpus[1]->n_processes, 2);
        assert_int_equal(vgpus[1]->processes[1]->pid, 103);
        assert_float_equal(vgpus[1]->processes[1]->seconds->gpu, .5, 0);
        assert_int_equal(vgpus[1]->processes[1]->memory_used, 8);
        facts = facts_free(facts);
}

/* A vGPU that is gone leaves its slot to the next one. */
static void test_vgpus_are_in_the_order_of_their_numbers(void **state)
{
        struct fixture *fixture = *state;
        const struct state_vgpu last = { .id = 13, .name = "last" };
        struct facts *facts = NULL;

        write_page(fixture->state_page);
        state_write_vgpu(fixture->state_page, 2, &last);
        write_process(fixture->state_page, 1, 2, 13);
        beat(fixture->state_page);
        assert_int_equal(facts_read(fixture->reader, true, &facts), 0);
        assert_int_equal(facts->snapshot.n_instances, 3);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(facts->snapshot.instances[i]->id, 11 + i);
        assert_int_equal(facts->snapshot.instances[2]->n_processes, 1);
        facts = facts_free(facts);
}

static void test_nonsense_is_bounded(void **state)
{
        struct fixture *fixture = *state;
        struct facts *facts = NULL;

        write_page(fixture->state_page);
        write_process(fixture->state_page, 1, 9, 13); /* of the vGPU that had the slot before */
        write_process(fixture->state_page, 2, 7, 0);  /* nobody has the slot */
        write_process(fixture->state_page, 3, UINT32_MAX, 0); /* there is none */
        beat(fixture->state_page);
        assert_int_equal(facts_read(fixture->reader, true, &facts), 0);
        assert_int_equal(facts->statistics.n_byte_bounds, STATE_BUCKETS_MAX);
        assert_int_equal(facts->snapshot.instances[0]->n_processes, 0);
        assert_int_equal(facts->snapshot.instances[1]->n_processes, 0);
        assert_int_equal(facts->snapshot.instances[1]->state, VGPU_INSTANCE_FAILED);
        assert_float_equal(facts->snapshot.instances[1]->idle, 0, 0);
        assert_int_equal(strlen(facts->snapshot.instances[1]->name), STATE_NAME_MAX - 1);
        facts = facts_free(facts);
}

static void test_who_says_nothing_is_not_there(void **state)
{
        struct fixture *fixture = *state;
        struct state_page *next;
        struct facts *facts = NULL;

        assert_int_equal(facts_read(fixture->reader, false, &facts), -ENOENT); /* it begins */
        beat(fixture->state_page);
        assert_int_equal(facts_read(fixture->reader, false, &facts), -ENOENT); /* it recovers */
        write_page(fixture->state_page);
        assert_int_equal(facts_read(fixture->reader, false, &facts), 0);
        facts = facts_free(facts);
        atomic_store(&fixture->state_page->heartbeat_ns,
                     clock_now(CLOCK_MONOTONIC) - 2 * STATE_STALE_NS);
        assert_int_equal(facts_read(fixture->reader, false, &facts), -ENOENT); /* it hangs */
        assert_int_equal(state_create(&next, path, NULL), 0);
        state_close(fixture->state_page);
        fixture->state_page = next;
        write_page(next);
        beat(next);
        assert_int_equal(facts_read(fixture->reader, false, &facts), 0); /* another one */
        facts = facts_free(facts);
        next->version++;
        atomic_store(&next->closed, 1);
        assert_int_equal(facts_read(fixture->reader, false, &facts), -EPROTONOSUPPORT);
}

static void test_the_turns_of_a_device(void **state)
{
        struct fixture *fixture = *state;
        uint32_t slot = state_slot_of_scheduler(0, STATE_ENGINE_GRAPHICS);
        struct vgpu_time_sharing_log *log;
        struct facts *facts = NULL;

        assert_null(facts_read_turns(fixture->reader, 0, 0)); /* nothing has been read yet */
        for (uint32_t i = 0; i < STATE_SCHEDULER_LOG + 20; i++) {
                const struct state_turn turn = { .timestamp = i,
                                                 .run_list = 3,
                                                 .run_total = 2 * i };

                state_append_turn(fixture->state_page, slot, &turn);
        }
        write_page(fixture->state_page);
        beat(fixture->state_page);
        assert_int_equal(facts_read(fixture->reader, false, &facts), 0);
        facts = facts_free(facts);
        log = facts_read_turns(fixture->reader, 0, 0);
        assert_int_equal(log->next, STATE_SCHEDULER_LOG + 20);
        assert_int_equal(log->n_entries, STATE_SCHEDULER_LOG);
        assert_int_equal(log->entries[0]->timestamp_ns, 20);
        free(log);
        log = facts_read_turns(fixture->reader, 0, STATE_SCHEDULER_LOG + 19);
        assert_int_equal(log->n_entries, 1);
        assert_int_equal(log->entries[0]->run_total_ns, 2 * (STATE_SCHEDULER_LOG + 19));
        free(log);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_what_it_says, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_vgpus_are_in_the_order_of_their_numbers,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nonsense_is_bounded, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_who_says_nothing_is_not_there, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_the_turns_of_a_device, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
