/* SPDX-License-Identifier: Apache-2.0 */
/* What the slabs have already is not copied again, and nothing else is left out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"
#include "hash/hash.h"
#include "target.h"

static const uint64_t sizes[] = { 2 * MIB, 6 * MIB, 2 * MIB, 4 * MIB, 8 * MIB };
#define N_MEMORIES (sizeof(sizes) / sizeof(sizes[0]))
#define TOTAL      (22 * MIB)
#define N_BLOCKS   (TOTAL / HASH_BLOCK)

static struct hash_key key;
static int key_fd = -1;

static int make_key(void **state)
{
        assert_int_equal(hash_key_make(&key), 0);
        key_fd = memfd_create("key", MFD_CLOEXEC);
        assert_int_equal(write(key_fd, &key, sizeof(key)), sizeof(key));
        return group_setup(state);
}

struct data {
        struct memories memories;
        struct mover_segment segments[3 * MEMORIES_MAX];
        struct hash_value hashes[N_BLOCKS];
        struct mover_job out;
};

static void data_init(struct data *data, struct fixture *fixture)
{
        for (size_t i = 0; i < N_BLOCKS; i++)
                data->hashes[i] = HASH_UNKNOWN;
        memories_create(&data->memories, 0, sizes, N_MEMORIES);
        memories_fill(&data->memories, 1);
        data->out = (struct mover_job){ .kind = MOVER_OUT,
                                        .n_memories = N_MEMORIES,
                                        .segments = data->segments,
                                        .n_segments = layout(data->segments, &data->memories),
                                        .hashes = data->hashes,
                                        .n_hashes = N_BLOCKS,
                                        .progress = on_progress,
                                        .userdata = fixture };
}

static void begin(struct data *data, struct fixture *fixture)
{
        assert_int_equal(perform(fixture, mover_key(fixture->mover, key_fd, on_done, fixture)), 0);
        slabs_add(fixture, 4);
        data_init(data, fixture);
}

/* What is on the device, in the order of the memories. */
static unsigned char *read_device(struct data *data)
{
        unsigned char *bytes = aligned_alloc(16, TOTAL);

        assert_non_null(bytes);
        assert_int_equal(guest.cuMemcpyDtoH_v2(bytes, data->memories.base, TOTAL), 0);
        return bytes;
}

/* What is in the slabs, in the same order; with @scribble it is spoilt there. */
static unsigned char *read_slabs(struct data *data, struct fixture *fixture, bool scribble)
{
        unsigned char *bytes = aligned_alloc(16, TOTAL);

        assert_non_null(bytes);
        for (size_t i = 0; i < data->out.n_segments; i++) {
                const struct mover_segment *segment = &data->segments[i];
                unsigned char *slab = slab_map(fixture, segment->slab);
                uint64_t offset = segment->memory_offset;

                for (uint32_t k = 0; k < segment->memory; k++)
                        offset += sizes[k];
                memcpy(bytes + offset, slab + segment->slab_offset, segment->length);
                if (scribble)
                        memset(slab + segment->slab_offset, 0xa5, segment->length);
                munmap(slab, SLAB_SIZE);
        }
        return bytes;
}

static void assert_hashes(struct data *data)
{
        CLEANUP(freep) unsigned char *bytes = read_device(data);

        for (size_t i = 0; i < N_BLOCKS; i++) {
                const struct hash_value value = hash_block(&key, bytes + i * HASH_BLOCK);

                assert_true(hash_is_equal(&value, &data->hashes[i]));
        }
}

static void assert_slabs(struct data *data, struct fixture *fixture)
{
        CLEANUP(freep) unsigned char *expected = read_device(data);
        CLEANUP(freep) unsigned char *bytes = read_slabs(data, fixture, false);

        assert_int_equal(memcmp(bytes, expected, TOTAL), 0);
}

static void copy_out(struct data *data, struct fixture *fixture, uint64_t unchanged)
{
        assert_int_equal(move(fixture, &data->out, &data->memories, false, 0), 0);
        assert_int_equal(fixture->done.hash_error, 0);
        assert_true(fixture->done.bytes == TOTAL);
        assert_true(fixture->done.unchanged == unchanged);
}

static void write_byte(struct data *data, uint64_t offset)
{
        unsigned char byte;

        assert_int_equal(guest.cuMemcpyDtoH_v2(&byte, data->memories.base + offset, 1), 0);
        byte ^= 1;
        assert_int_equal(guest.cuMemcpyHtoD_v2(data->memories.base + offset, &byte, 1), 0);
}

