/* SPDX-License-Identifier: Apache-2.0 */
/* The mover and its client: slabs, contexts and jobs. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "fixture.h"

static const uint64_t sizes[] = { 2 * MIB, 6 * MIB, 2 * MIB, 4 * MIB, 8 * MIB };
#define N_MEMORIES (sizeof(sizes) / sizeof(sizes[0]))

static void on_info(struct mover *mover, int error, const struct mover_info *info, void *userdata)
{
        const struct mover_done done = { .error = error,
                                         .bytes = info ? info->memory_total : 0,
                                         .copy_ns = info ? info->memory_free : 0,
                                         .process_state = info ? info->has_context : 0 };

        on_done(mover, &done, userdata);
}

static void test_a_probe_tells_all_devices_apart(void **state)
{
        struct fixture *fixture = *state;
        struct mover_device *a = &fixture->devices[0], *b = &fixture->devices[1];

        assert_string_not_equal(a->uuid, b->uuid);
        assert_string_not_equal(a->pci_bus_id, b->pci_bus_id);
        assert_int_equal(strncmp(a->uuid, "GPU-", 4), 0);
        assert_true(a->memory_total > 0 && a->driver_version >= 12000 && a->name[0]);
}

static void test_a_probe_without_a_driver_is_an_error(void **state)
{
        struct mover_device *devices = NULL;
        size_t n = 0;
        (void)state;

        assert_int_equal(mover_probe(&devices, &n, getenv("TEST_MOVER"), "/nowhere/libcuda.so.1"),
                         -ENODEV);
        assert_int_equal(mover_probe(&devices, &n, "/nowhere/vgpu-mover", NULL), -ENOENT);
        assert_null(devices);
}

static void test_the_context_comes_when_it_is_wanted(void **state)
{
        struct fixture *fixture = *state;

        start_mover(fixture, 0);
        assert_int_equal(perform(fixture, mover_info(fixture->mover, on_info, fixture)), 0);
        assert_true(fixture->done.bytes == fixture->devices[0].memory_total);
        assert_int_equal(fixture->done.process_state, 0);
        assert_true(fixture->done.copy_ns == 0);

        assert_int_equal(perform(fixture, mover_context(fixture->mover, on_done, fixture)), 0);
        assert_int_equal(perform(fixture, mover_info(fixture->mover, on_info, fixture)), 0);
        assert_int_equal(fixture->done.process_state, 1);
        assert_true(fixture->done.copy_ns > 0);
}

static void test_a_slab_keeps_its_data_until_it_is_zeroed(void **state)
{
        struct fixture *fixture = *state;
        unsigned char *bytes;

        start_mover(fixture, 0);
        slabs_add(fixture, 1);
        assert_int_equal(perform(fixture, mover_slab_remove(fixture->mover, 0, on_done, fixture)),
                         0);
        bytes = slab_map(fixture, 0);
        memset(bytes, 7, SLAB_SIZE);
        assert_int_equal(perform(fixture, mover_slab_add(fixture->mover, 0, fixture->slabs[0],
                                                         SLAB_SIZE, on_done, fixture)),
                         0);
        for (size_t i = 0; i < SLAB_SIZE; i++)
                assert_true(bytes[i] == 7);

        assert_int_equal(perform(fixture, mover_slab_zero(fixture->mover, 0, on_done, fixture)), 0);
        for (size_t i = 0; i < SLAB_SIZE; i++)
                assert_true(bytes[i] == 0);
        munmap(bytes, SLAB_SIZE);
}

static void test_bad_slab_requests_are_refused(void **state)
{
        struct fixture *fixture = *state;

        start_mover(fixture, 0);
        slabs_add(fixture, 1);
        assert_int_equal(perform(fixture, mover_slab_add(fixture->mover, 0, fixture->slabs[0],
                                                         SLAB_SIZE, on_done, fixture)),
                         -EEXIST);
        assert_int_equal(perform(fixture, mover_slab_add(fixture->mover, 1, fixture->slabs[0], 0,
                                                         on_done, fixture)),
                         -EINVAL);
        assert_int_equal(mover_slab_add(fixture->mover, 1, -1, SLAB_SIZE, on_done, fixture),
                         -EBADF);
        assert_int_equal(perform(fixture, mover_slab_zero(fixture->mover, 1, on_done, fixture)),
                         -ENOENT);
        assert_int_equal(perform(fixture, mover_slab_remove(fixture->mover, 1, on_done, fixture)),
                         -ENOENT);
}

/* Jobs. */

struct data {
        struct memories memories;
        struct mover_segment segments[3 * MEMORIES_MAX];
        struct mover_job out, in;
};

