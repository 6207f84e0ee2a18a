/* SPDX-License-Identifier: Apache-2.0 */
/* Images with parents: what is read is what was there, and a parent that is not the right one is refused. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "image/chain.h"
#include "image/parent.h"

#define CHUNK ((size_t)IMAGE_CHUNK_SIZE)
#define TAIL  ((size_t)12288)
#define SIZE  (4 * CHUNK + TAIL)

struct scene {
        char root[64];
        char *memory, *other; /* SIZE bytes */
        struct image_error error;
        struct image_table table; /* of the image that was made last */
};

static int set_up(void **state)
{
        struct scene *scene = calloc(1, sizeof(*scene));

        strcpy(scene->root, "/tmp/test-chain-XXXXXX");
        assert_non_null(mkdtemp(scene->root));
        assert_int_equal(posix_memalign((void **)&scene->memory, 4096, SIZE), 0);
        assert_int_equal(posix_memalign((void **)&scene->other, 4096, SIZE), 0);
        for (size_t i = 0; i < SIZE; i++)
                scene->memory[i] = (char)(1 + i / 4096 + i / CHUNK);
        memset(scene->memory + 2 * CHUNK, 0, CHUNK); /* and one of zeros */
        *state = scene;
        return 0;
}

static int tear_down(void **state)
{
        struct scene *scene = *state;
        char command[128];

        snprintf(command, sizeof(command), "rm -rf %s", scene->root);
        assert_int_equal(system(command), 0);
        image_table_deinit(&scene->table);
        free(scene->memory);
        free(scene->other);
        free(scene);
        return 0;
}

struct path {
        char text[160];
};

static struct path in(const struct scene *scene, const char *name)
{
        struct path path;

        snprintf(path.text, sizeof(path.text), "%s/%s", scene->root, name);
        return path;
}

static void describe(struct image_manifest *manifest)
{
        struct image_process *process = calloc(1, sizeof(*process));

        process->pid = 42;
        process->allocations = calloc(1, sizeof(*process->allocations));
        process->allocations[0] = (struct image_allocation){ 0x7f0000000000, SIZE, 0 };
        process->n_allocations = 1;
        process->size = SIZE;
        *manifest = (struct image_manifest){ .processes = process, .n_processes = 1 };
        assert_int_equal(image_manifest_make_id(manifest), 0);
}

/* Makes what is between two dumps: a test can change it. */
static void nothing(struct scene *scene, struct image_manifest *manifest)
{
        (void)scene;
        (void)manifest;
}

struct making {
        const char *name, *parent;
        enum image_compression compression;
        void (*before_commit)(struct scene *scene, struct image_manifest *manifest);
};

static int write_into(struct scene *scene, const struct making *making,
                      struct image_directory *directory, struct image_parent *parent,
                      struct image_manifest *manifest)
{
        const struct iovec piece = { scene->memory, SIZE };
        struct image_hashes hashes = { .n = 0 };
        const struct image_data_options options = {
                .compression = making->compression,
                .hashes = &hashes,
                .parent = making->parent ? parent : NULL,
        };
        struct image_data_report report;
        int r = 0;

        if (making->parent)
                hashes.key = parent->hashes.key;
        else
                r = hash_key_make(&hashes.key);
        if (r == 0)
                r = image_data_write(directory->fd, directory->partial, IMAGE_DATA_FILE, &piece, 1,
                                     &options, &manifest->memory, &report, &scene->error);
        manifest->has_memory = manifest->has_hashes = true;
        if (r == 0)
                r = image_hashes_write(&hashes, directory->fd, directory->partial,
                                       &manifest->hashes_checksum, &scene->error);
        making->before_commit(scene, manifest);
        if (r == 0 && making->parent)
                r = image_parent_describe(parent, manifest, &scene->error);
        if (r == 0)
                r = image_directory_commit(directory, manifest, &scene->error);
        image_hashes_deinit(&hashes);
        return r;
}

static void keep_table(struct scene *scene, struct image_manifest *manifest)
{
        image_table_deinit(&scene->table);
        scene->table = manifest->memory;
        manifest->memory = (struct image_table){ 0 };
}

