/* SPDX-License-Identifier: Apache-2.0 */
/* The data file: what is written comes back; what was altered, cut off or did not fit is found. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "image/checksum.h"
#include "image/data.h"
#include "image/queue.h"

#define CHUNK   (64 << 10)
#define PIECE_1 (3 * CHUNK + 8192)
#define PIECE_2 (5 * CHUNK)
#define PIECE_3 (CHUNK + 12345) /* ends in the middle of a page */
#define SIZE    (PIECE_1 + PIECE_2 + PIECE_3)

struct scene {
        char path[64];
        int directory;
        char *memory, *other; /* of SIZE bytes, page-aligned */
        struct iovec pieces[3], whole;
        struct image_error error;
        struct image_table table;
        struct image_data_report report;
};

static void split(struct scene *scene, char *memory)
{
        scene->pieces[0] = (struct iovec){ memory, PIECE_1 };
        scene->pieces[1] = (struct iovec){ memory + PIECE_1, PIECE_2 };
        scene->pieces[2] = (struct iovec){ memory + PIECE_1 + PIECE_2, PIECE_3 };
}

/* Zeros, what packs well, and what does not pack. */
static void fill(char *memory)
{
        unsigned int seed = 1;

        memset(memory, 0, SIZE);
        memset(memory + 2 * CHUNK, 'x', 3 * CHUNK);
        for (size_t i = 5 * CHUNK; i < SIZE; i++)
                memory[i] = (char)rand_r(&seed);
}