/* Memory of the guest on device 0, and the jobs that take it out and in. */
static void data_init(struct data *data, struct fixture *fixture, uint32_t seed)
{
        const struct mover_job job = { .kind = MOVER_OUT,
                                       .n_memories = N_MEMORIES,
                                       .segments = data->segments,
                                       .progress = on_progress,
                                       .userdata = fixture };

        memories_create(&data->memories, 0, sizes, N_MEMORIES);
        memories_fill(&data->memories, seed);
        data->out = data->in = job;
        data->out.n_segments = data->in.n_segments = layout(data->segments, &data->memories);
        data->in.kind = MOVER_IN;
}

/* Out, and the guest's memory is gone. */
static void evict(struct fixture *fixture, struct data *data)
{
        assert_int_equal(move(fixture, &data->out, &data->memories, false, 0), 0);
        assert_true(fixture->done.bytes == data->memories.total);
        assert_true(fixture->done.copy_ns > 0 && fixture->done.prepare_ns > 0);
        assert_true(fixture->bytes_done == data->memories.total);
        memories_free(&data->memories);
}

static void test_what_is_copied_out_comes_back_unchanged(void **state)
{
        static const struct {
                bool stage;
                uint64_t limit;
        } ways[] = { { false, 0 },      { true, 0 },        { true, 1 },
                     { true, 7 * MIB }, { true, 22 * MIB }, { true, GIB } };
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        slabs_add(fixture, 4);
        for (uint32_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
                data_init(&data, fixture, i);
                evict(fixture, &data);
                memories_create(&data.memories, 0, sizes, N_MEMORIES);
                fixture->bytes_done = 0;
                assert_int_equal(
                        move(fixture, &data.in, &data.memories, ways[i].stage, ways[i].limit), 0);
                assert_true(fixture->done.bytes == data.memories.total);
                assert_true(fixture->bytes_done == data.memories.total);
                memories_assert(&data.memories, i);
                memories_free(&data.memories);
        }
}

static void test_staging_goes_on_while_the_target_is_not_there(void **state)
{
        struct fixture *fixture = *state;
        struct data data;
        uint32_t id;

        start_mover(fixture, 0);
        slabs_add(fixture, 4);
        data_init(&data, fixture, 5);
        evict(fixture, &data);

        fixture->bytes_done = 0;
        assert_int_equal(mover_job_begin(fixture->mover, &id, &data.in), 0);
        assert_int_equal(mover_job_stage(fixture->mover, id, GIB), 0);
        while (fixture->bytes_done < sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4])
                assert_true(sd_event_run(fixture->event, TIMEOUT_US) > 0);

        memories_create(&data.memories, 0, sizes, N_MEMORIES);
        assert_int_equal(perform(fixture, mover_job_run(fixture->mover, id, data.memories.sizes,
                                                        data.memories.fds, on_done, fixture)),
                         0);
        memories_assert(&data.memories, 5);
        assert_int_equal(perform(fixture, mover_job_end(fixture->mover, id, on_done, fixture)), 0);
        memories_free(&data.memories);
}

static void test_memory_moves_to_another_device(void **state)
{
        static const uint64_t limits[] = { 0, 7 * MIB, GIB };
        struct fixture *fixture = *state;
        struct memories from, to;

        start_mover(fixture, 1);
        for (uint32_t i = 0; i < 4; i++) {
                memories_create(&from, 0, sizes, N_MEMORIES);
                memories_fill(&from, 100 + i);
                memories_create(&to, 1, sizes, N_MEMORIES);

                const struct mover_job job = { .kind = MOVER_PEER,
                                               .n_memories = N_MEMORIES,
                                               .source_uuid = fixture->devices[0].uuid,
                                               .source_sizes = from.sizes,
                                               .source_fds = from.fds,
                                               .progress = on_progress,
                                               .userdata = fixture };

                assert_int_equal(move(fixture, &job, &to, i > 0, i > 0 ? limits[i - 1] : 0), 0);
                assert_true(fixture->done.bytes == from.total);
                memories_assert(&to, 100 + i);
                memories_assert(&from, 100 + i); /* what it was given to read is untouched */
                memories_free(&from);
                memories_free(&to);
        }
}

static void test_memory_moves_within_a_device(void **state)
{
        struct fixture *fixture = *state;
        struct memories from, to;

        start_mover(fixture, 0);
        memories_create(&from, 0, sizes, N_MEMORIES);
        memories_fill(&from, 9);
        memories_create(&to, 0, sizes, N_MEMORIES);

        const struct mover_job job = { .kind = MOVER_PEER,
                                       .n_memories = N_MEMORIES,
                                       .source_uuid = fixture->devices[0].uuid,
                                       .source_sizes = from.sizes,
                                       .source_fds = from.fds };

        assert_int_equal(move(fixture, &job, &to, true, GIB), 0);
        memories_assert(&to, 9);
        memories_free(&from);
        memories_free(&to);
}