static int make_as(struct scene *scene, const struct making *making)
{
        struct image_parent *parent = calloc(1, sizeof(*parent));
        struct image_directory directory;
        struct image_manifest manifest;
        int r = 0;

        scene->error = (struct image_error){ 0 };
        describe(&manifest);
        if (making->parent)
                r = image_parent_open(parent, in(scene, making->parent).text, &scene->error);
        if (r == 0)
                r = image_directory_begin(&directory, in(scene, making->name).text, &scene->error);
        if (r == 0) {
                r = write_into(scene, making, &directory, parent, &manifest);
                if (r < 0)
                        image_directory_abandon(&directory);
                image_directory_close(&directory);
        }
        keep_table(scene, &manifest);
        image_manifest_deinit(&manifest);
        image_parent_close(parent);
        free(parent);
        return r;
}

static int make(struct scene *scene, const char *name, const char *parent)
{
        return make_as(scene, &(struct making){ name, parent, IMAGE_COMPRESSION_NONE, nothing });
}

static int read_image(struct scene *scene, const char *name)
{
        const struct image_data_options options = { .threads = 2 };
        const struct iovec piece = { scene->other, SIZE };
        struct image_data_report report;
        struct image_chain chain;
        int r;

        scene->error = (struct image_error){ 0 };
        memset(scene->other, 0x55, SIZE);
        r = image_chain_open(&chain, in(scene, name).text, &scene->error);
        if (r == 0)
                r = image_chain_read(&chain, &piece, 1, &options, &report, &scene->error);
        image_chain_close(&chain);
        return r;
}

static void assert_reads(struct scene *scene, const char *name)
{
        assert_int_equal(read_image(scene, name), 0);
        assert_memory_equal(scene->other, scene->memory, SIZE);
}

static void assert_says(const struct scene *scene, const char *text)
{
        if (!strstr(scene->error.message, text) && !strstr(scene->error.hint, text))
                fail_msg("'%s' is not in: %s (%s)", text, scene->error.message, scene->error.hint);
}

/* Runs @words in a shell, in the folder of the images, with $name as @name. */
static void run(const struct scene *scene, const char *words, const char *name)
{
        char command[512];

        snprintf(command, sizeof(command), "cd %s && name=%s && %s", scene->root, name, words);
        assert_int_equal(system(command), 0);
}

static void alter(const struct scene *scene, const char *name, off_t offset)
{
        CLEANUP(fd_closep) int fd = open(in(scene, name).text, O_RDWR | O_CLOEXEC);
        char byte;

        assert_int_equal(pread(fd, &byte, 1, offset), 1);
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
}

/* Reading and writing. */

static void test_only_what_differs_is_written(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(make(scene, "a", NULL), 0);
        assert_int_equal(scene->table.file_size, 3 * CHUNK + TAIL);
        assert_null(scene->table.inherited);
        assert_reads(scene, "a");
        scene->memory[CHUNK + 77] ^= 1;
        assert_int_equal(make(scene, "b", "a"), 0);
        assert_int_equal(scene->table.file_size, CHUNK);
        assert_int_equal(image_table_sum_inherited(&scene->table), 2 * CHUNK + TAIL);
        assert_reads(scene, "b");
        scene->memory[SIZE - 1] ^= 1;
        assert_int_equal(make(scene, "c", "b"), 0);
        assert_int_equal(scene->table.file_size, TAIL);
        assert_reads(scene, "c");
        scene->memory[SIZE - 1] ^= 1;
        assert_reads(scene, "b");
        scene->memory[CHUNK + 77] ^= 1;
        assert_reads(scene, "a");
}

static void test_of_what_is_the_same_nothing_is_written(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(make(scene, "a", NULL), 0);
        assert_int_equal(make(scene, "b", "a"), 0);
        assert_int_equal(scene->table.file_size, 0);
        assert_reads(scene, "b");
}