static void test_the_hashes_are_those_of_the_reference(void **state)
{
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        copy_out(&data, fixture, 0);
        assert_hashes(&data);
        assert_slabs(&data, fixture);
        memories_free(&data.memories);
}

static void test_the_second_time_nothing_is_copied(void **state)
{
        CLEANUP(freep) unsigned char *before = NULL;
        CLEANUP(freep) unsigned char *after = NULL;
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        copy_out(&data, fixture, 0);
        before = read_slabs(&data, fixture, true);
        copy_out(&data, fixture, TOTAL);
        assert_hashes(&data);
        after = read_slabs(&data, fixture, false);
        for (size_t i = 0; i < TOTAL; i++)
                assert_true(after[i] == 0xa5);
        memories_free(&data.memories);
}

/* First and last byte of blocks, in memories small and large; some blocks are in several pieces. */
static void test_what_has_changed_is_copied_and_nothing_else(void **state)
{
        static const uint64_t changes[] = { 0, 2 * MIB - 1, 8 * MIB, 15 * MIB + 77, TOTAL - 1 };
        CLEANUP(freep) unsigned char *before = NULL;
        CLEANUP(freep) unsigned char *after = NULL;
        CLEANUP(freep) unsigned char *device = NULL;
        bool is_changed[N_BLOCKS] = { false };
        struct fixture *fixture = *state;
        size_t n_changed = 0;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        copy_out(&data, fixture, 0);
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
                write_byte(&data, changes[i]);
                n_changed += !is_changed[changes[i] / HASH_BLOCK];
                is_changed[changes[i] / HASH_BLOCK] = true;
        }
        before = read_slabs(&data, fixture, true);
        copy_out(&data, fixture, TOTAL - n_changed * HASH_BLOCK);
        assert_hashes(&data);

        device = read_device(&data);
        after = read_slabs(&data, fixture, false);
        for (size_t i = 0; i < N_BLOCKS; i++) {
                const unsigned char *block = after + i * HASH_BLOCK;

                if (is_changed[i])
                        assert_int_equal(memcmp(block, device + i * HASH_BLOCK, HASH_BLOCK), 0);
                else
                        assert_true(block[0] == 0xa5 && block[HASH_BLOCK - 1] == 0xa5);
        }
        memories_free(&data.memories);
}

static void test_what_is_unknown_is_copied(void **state)
{
        CLEANUP(freep) unsigned char *spoilt = NULL;
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        copy_out(&data, fixture, 0);
        spoilt = read_slabs(&data, fixture, true);
        for (size_t i = 0; i < N_BLOCKS; i++)
                if (i != 4)
                        data.hashes[i] = HASH_UNKNOWN;
        copy_out(&data, fixture, HASH_BLOCK);
        assert_hashes(&data);
        memories_free(&data.memories);
}

static void test_verifying_finds_what_the_hashes_are_wrong_about(void **state)
{
        CLEANUP(freep) unsigned char *spoilt = NULL;
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        data.out.must_verify = true;
        copy_out(&data, fixture, 0);
        copy_out(&data, fixture, TOTAL);
        assert_true(fixture->done.wrong == 0);
        spoilt = read_slabs(&data, fixture, true);
        copy_out(&data, fixture, TOTAL);
        assert_true(fixture->done.wrong == TOTAL);
        assert_slabs(&data, fixture);
        memories_free(&data.memories);
}

/* In each way the device can fail to hash, everything is copied, and the reason is told. */
static void test_without_hashes_everything_is_copied(void **state)
{
        static const char *const faults[] = { "mover.hash-loading=fail@1", "mover.hashing=fail",
                                              "mover.hashed=fail" };
        struct fixture *fixture = *state;

        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
                CLEANUP(freep) unsigned char *spoilt = NULL;
                struct data data;

                start_mover(fixture, 0);
                begin(&data, fixture);
                copy_out(&data, fixture, 0);
                stop_mover(fixture);

                spoilt = read_slabs(&data, fixture, true);
                start_mover_with(fixture, 0, "OPENVGPU_FAULT", faults[i]);
                assert_int_equal(
                        perform(fixture, mover_key(fixture->mover, key_fd, on_done, fixture)), 0);
                for (uint32_t k = 0; k < 4; k++)
                        assert_int_equal(
                                perform(fixture,
                                        mover_slab_add(fixture->mover, k, fixture->slabs[k],
                                                       SLAB_SIZE, on_done, fixture)),
                                0);
                assert_int_equal(move(fixture, &data.out, &data.memories, false, 0), 0);
                /* The first failed ahead of need, and the next slab tried again. */
                assert_int_equal(fixture->done.hash_error, i == 0 ? 0 : -EIO);
                if (i > 0) {
                        assert_true(fixture->done.unchanged == 0);
                        assert_slabs(&data, fixture);
                }
                memories_free(&data.memories);
                stop_mover(fixture);
                for (size_t k = 0; k < 4; k++)
                        fixture->slabs[k] = fd_close(fixture->slabs[k]);
        }
}

