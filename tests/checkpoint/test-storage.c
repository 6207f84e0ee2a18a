/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory stored by ourselves, with a driver of CUDA 13.4: where it goes, and that it comes back. */

#include "tests/checkpoint/storage.h"

static void test_memory_is_stored_and_brought_back(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        const struct vgpu_checkpoint_process *const *processes;
        char path[320];
        size_t n;
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        for (int i = 0; i < 2; i++) {
                assert_done(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL));
                assert_stored(checkpoint, VGPU_CHECKPOINT_STORAGE_MEMORY, "");
                processes = vgpu_checkpoint_get_processes(checkpoint, &n);
                assert_true(processes[0]->bytes >= 64 * MIB); /* NVML says nothing of it here */
                assert_int_equal(storage_count(MEMORY_FOLDER, target.pid, path, sizeof(path)), 1);
                assert_state(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
                processes = vgpu_checkpoint_get_processes(checkpoint, &n);
                assert_int_equal(processes[0]->storage, VGPU_CHECKPOINT_STORAGE_MEMORY);
                assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
                assert_stored(checkpoint, VGPU_CHECKPOINT_STORAGE_MEMORY, "");
                assert_nothing_stored(target.pid);
                (void)let_work();
        }
        end();
}

static void test_a_directory_is_read_by_another_helper(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = NULL;
        char folder[128];
        (void)state;

        storage_get_folder(folder, sizeof(folder));
        start(work);
        checkpoint = fixture_new(target.pid);
        assert_done(checkpoint, storage_suspend(checkpoint, folder));
        assert_stored(checkpoint, VGPU_CHECKPOINT_STORAGE_DIRECTORY, "");
        assert_int_equal(storage_count(folder, target.pid, NULL, 0), 1);
        assert_int_equal(storage_count(MEMORY_FOLDER, target.pid, NULL, 0), 0);
        checkpoint = vgpu_checkpoint_free(checkpoint);
        other = fixture_new(target.pid);
        assert_done(other, vgpu_checkpoint_resume(other, NULL));
        assert_stored(other, VGPU_CHECKPOINT_STORAGE_DIRECTORY, "");
        assert_nothing_stored(target.pid);
        (void)let_work();
        end();
}

static void test_what_cannot_be_storage_is_refused(void **state)
{
        static const char *const wrong[] = { "disk", "", "/nonexistent/", "/dev/null" };
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        char folder[128];
        (void)state;

        storage_get_folder(folder, sizeof(folder));
        start(work);
        checkpoint = fixture_new(target.pid);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                (void)assert_failed(checkpoint, storage_suspend(checkpoint, wrong[i]),
                                    VGPU_CHECKPOINT_ERROR_INVALID);
        assert_done(checkpoint, storage_suspend(checkpoint, "memory"));
        (void)assert_failed(checkpoint, storage_suspend(checkpoint, "driver"),
                            VGPU_CHECKPOINT_ERROR_WRONG_STATE);
        (void)assert_failed(checkpoint, storage_suspend(checkpoint, folder),
                            VGPU_CHECKPOINT_ERROR_WRONG_STATE);
        assert_done(checkpoint, storage_suspend(checkpoint, "auto")); /* it is already */
        assert_done(checkpoint, storage_suspend(checkpoint, "memory"));
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        assert_done(checkpoint, storage_suspend(checkpoint, "driver"));
        assert_stored(checkpoint, VGPU_CHECKPOINT_STORAGE_DRIVER, "");
        assert_nothing_stored(target.pid);
        (void)assert_failed(checkpoint, storage_suspend(checkpoint, "memory"),
                            VGPU_CHECKPOINT_ERROR_WRONG_STATE);
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        assert_done(checkpoint, storage_suspend(checkpoint, folder));
        assert_done(checkpoint, storage_suspend(checkpoint, folder));
        (void)assert_failed(checkpoint, storage_suspend(checkpoint, test_directory),
                            VGPU_CHECKPOINT_ERROR_WRONG_STATE);
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        (void)let_work();
        end();
}

static void test_it_goes_to_another_device(void **state)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        const struct vgpu_checkpoint_pair move = { "0", "1" };
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        uint64_t first;
        (void)state;

        options.pairs = &move;
        options.n_pairs = 1;
        start(work);
        first = let_work();
        checkpoint = fixture_new(target.pid);
        assert_done(checkpoint, storage_suspend(checkpoint, "memory"));
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, &options));
        assert_int_not_equal(let_work(), first);
        assert_done(checkpoint, storage_suspend(checkpoint, "memory"));
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, &options)); /* back */
        assert_int_equal(let_work(), first);
        end();
}

