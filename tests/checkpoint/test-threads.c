/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that a lock does not stop: they are seen, and can be held until the unlock. */

#include <dlfcn.h>
#include <errno.h>
#include <sys/ptrace.h>

#include "tests/checkpoint/fixture.h"

/* The targets load the driver, as programs do: where a thread is, is told by its file. */
static void *driver;

#define LOADED(name) ((__typeof__(&name))(uintptr_t)dlsym(driver, #name))

static void load_and_start(void)
{
        CUcontext context;

        driver = dlopen(getenv("OPENVGPU_DRIVER"), RTLD_NOW);
        must_equal(driver != NULL, 1);
        must(LOADED(cuInit)(0));
        must(LOADED(cuDevicePrimaryCtxRetain)(&context, 0));
        must(LOADED(cuCtxSetCurrent)(context));
}

static volatile sig_atomic_t ending;

static void on_terminate(int number)
{
        (void)number;
        ending = 1;
}

/* Ends well only when it still runs when it is asked to. */
static void synchronize_for_long(int socket)
{
        struct sigaction action = { .sa_handler = on_terminate };
        CUresult (*synchronize)(void);

        must_equal(sigaction(SIGTERM, &action, NULL), 0);
        load_and_start();
        synchronize = LOADED(cuCtxSynchronize);
        for (int i = 0; !ending; i++) {
                must(synchronize());
                if (i == 20)
                        guest_tell(socket, 0, -1);
        }
}

static void allocate_when_told(int socket)
{
        CUdeviceptr pointer;

        load_and_start();
        guest_tell(socket, 0, -1);
        while (guest_hear(socket, NULL)) {
                must(LOADED(cuMemAlloc_v2)(&pointer, 100));
                guest_tell(socket, 0, -1);
        }
}

static void end_well(void)
{
        assert_int_equal(kill(target.pid, SIGTERM), 0);
        assert_int_equal(guest_end(&target), 0);
}

static void test_a_loop_in_the_driver_is_seen_and_refused(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        const struct vgpu_checkpoint_error *error;
        (void)state;

        start(synchronize_for_long);
        checkpoint = fixture_new(target.pid);
        error = assert_failed(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL),
                              VGPU_CHECKPOINT_ERROR_DANGEROUS);
        assert_true(error->is_undone);
        assert_non_null(strstr(error->hint, "--careful"));
        assert_state(checkpoint, VGPU_CHECKPOINT_STATE_RUNNING);
        end_well();
}

static void test_held_threads_survive_and_go_on(void **state)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *other = NULL;
        (void)state;

        options.is_careful = true;
        start(synchronize_for_long);
        {
                CLEANUP(vgpu_checkpoint_freep)
                struct vgpu_checkpoint *checkpoint = fixture_new(target.pid);

                assert_int_equal(vgpu_checkpoint_suspend(checkpoint, &options), 0);
        }
        /* Whoever held them has no caller any more, and still holds them. */
        other = fixture_new(target.pid);
        assert_state(other, VGPU_CHECKPOINT_STATE_CHECKPOINTED);
        assert_int_equal(vgpu_checkpoint_resume(other, NULL), 0);
        assert_int_equal(vgpu_checkpoint_suspend(other, &options), 0);
        assert_int_equal(vgpu_checkpoint_resume(other, NULL), 0);
        end_well();
}

static void test_a_failed_careful_suspend_lets_the_threads_go(void **state)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        (void)state;

        options.is_careful = true;
        start(synchronize_for_long);
        checkpoint = fixture_new(target.pid);
        (void)setenv("OPENVGPU_SIM_FAIL", "cuCheckpointProcessCheckpoint@1=801", 1);
        (void)assert_failed(checkpoint, vgpu_checkpoint_suspend(checkpoint, &options),
                            VGPU_CHECKPOINT_ERROR_NOT_SUPPORTED);
        (void)unsetenv("OPENVGPU_SIM_FAIL");
        end_well();
}

static void test_forced_it_is_lost(void **state)
{
        struct vgpu_checkpoint_options options = VGPU_CHECKPOINT_OPTIONS_INIT;
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        (void)state;

        options.is_forced = true;
        start(synchronize_for_long);
        checkpoint = fixture_new(target.pid);
        assert_false(assert_failed(checkpoint, vgpu_checkpoint_suspend(checkpoint, &options),
                                   VGPU_CHECKPOINT_ERROR_LOST)
                             ->is_undone);
        assert_int_equal(guest_end(&target), 128 + SIGSEGV);
}

