/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint calls: states, locks, and what becomes of those who call and are called. */

#include <errno.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "sim/checkpoint-service.h"
#include "sim/test-target.h"

static void control_states(int socket)
{
        CUprocessState state;
        int tid;

        (void)socket;
        start(work);
        (void)guest_init(0);

        must_equal(get_state(), CU_PROCESS_STATE_RUNNING);
        must_equal(cuCheckpointProcessGetState(target.pid, NULL), CUDA_ERROR_INVALID_VALUE);
        must_equal(checkpoint(), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(restore(NULL, 0), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(unlock(), CUDA_ERROR_ILLEGAL_STATE);
        must(cuCheckpointProcessGetRestoreThreadId(target.pid, &tid));
        must_equal(kill(tid, 0), 0);

        must(lock(0));
        must_equal(get_state(), CU_PROCESS_STATE_LOCKED);
        must_equal(lock(0), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(restore(NULL, 0), CUDA_ERROR_ILLEGAL_STATE);

        must(checkpoint());
        must_equal(get_state(), CU_PROCESS_STATE_CHECKPOINTED);
        must_equal(lock(0), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(checkpoint(), CUDA_ERROR_ILLEGAL_STATE);
        must_equal(unlock(), CUDA_ERROR_ILLEGAL_STATE);

        must(restore(NULL, 0));
        must_equal(get_state(), CU_PROCESS_STATE_LOCKED);
        must(unlock());
        must_equal(get_state(), CU_PROCESS_STATE_RUNNING);
        (void)let_work();
        end();

        must_equal(cuCheckpointProcessGetState(target.pid, &state), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(cuCheckpointProcessGetState(-1, &state), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(cuCheckpointProcessGetState(0, &state), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(cuCheckpointProcessGetState(getppid(), &state), CUDA_ERROR_NOT_INITIALIZED);
        must_equal(cuCheckpointProcessGetRestoreThreadId(getppid(), &tid),
                   CUDA_ERROR_NOT_INITIALIZED);
        must_equal(cuCheckpointProcessLock(getppid(), NULL), CUDA_ERROR_NOT_INITIALIZED);
        must(cuCheckpointProcessLock(getpid(), NULL)); /* of itself */
        must(cuCheckpointProcessUnlock(getpid(), NULL));
}

static void test_each_state_allows_what_the_real_driver_allows(void **state)
{
        (void)state;
        guest_run(control_states);
}

static void control_busy(int socket)
{
        CUprocessState state;

        (void)socket;
        (void)guest_init(0);
        target.pid = (int)guest_hear(socket, NULL);
        must_equal(lock(20), CUDA_ERROR_NOT_READY);
        must_equal(get_state(), CU_PROCESS_STATE_RUNNING);
        must(cuCheckpointProcessGetState(target.pid, &state));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL); /* the work ends */
        must(lock(0));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
        must(unlock());
}

static void wait_for_byte(void *data)
{
        (void)guest_hear(*(int *)data, NULL);
}

/* Its work waits in a host function until it is told; then it calls the driver once more. */
static void be_busy(int socket)
{
        CUdeviceptr pointer;

        (void)guest_init(0);
        must(cuLaunchHostFunc(NULL, wait_for_byte, &socket));
        guest_tell(socket, 0, -1);
        must(cuMemAlloc_v2(&pointer, 100));
        must(cuStreamSynchronize(NULL));
        guest_tell(socket, 1, -1);
        while (guest_hear(socket, NULL))
                guest_tell(socket, (uint64_t)cuMemAlloc_v2(&pointer, 100), -1);
}

static bool has_message(int socket)
{
        char byte;

        return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

static void test_a_lock_waits_for_work_and_then_calls_wait_for_it(void **state)
{
        struct guest busy = guest_start(be_busy), controller;

        (void)state;
        (void)guest_hear(busy.socket, NULL);
        controller = guest_start(control_busy);
        guest_tell(controller.socket, (uint64_t)busy.pid, -1);
        (void)guest_hear(controller.socket, NULL); /* has timed out */
        guest_tell(busy.socket, 0, -1);            /* the work ends */
        (void)guest_hear(busy.socket, NULL);
        guest_tell(controller.socket, 0, -1);
        (void)guest_hear(controller.socket, NULL); /* is locked */
        guest_tell(busy.socket, 1, -1);
        assert_false(has_message(busy.socket));
        guest_tell(controller.socket, 0, -1);
        assert_int_equal(guest_hear(busy.socket, NULL), CUDA_SUCCESS);
        assert_int_equal(guest_end(&controller), 0);
        guest_tell(busy.socket, 0, -1);
        assert_int_equal(guest_end(&busy), 0);
}

static void lock_and_die(int socket)
{
        (void)guest_init(0);
        target.pid = (int)guest_hear(socket, NULL);
        guest_tell(socket, 0, -1);
        (void)lock(0);
}

static void test_a_lock_whose_caller_dies_is_undone(void **state)
{
        struct guest busy = guest_start(be_busy), locker;

        (void)state;
        (void)guest_hear(busy.socket, NULL);
        locker = guest_start(lock_and_die);
        guest_tell(locker.socket, (uint64_t)busy.pid, -1);
        (void)guest_hear(locker.socket, NULL);
        assert_int_equal(guest_kill(&locker), 128 + SIGKILL);
        guest_tell(busy.socket, 0, -1);
        assert_int_equal(guest_hear(busy.socket, NULL), 1);
        guest_tell(busy.socket, 1, -1);
        assert_int_equal(guest_hear(busy.socket, NULL), CUDA_SUCCESS);
        guest_tell(busy.socket, 0, -1);
        assert_int_equal(guest_end(&busy), 0);
}

/* The service of the only guest there is; those of dead guests refuse. */
static int connect_to_service(void)
{
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        for (unsigned int slot = 0; slot < HOST_SLOTS; slot++) {
                (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/services/%u",
                               test_directory, slot);
                if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
                        return fd;
        }
        fail_msg("no guest serves");
        return -1;
}

static void test_a_lock_whose_caller_died_before_anybody_looked_is_undone(void **state)
{
        const struct checkpoint_request request = { .step = CHECKPOINT_LOCK };
        struct guest guest = guest_start(work);
        int fd;

        (void)state;
        (void)guest_hear(guest.socket, NULL);
        assert_int_equal(kill(guest.pid, SIGSTOP), 0);
        assert_int_equal(waitpid(guest.pid, NULL, WUNTRACED), guest.pid); /* all of its threads */
        fd = connect_to_service();
        assert_int_equal(send(fd, &request, sizeof(request), 0), sizeof(request));
        (void)close(fd);
        assert_int_equal(kill(guest.pid, SIGCONT), 0);
        fd = connect_to_service(); /* is served after the other one */
        assert_int_equal(send(fd, &request, 1, 0), 1);
        (void)recv(fd, &(char){ 0 }, 1, 0);
        (void)close(fd);
        guest_tell(guest.socket, 1, -1);
        (void)guest_hear(guest.socket, NULL);
        guest_tell(guest.socket, 0, -1);
        assert_int_equal(guest_end(&guest), 0);
}

static void synchronize_for_ever(int socket)
{
        (void)guest_init(0);
        for (int i = 0;; i++) {
                must(cuCtxSynchronize());
                if (i == 20)
                        guest_tell(socket, 0, -1);
        }
}

static void control_synchronizing(int socket)
{
        CUprocessState state;

        (void)socket;
        start(synchronize_for_ever);
        (void)guest_init(0);
        must(lock(0));
        must_equal(checkpoint(), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(guest_end(&target), 128 + SIGSEGV);
        must_equal(cuCheckpointProcessGetState(target.pid, &state), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(unlock(), CUDA_ERROR_OPERATING_SYSTEM);
        must_equal(guest_get_free(), 1 * GIB - 64 * MIB);
}

static void test_a_synchronize_loop_kills_the_process_at_its_checkpoint(void **state)
{
        (void)state;
        guest_run(control_synchronizing);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_state_allows_what_the_real_driver_allows),
                cmocka_unit_test(test_a_lock_waits_for_work_and_then_calls_wait_for_it),
                cmocka_unit_test(test_a_lock_whose_caller_dies_is_undone),
                cmocka_unit_test(test_a_lock_whose_caller_died_before_anybody_looked_is_undone),
                cmocka_unit_test(test_a_synchronize_loop_kills_the_process_at_its_checkpoint),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
