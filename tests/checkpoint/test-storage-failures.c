/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong with stored device memory: what is undone, what is refused, and what is lost. */

#include "tests/checkpoint/storage.h"

static void set_failure(const char *fail, const char *fault)
{
        (void)setenv("OPENVGPU_SIM_FAIL", fail, 1);
        (void)setenv("OPENVGPU_FAULT", fault, 1);
}

static void unset_failure(void)
{
        (void)unsetenv("OPENVGPU_SIM_FAIL");
        (void)unsetenv("OPENVGPU_FAULT");
}

/* Failures between the driver's mapping and its completion: there is no way back. */
static const struct {
        const char *fail;
        const char *fault;
        bool is_resume;
        const char *message;
} losses[] = {
        { "", "checkpointer.storing=fail", false, "could not be stored: fault point" },
        { "", "checkpointer.write=fail", false, "Input/output error" },
        { "", "checkpointer.write=fail@3", false, "Input/output error" },
        { "", "checkpointer.stored=fail", false, "could not be stored: fault point" },
        { "cuMemcpyDtoHAsync_v2@1=700", "", false,
          "cuMemcpyDtoHAsync: CUDA_ERROR_ILLEGAL_ADDRESS" },
        { "cuMemcpyDtoHAsync_v2@4=700", "", false,
          "cuMemcpyDtoHAsync: CUDA_ERROR_ILLEGAL_ADDRESS" },
        { "cuStreamSynchronize@1=700", "", false, "cuStreamSynchronize: " },
        { "cuStreamGetCtx@1=400", "", false, "belongs to no device of ours" },
        { "cuCheckpointOperationComplete@1=999", "", false, "CUDA_ERROR_UNKNOWN" },
        { "", "checkpointer.loading=fail", true, "could not be brought back: fault point" },
        { "", "checkpointer.read=fail", true, "Input/output error" },
        { "", "checkpointer.read=fail@3", true, "Input/output error" },
        { "", "checkpointer.loaded=fail", true, "could not be brought back: fault point" },
        { "cuMemcpyHtoDAsync_v2@2=700", "", true, "cuMemcpyHtoDAsync: " },
        { "cuStreamGetCtx@1=400", "", true, "belongs to no device of ours" },
        { "cuCheckpointOperationComplete@1=999", "", true, "CUDA_ERROR_UNKNOWN" },
};

/* Whoever comes later is told so, too, and nobody lets the process run. */
static void assert_stays_lost(void)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *later = fixture_new(target.pid);
        enum vgpu_checkpoint_state is;

        assert_int_equal(vgpu_checkpoint_get_state(later, &is), 0);
        assert_int_not_equal(is, VGPU_CHECKPOINT_STATE_RUNNING);
        (void)assert_failed(later, vgpu_checkpoint_resume(later, NULL), VGPU_CHECKPOINT_ERROR_LOST);
        assert_false(vgpu_checkpoint_get_error(later)->is_undone);
        assert_int_equal(vgpu_checkpoint_get_state(later, &is), 0);
        assert_int_not_equal(is, VGPU_CHECKPOINT_STATE_RUNNING);
        if (is == VGPU_CHECKPOINT_STATE_LOCKED) {
                (void)assert_failed(later, vgpu_checkpoint_checkpoint(later, NULL),
                                    VGPU_CHECKPOINT_ERROR_LOST);
                (void)assert_failed(later, vgpu_checkpoint_suspend(later, NULL),
                                    VGPU_CHECKPOINT_ERROR_LOST);
                (void)assert_failed(later, vgpu_checkpoint_unlock(later, NULL),
                                    VGPU_CHECKPOINT_ERROR_LOST);
        }
        if (is == VGPU_CHECKPOINT_STATE_CHECKPOINTED)
                (void)assert_failed(later, vgpu_checkpoint_restore(later, NULL),
                                    VGPU_CHECKPOINT_ERROR_LOST);
}