static void test_without_a_key_everything_is_copied(void **state)
{
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        slabs_add(fixture, 4);
        data_init(&data, fixture);
        assert_int_equal(move(fixture, &data.out, &data.memories, false, 0), 0);
        assert_int_equal(fixture->done.hash_error, -ENOKEY);
        assert_slabs(&data, fixture);
        memories_free(&data.memories);
}

static void test_a_key_comes_once_and_whole(void **state)
{
        CLEANUP(fd_closep) int small = memfd_create("small", MFD_CLOEXEC);
        struct fixture *fixture = *state;

        start_mover(fixture, 0);
        assert_int_equal(write(small, &key, 100), 100);
        assert_int_equal(mover_key(fixture->mover, -1, on_done, fixture), -EBADF);
        assert_int_equal(perform(fixture, mover_key(fixture->mover, small, on_done, fixture)),
                         -EINVAL);
        assert_int_equal(perform(fixture, mover_key(fixture->mover, key_fd, on_done, fixture)), 0);
        assert_int_equal(perform(fixture, mover_key(fixture->mover, key_fd, on_done, fixture)),
                         -EBUSY);
}

static void test_hashes_that_do_not_fit_are_refused(void **state)
{
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        data.out.n_hashes--;
        assert_int_equal(move(fixture, &data.out, &data.memories, false, 0), -EINVAL);
        data.out.n_hashes++;
        data.out.kind = MOVER_IN;
        assert_int_equal(move(fixture, &data.out, &data.memories, false, 0), -EINVAL);
        data.out.kind = MOVER_OUT;
        copy_out(&data, fixture, 0);
        memories_free(&data.memories);
}

static size_t n_passed, n_passings;

static void on_passed(struct mover *mover, size_t n, void *userdata)
{
        (void)mover, (void)userdata;
        assert_true(n > n_passed && n <= N_MEMORIES);
        n_passed = n;
        n_passings++;
}

static int compare_segments(const void *a, const void *b)
{
        const struct mover_segment *left = a, *right = b;

        if (left->memory != right->memory)
                return left->memory < right->memory ? -1 : 1;
        return (left->memory_offset > right->memory_offset) -
               (left->memory_offset < right->memory_offset);
}

/* All of it is told before the end of the job, also where nothing had to be copied; and it comes in again. */
static void test_what_is_in_the_slabs_is_let_go(void **state)
{
        static const uint64_t unchanged[] = { 0, TOTAL - HASH_BLOCK, TOTAL };
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        data.out.passed = on_passed;
        n_passed = 0;
        copy_out(&data, fixture, 0); /* out of their order nothing is */
        assert_int_equal(n_passed, 0);
        qsort(data.segments, data.out.n_segments, sizeof(data.segments[0]), compare_segments);
        for (size_t i = 0; i < N_BLOCKS; i++)
                data.hashes[i] = HASH_UNKNOWN;
        for (size_t i = 0; i < 3; i++) {
                if (i == 1)
                        write_byte(&data, TOTAL / 2);
                n_passed = n_passings = 0;
                copy_out(&data, fixture, unchanged[i]);
                assert_int_equal(n_passed, N_MEMORIES);
                assert_true(n_passings > 0);
                assert_hashes(&data);
                assert_slabs(&data, fixture);
        }
        memories_free(&data.memories);
}

static void test_what_is_compared_is_not_let_go(void **state)
{
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        data.out.passed = on_passed;
        data.out.must_verify = true;
        n_passed = 0;
        copy_out(&data, fixture, 0);
        assert_int_equal(n_passed, 0);
        data.out.must_verify = false;
        data.out.kind = MOVER_IN;
        data.out.hashes = NULL;
        data.out.n_hashes = 0;
        assert_int_equal(move(fixture, &data.out, &data.memories, false, 0), -EINVAL);
        memories_free(&data.memories);
}

