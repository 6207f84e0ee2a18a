/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests and directories: what is whole is read, all else is refused with its reason. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "image/directory.h"

/* An image of one process with two mappings, in four chunks. */
static void make_manifest(struct image_manifest *manifest)
{
        static const struct image_chunk chunks[] = {
                { 0, 65536, 0x11111111 },
                { 65536, 1000, 0x22222222 },
                { 0, 0, 0x33333333 },
                { 69632, 4096, 0x44444444 },
        };
        struct image_process *process = calloc(1, sizeof(*process));

        *manifest = (struct image_manifest){
                .created = "2026-01-31T12:00:00Z",
                .host = "here",
                .software = "0.1.0",
                .device = { { "Simulated H200", "GPU-1", (uint64_t)2 << 30 } },
                .driver_version = 13000,
                .driver = "580.159.04",
                .has_vgpu = true,
                .vgpu = { "train", "0d5c", 256 << 20 },
                .processes = process,
                .n_processes = 1,
                .has_memory = true,
                .memory = { .size = 3 * 65536 + 4096,
                            .file_size = 73728,
                            .chunk_size = 65536,
                            .compression = IMAGE_COMPRESSION_ZSTD,
                            .n_chunks = 4 },
        };
        manifest->memory.chunks = calloc(4, sizeof(chunks[0]));
        memcpy(manifest->memory.chunks, chunks, sizeof(chunks));
        process->pid = 42;
        strcpy(process->name, "python3");
        process->n_allocations = 2;
        process->allocations = calloc(2, sizeof(*process->allocations));
        process->allocations[0] = (struct image_allocation){ 0x7f0000000000, 3 * 65536, 0 };
        process->allocations[1] = (struct image_allocation){ 0x7f0000200000, 4096, 0 };
        process->size = 3 * 65536 + 4096;
}

static char *format(void)
{
        struct image_manifest manifest;
        char *text;

        make_manifest(&manifest);
        text = image_manifest_format(&manifest);
        assert_non_null(text);
        image_manifest_deinit(&manifest);
        return text;
}

static int parse(const char *text, size_t size, struct image_error *error)
{
        struct image_manifest manifest;
        int r;

        *error = (struct image_error){ 0 };
        r = image_manifest_parse(&manifest, "x/manifest.json", text, size, error);
        image_manifest_deinit(&manifest);
        return r;
}

static void test_a_manifest_comes_back_as_it_was(void **state)
{
        CLEANUP(freep) char *text = format(), *again = NULL;
        struct image_manifest manifest;
        struct image_error error = { 0 };
        (void)state;

        assert_int_equal(image_manifest_parse(&manifest, "x", text, strlen(text), &error), 0);
        assert_string_equal(manifest.vgpu.name, "train");
        assert_int_equal(manifest.processes[0].allocations[1].address, 0x7f0000200000);
        assert_int_equal(manifest.processes[0].size, 3 * 65536 + 4096);
        assert_int_equal(manifest.memory.chunks[3].checksum, 0x44444444);
        assert_false(manifest.has_criu);
        again = image_manifest_format(&manifest);
        assert_string_equal(again, text);
        image_manifest_deinit(&manifest);
}

static void add_parent(struct image_manifest *manifest)
{
        manifest->has_parent = true;
        strcpy(manifest->parent.directory, "/data/first");
        strcpy(manifest->parent.id, "0123");
        manifest->parent.checksum = 0x55555555;
        assert_int_equal(image_table_inherit(&manifest->memory), 0);
        manifest->memory.inherited[1] = 7;
        manifest->memory.chunks[1] = (struct image_chunk){ .checksum = 0x66666666 };
}

