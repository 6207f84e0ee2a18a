/* SPDX-License-Identifier: Apache-2.0 */
/* A note is about one process, not about a later one with the same number. */
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

static char run[] = "/tmp/openvgpu-test-note-XXXXXX";

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

static void test_a_note_has_a_folder_that_only_we_write_to(void **state)
{
        char path[PATHS_MAX], folder[PATHS_MAX];
        struct stat status;
        (void)state;

        assert_int_equal(note_path(path, getpid(), false), -ENOENT);
        assert_int_equal(note_path(path, getpid(), true), 0);
        assert_int_equal(paths_join(folder, run, "checkpoint"), 0);
        assert_int_equal(strncmp(path, folder, strlen(folder)), 0);
        assert_int_equal(stat(folder, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0700);

        assert_int_equal(chmod(folder, 0777), 0);
        assert_int_equal(note_path(path, getpid(), true), -ENOENT);
        assert_int_equal(note_path(path, -1, true), -ENOENT);
}

static void leave_note(char *path, const char *folder, int pid, uint64_t start,
                       unsigned int namespace)
{
        char file[96];

        snprintf(file, sizeof(file), "%d-%" PRIu64 "-%u", pid, start, namespace);
        assert_int_equal(paths_join(path, folder, file), 0);
        write_file(path, "");
}

static void test_only_notes_on_processes_that_ended_are_swept(void **state)
{
        char ours[PATHS_MAX], reused[PATHS_MAX], elsewhere[PATHS_MAX], folder[PATHS_MAX];
        unsigned int namespace;
        uint64_t start;
        int pid;
        (void)state;

        assert_int_equal(note_path(ours, getpid(), true), 0);
        assert_int_equal(sscanf(strrchr(ours, '/'), "/%d-%" SCNu64 "-%u", &pid, &start, &namespace),
                         3);
        assert_int_equal(paths_join(folder, run, "checkpoint"), 0);
        write_file(ours, "");
        /* A former process of our number, and one of another namespace. */
        leave_note(reused, folder, pid, start - 1, namespace);
        leave_note(elsewhere, folder, pid, start - 1, namespace + 1);

        note_sweep();
        assert_int_equal(access(ours, F_OK), 0);
        assert_int_equal(access(elsewhere, F_OK), 0);
        assert_int_equal(access(reused, F_OK), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_note_has_a_folder_that_only_we_write_to,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_only_notes_on_processes_that_ended_are_swept,
                                                set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