static bool is_stopped(pid_t pid)
{
        char path[32], text[256] = "";
        FILE *file;

        (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        file = fopen(path, "re");
        assert_non_null(file);
        (void)!fgets(text, sizeof(text), file);
        (void)fclose(file);
        return strstr(text, ") T ") != NULL;
}

static void test_a_stopped_process_is_told_of_and_not_waited_for(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        (void)state;

        start(allocate_when_told);
        checkpoint = fixture_new(target.pid);
        assert_int_equal(kill(target.pid, SIGSTOP), 0);
        while (!is_stopped(target.pid))
                (void)usleep(1000);
        (void)assert_failed(checkpoint, vgpu_checkpoint_suspend(checkpoint, NULL),
                            VGPU_CHECKPOINT_ERROR_WRONG_STATE);
        (void)assert_failed(checkpoint,
                            vgpu_checkpoint_wait(checkpoint, VGPU_CHECKPOINT_STATE_LOCKED,
                                                 VGPU_CHECKPOINT_FOREVER),
                            VGPU_CHECKPOINT_ERROR_WRONG_STATE);
        assert_int_equal(kill(target.pid, SIGCONT), 0);
        while (is_stopped(target.pid))
                (void)usleep(1000);
        assert_int_equal(vgpu_checkpoint_suspend(checkpoint, NULL), 0);
        assert_int_equal(vgpu_checkpoint_resume(checkpoint, NULL), 0);
        (void)let_work();
        end();
}

static pid_t get_restore_thread(struct vgpu_checkpoint *checkpoint)
{
        pid_t thread = 0;

        assert_int_equal(vgpu_checkpoint_get_restore_thread(checkpoint, &thread), 0);
        return thread;
}

/* The library's helper may just have let it go (src/checkpoint/hold.c). */
static void seize(pid_t thread)
{
        for (int i = 0; ptrace(PTRACE_SEIZE, thread, NULL, NULL) < 0; i++) {
                assert_int_equal(errno, EPERM);
                assert_in_range(i, 0, 10000);
                (void)usleep(1000);
        }
}

static void freeze(pid_t thread)
{
        assert_int_equal(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), 0);
        assert_int_equal(waitpid(thread, NULL, __WALL), thread);
}

/* What CRIU and its CUDA plugin do: all threads are stopped, and the driver's runs only for a step. */
static void test_a_frozen_process_is_checkpointed_through_its_restore_thread(void **state)
{
        CLEANUP(vgpu_checkpoint_freep) struct vgpu_checkpoint *checkpoint = NULL;
        pid_t thread;
        (void)state;

        start(synchronize_for_long);
        checkpoint = fixture_new(target.pid);
        thread = get_restore_thread(checkpoint);
        assert_int_equal(vgpu_checkpoint_lock(checkpoint, NULL), 0);
        seize(target.pid);
        seize(thread);
        freeze(target.pid);

        freeze(thread);
        assert_int_equal(get_restore_thread(checkpoint), thread);
        assert_int_equal(ptrace(PTRACE_CONT, thread, NULL, NULL), 0);
        assert_int_equal(vgpu_checkpoint_checkpoint(checkpoint, NULL), 0);

        freeze(thread);
        assert_int_equal(get_restore_thread(checkpoint), thread);
        assert_int_equal(ptrace(PTRACE_CONT, thread, NULL, NULL), 0);
        assert_int_equal(vgpu_checkpoint_restore(checkpoint, NULL), 0);
        assert_int_equal(vgpu_checkpoint_unlock(checkpoint, NULL), 0);

        freeze(thread);
        assert_int_equal(ptrace(PTRACE_DETACH, thread, NULL, NULL), 0);
        assert_int_equal(ptrace(PTRACE_DETACH, target.pid, NULL, NULL), 0);
        end_well();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_loop_in_the_driver_is_seen_and_refused),
                cmocka_unit_test(test_held_threads_survive_and_go_on),
                cmocka_unit_test(test_a_failed_careful_suspend_lets_the_threads_go),
                cmocka_unit_test(test_forced_it_is_lost),
                cmocka_unit_test(test_a_stopped_process_is_told_of_and_not_waited_for),
                cmocka_unit_test(test_a_frozen_process_is_checkpointed_through_its_restore_thread),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