static void hold_both_devices(int socket)
{
        CUdeviceptr first, second;
        uint32_t word;

        (void)guest_init(1);
        must(cuMemAlloc_v2(&second, 20 * MIB));
        must(cuMemsetD32_v2(second, 2, 5 * MIB));
        (void)guest_init(0);
        must(cuMemAlloc_v2(&first, 300 * MIB)); /* more than a segment */
        must(cuMemsetD32_v2(first, 1, 75 * MIB));
        must(cuMemsetD32_v2(first + 300 * MIB - 4, 3, 1));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
        must(cuMemcpyDtoH_v2(&word, first + 260 * MIB, sizeof(word)));
        must_equal(word, 1);
        must(cuMemcpyDtoH_v2(&word, first + 300 * MIB - 4, sizeof(word)));
        must_equal(word, 3);
        must(cuMemcpyDtoH_v2(&word, second + 20 * MIB - 4, sizeof(word)));
        must_equal(word, 2);
}

static void test_memory_of_two_devices_changes_places(void **state)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        const struct vgpu_checkpoint_pair move = { "0", "1" };
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        char folder[128];
        (void)state;

        storage_get_folder(folder, sizeof(folder));
        options.pairs = &move;
        options.n_pairs = 1;
        start(hold_both_devices);
        checkpoint = fixture_new(target.pid);
        assert_done(checkpoint, storage_suspend(checkpoint, folder));
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, &options));
        assert_nothing_stored(target.pid);
        end();
}

static void hold_nothing(int socket)
{
        (void)guest_init(0);
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
        must(cuCtxSynchronize());
}

static void test_a_process_without_memory_of_its_own(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        (void)state;

        start(hold_nothing);
        checkpoint = fixture_new(target.pid);
        assert_done(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL));
        assert_stored(checkpoint, VGPU_CHECKPOINT_STORAGE_MEMORY, "");
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        assert_nothing_stored(target.pid);
        end();
}

/* A failure at @fail leads to the driver's way, for @reason; who wants no other way gets an error. */
static const struct {
        const char *fail; /* of the driver */
        const char *fault;
        const char *reason;
        enum vgpu_checkpoint_error_kind kind;
} fallbacks[] = {
        { "cuDevicePrimaryCtxRetain@1=2", "", "a device has no room",
          VGPU_CHECKPOINT_ERROR_NO_ROOM },
        { "cuStreamCreate@3=2", "", "a device has no room", VGPU_CHECKPOINT_ERROR_NO_ROOM },
        { "cuMemHostAlloc@1=2", "", "a device has no room", VGPU_CHECKPOINT_ERROR_NO_ROOM },
        { "", "checkpointer.reserve=fail", "there is no room", VGPU_CHECKPOINT_ERROR_NO_ROOM },
        { "", "checkpointer.reserve=fail@2", "there is no room", VGPU_CHECKPOINT_ERROR_NO_ROOM },
        { "cuCheckpointProcessCheckpoint@1=801", "", "the driver refused",
          VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED },
        { "cuCheckpointProcessCheckpoint@1=201,cuCheckpointProcessCheckpoint@2=201", "",
          "the driver refused", VGPU_CHECKPOINT_ERROR_DRIVER_FAILED },
        { "cuDevicePrimaryCtxRetain@1=46", "", "the driver refused",
          VGPU_CHECKPOINT_ERROR_DRIVER_FAILED },
};

static void test_before_the_mapping_there_is_the_drivers_way(void **state)
{
        (void)state;
        start(work);
        for (size_t i = 0; i < sizeof(fallbacks) / sizeof(fallbacks[0]); i++) {
                CLEANUP(vgpu_checkpoint_freep)
                struct vgpu_checkpoint *any = fixture_new(target.pid);
                CLEANUP(vgpu_checkpoint_freep)
                struct vgpu_checkpoint *only = fixture_new(target.pid);

                print_message("%s %s\n", fallbacks[i].fail, fallbacks[i].fault);
                (void)setenv("OPENVGPU_SIM_FAIL", fallbacks[i].fail, 1);
                (void)setenv("OPENVGPU_FAULT", fallbacks[i].fault, 1);
                assert_done(any, vgpu_checkpoint_suspend(any, NULL));
                assert_stored(any, VGPU_CHECKPOINT_STORAGE_DRIVER, fallbacks[i].reason);
                assert_nothing_stored(target.pid);
                assert_done(any, vgpu_checkpoint_resume(any, NULL));
                (void)let_work();
                assert_true(assert_failed(only, storage_suspend(only, "memory"), fallbacks[i].kind)
                                    ->is_undone);
                (void)unsetenv("OPENVGPU_SIM_FAIL");
                (void)unsetenv("OPENVGPU_FAULT");
                assert_state(only, VGPU_CHECKPOINT_STATE_RUNNING);
                assert_nothing_stored(target.pid);
                (void)let_work();
        }
        end();
}

