/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the driver on a process, of which one does not return. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "mover/answer.h"
#include "mover/driver.h"
#include "mover/process-call.h"

/* A deadline that passes, and one that never does while the driver answers. */
#define SHORT_MS 20
#define LONG_MS  60000

static struct fixture {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        int stuck; /* the process of which no call returns; 0: all do */
        unsigned int n_asked, n_returned;
        int returned; /* of which the manager was told last */
        CUresult result;
        CUcheckpointGpuPair pairs[2];
        unsigned int n_pairs;
        struct process_target one, other;
        unsigned int n_threads; /* before the test */
} fixture = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static CUresult answer(int pid)
{
        CUresult result;

        pthread_mutex_lock(&fixture.lock);
        fixture.n_asked++;
        pthread_cond_broadcast(&fixture.changed);
        while (fixture.stuck == pid)
                pthread_cond_wait(&fixture.changed, &fixture.lock);
        result = fixture.result;
        pthread_mutex_unlock(&fixture.lock);
        return result;
}

static CUresult get_state(int pid, CUprocessState *state)
{
        *state = CU_PROCESS_STATE_CHECKPOINTED;
        return answer(pid);
}

static CUresult lock(int pid, CUcheckpointLockArgs *args)
{
        assert_int_equal(args->timeoutMs, 7);
        return answer(pid);
}

static CUresult checkpoint(int pid, CUcheckpointCheckpointArgs *args)
{
        (void)args;
        return answer(pid);
}

static CUresult restore(int pid, CUcheckpointRestoreArgs *args)
{
        CUresult result = answer(pid);

        fixture.n_pairs = args->gpuPairsCount;
        if (args->gpuPairsCount > 0) /* also when whoever asked has long gone */
                memcpy(fixture.pairs, args->gpuPairs,
                       args->gpuPairsCount * sizeof(*args->gpuPairs));
        return result;
}

static CUresult unlock(int pid, CUcheckpointUnlockArgs *args)
{
        (void)args;
        return answer(pid);
}

void __wrap_answer_returned(int pid);
void __wrap_answer_returned(int pid)
{
        pthread_mutex_lock(&fixture.lock);
        fixture.n_returned++;
        fixture.returned = pid;
        pthread_cond_broadcast(&fixture.changed);
        pthread_mutex_unlock(&fixture.lock);
}

/* The one that is stuck; there may have been another one before. */
static void let_return(void)
{
        pthread_mutex_lock(&fixture.lock);
        fixture.stuck = 0;
        pthread_cond_broadcast(&fixture.changed);
        while (fixture.n_returned < 1)
                pthread_cond_wait(&fixture.changed, &fixture.lock);
        pthread_mutex_unlock(&fixture.lock);
}

static unsigned int count_threads(void)
{
        DIR *tasks = opendir("/proc/self/task");
        unsigned int n = 0;

        assert_non_null(tasks);
        for (const struct dirent *task = readdir(tasks); task; task = readdir(tasks))
                n += task->d_name[0] != '.';
        (void)closedir(tasks);
        return n;
}

/* The one that is stuck; its thread has ended, so it has told what it tells. */
static void let_end(unsigned int n_threads)
{
        pthread_mutex_lock(&fixture.lock);
        fixture.stuck = 0;
        pthread_cond_broadcast(&fixture.changed);
        pthread_mutex_unlock(&fixture.lock);
        while (count_threads() > n_threads)
                sched_yield();
}

static struct process_target start(void)
{
        pid_t pid = fork();

        if (pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void)pause();
        }
        assert_true(pid > 0);
        return (struct process_target){ pid, (int)syscall(SYS_pidfd_open, pid, 0), LONG_MS };
}

static void end(const struct process_target *target)
{
        (void)kill(target->pid, SIGKILL);
        (void)waitpid(target->pid, NULL, 0);
}

static int set_up(void **state)
{
        (void)state;
        driver.cuCheckpointProcessGetState = get_state;
        driver.cuCheckpointProcessLock = lock;
        driver.cuCheckpointProcessCheckpoint = checkpoint;
        driver.cuCheckpointProcessRestore = restore;
        driver.cuCheckpointProcessUnlock = unlock;
        fixture.stuck = fixture.returned = 0;
        fixture.n_asked = fixture.n_returned = fixture.n_pairs = 0;
        fixture.result = CUDA_SUCCESS;
        fixture.n_threads = count_threads();
        fixture.one = start();
        fixture.other = start();
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        end(&fixture.one);
        end(&fixture.other);
        (void)close(fixture.one.pidfd);
        (void)close(fixture.other.pidfd);
        let_end(fixture.n_threads);
        return 0;
}

static void test_what_the_driver_answers_is_told(void **state)
{
        struct mover_done done = { 0 };
        CUprocessState now = CU_PROCESS_STATE_RUNNING;

        (void)state;
        assert_int_equal(process_get_state(&fixture.one, &now, &done), 0);
        assert_int_equal(now, CU_PROCESS_STATE_CHECKPOINTED);
        assert_int_equal(process_lock(&fixture.one, 7, &done), 0);
        fixture.result = CUDA_ERROR_NOT_SUPPORTED;
        assert_int_equal(process_checkpoint(&fixture.one, &done), -EIO);
        assert_int_equal(done.driver_code, CUDA_ERROR_NOT_SUPPORTED);
        assert_string_equal(done.call, "cuCheckpointProcessCheckpoint");
        assert_int_equal(fixture.n_returned, 0);
}

