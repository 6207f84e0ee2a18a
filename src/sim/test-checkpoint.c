/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint calls: states, locks, and what becomes of those who call and are called. */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "abi/sim-table.h"
#include "sim/checkpoint-service.h"
#include "sim/host-layout.h"
#include "sim/test-target.h"

enum { MEND = 99, BUSY = 1, TRAP = 2 };

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

/* Answers each kernel that it is told, and its number, with what became of it. */
static void run_kernels(int socket)
{
        static const char *const names[] = { "", "busy", "trap" };
        const struct sim_table *table;
        CUfunction function;
        CUmodule module;
        uint32_t value;
        uint64_t which;
        CUuuid id;

        (void)guest_init(0);
        must(cuModuleLoadData(&module, "any"));
        guest_tell(socket, 0, -1);
        while ((which = guest_hear(socket, NULL)) != 0) {
                void *parameters[] = { &value };

                value = (uint32_t)guest_hear(socket, NULL);
                if (which == MEND) {
                        memcpy(&id, SIM_TABLE_ID, sizeof(id));
                        must(cuGetExportTable((const void **)&table, &id));
                        guest_tell(socket, table->mend_contexts(), -1);
                        continue;
                }
                must(cuModuleGetFunction(&function, module, names[which]));
                must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
                guest_tell(socket, cuCtxSynchronize(), -1);
        }
}

static uint64_t ask(int socket, uint64_t which, uint64_t value)
{
        guest_tell(socket, which, -1);
        guest_tell(socket, value, -1);
        return guest_hear(socket, NULL);
}

static void start_restored(void)
{
        start(run_kernels);
        (void)guest_init(1);
        must_equal(ask(target.socket, MEND, 0), SIM_MEND_NOTHING);
        must(lock(0));
        must(checkpoint());
        must(restore(NULL, 0));
        must(unlock());
}

static void control_trap(int socket)
{
        (void)socket;
        start_restored();
        must_equal(ask(target.socket, TRAP, 0), CUDA_ERROR_ILLEGAL_INSTRUCTION);
        (void)guest_kill(&target);
}

static void control_trap_of_whole(int socket)
{
        (void)socket;
        start_restored();
        must_equal(ask(target.socket, MEND, 0), SIM_MEND_DONE);
        must_equal(ask(target.socket, MEND, 0), SIM_MEND_NOTHING);
        must_equal(ask(target.socket, TRAP, 0), CUDA_ERROR_LAUNCH_FAILED);
        (void)guest_kill(&target);
}

static void control_trap_of_refused(int socket)
{
        must_equal(setenv("OPENVGPU_SIM_WHOLE", "0", 1), 0);
        (void)socket;
        start_restored();
        must_equal(ask(target.socket, MEND, 0), SIM_MEND_REFUSED);
        must_equal(ask(target.socket, MEND, 0), SIM_MEND_REFUSED);
        must_equal(ask(target.socket, TRAP, 0), CUDA_ERROR_ILLEGAL_INSTRUCTION);
        (void)guest_kill(&target);
}

static void test_a_trap_after_a_restore_is_another_error_until_it_is_mended(void **state)
{
        (void)state;
        guest_run(control_trap);
        guest_run(control_trap_of_whole);
        guest_run(control_trap_of_refused);
}

/* Kernels of a restored context: alone, one may take as long as it likes. */
static void control_long(int socket)
{
        struct guest neighbour = guest_start(run_kernels);

        (void)socket;
        (void)guest_hear(neighbour.socket, NULL);
        start_restored();
        must_equal(ask(target.socket, BUSY, 5000000), CUDA_SUCCESS);
        guest_tell(target.socket, BUSY, -1);
        guest_tell(target.socket, 60000000, -1);
        while (!has_message(target.socket)) /* the first may come before it */
                must_equal(ask(neighbour.socket, BUSY, 1), CUDA_SUCCESS);
        must_equal(guest_hear(target.socket, NULL), CUDA_ERROR_LAUNCH_FAILED);
        (void)guest_kill(&neighbour);
        (void)guest_kill(&target);
}

#define CROWD_SLOT 1000

/* One lock instead of one for each slot, and a word that says that its process is off. */
static void lock_many_slots(int socket)
{
        struct flock record = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = CROWD_SLOT };
        const uint32_t is_off = 1;
        char path[128];
        int fd;

        (void)snprintf(path, sizeof(path), "%s/slots", getenv(SIM_HOST_VARIABLE));
        fd = open(path, O_RDWR | O_CLOEXEC);
        must_equal(fcntl(fd, F_SETLK, &record), 0);
        must_equal(pwrite(fd, &is_off, sizeof(is_off),
                          offsetof(struct host_slots, slot[CROWD_SLOT].is_off)),
                   sizeof(is_off));
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void control_beside_a_crowd(int socket)
{
        struct guest crowd = guest_start(lock_many_slots);

        (void)socket;
        (void)guest_hear(crowd.socket, NULL);
        start_restored();
        must_equal(ask(target.socket, BUSY, 1000), CUDA_SUCCESS);
        (void)guest_kill(&crowd);
        (void)guest_kill(&target);
}

static void test_a_lock_of_many_slots_does_not_stop_a_restored_kernel(void **state)
{
        (void)state;
        guest_run(control_beside_a_crowd);
}

static void test_a_restored_kernel_that_keeps_another_process_waiting_is_ended(void **state)
{
        (void)state;
        guest_run(control_long);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_state_allows_what_the_real_driver_allows),
                cmocka_unit_test(test_a_lock_waits_for_work_and_then_calls_wait_for_it),
                cmocka_unit_test(test_a_lock_whose_caller_dies_is_undone),
                cmocka_unit_test(test_a_lock_whose_caller_died_before_anybody_looked_is_undone),
                cmocka_unit_test(test_a_synchronize_loop_kills_the_process_at_its_checkpoint),
                cmocka_unit_test(test_a_trap_after_a_restore_is_another_error_until_it_is_mended),
                cmocka_unit_test(
                        test_a_restored_kernel_that_keeps_another_process_waiting_is_ended),
                cmocka_unit_test(test_a_lock_of_many_slots_does_not_stop_a_restored_kernel),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