static void test_a_parent_comes_back_as_it_was(void **state)
{
        CLEANUP(freep) char *text = NULL;
        struct image_error error = { 0 };
        struct image_manifest manifest;
        (void)state;

        make_manifest(&manifest);
        assert_int_equal(image_manifest_make_id(&manifest), 0);
        add_parent(&manifest);
        text = image_manifest_format(&manifest);
        image_manifest_deinit(&manifest);
        assert_non_null(
                strstr(text, "\"version\":2")); /* older readers must not take it for whole */
        assert_int_equal(image_manifest_parse(&manifest, "x", text, strlen(text), &error), 0);
        assert_int_equal(strlen(manifest.id), 32);
        assert_string_equal(manifest.parent.directory, "/data/first");
        assert_string_equal(manifest.parent.id, "0123");
        assert_int_equal(manifest.parent.checksum, 0x55555555);
        assert_int_equal(manifest.memory.inherited[1], 7);
        assert_int_equal(manifest.memory.chunks[1].checksum, 0x66666666);
        assert_false(image_table_is_inherited(&manifest.memory, 0));
        image_manifest_deinit(&manifest);
}

/* Its second mapping is on the second. */
static void add_device(struct image_manifest *manifest)
{
        manifest->n_devices = 2;
        manifest->device[1] = (struct image_device){ "Simulated H200", "GPU-2", (uint64_t)3 << 30 };
        manifest->processes[0].allocations[1].device = 1;
}

static void test_several_devices_come_back_as_they_were(void **state)
{
        CLEANUP(freep) char *text = NULL, *again = NULL;
        struct image_error error = { 0 };
        struct image_manifest manifest;
        (void)state;

        make_manifest(&manifest);
        add_device(&manifest);
        text = image_manifest_format(&manifest);
        image_manifest_deinit(&manifest);
        assert_non_null(strstr(text, "\"version\":3")); /* older readers know of one device */
        assert_int_equal(image_manifest_parse(&manifest, "x", text, strlen(text), &error), 0);
        assert_int_equal(manifest.n_devices, 2);
        assert_string_equal(manifest.device[0].uuid, "GPU-1");
        assert_string_equal(manifest.device[1].uuid, "GPU-2");
        assert_int_equal(manifest.device[1].memory, (uint64_t)3 << 30);
        assert_int_equal(manifest.processes[0].allocations[0].device, 0);
        assert_int_equal(manifest.processes[0].allocations[1].device, 1);
        again = image_manifest_format(&manifest);
        assert_string_equal(again, text);
        image_manifest_deinit(&manifest);
}

static void test_without_parent_it_is_as_older_readers_know_it(void **state)
{
        CLEANUP(freep) char *text = format();
        (void)state;

        assert_non_null(strstr(text, "\"version\":1"));
}

static void test_one_that_ends_anywhere_is_refused(void **state)
{
        CLEANUP(freep) char *text = format();
        struct image_error error;
        (void)state;

        for (size_t size = 0; size < strlen(text); size++) {
                assert_int_equal(parse(text, size, &error), -EBADMSG);
                assert_non_null(strstr(error.message, "x/manifest.json: "));
        }
}

static void test_one_with_any_bit_changed_is_refused(void **state)
{
        CLEANUP(freep) char *text = format();
        size_t size = strlen(text);
        struct image_error error;
        (void)state;

        for (size_t i = 0; i < size; i++)
                for (int bit = 0; bit < 7; bit++) {
                        text[i] ^= (char)(1 << bit);
                        assert_true(parse(text, size, &error) < 0);
                        assert_string_not_equal(error.message, "");
                        text[i] ^= (char)(1 << bit);
                }
        assert_int_equal(parse(text, size, &error), 0);
}

/* A manifest that somebody made, with a right checksum: every member is still checked. */
static void expect_refusal(void (*change)(struct image_manifest *manifest), const char *reason)
{
        CLEANUP(freep) char *text = NULL;
        struct image_manifest manifest;
        struct image_error error;

        make_manifest(&manifest);
        change(&manifest);
        text = image_manifest_format(&manifest);
        image_manifest_deinit(&manifest);
        assert_non_null(text);
        assert_int_equal(parse(text, strlen(text), &error), -EBADMSG);
        if (!strstr(error.message, reason))
                fail_msg("expected '%s' in: %s", reason, error.message);
}

static void far_chunk(struct image_manifest *manifest)
{
        manifest->memory.chunks[1].offset = 69632 + 4096;
}

static void crooked_chunk(struct image_manifest *manifest)
{
        manifest->memory.chunks[1].offset = 100;
}

static void long_chunk(struct image_manifest *manifest)
{
        manifest->memory.chunks[3].stored = 4097;
}