/* Nobody knows what the driver has done: then what is stored is kept, until it says that it has failed. */
static bool is_unknown(size_t i)
{
        return !losses[i].is_resume && strstr(losses[i].fail, "cuCheckpointOperationComplete");
}

static void test_after_the_mapping_a_failure_costs_the_process(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
                CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
                CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *failing = NULL;
                const struct vgpu_checkpoint_error *error;
                int r;

                print_message("%s%s%s\n", losses[i].fail, losses[i].fault,
                              losses[i].is_resume ? " at resume" : "");
                start(work);
                checkpoint = fixture_new(target.pid);
                if (losses[i].is_resume)
                        assert_done(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL));
                failing = fixture_new(target.pid);
                set_failure(losses[i].fail, losses[i].fault);
                r = losses[i].is_resume ? vgpu_checkpoint_resume(failing, NULL)
                                        : vgpu_checkpoint_suspend(failing, NULL);
                unset_failure();
                error = assert_failed(failing, r, VGPU_CHECKPOINT_ERROR_LOST);
                if (!strstr(error->message, losses[i].message))
                        fail_msg("%s: not '%s'", error->message, losses[i].message);
                assert_false(error->is_undone);
                assert_int_equal(error->pid, target.pid);
                failing = vgpu_checkpoint_free(failing);
                if (!is_unknown(i))
                        assert_int_equal(storage_count(MEMORY_FOLDER, target.pid, NULL, 0), 0);
                assert_stays_lost();
                assert_int_equal(guest_kill(&target), 128 + SIGKILL);
        }
}

static void test_no_room_for_the_rest_costs_the_process(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        char path[128], pid[16];
        (void)state;

        start(work);
        (void)snprintf(path, sizeof(path), "%s/nvml", test_directory);
        (void)snprintf(pid, sizeof(pid), "%d", target.pid);
        fixture_write(path, "1099511627776 1048576"); /* 1 MiB used, says NVML */
        (void)setenv("FAKE_NVML", path, 1);
        (void)setenv("FAKE_NVML_PID", pid, 1);
        set_failure("", "checkpointer.grow=fail");
        checkpoint = fixture_new(target.pid);
        assert_non_null(strstr(assert_failed(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL),
                                             VGPU_CHECKPOINT_ERROR_LOST)
                                       ->message,
                               "it is more than was reserved"));
        unset_failure();
        (void)unsetenv("FAKE_NVML");
        (void)unsetenv("FAKE_NVML_PID");
        assert_stays_lost();
        assert_int_equal(guest_kill(&target), 128 + SIGKILL);
}

/* Failures of a resume before the mapping, or behind the completion: it is as it was. */
static const struct {
        const char *fail;
        enum vgpu_checkpoint_error_kind kind;
} undone[] = {
        { "cuDevicePrimaryCtxRetain@1=2", VGPU_CHECKPOINT_ERROR_NO_ROOM },
        { "cuMemHostAlloc@2=2", VGPU_CHECKPOINT_ERROR_NO_ROOM },
        { "cuCheckpointProcessRestore@1=304", VGPU_CHECKPOINT_ERROR_DRIVER_FAILED },
        { "cuCheckpointProcessRestore@1=201,cuCheckpointProcessRestore@2=201",
          VGPU_CHECKPOINT_ERROR_DRIVER_FAILED },
        { "cuCheckpointProcessUnlock@1=304", VGPU_CHECKPOINT_ERROR_DRIVER_FAILED },
};