static void test_an_old_driver_takes_its_own_way(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *old = NULL;
        (void)state;

        start(work);
        (void)setenv(DRIVER_VERSION_VARIABLE, "13000", 1); /* the helper's */
        old = fixture_new(target.pid);
        assert_done(old, vgpu_checkpoint_suspend(old, NULL));
        assert_stored(old, VGPU_CHECKPOINT_STORAGE_DRIVER,
                      "the driver has no checkpoint to custom");
        assert_done(old, vgpu_checkpoint_resume(old, NULL));
        (void)assert_failed(old, storage_suspend(old, "memory"),
                            VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED);
        (void)setenv(DRIVER_VERSION_VARIABLE, "13040", 1);

        /* Stored with a new one, it can't be brought back with an old one; and is left alone. */
        checkpoint = fixture_new(target.pid);
        assert_done(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL));
        (void)assert_failed(old, vgpu_checkpoint_resume(old, NULL),
                            VGPU_CHECKPOINT_ERROR_NO_DRIVER);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        (void)let_work();
        end();
}

static void test_the_contexts_of_all_devices_are_tried(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        (void)setenv("OPENVGPU_SIM_FAIL",
                     "cuCheckpointProcessCheckpoint@1=201,cuCheckpointProcessRestore@1=201", 1);
        assert_done(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL));
        (void)unsetenv("OPENVGPU_SIM_FAIL");
        assert_stored(checkpoint, VGPU_CHECKPOINT_STORAGE_MEMORY, "");
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        (void)let_work();
        end();
}

/* What NVML says of the target, which the helper believes. */
static void set_nvml(uint64_t used)
{
        char path[128], text[64];

        (void)snprintf(path, sizeof(path), "%s/nvml", test_directory);
        (void)snprintf(text, sizeof(text), "%ju %ju", (uintmax_t)1 << 60, (uintmax_t)used);
        fixture_write(path, text);
        (void)setenv("FAKE_NVML", path, 1);
        (void)snprintf(text, sizeof(text), "%d", target.pid);
        (void)setenv("FAKE_NVML_PID", text, 1);
}

static void unset_nvml(void)
{
        (void)unsetenv("FAKE_NVML");
        (void)unsetenv("FAKE_NVML_PID");
}

static void test_room_is_found_out_before_and_grows(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        char folder[128];
        (void)state;

        storage_get_folder(folder, sizeof(folder));
        start(work);
        set_nvml(TIB * 1000);
        checkpoint = fixture_new(target.pid);
        assert_done(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL));
        assert_stored(checkpoint, VGPU_CHECKPOINT_STORAGE_DRIVER, "there is no room");
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        (void)assert_failed(checkpoint, storage_suspend(checkpoint, "memory"),
                            VGPU_CHECKPOINT_ERROR_NO_ROOM);
        (void)assert_failed(checkpoint, storage_suspend(checkpoint, folder),
                            VGPU_CHECKPOINT_ERROR_NO_ROOM);
        assert_nothing_stored(target.pid);
        set_nvml(MIB);
        assert_done(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL));
        assert_stored(checkpoint, VGPU_CHECKPOINT_STORAGE_MEMORY, "");
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        (void)let_work();
        unset_nvml();
        end();
}

static void be_parent(int socket)
{
        struct guest child = guest_start(work);

        (void)guest_hear(child.socket, NULL);
        guest_tell(socket, (uint64_t)child.pid, -1);
        while (guest_hear(socket, NULL)) {
                guest_tell(child.socket, 1, -1);
                (void)guest_hear(child.socket, NULL);
                guest_tell(socket, 0, -1);
        }
        guest_tell(child.socket, 0, -1);
        must_equal(guest_end(&child), 0);
}