static void packed_in_plain(struct image_manifest *manifest)
{
        manifest->memory.compression = IMAGE_COMPRESSION_NONE;
}

static void missing_chunk(struct image_manifest *manifest)
{
        manifest->memory.n_chunks = 3;
}

static void other_size(struct image_manifest *manifest)
{
        manifest->memory.size -= 4096;
        manifest->memory.n_chunks = 3;
}

static void odd_chunk_size(struct image_manifest *manifest)
{
        manifest->memory.chunk_size = 65537;
}

static void no_chunk_size(struct image_manifest *manifest)
{
        manifest->memory.chunk_size = 0;
}

static void crooked_allocation(struct image_manifest *manifest)
{
        manifest->processes[0].allocations[1].size = 4095;
}

static void huge_allocation(struct image_manifest *manifest)
{
        manifest->processes[0].allocations[0].size = UINT64_C(1) << 62;
}

static void negative_size(struct image_manifest *manifest)
{
        manifest->memory.file_size = UINT64_MAX;
}

static void no_pid(struct image_manifest *manifest)
{
        manifest->processes[0].pid = 0;
}

static void strange_name(struct image_manifest *manifest)
{
        strcpy(manifest->vgpu.name, "a\033[2Jb");
}

static void nothing_in_it(struct image_manifest *manifest)
{
        manifest->has_memory = false;
}

static void path_of_criu(struct image_manifest *manifest)
{
        manifest->has_criu = true;
        manifest->criu.pid = 42;
        manifest->criu.files = calloc(1, sizeof(*manifest->criu.files));
        manifest->criu.n_files = 1;
        strcpy(manifest->criu.files[0].name, "../../etc/passwd");
}

static void parent_without_name(struct image_manifest *manifest)
{
        add_parent(manifest);
        manifest->parent.directory[0] = '\0';
}

static void parent_without_id(struct image_manifest *manifest)
{
        add_parent(manifest);
        manifest->parent.id[0] = '\0';
}

static void parent_with_strange_name(struct image_manifest *manifest)
{
        add_parent(manifest);
        strcpy(manifest->parent.directory, "/a\033[2J");
}

static void inherited_from_nobody(struct image_manifest *manifest)
{
        add_parent(manifest);
        manifest->has_parent = false;
}

static void parent_of_processes(struct image_manifest *manifest)
{
        path_of_criu(manifest);
        strcpy(manifest->criu.files[0].name, "pages-1.img");
        add_parent(manifest);
        manifest->has_memory = false;
}

static void hashes_of_other_chunks(struct image_manifest *manifest)
{
        manifest->has_hashes = true;
}

static void same_devices(struct image_manifest *manifest)
{
        add_device(manifest);
        strcpy(manifest->device[1].uuid, "GPU-1");
}

static void device_that_is_not_there(struct image_manifest *manifest)
{
        add_device(manifest);
        manifest->processes[0].allocations[1].device = 2;
}

static void device_of_one(struct image_manifest *manifest)
{
        manifest->processes[0].allocations[1].device = 1;
}

static void test_what_makes_no_sense_is_refused(void **state)
{
        static const struct {
                void (*change)(struct image_manifest *manifest);
                const char *reason;
        } cases[] = {
                { far_chunk, "chunk 1 is not inside of the data file" },
                { crooked_chunk, "chunk 1 is not inside of the data file" },
                { long_chunk, "chunk 3 is 4097, out of its range" },
                { packed_in_plain, "chunk 1 is packed, but the image is plain" },
                { missing_chunk, "there are 3 chunks for 200704 bytes" },
                { other_size, "the processes have 200704 bytes, memory.size says 196608" },
                { odd_chunk_size, "memory.chunk_size is 65537" },
                { no_chunk_size, "memory.chunk_size is 0" },
                { crooked_allocation, "no whole number of pages" },
                { huge_allocation, "out of its range" },
                { negative_size, "memory.file_size is -1" },
                { no_pid, "the pid of a process is 0" },
                { same_devices, "device GPU-1 is in it twice" },
                { device_that_is_not_there, "an allocation is 2, out of its range" },
                { device_of_one, "an allocation is no list of 2 numbers" },
                { strange_name, "vgpu.name has control characters" },
                { nothing_in_it, "neither memory nor processes" },
                { path_of_criu, "is no name of a file" },
                { parent_without_name, "the parent has no name, or no id" },
                { parent_without_id, "the parent has no name, or no id" },
                { parent_with_strange_name, "parent.directory has control characters" },
                { inherited_from_nobody, "chunk 1 is no list of 3 numbers" },
                { parent_of_processes, "there is a parent, but no memory" },
                { hashes_of_other_chunks, "there are hashes of chunks of 65536 bytes" },
        };
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                expect_refusal(cases[i].change, cases[i].reason);
}