static void test_one_that_does_not_return_is_left_and_named(void **state)
{
        const struct mover_pair pairs[2] = { { { 1 }, { 2 } }, { { 2 }, { 1 } } };
        struct mover_done done = { 0 };

        (void)state;
        fixture.stuck = fixture.one.pid;
        fixture.one.call_ms = SHORT_MS;
        assert_int_equal(process_restore(&fixture.one, pairs, 2, &done), -EINPROGRESS);
        assert_string_equal(done.call, "cuCheckpointProcessRestore");
        assert_int_equal(done.driver_code, 0);
        assert_int_equal(fixture.n_returned, 0);
        process_told();
        let_return();
        assert_int_equal(fixture.returned, fixture.one.pid);
        assert_int_equal(fixture.n_pairs, 2);
        assert_memory_equal(fixture.pairs, pairs, sizeof(pairs));
}

static void test_meanwhile_the_driver_is_asked_about_others_only(void **state)
{
        struct mover_done done = { 0 };
        CUprocessState now;
        unsigned int n;

        (void)state;
        fixture.stuck = fixture.one.pid;
        fixture.one.call_ms = SHORT_MS;
        assert_int_equal(process_checkpoint(&fixture.one, &done), -EINPROGRESS);
        n = fixture.n_asked;
        done = (struct mover_done){ 0 };
        assert_int_equal(process_get_state(&fixture.one, &now, &done), -EINPROGRESS);
        assert_string_equal(done.call, "cuCheckpointProcessCheckpoint");
        assert_int_equal(fixture.n_asked, n);
        done = (struct mover_done){ 0 };
        assert_int_equal(process_unlock(&fixture.other, &done), 0);
        assert_string_equal(done.call, "");
        process_told();
        let_return();
        fixture.one.call_ms = LONG_MS;
        assert_int_equal(process_get_state(&fixture.one, &now, &done), 0);
        assert_int_equal(fixture.n_returned, 1);
}

/* The manager would not know what has returned, and wait for ever for what it hears of then. */
static void test_a_return_is_told_behind_the_answer(void **state)
{
        struct mover_done done = { 0 };
        CUprocessState now;

        (void)state;
        fixture.stuck = fixture.one.pid;
        fixture.one.call_ms = SHORT_MS;
        assert_int_equal(process_checkpoint(&fixture.one, &done), -EINPROGRESS);
        let_end(fixture.n_threads);
        assert_int_equal(fixture.n_returned, 0);
        assert_int_equal(process_get_state(&fixture.one, &now, &done), -EINPROGRESS);
        process_told();
        assert_int_equal(fixture.n_returned, 1);
        assert_int_equal(fixture.returned, fixture.one.pid);
        process_told(); /* of the next request, which has met nothing */
        assert_int_equal(fixture.n_returned, 1);
        fixture.one.call_ms = LONG_MS;
        assert_int_equal(process_get_state(&fixture.one, &now, &done), 0);
}

static void *run_second(void *barrier)
{
        struct mover_done done = { 0 };
        CUprocessState now;

        assert_int_equal(process_get_state(&fixture.one, &now, &done), -EINPROGRESS);
        (void)pthread_barrier_wait(barrier); /* it has met the call */
        (void)pthread_barrier_wait(barrier); /* it is to be answered */
        process_told();
        return NULL;
}

static void test_a_return_is_told_behind_the_answer_to_a_second_request(void **state)
{
        struct mover_done done = { 0 };
        pthread_barrier_t barrier;
        pthread_t second;

        (void)state;
        fixture.stuck = fixture.one.pid;
        fixture.one.call_ms = SHORT_MS;
        assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
        assert_int_equal(process_checkpoint(&fixture.one, &done), -EINPROGRESS);
        assert_int_equal(pthread_create(&second, NULL, run_second, &barrier), 0);
        (void)pthread_barrier_wait(&barrier);
        process_told();
        let_end(fixture.n_threads + 1);
        assert_int_equal(fixture.n_returned, 0);
        (void)pthread_barrier_wait(&barrier);
        assert_int_equal(pthread_join(second, NULL), 0);
        assert_int_equal(fixture.n_returned, 1);
        (void)pthread_barrier_destroy(&barrier);
}

static void test_of_one_that_has_ended_the_driver_is_not_asked(void **state)
{
        struct mover_done done = { 0 };

        (void)state;
        end(&fixture.one);
        assert_true(process_has_ended(&fixture.one));
        assert_int_equal(process_unlock(&fixture.one, &done), -ESRCH);
        assert_int_equal(fixture.n_asked, 0);
}

/* Its number is another's by now. */
static void test_the_next_process_of_a_number_is_asked_about(void **state)
{
        struct mover_done done = { 0 };
        struct process_target next;

        (void)state;
        fixture.stuck = fixture.one.pid;
        fixture.one.call_ms = SHORT_MS;
        assert_int_equal(process_unlock(&fixture.one, &done), -EINPROGRESS);
        process_told();
        end(&fixture.one);
        fixture.stuck = 0; /* but the call that was left has not seen that yet */
        next = (struct process_target){ fixture.one.pid, fixture.other.pidfd, LONG_MS };
        assert_int_equal(process_unlock(&next, &done), 0);
        let_return();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(test_what_the_driver_answers_is_told),
                TEST(test_one_that_does_not_return_is_left_and_named),
                TEST(test_meanwhile_the_driver_is_asked_about_others_only),
                TEST(test_a_return_is_told_behind_the_answer),
                TEST(test_a_return_is_told_behind_the_answer_to_a_second_request),
                TEST(test_of_one_that_has_ended_the_driver_is_not_asked),
                TEST(test_the_next_process_of_a_number_is_asked_about),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