static int set_up(void **state)
{
        struct scene *scene = calloc(1, sizeof(*scene));

        strcpy(scene->path, "/tmp/test-image-XXXXXX");
        assert_non_null(mkdtemp(scene->path));
        scene->directory = open(scene->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(posix_memalign((void **)&scene->memory, 4096, SIZE), 0);
        assert_int_equal(posix_memalign((void **)&scene->other, 4096, SIZE), 0);
        fill(scene->memory);
        memset(scene->other, 0x55, SIZE);
        split(scene, scene->memory);
        scene->whole = (struct iovec){ scene->other, SIZE };
        *state = scene;
        return 0;
}

static int tear_down(void **state)
{
        struct scene *scene = *state;

        image_table_deinit(&scene->table);
        (void)unlinkat(scene->directory, "data", 0);
        (void)rmdir(scene->path);
        fd_close(scene->directory);
        free(scene->memory);
        free(scene->other);
        free(scene);
        return 0;
}

static int put(struct scene *scene, const struct image_data_options *options)
{
        image_table_deinit(&scene->table);
        (void)unlinkat(scene->directory, "data", 0);
        scene->error = (struct image_error){ 0 };
        return image_data_write(scene->directory, scene->path, "data", scene->pieces, 3, options,
                                &scene->table, &scene->report, &scene->error);
}

static int get(struct scene *scene, const struct image_data_options *options)
{
        scene->error = (struct image_error){ 0 };
        return image_data_read(scene->directory, scene->path, "data", &scene->table, &scene->whole,
                               1, options, &scene->report, &scene->error);
}

static const struct image_data_options plain = { .chunk_size = CHUNK, .threads = 2 };

static void test_a_checksum_is_the_standard_one(void **state)
{
        char data[100000];
        uint32_t slow = 0;
        (void)state;

        assert_int_equal(checksum_add(0, "123456789", 9), 0xe3069283);
        for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (char)(i * 7 + i / 251);
        for (size_t i = 0; i < sizeof(data); i++)
                slow = checksum_add(slow, data + i, 1);
        assert_int_equal(checksum_add(0, data, sizeof(data)), slow);
        assert_int_equal(
                checksum_add(checksum_add(0, data, 77777), data + 77777, sizeof(data) - 77777),
                slow);
}

static void test_memory_comes_back_however_it_went(void **state)
{
        struct scene *scene = *state;

        for (int i = 0; i < 16; i++) {
                struct image_data_options options = {
                        .chunk_size = CHUNK,
                        .threads = i & 1 ? 1 : 3,
                        .no_ring = i & 2,
                        .no_direct_io = i & 4,
                        .compression = i & 8 ? IMAGE_COMPRESSION_ZSTD : IMAGE_COMPRESSION_NONE,
                };

                if (!compress_is_built(options.compression))
                        continue;
                memset(scene->other, 0x55, SIZE);
                assert_int_equal(put(scene, &options), 0);
                assert_int_equal(scene->report.has_ring && options.no_ring, 0);
                assert_int_equal(get(scene, &options), 0);
                assert_memory_equal(scene->memory, scene->other, SIZE);
        }
}

static void test_zeros_take_no_room_and_packing_makes_less(void **state)
{
        struct scene *scene = *state;
        struct image_data_options packed = plain;
        uint64_t size;

        assert_int_equal(put(scene, &plain), 0);
        assert_int_equal(scene->table.chunks[0].stored, 0);
        assert_int_equal(scene->table.chunks[1].stored, 0);
        assert_int_equal(scene->table.chunks[2].stored, CHUNK);
        size = scene->table.file_size;
        assert_true(size < SIZE);

        packed.compression = IMAGE_COMPRESSION_ZSTD;
        if (!compress_is_built(packed.compression))
                return;
        assert_int_equal(put(scene, &packed), 0);
        assert_true(scene->table.chunks[2].stored < 4096);
        assert_int_equal(scene->table.chunks[6].stored, CHUNK); /* does not pack: it is plain */
        assert_true(scene->table.file_size < size);
}

static void test_a_machine_without_io_uring_does_as_well(void **state)
{
        struct queue *queue;
        (void)state;

        assert_int_equal(queue_new(&queue, 4, false), 0);
        assert_false(queue_has_ring(queue));
        assert_null(queue_wait(queue));
        queue_free(queue);
}

static void flip_bit(const struct scene *scene, uint64_t offset)
{
        CLEANUP(fd_closep) int fd = openat(scene->directory, "data", O_RDWR | O_CLOEXEC);
        char byte;

        assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
}

static void test_every_altered_chunk_is_found_and_named(void **state)
{
        struct scene *scene = *state;
        char name[64];

        for (int packed = 0; packed < 2; packed++) {
                struct image_data_options options = plain;

                options.compression = packed ? IMAGE_COMPRESSION_ZSTD : IMAGE_COMPRESSION_NONE;
                if (!compress_is_built(options.compression))
                        continue;
                assert_int_equal(put(scene, &options), 0);
                for (size_t i = 0; i < scene->table.n_chunks; i++) {
                        const struct image_chunk *chunk = &scene->table.chunks[i];

                        if (chunk->stored == 0)
                                continue;
                        flip_bit(scene, chunk->offset + chunk->stored / 2);
                        assert_int_equal(get(scene, &options), -EBADMSG);
                        snprintf(name, sizeof(name), "data, chunk %zu (", i);
                        assert_non_null(strstr(scene->error.message, name));
                        assert_non_null(strstr(scene->error.message, "altered"));
                        flip_bit(scene, chunk->offset + chunk->stored / 2);
                }
                assert_int_equal(get(scene, &options), 0);
        }
}

static void test_chunks_in_each_others_place_are_found(void **state)
{
        struct scene *scene = *state;
        uint64_t offset;

        assert_int_equal(put(scene, &plain), 0);
        offset = scene->table.chunks[6].offset;
        scene->table.chunks[6].offset = scene->table.chunks[7].offset;
        scene->table.chunks[7].offset = offset;
        assert_int_equal(get(scene, &plain), -EBADMSG);
}

static void test_a_file_that_was_cut_or_grew_is_refused(void **state)
{
        static const int changes[] = { -4096, -1, 1, 4096, -SIZE };
        struct scene *scene = *state;
        char path[96];

        snprintf(path, sizeof(path), "%s/data", scene->path);
        assert_int_equal(put(scene, &plain), 0);
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
                off_t size = (off_t)scene->table.file_size + changes[i];

                assert_int_equal(truncate(path, size < 0 ? 0 : size), 0);
                assert_int_equal(get(scene, &plain), -EBADMSG);
                assert_non_null(
                        strstr(scene->error.message, changes[i] < 0 ? "cut off" : "too long"));
        }
}

/* The table is right about the length, but the file ended earlier while it was read. */
static void test_a_chunk_behind_the_end_is_cut_off(void **state)
{
        struct scene *scene = *state;
        size_t last;

        assert_int_equal(put(scene, &plain), 0);
        last = scene->table.n_chunks - 1;
        scene->table.chunks[last].offset = scene->table.file_size;
        assert_int_equal(get(scene, &plain), -EBADMSG);
        assert_non_null(strstr(scene->error.message, "cut off"));
}

