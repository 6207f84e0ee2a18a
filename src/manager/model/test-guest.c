/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"

#define USER 4711

/* Whose descriptors have all been given out meanwhile: he cannot be left with his memory away. */
static void test_an_undo_is_refused_no_descriptor(void **state)
{
        const struct account_cost none = { 0 };
        struct manager manager = { 0 };
        struct instance instance = { .manager = &manager };
        struct guest guest = { .instance = &instance, .payer = USER };
        struct guest_memory memory = { .source = -1 };
        struct failure failure = { 0 };
        (void)state;

        assert_int_equal(accounts_new(&manager.accounts, &none), 0);
        assert_int_equal(guest_charge_target(&guest, &failure), -EDQUOT);
        instance.course.is_undoing = true;
        assert_int_equal(guest_charge_source(&guest, &failure), -EDQUOT);
        assert_int_equal(guest_charge_target(&guest, &failure), 0);
        assert_int_equal(account_get(manager.accounts, USER, ACCOUNT_DESCRIPTORS), 1);

        memory.target = open("/dev/null", O_RDONLY | O_CLOEXEC);
        guest_close_target(&guest, &memory);
        assert_int_equal(account_get(manager.accounts, USER, ACCOUNT_DESCRIPTORS), 0);
        accounts_free(manager.accounts);
}

/* Returns the pidfd of a child, which lives until end_process() or @has_ended. */
static int open_process(bool has_ended)
{
        pid_t child = fork();
        siginfo_t end;
        int pidfd;

        if (child == 0) {
                if (!has_ended)
                        pause();
                _exit(0);
        }
        assert_true(child > 0);
        pidfd = (int)syscall(SYS_pidfd_open, child, 0);
        assert_true(pidfd >= 0);
        if (has_ended) /* it stays a zombie: nobody else gets its number */
                assert_int_equal(waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT), 0);
        return pidfd;
}

static void end_process(int pidfd)
{
        siginfo_t end;

        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        assert_int_equal(waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED), 0);
        close(pidfd);
}

static void put(struct manager *manager, struct instance *instance, struct guest *guest)
{
        instance->manager = manager;
        list_init(&instance->guests);
        list_append(&manager->instances, &instance->link);
        if (guest)
                list_append(&instance->guests, &guest->link);
}

/* One that waits to be buried has left its number to others. */
static void test_a_number_used_again_is_in_one_vgpu_only(void **state)
{
        struct manager manager = { 0 };
        struct instance old = { 0 }, here = { 0 };
        struct guest guest = { .instance = &old, .pid = 42, .pidfd = open_process(false) };
        (void)state;

        list_init(&manager.instances);
        put(&manager, &old, &guest);
        put(&manager, &here, NULL);
        assert_true(guest_is_elsewhere(&here, 42));
        assert_false(guest_is_elsewhere(&old, 42));
        assert_false(guest_is_elsewhere(&here, 43));
        end_process(guest.pidfd);

        guest.pidfd = open_process(true);
        assert_false(guest_is_elsewhere(&here, 42));
        end_process(guest.pidfd);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_undo_is_refused_no_descriptor),
                cmocka_unit_test(test_a_number_used_again_is_in_one_vgpu_only),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