static void test_what_is_foreign_or_newer_is_told_apart(void **state)
{
        static const char foreign[] = "{\"format\": \"docker\", \"version\": 1}";
        static const char newer[] = "{\"format\": \"" IMAGE_FORMAT "\", \"version\": 4}";
        struct image_error error;
        (void)state;

        assert_int_equal(parse(foreign, strlen(foreign), &error), -EBADMSG);
        assert_non_null(strstr(error.message, "no image of vgpu checkpoint"));
        assert_int_equal(parse(newer, strlen(newer), &error), -EOPNOTSUPP);
        assert_non_null(strstr(error.message, "version 4"));
        assert_non_null(strstr(error.hint, "newer vgpu"));
}

/* Directories. */

struct scene {
        char root[64], path[96], partial[128];
        struct image_error error;
};

static int set_up(void **state)
{
        struct scene *scene = calloc(1, sizeof(*scene));

        strcpy(scene->root, "/tmp/test-image-XXXXXX");
        assert_non_null(mkdtemp(scene->root));
        snprintf(scene->path, sizeof(scene->path), "%s/image", scene->root);
        snprintf(scene->partial, sizeof(scene->partial), "%s.partial", scene->path);
        *state = scene;
        return 0;
}

static int tear_down(void **state)
{
        struct scene *scene = *state;
        char command[128];

        snprintf(command, sizeof(command), "rm -rf %s", scene->root);
        assert_int_equal(system(command), 0);
        free(scene);
        return 0;
}

static int begin(struct scene *scene, struct image_directory *directory)
{
        scene->error = (struct image_error){ 0 };
        return image_directory_begin(directory, scene->path, &scene->error);
}

static int open_image(struct scene *scene)
{
        struct image_directory directory;
        struct image_manifest manifest = { 0 };
        int r;

        scene->error = (struct image_error){ 0 };
        r = image_directory_open(&directory, scene->path, &manifest, &scene->error);
        if (r == 0)
                image_directory_close(&directory);
        image_manifest_deinit(&manifest);
        return r;
}

static void commit(struct scene *scene, struct image_directory *directory)
{
        struct image_manifest manifest;

        make_manifest(&manifest);
        assert_int_equal(image_directory_commit(directory, &manifest, &scene->error), 0);
        image_manifest_deinit(&manifest);
        image_directory_close(directory);
}

static void touch(const char *folder, const char *name)
{
        char path[192];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs("something", file);
        fclose(file);
}