static void test_memory_that_moved_is_found_where_it_was(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(make(scene, "a", NULL), 0);
        memcpy(scene->other, scene->memory, CHUNK);
        memmove(scene->memory, scene->memory + CHUNK, CHUNK);
        memcpy(scene->memory + CHUNK, scene->other, CHUNK);
        assert_int_equal(make(scene, "b", "a"), 0);
        assert_int_equal(scene->table.file_size, 0);
        assert_int_equal(scene->table.inherited[0], 1);
        assert_reads(scene, "b");
}

static void test_what_became_zeros_and_what_was_zeros(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(make(scene, "a", NULL), 0);
        memset(scene->memory, 0, CHUNK);
        scene->memory[2 * CHUNK] = 1;
        assert_int_equal(make(scene, "b", "a"), 0);
        assert_int_equal(scene->table.file_size, CHUNK);
        assert_reads(scene, "b");
}

static void test_each_image_packs_as_it_likes(void **state)
{
        struct scene *scene = *state;

        if (!compress_is_built(IMAGE_COMPRESSION_ZSTD))
                skip();
        for (int i = 0; i < 2; i++) {
                const enum image_compression zstd = IMAGE_COMPRESSION_ZSTD;
                const struct making first = { i ? "a1" : "a0", NULL, i ? zstd : 0, nothing };
                const struct making second = { i ? "b1" : "b0", first.name, i ? 0 : zstd, nothing };

                assert_int_equal(make_as(scene, &first), 0);
                scene->memory[0] ^= 1;
                assert_int_equal(make_as(scene, &second), 0);
                assert_reads(scene, second.name);
        }
}

static void test_hashes_and_checksums_and_lengths_must_be_equal(void **state)
{
        struct scene *scene = *state;
        struct image_parent *parent = calloc(1, sizeof(*parent));
        struct hash_value value;

        assert_int_equal(make(scene, "a", NULL), 0);
        assert_int_equal(image_parent_open(parent, in(scene, "a").text, &scene->error), 0);
        value = parent->hashes.values[3];
        assert_int_equal(image_parent_find(parent, &scene->table, 3, &value), 3);
        value.half[1] ^= 1;
        assert_int_equal(image_parent_find(parent, &scene->table, 3, &value), IMAGE_CHUNK_OWN);
        value.half[1] ^= 1;
        scene->table.chunks[3].checksum ^= 1; /* as if the hash was the same by design */
        assert_int_equal(image_parent_find(parent, &scene->table, 3, &value), IMAGE_CHUNK_OWN);
        scene->table.chunks[3].checksum ^= 1;
        scene->table.size -= TAIL + 4096; /* the last one, and shorter */
        assert_int_equal(image_parent_find(parent, &scene->table, 3, &value), IMAGE_CHUNK_OWN);
        image_parent_close(parent);
        free(parent);
}