static void test_a_job_without_memory_is_a_job(void **state)
{
        struct fixture *fixture = *state;
        const struct mover_job job = { .kind = MOVER_OUT };
        const struct memories none = { 0 };

        start_mover(fixture, 0);
        assert_int_equal(move(fixture, &job, &none, false, 0), 0);
        assert_true(fixture->done.bytes == 0);
}

/*
 * More messages than the socket takes at once, and many jobs at the same time: each copies the same
 * memory, a little of it for each of its many entries, to a region of its own.
 */
static void test_many_jobs_at_once(void **state)
{
        enum { N_JOBS = 12, N_TINY = 512, TINY = 1024, REGION = N_TINY * TINY };
        static struct mover_segment segments[N_JOBS][N_TINY];
        static unsigned char expected[REGION];
        struct fixture *fixture = *state;
        uint32_t ids[N_JOBS];
        uint64_t size = 2 * MIB;
        uint64_t tiny_sizes[N_TINY];
        int tiny_fds[N_TINY];
        struct memories memories;
        unsigned char *bytes;

        start_mover(fixture, 0);
        slabs_add(fixture, 1);
        memories_create(&memories, 0, &size, 1);
        memories_fill(&memories, 1);
        assert_int_equal(guest.cuMemcpyDtoH_v2(expected, memories.base, REGION), 0);
        for (uint32_t i = 0; i < N_TINY; i++) {
                tiny_sizes[i] = size;
                tiny_fds[i] = memories.fds[0];
                for (uint32_t k = 0; k < N_JOBS; k++)
                        segments[k][i] =
                                (struct mover_segment){ .memory = i,
                                                        .memory_offset = i * TINY,
                                                        .slab_offset = k * REGION + i * TINY,
                                                        .length = TINY };
        }

        fixture->n_done = 0;
        for (size_t i = 0; i < N_JOBS; i++) {
                const struct mover_job job = { .kind = MOVER_OUT,
                                               .n_memories = N_TINY,
                                               .segments = segments[i],
                                               .n_segments = N_TINY };

                assert_int_equal(mover_job_begin(fixture->mover, &ids[i], &job), 0);
                assert_int_equal(mover_job_run(fixture->mover, ids[i], tiny_sizes, tiny_fds,
                                               on_done, fixture),
                                 0);
        }
        for (unsigned int i = 0; i < N_JOBS; i++) {
                await_done(fixture, i + 1);
                assert_int_equal(fixture->done.error, 0);
                assert_true(fixture->done.bytes == REGION);
        }
        for (size_t i = 0; i < N_JOBS; i++)
                assert_int_equal(
                        perform(fixture, mover_job_end(fixture->mover, ids[i], on_done, fixture)),
                        0);

        bytes = slab_map(fixture, 0);
        for (size_t i = 0; i < N_JOBS; i++)
                assert_int_equal(memcmp(bytes + i * REGION, expected, REGION), 0);
        munmap(bytes, SLAB_SIZE);
        memories_free(&memories);
}

static void test_jobs_that_make_no_sense_are_refused_and_harm_nobody(void **state)
{
        struct fixture *fixture = *state;
        struct data data;
        struct mover_segment bad[] = {
                { .memory = 9, .length = 4096 },
                { .slab = 9, .length = 4096 },
                { .memory_offset = 2 * MIB, .length = 1 },
                { .memory_offset = UINT64_MAX, .length = 4096 },
                { .slab_offset = SLAB_SIZE - 1, .length = 2 },
                { .slab_offset = UINT64_MAX, .length = 2 },
                { .length = 2 * MIB + 1 },
                { .length = 0 },
        };

        start_mover(fixture, 0);
        slabs_add(fixture, 4);
        data_init(&data, fixture, 3);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct mover_job job = data.out;

                job.segments = &bad[i];
                job.n_segments = 1;
                assert_int_equal(move(fixture, &job, &data.memories, false, 0),
                                 i == 1 ? -ENOENT : -EINVAL);
                job.kind = MOVER_IN;
                assert_int_equal(move(fixture, &job, &data.memories, true, GIB),
                                 i == 1 ? -ENOENT : -EINVAL);
        }

        const struct mover_job nowhere = { .kind = MOVER_PEER,
                                           .n_memories = N_MEMORIES,
                                           .source_uuid =
                                                   "GPU-00000000-0000-0000-0000-000000000000",
                                           .source_sizes = data.memories.sizes,
                                           .source_fds = data.memories.fds };
        assert_int_equal(move(fixture, &nowhere, &data.memories, false, 0), -ENODEV);

        evict(fixture, &data);
}

