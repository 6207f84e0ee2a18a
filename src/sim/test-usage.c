/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of a simulated host have used, seen from outside. */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/paths.h"
#include "base/size.h"
#include "sim/host-layout.h"
#include "sim/test-guest.h"
#include "sim/usage.h"

#define BUSY_US 30000u

static void launch(const char *name, void **parameters)
{
        CUfunction function;
        CUmodule module;

        must(cuModuleLoadData(&module, "image"));
        must(cuModuleGetFunction(&function, module, name));
        must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        must(cuCtxSynchronize());
}

/* Kernels for the time it is told, then one that writes memory. */
static void be_busy(int socket)
{
        uint64_t microseconds = BUSY_US, n = 1 << 20;
        uint32_t value = 7;
        CUdeviceptr pointer;
        void *busy[] = { &microseconds };
        void *fill[] = { &pointer, &value, &n };

        (void)guest_init(0);
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
        launch("busy", busy);
        guest_tell(socket, 1, -1);
        (void)guest_hear(socket, NULL);
        must(cuMemAlloc_v2(&pointer, n * sizeof(value)));
        launch("fill", fill);
        guest_tell(socket, 2, -1);
        (void)guest_hear(socket, NULL);
}

static void begin_only(int socket)
{
        (void)guest_init(0);
        guest_tell(socket, 0, -1);
        (void)guest_hear(socket, NULL);
}

static void test_kernels_and_memory_are_counted(void **state)
{
        CLEANUP(sim_usage_closep) struct sim_usage *usage = NULL;
        struct guest guest = guest_start(be_busy);
        struct sim_busy busy[SIM_USAGE_DEVICES], after[SIM_USAGE_DEVICES];

        (void)state;
        assert_int_equal(sim_usage_open(&usage, test_directory), 0);
        (void)guest_hear(guest.socket, NULL);
        assert_true(sim_usage_read(usage, guest.pid, busy));
        assert_int_equal(busy[0].kernel_ns, 0);
        assert_int_equal(busy[0].memory_ns, 0);
        assert_int_equal(busy[0].context_bytes, 64 * MIB); /* a sixteenth of the device */
        assert_false(sim_usage_read(usage, getpid(), busy));

        guest_tell(guest.socket, 0, -1);
        (void)guest_hear(guest.socket, NULL);
        assert_true(sim_usage_read(usage, guest.pid, busy));
        assert_true(busy[0].kernel_ns >= BUSY_US * 1000ull);
        assert_int_equal(busy[0].memory_ns, 0);

        guest_tell(guest.socket, 0, -1);
        (void)guest_hear(guest.socket, NULL);
        assert_true(sim_usage_read(usage, guest.pid, after));
        assert_true(after[0].memory_ns > 0);
        assert_int_equal(after[0].kernel_ns - busy[0].kernel_ns, after[0].memory_ns);
        assert_int_equal(after[0].context_bytes, 64 * MIB); /* not what it has allocated */
        guest_tell(guest.socket, 0, -1);
        assert_int_equal(guest_end(&guest), 0);
}

static void test_the_dead_are_remembered_until_the_next_begins(void **state)
{
        CLEANUP(sim_usage_closep) struct sim_usage *usage = NULL;
        struct guest guest = guest_start(be_busy), next;
        struct sim_busy busy[SIM_USAGE_DEVICES];

        (void)state;
        assert_int_equal(sim_usage_open(&usage, test_directory), 0);
        (void)guest_hear(guest.socket, NULL);
        guest_tell(guest.socket, 0, -1);
        (void)guest_hear(guest.socket, NULL);
        (void)guest_kill(&guest);
        assert_true(sim_usage_read(usage, guest.pid, busy));
        assert_true(busy[0].kernel_ns >= BUSY_US * 1000ull);

        next = guest_start(begin_only);
        (void)guest_hear(next.socket, NULL);
        assert_false(sim_usage_read(usage, guest.pid, busy));
        assert_true(sim_usage_read(usage, next.pid, busy));
        assert_int_equal(busy[0].kernel_ns, 0);
        guest_tell(next.socket, 0, -1);
        assert_int_equal(guest_end(&next), 0);
}

