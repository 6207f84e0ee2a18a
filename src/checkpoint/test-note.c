/* SPDX-License-Identifier: Apache-2.0 */
/* A note is about one process, not about a later one with the same number. A torn note is no note. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/test.h"
#include "checkpoint/note.h"
#include "checkpoint/store-note.h"

static char run[] = "/tmp/openvgpu-test-note-XXXXXX";
static unsigned int n_removed;

static void write_file(const char *path, const char *text)
{
        FILE *file = fopen(path, "we");

        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
        (void)state;
        n_removed = 0;
        strcpy(run + strlen(run) - 6, "XXXXXX");
        return mkdtemp(run) ? setenv("OPENVGPU_RUN", run, true) : -1;
}

static int tear_down(void **state)
{
        char command[PATHS_MAX];
        (void)state;

        snprintf(command, sizeof(command), "rm -rf '%s'", run);
        return system(command) == 0 ? 0 : -1;
}

static void remove_store(const char *path)
{
        n_removed++;
        assert_int_equal(unlink(path), 0);
}

static void test_a_note_has_a_folder_that_only_we_write_to(void **state)
{
        char path[PATHS_MAX], folder[PATHS_MAX];
        struct stat status;
        (void)state;

        assert_int_equal(note_path(path, getpid(), ".storage", false), -ENOENT);
        assert_int_equal(note_path(path, getpid(), ".storage", true), 0);
        assert_int_equal(paths_join(folder, run, "checkpoint"), 0);
        assert_int_equal(strncmp(path, folder, strlen(folder)), 0);
        assert_int_equal(stat(folder, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0700);

        assert_int_equal(chmod(folder, 0777), 0);
        assert_int_equal(note_path(path, getpid(), ".storage", true), -ENOENT);
        assert_int_equal(note_path(path, -1, ".storage", true), -ENOENT);
}

static void test_only_notes_on_processes_that_ended_are_swept(void **state)
{
        char name[NOTE_NAME_MAX], file[2 * NOTE_NAME_MAX], ours[PATHS_MAX], theirs[PATHS_MAX];
        char reused[PATHS_MAX], elsewhere[PATHS_MAX], folder[PATHS_MAX];
        unsigned int namespace;
        uint64_t start;
        int pid;
        (void)state;

        assert_int_equal(note_path(ours, getpid(), ".storage", true), 0);
        assert_int_equal(note_name(name, getpid()), 0);
        assert_int_equal(sscanf(name, "%d-%" SCNu64 "-%u", &pid, &start, &namespace), 3);
        assert_int_equal(paths_join(folder, run, "checkpoint"), 0);
        /* A former process of our number, with and without a store, and one of another namespace. */
        snprintf(file, sizeof(file), "%d-%" PRIu64 "-%u.storage", pid, start - 1, namespace);
        assert_int_equal(paths_join(reused, folder, file), 0);
        snprintf(file, sizeof(file), "%d-%" PRIu64 "-%u", pid, start - 1, namespace);
        assert_int_equal(paths_join(theirs, folder, file), 0);
        snprintf(file, sizeof(file), "%d-%" PRIu64 "-%u.storage", pid, start - 1, namespace + 1);
        assert_int_equal(paths_join(elsewhere, folder, file), 0);
        write_file(ours, "");
        write_file(reused, "");
        write_file(theirs, "");
        write_file(elsewhere, "");

        note_sweep(".storage", remove_store);
        assert_int_equal(n_removed, 1);
        assert_int_equal(access(ours, F_OK), 0);
        assert_int_equal(access(elsewhere, F_OK), 0);
        assert_int_equal(access(reused, F_OK), -1);
        assert_int_equal(access(theirs, F_OK), -1);
}

static void make_store(struct store *store)
{
        *store = STORE_INIT;
        store->place = VGPU_CHECKPOINT_STORAGE_DIRECTORY;
        store->generation = 0x123456789abcdef0;
        store->n_parts = 2;
        strcpy(store->path, "/scratch/with a space");
        strcpy(store->part[0].uuid, "GPU-1");
        store->part[0].size = 1ull << 40;
        strcpy(store->part[1].uuid, "GPU-2");
        assert_int_equal(paths_join(store->note, run, "note"), 0);
}

static void test_the_note_on_a_store_is_read_as_it_was_written(void **state)
{
        struct store store, read;
        (void)state;

        make_store(&store);
        assert_int_equal(store_note_write(&store, STORE_RESERVED), 0);
        assert_int_equal(store_note_write(&store, STORE_SAVED), 0);
        assert_int_equal(store.state, STORE_SAVED);

        assert_int_equal(store_note_read(&read, store.note), 0);
        assert_int_equal(read.state, STORE_SAVED);
        assert_int_equal(read.place, VGPU_CHECKPOINT_STORAGE_DIRECTORY);
        assert_true(read.generation == store.generation);
        assert_string_equal(read.path, store.path);
        assert_int_equal(read.n_parts, 2);
        assert_string_equal(read.part[0].uuid, "GPU-1");
        assert_true(read.part[0].size == 1ull << 40);
        assert_int_equal(read.directory, -1);
}

static void test_a_note_that_is_cut_off_is_none(void **state)
{
        char path[PATHS_MAX];
        struct store read;
        (void)state;

        assert_int_equal(paths_join(path, run, "note"), 0);
        assert_int_equal(store_note_read(&read, path), -ENOENT);
        write_file(path, "state saved\ndirectory /scratch\n");
        assert_int_equal(store_note_read(&read, path), -EBADMSG);
        assert_int_equal(read.state, STORE_NONE);
        write_file(path, "state dreaming\nend\n");
        assert_int_equal(store_note_read(&read, path), -EBADMSG);
        write_file(path, "state saved\nend\nstate lost\n"); /* the rest of a longer one */
        assert_int_equal(store_note_read(&read, path), 0);
        assert_int_equal(read.state, STORE_SAVED);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_note_has_a_folder_that_only_we_write_to,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_only_notes_on_processes_that_ended_are_swept,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_the_note_on_a_store_is_read_as_it_was_written,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_note_that_is_cut_off_is_none, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