static void test_a_resume_that_fails_in_time_is_undone(void **state)
{
        char folder[128];
        (void)state;

        storage_get_folder(folder, sizeof(folder));
        start(work);
        for (size_t i = 0; i < sizeof(undone) / sizeof(undone[0]); i++) {
                CLEANUP(vgpu_checkpoint_freep)
                struct vgpu_checkpoint *checkpoint = fixture_new(target.pid);
                CLEANUP(vgpu_checkpoint_freep)
                struct vgpu_checkpoint *failing = fixture_new(target.pid);

                print_message("%s\n", undone[i].fail);
                assert_done(checkpoint, storage_suspend(checkpoint, folder));
                set_failure(undone[i].fail, "");
                assert_true(assert_failed(failing, vgpu_checkpoint_resume(failing, NULL),
                                          undone[i].kind)
                                    ->is_undone);
                unset_failure();
                assert_state(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
                assert_int_equal(storage_count(folder, target.pid, NULL, 0), 1);
                assert_int_equal(storage_count(MEMORY_FOLDER, target.pid, NULL, 0), 0);
                assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
                assert_nothing_stored(target.pid);
                (void)let_work();
        }
        end();
}

/* The driver says no, and has done it: the state counts, and what was stored is still good. */
static void test_a_completion_that_was_done_all_the_same_is_undone(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *failing = NULL;
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        failing = fixture_new(target.pid);
        set_failure("cuCheckpointOperationComplete@1=+999", "");
        assert_true(assert_failed(failing, vgpu_checkpoint_suspend(failing, NULL),
                                  VGPU_CHECKPOINT_ERROR_DRIVER_FAILED)
                            ->is_undone);
        unset_failure();
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
        assert_nothing_stored(target.pid);
        (void)let_work();
        end();
}

/* A disk that fails in the middle: the process goes on, with the help of the host's memory. */
static void test_a_directory_that_fails_costs_no_process(void **state)
{
        static const char *const faults[] = { "checkpointer.write=fail",
                                              "checkpointer.write=fail@3",
                                              "checkpointer.grow=fail" };
        char folder[128], path[128], pid[16];
        (void)state;

        storage_get_folder(folder, sizeof(folder));
        start(work);
        (void)snprintf(path, sizeof(path), "%s/nvml", test_directory);
        (void)snprintf(pid, sizeof(pid), "%d", target.pid);
        fixture_write(path, "1099511627776 1048576");
        (void)setenv("FAKE_NVML", path, 1);
        (void)setenv("FAKE_NVML_PID", pid, 1);
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
                CLEANUP(vgpu_checkpoint_freep)
                struct vgpu_checkpoint *failing = fixture_new(target.pid);
                const struct vgpu_checkpoint_error *error;

                print_message("%s\n", faults[i]);
                set_failure("", faults[i]);
                error = assert_failed(failing, storage_suspend(failing, folder),
                                      VGPU_CHECKPOINT_ERROR_FAILED);
                unset_failure();
                assert_non_null(strstr(error->message, folder));
                assert_true(error->is_undone);
                assert_state(failing, VGPU_CHECKPOINT_STATE_RUNNING);
                assert_nothing_stored(target.pid);
                (void)let_work();
        }
        (void)unsetenv("FAKE_NVML");
        (void)unsetenv("FAKE_NVML_PID");
        end();
}

static void assert_refused(struct vgpu_checkpoint *checkpoint, const char *problem)
{
        const struct vgpu_checkpoint_error *error =
                assert_failed(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL),
                              VGPU_CHECKPOINT_ERROR_STORAGE);

        if (!strstr(error->message, problem))
                fail_msg("%s: not '%s'", error->message, problem);
        assert_true(error->is_undone);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
}

static void rename_file(const char *directory, const char *from, const char *to)
{
        char old[400], new[400];

        (void)snprintf(old, sizeof(old), "%s/%s", directory, from);
        (void)snprintf(new, sizeof(new), "%s/%s", directory, to);
        assert_int_equal(rename(old, new), 0);
}

/* The name of the first segment of anything. */
static void find_segment(const char *path, char *name, size_t room)
{
        DIR *directory = opendir(path);
        const struct dirent *entry;

        assert_non_null(directory);
        *name = '\0';
        while ((entry = readdir(directory)))
                if (strncmp(entry->d_name, "GPU-", 4) == 0)
                        (void)snprintf(name, room, "%.90s", entry->d_name);
        (void)closedir(directory);
        assert_true(*name);
}