static void test_an_image_has_its_name_when_it_is_whole(void **state)
{
        struct scene *scene = *state;
        struct image_directory directory;
        struct stat status;

        assert_int_equal(begin(scene, &directory), 0);
        assert_int_equal(open_image(scene), -ENOENT);
        assert_non_null(strstr(scene->error.message, "never finished"));
        commit(scene, &directory);
        assert_int_equal(open_image(scene), 0);
        assert_int_equal(access(scene->partial, F_OK), -1);
        assert_int_equal(stat(scene->path, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0700);
}

static void test_nothing_is_overwritten(void **state)
{
        struct scene *scene = *state;
        struct image_directory directory;

        assert_int_equal(mkdir(scene->path, 0755), 0);
        assert_int_equal(begin(scene, &directory), 0); /* an empty one may be there */
        commit(scene, &directory);
        assert_int_equal(begin(scene, &directory), -EEXIST);
        assert_non_null(strstr(scene->error.message, "exists already"));
        assert_int_equal(open_image(scene), 0);
}

static void test_what_a_killed_dump_left_is_removed(void **state)
{
        struct scene *scene = *state;
        struct image_directory directory, other;
        char folder[160];

        assert_int_equal(mkdir(scene->partial, 0700), 0);
        touch(scene->partial, "memory.data");
        snprintf(folder, sizeof(folder), "%s/criu", scene->partial);
        assert_int_equal(mkdir(folder, 0700), 0);
        touch(folder, "pages-1.img");
        assert_int_equal(begin(scene, &directory), 0);
        assert_int_equal(faccessat(directory.fd, "memory.data", F_OK, 0), -1);

        /* But not one that is being written. */
        assert_int_equal(begin(scene, &other), -EBUSY);
        assert_non_null(strstr(scene->error.message, "another dump"));
        image_directory_abandon(&directory);
        assert_int_equal(access(scene->partial, F_OK), -1);
}

static void test_a_directory_without_manifest_is_no_image(void **state)
{
        struct scene *scene = *state;

        assert_int_equal(open_image(scene), -ENOENT);
        assert_int_equal(mkdir(scene->path, 0755), 0);
        assert_int_equal(open_image(scene), -ENOENT);
        assert_non_null(strstr(scene->error.message, "no manifest"));
        touch(scene->path, IMAGE_MANIFEST_FILE);
        assert_int_equal(open_image(scene), -EBADMSG);
        assert_non_null(strstr(scene->error.message, scene->path));
        assert_int_equal(rename(scene->path, scene->partial), 0);
        touch(scene->root, "image");
        assert_int_equal(open_image(scene), -ENOTDIR);
}

static void list_criu(struct scene *scene, struct image_directory *directory,
                      struct image_manifest *manifest)
{
        char folder[160];

        assert_int_equal(begin(scene, directory), 0);
        snprintf(folder, sizeof(folder), "%s/criu", scene->partial);
        assert_int_equal(mkdir(folder, 0700), 0);
        touch(folder, "pages-1.img");
        touch(folder, "core-42.img");
        touch(folder, "dump.log");
        assert_int_equal(image_directory_list_criu(directory, manifest, &scene->error), 0);
}

static void test_files_of_criu_are_listed_and_compared(void **state)
{
        struct scene *scene = *state;
        struct image_directory directory;
        struct image_manifest manifest = { .processes = NULL };
        char folder[160];

        list_criu(scene, &directory, &manifest);
        assert_int_equal(manifest.criu.n_files, 2); /* not the log */
        memcpy(directory.path, scene->partial, sizeof(scene->partial));
        assert_int_equal(image_directory_check_criu(&directory, &manifest, &scene->error), 0);

        snprintf(folder, sizeof(folder), "%s/criu", scene->partial);
        touch(folder, "dump.log");
        assert_int_equal(truncate(strcat(folder, "/pages-1.img"), 4), 0);
        assert_int_equal(image_directory_check_criu(&directory, &manifest, &scene->error),
                         -EBADMSG);
        assert_non_null(strstr(scene->error.message, "pages-1.img is cut off"));

        scene->error = (struct image_error){ 0 };
        assert_int_equal(unlink(folder), 0);
        assert_int_equal(image_directory_check_criu(&directory, &manifest, &scene->error), -ENOENT);
        assert_non_null(strstr(scene->error.message, "pages-1.img: it is missing"));
        image_manifest_deinit(&manifest);
        image_directory_abandon(&directory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_manifest_comes_back_as_it_was),
                cmocka_unit_test(test_a_parent_comes_back_as_it_was),
                cmocka_unit_test(test_several_devices_come_back_as_they_were),
                cmocka_unit_test(test_without_parent_it_is_as_older_readers_know_it),
                cmocka_unit_test(test_one_that_ends_anywhere_is_refused),
                cmocka_unit_test(test_one_with_any_bit_changed_is_refused),
                cmocka_unit_test(test_what_makes_no_sense_is_refused),
                cmocka_unit_test(test_what_is_foreign_or_newer_is_told_apart),
                TEST(test_an_image_has_its_name_when_it_is_whole),
                TEST(test_nothing_is_overwritten),
                TEST(test_what_a_killed_dump_left_is_removed),
                TEST(test_a_directory_without_manifest_is_no_image),
                TEST(test_files_of_criu_are_listed_and_compared),
        };

        return cmocka_run_group_tests_name("image manifest", tests, NULL, NULL);
}