static void test_the_client_refuses_jobs_that_are_not_whole(void **state)
{
        struct fixture *fixture = *state;
        const uint64_t size = 2 * MIB;
        const int fd = 0;
        const struct mover_job bad[] = {
                { .kind = 0 },
                { .kind = MOVER_PEER, .n_memories = 1 },
                { .kind = MOVER_PEER,
                  .n_memories = 1,
                  .source_uuid = "GPU-00000000-0000-0000-0000-0000000000000000000000000",
                  .source_sizes = &size,
                  .source_fds = &fd },
                { .kind = MOVER_OUT, .n_memories = 1, .source_fds = &fd },
        };
        uint32_t id = 0;

        start_mover(fixture, 0);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(mover_job_begin(fixture->mover, &id, &bad[i]), -EINVAL);
        assert_int_equal(mover_job_stage(fixture->mover, 1, GIB), -EINVAL);
        assert_int_equal(mover_job_run(fixture->mover, 1, &size, &fd, on_done, fixture), -EINVAL);
        assert_int_equal(mover_job_end(fixture->mover, 1, on_done, fixture), -EINVAL);
}

static void test_a_job_can_be_ended_in_any_state(void **state)
{
        struct fixture *fixture = *state;
        struct data data;
        uint32_t id;

        start_mover(fixture, 0);
        slabs_add(fixture, 4);
        data_init(&data, fixture, 4);
        evict(fixture, &data);

        assert_int_equal(mover_job_begin(fixture->mover, &id, &data.in), 0);
        assert_int_equal(perform(fixture, mover_job_end(fixture->mover, id, on_done, fixture)), 0);

        assert_int_equal(mover_job_begin(fixture->mover, &id, &data.in), 0);
        assert_int_equal(mover_job_stage(fixture->mover, id, GIB), 0);
        assert_int_equal(perform(fixture, mover_job_end(fixture->mover, id, on_done, fixture)), 0);

        memories_create(&data.memories, 0, sizes, N_MEMORIES);
        assert_int_equal(mover_job_begin(fixture->mover, &id, &data.in), 0);
        assert_int_equal(mover_job_stage(fixture->mover, id, GIB), 0);
        fixture->n_done = 0;
        assert_int_equal(mover_job_run(fixture->mover, id, data.memories.sizes, data.memories.fds,
                                       on_done, fixture),
                         0);
        assert_int_equal(mover_job_end(fixture->mover, id, on_done, fixture), 0);
        await_done(fixture, 2);
        memories_free(&data.memories);
}

/* A callback may do anything, also free the mover. */
static void free_mover(struct mover *mover, const struct mover_done *done, void *userdata)
{
        struct fixture *fixture = userdata;

        on_done(mover, done, userdata);
        fixture->mover = mover_free(fixture->mover);
}

static void test_a_callback_may_free_the_mover_and_nothing_completes_then(void **state)
{
        struct fixture *fixture = *state;

        start_mover(fixture, 0);
        assert_int_equal(mover_context(fixture->mover, free_mover, fixture), 0);
        assert_int_equal(mover_context(fixture->mover, on_done, fixture), 0);
        assert_int_equal(mover_context(fixture->mover, on_done, fixture), 0);
        await_done(fixture, 1);
        while (sd_event_run(fixture->event, 500000) > 0) /* the end of the process */
                ;
        assert_int_equal(fixture->n_done, 1);
        assert_false(fixture->is_lost);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
        static const struct CMUnitTest tests[] = {
                TEST(test_a_probe_tells_all_devices_apart),
                TEST(test_a_probe_without_a_driver_is_an_error),
                TEST(test_the_context_comes_when_it_is_wanted),
                TEST(test_a_slab_keeps_its_data_until_it_is_zeroed),
                TEST(test_bad_slab_requests_are_refused),
                TEST(test_what_is_copied_out_comes_back_unchanged),
                TEST(test_staging_goes_on_while_the_target_is_not_there),
                TEST(test_memory_moves_to_another_device),
                TEST(test_memory_moves_within_a_device),
                TEST(test_a_job_without_memory_is_a_job),
                TEST(test_many_jobs_at_once),
                TEST(test_jobs_that_make_no_sense_are_refused_and_harm_nobody),
                TEST(test_the_client_refuses_jobs_that_are_not_whole),
                TEST(test_a_job_can_be_ended_in_any_state),
                TEST(test_a_callback_may_free_the_mover_and_nothing_completes_then),
        };
        return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