static void test_a_store_that_is_not_whole_is_refused_before_the_driver_is_asked(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        char folder[128], path[320], away[400], segment[96], file[480];
        struct stat status;
        FILE *generation;
        (void)state;

        storage_get_folder(folder, sizeof(folder));
        start(work);
        checkpoint = fixture_new(target.pid);
        assert_done(checkpoint, storage_suspend(checkpoint, folder));
        assert_int_equal(storage_count(folder, target.pid, path, sizeof(path)), 1);

        (void)snprintf(away, sizeof(away), "%s-away", path);
        assert_int_equal(rename(path, away), 0);
        assert_refused(checkpoint, "No such file or directory");
        assert_int_equal(rename(away, path), 0);

        assert_int_equal(rename(path, away), 0);
        assert_int_equal(symlink(away, path), 0);
        assert_refused(checkpoint, "Not a directory");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rename(away, path), 0);

        assert_int_equal(chmod(path, 0750), 0);
        assert_refused(checkpoint, "not permitted");
        assert_int_equal(chmod(path, 0700), 0);

        find_segment(path, segment, sizeof(segment));
        rename_file(path, segment, "elsewhere");
        assert_refused(checkpoint, "is missing");
        rename_file(path, "elsewhere", segment);

        (void)snprintf(file, sizeof(file), "%s/%s", path, segment);
        assert_int_equal(stat(file, &status), 0);
        assert_int_equal(truncate(file, status.st_size + 1), 0);
        assert_refused(checkpoint, "bytes, not");
        assert_int_equal(truncate(file, status.st_size), 0);

        rename_file(path, "generation", "former");
        (void)snprintf(file, sizeof(file), "%s/generation", path);
        generation = fopen(file, "we");
        assert_non_null(generation);
        (void)fputs("0123456789abcdef\n", generation);
        (void)fclose(generation);
        assert_refused(checkpoint, "of another checkpoint");
        rename_file(path, "former", "generation");

        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        (void)let_work();
        end();
        assert_nothing_stored(target.pid);
}

static void read_note(char *path, size_t path_room, char *text, size_t room)
{
        char folder[96];
        const struct dirent *entry;
        DIR *directory;
        FILE *file;

        (void)snprintf(folder, sizeof(folder), "%s/checkpoint", test_directory);
        directory = opendir(folder);
        assert_non_null(directory);
        *path = '\0';
        while ((entry = readdir(directory)))
                if (strstr(entry->d_name, ".storage"))
                        (void)snprintf(path, path_room, "%s/%.100s", folder, entry->d_name);
        (void)closedir(directory);
        file = fopen(path, "re");
        assert_non_null(file);
        text[fread(text, 1, room - 1, file)] = '\0';
        (void)fclose(file);
}

/* Else a later restore would bring back what the process had long ago. */
static void test_a_note_on_a_process_that_runs_is_stale(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        char path[256], text[2048];
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        assert_done(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL));
        read_note(path, sizeof(path), text, sizeof(text));
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        fixture_write(path, text);
        assert_done(checkpoint, storage_suspend(checkpoint, "driver"));
        assert_false(storage_has_note(target.pid));
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        (void)let_work();
        end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_after_the_mapping_a_failure_costs_the_process),
                cmocka_unit_test(test_no_room_for_the_rest_costs_the_process),
                cmocka_unit_test(test_a_resume_that_fails_in_time_is_undone),
                cmocka_unit_test(test_a_completion_that_was_done_all_the_same_is_undone),
                cmocka_unit_test(test_a_directory_that_fails_costs_no_process),
                cmocka_unit_test(
                        test_a_store_that_is_not_whole_is_refused_before_the_driver_is_asked),
                cmocka_unit_test(test_a_note_on_a_process_that_runs_is_stale),
        };
        int failed;

        storage_setup();
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        storage_teardown();
        return failed;
}