/* Refreshing: beside other work, and as far as that comes. */

/* What each block of the slabs is, as its hash says it. Returns how many say nothing. */
static size_t check_told(struct data *data, struct fixture *fixture)
{
        CLEANUP(freep) unsigned char *bytes = read_slabs(data, fixture, false);
        const struct hash_value unknown = HASH_UNKNOWN;
        size_t n_unknown = 0;

        for (size_t i = 0; i < N_BLOCKS; i++) {
                const struct hash_value value = hash_block(&key, bytes + i * HASH_BLOCK);
                bool is_unknown = hash_is_equal(&data->hashes[i], &unknown);

                n_unknown += is_unknown;
                assert_true(is_unknown || hash_is_equal(&value, &data->hashes[i]));
        }
        return n_unknown;
}

static void change_all(struct data *data)
{
        for (size_t i = 0; i < N_BLOCKS; i++)
                write_byte(data, i * HASH_BLOCK + i);
}

static void test_a_refresh_copies_what_has_changed(void **state)
{
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        copy_out(&data, fixture, 0);
        data.out.rate = 1000;
        write_byte(&data, 0);
        write_byte(&data, TOTAL - 1);
        copy_out(&data, fixture, TOTAL - 2 * HASH_BLOCK);
        assert_hashes(&data);
        assert_slabs(&data, fixture);
        copy_out(&data, fixture, TOTAL);
        memories_free(&data.memories);
}

/* It stops where it is, at once or a little later, and says what is in the slabs then. */
static void test_a_refresh_can_be_stopped(void **state)
{
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        copy_out(&data, fixture, 0);
        data.out.rate = 100;
        for (unsigned int i = 0; i < 6; i++) {
                uint32_t id;

                change_all(&data);
                assert_int_equal(mover_job_begin(fixture->mover, &id, &data.out), 0);
                assert_int_equal(mover_job_run(fixture->mover, id, data.memories.sizes,
                                               data.memories.fds, on_done, fixture),
                                 0);
                usleep(40000 * i);
                assert_int_equal(mover_job_stop(fixture->mover, id), 0);
                assert_int_equal(perform(fixture, 0), 0);
                assert_true(fixture->done.bytes < TOTAL || i > 0); /* it changes to and fro */
                (void)check_told(&data, fixture);
                assert_int_equal(
                        perform(fixture, mover_job_end(fixture->mover, id, on_done, fixture)), 0);
        }
        data.out.rate = 0;
        assert_int_equal(move(fixture, &data.out, &data.memories, false, 0), 0);
        assert_slabs(&data, fixture);
        memories_free(&data.memories);
}

/* Each memory in one slab, so that no block is in two. */
static size_t lay_whole(struct mover_segment *segments)
{
        static const uint32_t slabs[N_MEMORIES] = { 0, 0, 1, 1, 2 };
        uint64_t used[3] = { 0 };

        for (uint32_t i = 0; i < N_MEMORIES; i++) {
                segments[i] = (struct mover_segment){ .memory = i,
                                                      .slab = slabs[i],
                                                      .slab_offset = used[slabs[i]],
                                                      .length = sizes[i] };
                used[slabs[i]] += sizes[i];
        }
        return N_MEMORIES;
}

/* A block that is in two slabs is left to the last copy. */
static void test_a_live_copy_leaves_what_is_cut(void **state)
{
        struct fixture *fixture = *state;
        struct data data;

        start_mover(fixture, 0);
        begin(&data, fixture);
        data.out.rate = 100000;
        data.out.is_live = true;
        assert_int_equal(move(fixture, &data.out, &data.memories, false, 0), 0);
        assert_true(fixture->done.bytes < TOTAL);
        assert_int_equal(check_told(&data, fixture), (TOTAL - fixture->done.bytes) / HASH_BLOCK);
        data.out.is_live = false;
        data.out.rate = 0;
        copy_out(&data, fixture, fixture->done.bytes);
        assert_slabs(&data, fixture);
        memories_free(&data.memories);
}

/*
 * Between its hash and its copy all memory changes, and back after it: what was copied is known by its own
 * hash, so that the last copy does not take it for what the memory is again.
 */
