/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/privilege.h"
#include "base/test.h"

#define BIT(capability) (1ull << (capability))

static unsigned long long read_status(const char *field)
{
        FILE *file = fopen("/proc/self/status", "re");
        unsigned long long value = ~0ull;
        char line[128];

        while (file && fgets(line, sizeof(line), file))
                if (strncmp(line, field, strlen(field)) == 0 && line[strlen(field)] == ':') {
                        value = strtoull(line + strlen(field) + 1, NULL, 16);
                        break;
                }
        if (file)
                fclose(file);
        return value;
}

/* In a process of its own: there is no way back. */
static int in_child(int (*run)(void))
{
        int status;
        pid_t pid = fork();

        if (pid == 0)
                _exit(run());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WEXITSTATUS(status);
}

static int be_sampler(void)
{
        if (privilege_keep(PRIVILEGE_SAMPLER) < 0)
                return 1;
        if (read_status("CapPrm") != 0 || read_status("CapEff") != 0)
                return 2;
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
                return 3;
        return 0;
}

static void test_a_program_that_needs_nothing_has_nothing(void **state)
{
        (void)state;
        assert_int_equal(in_child(be_sampler), 0);
}

static int be_keeper(void)
{
        const unsigned long long keeps =
                BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_NICE) | BIT(CAP_SYS_RESOURCE);

        if (privilege_keep(PRIVILEGE_KEEPER) < 0)
                return 1;
        return (read_status("CapEff") | read_status("CapPrm")) & ~keeps ? 2 : 0;
}

static void test_a_program_keeps_no_more_than_the_table_says(void **state)
{
        (void)state;
        assert_int_equal(in_child(be_keeper), 0);
}

/* However many descriptors that root has sent were not received yet. */
static int send_as_keeper(void)
{
        enum { N = 32 };
        const struct rlimit few = { N / 2, N / 2 };
        int ends[2], fds[N] = { 0 }; /* all the same one */

        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0 ||
            packet_send(ends[0], "x", 1, fds, N) < 0 || setrlimit(RLIMIT_NOFILE, &few) < 0 ||
            privilege_keep(PRIVILEGE_KEEPER) < 0)
                return 1;
        return packet_send(ends[0], "x", 1, fds, 1) < 0 ? 2 : 0;
}

/* In a user namespace root has all capabilities, and the kernel takes none of them for this. */
static bool is_in_first_user_namespace(void)
{
        unsigned int inside = 1, outside = 1, n = 0;
        FILE *file = fopen("/proc/self/uid_map", "re");
        bool is_read = file && fscanf(file, "%u %u %u", &inside, &outside, &n) == 3;

        if (file)
                fclose(file);
        return is_read && inside == 0 && outside == 0 && n == UINT32_MAX;
}

static void test_nobody_keeps_the_keeper_from_sending(void **state)
{
        (void)state;
        if (geteuid() != 0 || !(read_status("CapEff") & BIT(CAP_SYS_RESOURCE)) ||
            !is_in_first_user_namespace()) {
                print_message("needs root with CAP_SYS_RESOURCE, outside of user namespaces\n");
                skip(); /* nor has the keeper of such a vgpud */
        }
        assert_int_equal(in_child(send_as_keeper), 0);
}

static int execute_as_root(void)
{
        static const char *const look = "test $(sed -n 's/^CapEff:.//p' /proc/self/status) = "
                                        "0000000000000000";

        if (privilege_keep(PRIVILEGE_SAMPLER) < 0)
                return 1;
        return system(look) == 0 ? 0 : 2; /* root gets all that is not bounded, by executing */
}

static void test_what_it_executes_gets_nothing_back(void **state)
{
        (void)state;
        if (geteuid() != 0 || read_status("CapEff") == 0)
                skip();
        assert_int_equal(in_child(execute_as_root), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_program_that_needs_nothing_has_nothing),
                cmocka_unit_test(test_a_program_keeps_no_more_than_the_table_says),
                cmocka_unit_test(test_nobody_keeps_the_keeper_from_sending),
                cmocka_unit_test(test_what_it_executes_gets_nothing_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