static void test_a_directory_without_a_host_is_refused(void **state)
{
        struct sim_usage *usage = NULL;

        (void)state;
        assert_int_equal(sim_usage_open(&usage, "/nonexistent"), -EPROTO);
        assert_null(usage);
}

static int open_slots(void)
{
        char path[PATHS_MAX];
        int fd;

        assert_int_equal(paths_join(path, test_directory, "slots"), 0);
        fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        return fd;
}

/* Whoever may use a host may write all of that. */
static void fill_with(int byte)
{
        CLEANUP(fd_closep) int fd = open_slots();
        char bytes[4096];

        memset(bytes, byte, sizeof(bytes));
        for (size_t at = 0; at < sizeof(struct host_slots); at += sizeof(bytes))
                assert_int_equal(pwrite(fd, bytes, sizeof(bytes), (off_t)at), sizeof(bytes));
}

static void truncate_slots(void)
{
        CLEANUP(fd_closep) int fd = open_slots();

        assert_int_equal(ftruncate(fd, 0), 0);
}

static void test_counts_that_cannot_be_lead_nowhere(void **state)
{
        CLEANUP(sim_usage_closep) struct sim_usage *usage = NULL;
        struct sim_busy busy[SIM_USAGE_DEVICES];

        (void)state;
        assert_int_equal(sim_usage_open(&usage, test_directory), 0);
        fill_with(0xff);
        assert_false(sim_usage_read(usage, getpid(), busy));
        fill_with(0x7f);
        assert_false(sim_usage_read(usage, getpid(), busy));
        assert_true(sim_usage_read(usage, 0x7f7f7f7f, busy)); /* as if it had died just now */
        assert_int_equal(busy[0].context_bytes, 1 * GIB);
        assert_int_equal(busy[2].kernel_ns, 0);
        truncate_slots();
        assert_false(sim_usage_read(usage, 0x7f7f7f7f, busy));
}

static void test_a_process_goes_on_when_its_slot_is_gone(void **state)
{
        CLEANUP(sim_usage_closep) struct sim_usage *usage = NULL;
        struct guest guest = guest_start(be_busy);
        struct sim_busy busy[SIM_USAGE_DEVICES];

        (void)state;
        assert_int_equal(sim_usage_open(&usage, test_directory), 0);
        (void)guest_hear(guest.socket, NULL);
        truncate_slots();
        assert_false(sim_usage_read(usage, guest.pid, busy));
        guest_tell(guest.socket, 0, -1);
        (void)guest_hear(guest.socket, NULL);
        fill_with(0xff);
        guest_tell(guest.socket, 0, -1); /* it allocates, and writes its slot anew */
        (void)guest_hear(guest.socket, NULL);
        assert_true(sim_usage_read(usage, guest.pid, busy));
        assert_true(busy[0].kernel_ns > 0);
        assert_int_equal(busy[0].context_bytes, 64 * MIB);
        guest_tell(guest.socket, 0, -1);
        assert_int_equal(guest_end(&guest), 0);
        truncate_slots();
}

static void test_a_host_that_others_may_write_is_none(void **state)
{
        struct sim_usage *usage = NULL;
        char path[PATHS_MAX];
        struct stat status;

        (void)state;
        assert_int_equal(paths_join(path, test_directory, "host"), 0);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 022, 0);
        assert_int_equal(chmod(path, 0666), 0);
        assert_int_equal(sim_usage_open(&usage, test_directory), -EPROTO);
        assert_int_equal(chmod(path, status.st_mode & 0777), 0);
        assert_int_equal(stat(test_directory, &status), 0);
        assert_int_equal(status.st_mode & 022, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kernels_and_memory_are_counted),
                cmocka_unit_test(test_the_dead_are_remembered_until_the_next_begins),
                cmocka_unit_test(test_counts_that_cannot_be_lead_nowhere),
                cmocka_unit_test(test_a_process_goes_on_when_its_slot_is_gone),
                cmocka_unit_test(test_a_host_that_others_may_write_is_none),
                cmocka_unit_test(test_a_directory_without_a_host_is_refused),
        };
        int failed;

        test_host_create("2xH200:1G");
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        test_host_remove();
        return failed;
}