static void test_a_live_copy_knows_what_it_has(void **state)
{
        struct fixture *fixture = *state;
        struct data data;
        uint32_t id;

        start_mover_that_pauses_at(fixture, "mover.refreshing");
        begin(&data, fixture);
        data.out.n_segments = lay_whole(data.segments);
        data.out.rate = 100000;
        data.out.is_live = true;
        assert_int_equal(mover_job_begin(fixture->mover, &id, &data.out), 0);
        assert_int_equal(mover_job_run(fixture->mover, id, data.memories.sizes, data.memories.fds,
                                       on_done, fixture),
                         0);
        await_pause("mover.refreshing");
        change_all(&data);
        end_pause("mover.refreshing");
        assert_int_equal(perform(fixture, 0), 0);
        assert_true(fixture->done.bytes == TOTAL && fixture->done.unchanged == 0);
        assert_int_equal(check_told(&data, fixture), 0);
        assert_int_equal(perform(fixture, mover_job_end(fixture->mover, id, on_done, fixture)), 0);
        change_all(&data);
        data.out.is_live = false;
        data.out.rate = 0;
        copy_out(&data, fixture, 0);
        assert_slabs(&data, fixture);
        memories_free(&data.memories);
}

static void test_a_refresh_without_hashes_copies_nothing(void **state)
{
        CLEANUP(freep) unsigned char *before = NULL;
        CLEANUP(freep) unsigned char *after = NULL;
        struct fixture *fixture = *state;
        struct data data;

        start_mover_with(fixture, 0, "OPENVGPU_FAULT", "mover.hashed=fail@2");
        begin(&data, fixture);
        copy_out(&data, fixture, 0);
        before = read_slabs(&data, fixture, false);
        change_all(&data);
        data.out.rate = 100;
        assert_int_equal(move(fixture, &data.out, &data.memories, false, 0), -EIO);
        assert_int_equal(fixture->done.is_torn, 0);
        after = read_slabs(&data, fixture, false);
        assert_int_equal(memcmp(before, after, TOTAL), 0);
        assert_int_equal(check_told(&data, fixture), 0);
        memories_free(&data.memories);
}

static void test_a_refresh_that_fails_says_that_it_has_written(void **state)
{
        struct fixture *fixture = *state;
        struct data data;

        start_mover_with(fixture, 0, "OPENVGPU_FAULT", "mover.refreshed-piece=fail@2");
        begin(&data, fixture);
        copy_out(&data, fixture, 0);
        change_all(&data);
        data.out.rate = 100;
        assert_int_equal(move(fixture, &data.out, &data.memories, false, 0), -EIO);
        assert_int_equal(fixture->done.is_torn, 1);
        memories_free(&data.memories);
}

static void test_a_refresh_needs_hashes(void **state)
{
        struct fixture *fixture = *state;
        struct data data;
        uint32_t id = 77;

        start_mover(fixture, 0);
        begin(&data, fixture);
        data.out.rate = 1;
        data.out.must_verify = true;
        assert_int_equal(mover_job_begin(fixture->mover, &id, &data.out), -EINVAL);
        data.out.must_verify = false;
        data.out.hashes = NULL;
        data.out.n_hashes = 0;
        assert_int_equal(mover_job_begin(fixture->mover, &id, &data.out), -EINVAL);
        assert_int_equal(mover_job_stop(fixture->mover, id), -EINVAL);
        memories_free(&data.memories);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
                TEST(test_the_hashes_are_those_of_the_reference),
                TEST(test_the_second_time_nothing_is_copied),
                TEST(test_what_has_changed_is_copied_and_nothing_else),
                TEST(test_what_is_unknown_is_copied),
                TEST(test_verifying_finds_what_the_hashes_are_wrong_about),
                TEST(test_without_hashes_everything_is_copied),
                TEST(test_without_a_key_everything_is_copied),
                TEST(test_a_key_comes_once_and_whole),
                TEST(test_hashes_that_do_not_fit_are_refused),
                TEST(test_what_is_in_the_slabs_is_let_go),
                TEST(test_what_is_compared_is_not_let_go),
                TEST(test_a_refresh_copies_what_has_changed),
                TEST(test_a_refresh_can_be_stopped),
                TEST(test_a_live_copy_knows_what_it_has),
                TEST(test_a_live_copy_leaves_what_is_cut),
                TEST(test_a_refresh_without_hashes_copies_nothing),
                TEST(test_a_refresh_that_fails_says_that_it_has_written),
                TEST(test_a_refresh_needs_hashes),
        };

        return cmocka_run_group_tests(tests, make_key, group_teardown);
}