/* In a child: a limit cannot be taken back. */
static void test_a_disk_without_room_for_all_takes_what_differs(void **state)
{
        struct scene *scene = *state;
        pid_t child;
        int status;

        assert_int_equal(make(scene, "a", NULL), 0);
        child = fork();
        if (child == 0) {
                const struct rlimit limit = { 2 * CHUNK, 2 * CHUNK };
                bool is_good = setrlimit(RLIMIT_FSIZE, &limit) == 0;

                scene->memory[0] ^= 1;
                is_good = is_good && make(scene, "b", "a") == 0;
                for (size_t i = 0; i < SIZE; i += 4096)
                        scene->memory[i] ^= 1;
                is_good = is_good && make(scene, "c", "a") == -EFBIG &&
                          strstr(scene->error.message, "memory.data") &&
                          access(in(scene, "c").text, F_OK) < 0 &&
                          access(in(scene, "c.partial").text, F_OK) < 0;
                _exit(is_good ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

/* Parents that are not what they were. */

static void make_two(struct scene *scene)
{
        assert_int_equal(make(scene, "a", NULL), 0);
        scene->memory[0] ^= 1;
        assert_int_equal(make(scene, "b", "a"), 0);
}

static void test_a_parent_that_is_missing_is_named(void **state)
{
        struct scene *scene = *state;

        make_two(scene);
        run(scene, "mv a elsewhere", "a");
        assert_int_equal(read_image(scene, "b"), -ENOENT);
        assert_says(scene, "/b needs its parent /tmp/");
        assert_says(scene, "/a, which is not there");
        assert_says(scene, "put the parent there, or beside");
        assert_int_equal(make(scene, "c", "b"), -ENOENT);
        run(scene, "mv elsewhere a", "a");
        assert_reads(scene, "b");
}

static void test_a_folder_of_images_can_be_moved(void **state)
{
        struct scene *scene = *state;

        run(scene, "mkdir old new", "");
        assert_int_equal(make(scene, "old/a", NULL), 0);
        scene->memory[0] ^= 1;
        assert_int_equal(make(scene, "old/b", "old/a"), 0);
        run(scene, "mv old/a old/b new", "");
        assert_reads(scene, "new/b");
        /* Another image where the parent was is not taken for it. */
        assert_int_equal(make(scene, "old/a", NULL), 0);
        assert_reads(scene, "new/b");
        run(scene, "rm -r new/a", "");
        assert_int_equal(read_image(scene, "new/b"), -EBADMSG);
        assert_says(scene, "is another image now");
        run(scene, "mv old/a new", "");
        assert_int_equal(read_image(scene, "new/b"), -EBADMSG);
        assert_says(scene, "is another image now");
        assert_says(scene, "/new/a");
}

static void test_an_image_in_the_place_of_the_parent_is_refused(void **state)
{
        struct scene *scene = *state;

        make_two(scene);
        run(scene, "rm -r $name", "a");
        scene->memory[0] ^= 1;
        assert_int_equal(make(scene, "a", NULL), 0); /* the same memory, under another key and id */
        assert_int_equal(read_image(scene, "b"), -EBADMSG);
        assert_says(scene, "/a, which is another image now");
}

static char old_id[IMAGE_TEXT_MAX];

static void take_old_id(struct scene *scene, struct image_manifest *manifest)
{
        (void)scene;
        strcpy(manifest->id, old_id);
}

static void remember_id(struct scene *scene, const char *name)
{
        struct image_chain chain;

        assert_int_equal(image_chain_open(&chain, in(scene, name).text, &scene->error), 0);
        strcpy(old_id, chain.links[0]->manifest.id);
        image_chain_close(&chain);
}

static void test_a_parent_that_was_changed_is_refused(void **state)
{
        struct scene *scene = *state;
        const struct making again = { "a", NULL, IMAGE_COMPRESSION_NONE, take_old_id };

        make_two(scene);
        remember_id(scene, "a");
        run(scene, "rm -r $name", "a");
        assert_int_equal(make_as(scene, &again), 0);
        assert_int_equal(read_image(scene, "b"), -EBADMSG);
        assert_says(scene, "/a, which was changed since");
}

static void test_a_parent_with_damage_is_refused(void **state)
{
        struct scene *scene = *state;

        make_two(scene);
        for (size_t i = 0; i < 3; i++) /* in whatever order they are there */
                alter(scene, "a/memory.data", (off_t)(i * CHUNK + TAIL));
        assert_int_equal(read_image(scene, "b"), -EBADMSG);
        assert_says(scene, "/a/memory.data, chunk ");
        run(scene, "truncate -s -4096 $name", "a/memory.data");
        assert_int_equal(read_image(scene, "b"), -EBADMSG);
        assert_says(scene, "/a/memory.data is cut off");
        run(scene, "rm $name", "a/memory.data");
        assert_int_equal(read_image(scene, "b"), -ENOENT);
        assert_says(scene, "/a/memory.data is missing");
}

static void far_position(struct scene *scene, struct image_manifest *manifest)
{
        (void)scene;
        manifest->memory.inherited[1] = 1u << 28;
}

static void other_position(struct scene *scene, struct image_manifest *manifest)
{
        (void)scene;
        manifest->memory.inherited[1] = 3;
}

static void shorter_position(struct scene *scene, struct image_manifest *manifest)
{
        (void)scene;
        manifest->memory.inherited[1] = 4;
        manifest->memory.chunks[1].checksum = manifest->memory.chunks[4].checksum;
}

static void test_a_position_that_cannot_be_is_refused(void **state)
{
        struct scene *scene = *state;
        void (*const changes[])(struct scene *, struct image_manifest *) = { far_position,
                                                                             other_position,
                                                                             shorter_position };

        assert_int_equal(make(scene, "a", NULL), 0);
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
                const struct making making = { "b", "a", IMAGE_COMPRESSION_NONE, changes[i] };

                assert_int_equal(make_as(scene, &making), 0);
                assert_int_equal(read_image(scene, "b"), -EBADMSG);
                assert_says(scene, "/b, chunk 1: it is not what");
                run(scene, "rm -r b", "");
        }
}

static void remove_parent(struct scene *scene, struct image_manifest *manifest)
{
        (void)manifest;
        run(scene, "rm -r a", "");
}

static void replace_parent(struct scene *scene, struct image_manifest *manifest)
{
        (void)manifest;
        run(scene, "rm -r a && mkdir a", "");
}

static void test_a_parent_that_goes_while_it_is_needed(void **state)
{
        struct scene *scene = *state;
        void (*const changes[])(struct scene *, struct image_manifest *) = { remove_parent,
                                                                             replace_parent };

        for (size_t i = 0; i < 2; i++) {
                const struct making making = { "b", "a", IMAGE_COMPRESSION_NONE, changes[i] };

                run(scene, "rm -rf a", "");
                assert_int_equal(make(scene, "a", NULL), 0);
                assert_int_equal(make_as(scene, &making), -ENOENT);
                assert_says(scene, "/a, which the image needs, was removed or replaced meanwhile");
                assert_int_equal(access(in(scene, "b").text, F_OK), -1);
                assert_int_equal(access(in(scene, "b.partial").text, F_OK), -1);
        }
}

static void test_a_parent_that_goes_while_it_is_read(void **state)
{
        struct scene *scene = *state;
        const struct image_data_options options = { .threads = 1 };
        const struct iovec piece = { scene->other, SIZE };
        struct image_data_report report;
        struct image_chain chain;

        make_two(scene);
        assert_int_equal(image_chain_open(&chain, in(scene, "b").text, &scene->error), 0);
        run(scene, "rm -r a b", "");
        assert_int_equal(image_chain_read(&chain, &piece, 1, &options, &report, &scene->error), 0);
        assert_memory_equal(scene->other, scene->memory, SIZE);
        image_chain_close(&chain);
}

/* What cannot be a parent. */

static void forget_id(struct scene *scene, struct image_manifest *manifest)
{
        (void)scene;
        manifest->id[0] = '\0';
}

static void forget_hashes(struct scene *scene, struct image_manifest *manifest)
{
        (void)scene;
        manifest->has_hashes = false;
}

static void test_an_image_of_an_older_version_can_be_read_and_is_no_parent(void **state)
{
        struct scene *scene = *state;
        void (*const changes[])(struct scene *, struct image_manifest *) = { forget_id,
                                                                             forget_hashes };

        for (size_t i = 0; i < 2; i++) {
                const struct making making = { "a", NULL, IMAGE_COMPRESSION_NONE, changes[i] };

                assert_int_equal(make_as(scene, &making), 0);
                assert_reads(scene, "a");
                assert_int_equal(make(scene, "b", "a"), -EINVAL);
                assert_says(scene, "/a can be no parent: an older vgpu has made it");
                run(scene, "rm -r a", "");
        }
}

static void test_hashes_that_others_can_read_are_not_believed(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(make(scene, "a", NULL), 0);
        run(scene, "test $(stat -c %a $name) = 600 && chmod 640 $name", "a/memory.hashes");
        assert_int_equal(make(scene, "b", "a"), -EPERM);
        assert_says(scene, "/a/memory.hashes is open to other users");
        assert_reads(scene, "a"); /* for this nobody needs them */
        run(scene, "chmod 600 $name && ! chown 65534 $name 2>/dev/null || touch was-root",
            "a/memory.hashes");
        if (access(in(scene, "was-root").text, F_OK) < 0)
                return;
        assert_int_equal(make(scene, "b", "a"), -EPERM);
        assert_says(scene, "belongs to user 65534");
}

static void test_hashes_with_damage_are_not_believed(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(make(scene, "a", NULL), 0);
        alter(scene, "a/memory.hashes", sizeof(struct hash_key) + 6);
        assert_int_equal(make(scene, "b", "a"), -EBADMSG);
        assert_says(scene, "/a/memory.hashes is altered: its checksum");
        run(scene, "truncate -s -16 $name", "a/memory.hashes");
        assert_int_equal(make(scene, "b", "a"), -EBADMSG);
        assert_says(scene, "it is no file of 5 hashes");
        run(scene, "rm $name", "a/memory.hashes");
        assert_int_equal(make(scene, "b", "a"), -ENOENT);
        assert_says(scene, "/a/memory.hashes");
}

static struct image_chain *all; /* whose first image gets to be the parent of one more */

/* As somebody can do who makes the checksums himself. */
static void take_parent(struct scene *scene, struct image_manifest *manifest)
{
        const struct image_link *link = all->links[0];

        (void)scene;
        manifest->has_parent = true;
        assert_int_equal(image_table_inherit(&manifest->memory), 0);
        strcpy(manifest->parent.directory, link->directory.path);
        strcpy(manifest->parent.id, link->manifest.id);
        manifest->parent.checksum = link->manifest.checksum;
}

static void test_a_chain_has_a_longest(void **state)
{
        const struct making forged = { "more", NULL, IMAGE_COMPRESSION_NONE, take_parent };
        struct scene *scene = *state;
        char name[16] = "0", last[16];
        struct image_chain chain;

        assert_int_equal(make(scene, name, NULL), 0);
        for (int i = 1; i < IMAGE_CHAIN_MAX; i++) {
                strcpy(last, name);
                snprintf(name, sizeof(name), "%d", i);
                scene->memory[0]++;
                assert_int_equal(make(scene, name, last), 0);
        }
        assert_reads(scene, name);
        assert_int_equal(make(scene, "more", name), -EMLINK);
        assert_says(scene, "/31 can be no parent: it is the last of 32 images");
        assert_says(scene, "dump without --parent");

        assert_int_equal(image_chain_open(&chain, in(scene, name).text, &scene->error), 0);
        all = &chain;
        assert_int_equal(make_as(scene, &forged), 0);
        image_chain_close(&chain);
        assert_int_equal(read_image(scene, "more"), -EMLINK);
        assert_says(scene, "/more needs more than 32 images");
}

static void test_a_name_that_no_manifest_can_have(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(make(scene, "a\nb", NULL), 0);
        assert_int_equal(make(scene, "c", "a\nb"), -EINVAL);
        assert_says(scene, "control characters");
        assert_int_equal(make(scene, "a\xff", NULL), 0);
        assert_int_equal(make(scene, "c", "a\xff"), -EINVAL);
        assert_says(scene, "no UTF-8");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_only_what_differs_is_written),
                TEST(test_of_what_is_the_same_nothing_is_written),
                TEST(test_memory_that_moved_is_found_where_it_was),
                TEST(test_what_became_zeros_and_what_was_zeros),
                TEST(test_each_image_packs_as_it_likes),
                TEST(test_hashes_and_checksums_and_lengths_must_be_equal),
                TEST(test_a_disk_without_room_for_all_takes_what_differs),
                TEST(test_a_parent_that_is_missing_is_named),
                TEST(test_a_folder_of_images_can_be_moved),
                TEST(test_an_image_in_the_place_of_the_parent_is_refused),
                TEST(test_a_parent_that_was_changed_is_refused),
                TEST(test_a_parent_with_damage_is_refused),
                TEST(test_a_position_that_cannot_be_is_refused),
                TEST(test_a_parent_that_goes_while_it_is_needed),
                TEST(test_a_parent_that_goes_while_it_is_read),
                TEST(test_an_image_of_an_older_version_can_be_read_and_is_no_parent),
                TEST(test_hashes_that_others_can_read_are_not_believed),
                TEST(test_hashes_with_damage_are_not_believed),
                TEST(test_a_chain_has_a_longest),
                TEST(test_a_name_that_no_manifest_can_have),
        };

        return cmocka_run_group_tests_name("image chain", tests, NULL, NULL);
}