static void test_no_file_is_an_error_with_its_name(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(put(scene, &plain), 0);
        assert_int_equal(unlinkat(scene->directory, "data", 0), 0);
        assert_int_equal(get(scene, &plain), -ENOENT);
        assert_non_null(strstr(scene->error.message, scene->path));
}

static bool has_data(const struct scene *scene)
{
        return faccessat(scene->directory, "data", F_OK, 0) == 0;
}

/* In a child: a limit cannot be taken back, and SIGXFSZ would end the process. */
static void test_a_limit_on_file_sizes_is_an_error_not_a_signal(void **state)
{
        struct scene *scene = *state;
        pid_t child = fork();
        int status;

        if (child == 0) {
                const struct rlimit limit = { 2 * CHUNK, 2 * CHUNK };
                struct image_data_options options = plain;
                bool is_good = setrlimit(RLIMIT_FSIZE, &limit) == 0;

                is_good = is_good && put(scene, &options) == -EFBIG && !has_data(scene);
                options.compression = IMAGE_COMPRESSION_ZSTD;
                if (compress_is_built(options.compression))
                        is_good = is_good && put(scene, &options) == -EFBIG && !has_data(scene);
                is_good = is_good && strstr(scene->error.message, "data");
                _exit(is_good ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_a_full_disk_is_an_error_and_leaves_nothing(void **state)
{
        struct scene *scene = *state;

        if (mount("test", scene->path, "tmpfs", 0, "size=256k") < 0) {
                print_message("not allowed to mount a small file system here\n");
                skip();
        }
        fd_close(scene->directory);
        scene->directory = open(scene->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (int packed = 0; packed < 2; packed++) {
                struct image_data_options options = plain;

                options.compression = packed ? IMAGE_COMPRESSION_ZSTD : IMAGE_COMPRESSION_NONE;
                if (!compress_is_built(options.compression))
                        continue;
                assert_int_equal(put(scene, &options), -ENOSPC);
                assert_non_null(strstr(scene->error.hint, "make room"));
                assert_false(has_data(scene));
        }
        fd_close(scene->directory);
        assert_int_equal(umount(scene->path), 0);
        scene->directory = open(scene->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void test_nothing_at_all_is_an_image_too(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(image_data_write(scene->directory, scene->path, "data", NULL, 0, &plain,
                                          &scene->table, &scene->report, &scene->error),
                         0);
        assert_int_equal(scene->table.n_chunks, 0);
        assert_int_equal(image_data_read(scene->directory, scene->path, "data", &scene->table, NULL,
                                         0, &plain, &scene->report, &scene->error),
                         0);
}

static void test_checking_needs_no_memory(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(put(scene, &plain), 0);
        assert_int_equal(image_data_read(scene->directory, scene->path, "data", &scene->table, NULL,
                                         0, &plain, &scene->report, &scene->error),
                         0);
        flip_bit(scene, scene->table.file_size - 8192);
        assert_int_equal(image_data_read(scene->directory, scene->path, "data", &scene->table, NULL,
                                         0, &plain, &scene->report, &scene->error),
                         -EBADMSG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_checksum_is_the_standard_one),
                TEST(test_memory_comes_back_however_it_went),
                TEST(test_zeros_take_no_room_and_packing_makes_less),
                cmocka_unit_test(test_a_machine_without_io_uring_does_as_well),
                TEST(test_every_altered_chunk_is_found_and_named),
                TEST(test_chunks_in_each_others_place_are_found),
                TEST(test_a_file_that_was_cut_or_grew_is_refused),
                TEST(test_a_chunk_behind_the_end_is_cut_off),
                TEST(test_no_file_is_an_error_with_its_name),
                TEST(test_a_limit_on_file_sizes_is_an_error_not_a_signal),
                TEST(test_a_full_disk_is_an_error_and_leaves_nothing),
                TEST(test_nothing_at_all_is_an_image_too),
                TEST(test_checking_needs_no_memory),
        };

        return cmocka_run_group_tests_name("image data", tests, NULL, NULL);
}