/* A process and one below another one: what fails at the second leaves neither stored. */
static void test_all_of_a_group_or_none(void **state)
{
        struct guest family = guest_start(be_parent);
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *both = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *failing = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *first = NULL;
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        pid_t child;
        (void)state;

        child = (pid_t)guest_hear(family.socket, NULL);
        start(work);
        options.with_children = true;
        options.is_careful = true;
        options.storage = "memory";
        first = fixture_new(target.pid);
        failing = fixture_new(target.pid);
        assert_int_equal(vgpu_checkpoint_add(failing, family.pid), 0);
        (void)setenv("OPENVGPU_SIM_FAIL",
                     "cuCheckpointProcessCheckpoint@2=304,cuCheckpointProcessRestore@3=304", 1);
        assert_true(assert_failed(failing, vgpu_checkpoint_suspend(failing, &options),
                                  VGPU_CHECKPOINT_ERROR_DRIVER_FAILED)
                            ->is_undone);
        assert_state(first, VGPU_CHECKPOINT_STATE_RUNNING);
        assert_nothing_stored(target.pid);
        assert_nothing_stored(child);
        (void)let_work();

        both = fixture_new(target.pid);
        assert_int_equal(vgpu_checkpoint_add(both, family.pid), 0);
        (void)unsetenv("OPENVGPU_SIM_FAIL");
        assert_done(both, vgpu_checkpoint_suspend(both, &options));
        assert_int_equal(storage_count(MEMORY_FOLDER, target.pid, NULL, 0), 1);
        assert_int_equal(storage_count(MEMORY_FOLDER, child, NULL, 0), 1);

        /* Its calls 1 was the undoing of the suspend; 2 is this process, 3 the other one. */
        assert_true(assert_failed(failing, vgpu_checkpoint_resume(failing, &options),
                                  VGPU_CHECKPOINT_ERROR_DRIVER_FAILED)
                            ->is_undone);
        assert_state(first, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_int_equal(storage_count(MEMORY_FOLDER, target.pid, NULL, 0), 1);
        assert_int_equal(storage_count(MEMORY_FOLDER, child, NULL, 0), 1);
        assert_done(both, vgpu_checkpoint_resume(both, &options));
        (void)let_work();
        guest_tell(family.socket, 1, -1);
        (void)guest_hear(family.socket, NULL);
        guest_tell(family.socket, 0, -1);
        assert_int_equal(guest_end(&family), 0);
        end();
        assert_nothing_stored(child);
}

static void test_what_a_dead_process_has_left_is_swept(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = NULL;
        pid_t dead;
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        assert_done(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL));
        dead = target.pid;
        assert_int_equal(guest_kill(&target), 128 + SIGKILL);
        assert_int_equal(storage_count(MEMORY_FOLDER, dead, NULL, 0), 1);
        start(work);
        other = fixture_new(target.pid);
        assert_state(other, VGPU_CHECKPOINT_STATE_RUNNING);
        assert_nothing_stored(dead);
        end();
}

/* The note is with another run directory, or another user's: the driver is not asked to do without. */
static void test_what_nobody_here_has_noted_is_left_alone(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = NULL;
        char folder[128], path[320], away[400];
        (void)state;

        start(work);
        checkpoint = fixture_new(target.pid);
        other = fixture_new(target.pid);
        assert_done(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL));
        storage_get_folder(folder, sizeof(folder));
        (void)setenv("OPENVGPU_RUN", folder, 1); /* of @other's helper */
        assert_non_null(strstr(assert_failed(other, vgpu_checkpoint_resume(other, NULL),
                                             VGPU_CHECKPOINT_ERROR_STORAGE)
                                       ->message,
                               "another run directory"));
        (void)setenv("OPENVGPU_RUN", test_directory, 1);
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_int_equal(storage_count(MEMORY_FOLDER, target.pid, path, sizeof(path)), 1);

        /* What belongs to a stranger says nothing. */
        if (geteuid() == 0) {
                assert_int_equal(chown(path, 65534, 65534), 0);
                (void)assert_failed(other, vgpu_checkpoint_resume(other, NULL),
                                    VGPU_CHECKPOINT_ERROR_INVALID);
                assert_int_equal(chown(path, 0, 0), 0);
        }
        (void)snprintf(away, sizeof(away), "%s-away", path);
        assert_int_equal(rename(path, away), 0);
        (void)assert_failed(other, vgpu_checkpoint_resume(other, NULL),
                            VGPU_CHECKPOINT_ERROR_INVALID);
        assert_int_equal(rename(away, path), 0);
        assert_done(checkpoint, vgpu_checkpoint_resume(checkpoint, NULL));
        (void)let_work();
        end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_memory_is_stored_and_brought_back),
                cmocka_unit_test(test_a_directory_is_read_by_another_helper),
                cmocka_unit_test(test_what_cannot_be_storage_is_refused),
                cmocka_unit_test(test_it_goes_to_another_device),
                cmocka_unit_test(test_memory_of_two_devices_changes_places),
                cmocka_unit_test(test_a_process_without_memory_of_its_own),
                cmocka_unit_test(test_before_the_mapping_there_is_the_drivers_way),
                cmocka_unit_test(test_an_old_driver_takes_its_own_way),
                cmocka_unit_test(test_the_contexts_of_all_devices_are_tried),
                cmocka_unit_test(test_room_is_found_out_before_and_grows),
                cmocka_unit_test(test_all_of_a_group_or_none),
                cmocka_unit_test(test_what_a_dead_process_has_left_is_swept),
                cmocka_unit_test(test_what_nobody_here_has_noted_is_left_alone),
        };
        int failed;

        storage_setup();
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        storage_teardown();
        return failed;
}
