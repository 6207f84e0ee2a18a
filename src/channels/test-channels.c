/* SPDX-License-Identifier: Apache-2.0 */
/* Channels on and off a run list, against a kernel module in this file; and the keeper's plan. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/test.h"
#include "channels/channels.h"
#include "channels/plan.h"
#include "wire/resource-manager.h"

#define CLIENT    0xc1d00019u
#define SUBDEVICE 0x5c000003u
#define FOREIGN   0xc1d00042u

static struct {
        char log[512];
        uint32_t fail_command, fail_status; /* what answers with an error */
        uint32_t fail_client;               /* only where it is in the list; 0: always */
        int control_fd;                     /* of this process: the one node that is NVIDIA's */
        int n_duplicates;                   /* that were looked at */
        pid_t liar; /* its descriptor is a node of NVIDIA's until it was duplicated; 0: none */
} module;

int __wrap_statx(int fd, const char *path, int flags, unsigned int mask, struct statx *status);
int __real_statx(int fd, const char *path, int flags, unsigned int mask, struct statx *status);
int __wrap_ioctl(int fd, unsigned long request, ...);

static bool is_control_node(int fd)
{
        struct stat status, control;

        return fstat(fd, &status) == 0 && fstat(module.control_fd, &control) == 0 &&
               status.st_dev == control.st_dev && status.st_ino == control.st_ino;
}

static bool is_control_path(const char *path)
{
        struct stat status, control;

        return stat(path, &status) == 0 && fstat(module.control_fd, &control) == 0 &&
               status.st_dev == control.st_dev && status.st_ino == control.st_ino;
}

/* A process that closes its descriptor once we have duplicated it: ours is the last. */
static void end_liar(void)
{
        if (module.liar <= 0)
                return;
        assert_int_equal(kill(module.liar, SIGKILL), 0);
        assert_int_equal(waitpid(module.liar, NULL, 0), module.liar);
        module.liar = 0;
}

int __wrap_statx(int fd, const char *path, int flags, unsigned int mask, struct statx *status)
{
        bool is_ours = *path == '\0';
        int r = __real_statx(fd, path, flags, mask, status);

        assert_true(flags & AT_STATX_DONT_SYNC);
        if (is_ours)
                module.n_duplicates++;
        if (is_ours && r == 0 && !is_control_node(fd))
                end_liar();
        if (r == 0 && (is_ours ? is_control_node(fd) : is_control_path(path) || module.liar != 0)) {
                status->stx_mode = S_IFCHR | 0666;
                status->stx_rdev_major = RM_MAJOR;
                status->stx_rdev_minor = RM_MINOR_CONTROL;
        }
        return r;
}

static void note(const char *what, const char *number)
{
        size_t length = strlen(module.log);

        snprintf(module.log + length, sizeof(module.log) - length, "%s %s;", what, number);
}

static bool lists(const struct rm_disable_channels *call, uint32_t client)
{
        for (uint32_t i = 0; i < call->n; i++)
                if (call->client[i] == client)
                        return true;
        return false;
}

static uint32_t answer(const struct rm_control *call)
{
        struct rm_disable_channels *disable = (void *)(uintptr_t)call->parameters;
        const struct rm_restart_run_list *restart = (const void *)(uintptr_t)call->parameters;
        char number[16];

        if (call->client == FOREIGN)
                return RM_INVALID_CLIENT;
        if (call->command == module.fail_command &&
            (!module.fail_client || lists(disable, module.fail_client)))
                return module.fail_status;
        switch (call->command) {
        case RM_COMMAND_DISABLE_CHANNELS:
                snprintf(number, sizeof(number), "%u", disable->n);
                note(disable->disable ? "off" : "on", number);
                return RM_OK;
        case RM_COMMAND_RESTART_RUN_LIST:
                snprintf(number, sizeof(number), "%x", call->object);
                note(restart->force ? "force" : "restart", number);
                return RM_OK;
        case RM_COMMAND_GET_HANDLE_INFO:
                return RM_OK;
        default:
                return 0x1f;
        }
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
        struct rm_control *call;
        va_list arguments;

        va_start(arguments, request);
        call = va_arg(arguments, struct rm_control *);
        va_end(arguments);
        assert_true(is_control_node(fd)); /* nothing else is ever asked anything */
        assert_int_equal(request, RM_REQUEST_CONTROL);
        call->status = answer(call);
        return 0;
}

struct fixture {
        struct channels_host *host;
        struct channels *a, *b;
        struct instance_page_channels told[2];
        int pidfd;
};

static void tell(struct instance_page_channels *told, uint32_t client, uint32_t n, int fd)
{
        for (uint32_t i = 0; i < n && i < INSTANCE_PAGE_CHANNELS; i++)
                told->channel[i] =
                        (struct instance_page_channel){ client, 0x100 + i, SUBDEVICE, fd };
        atomic_store(&told->n, n);
        atomic_fetch_add(&told->sequence, 2);
}

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        memset(&module, 0, sizeof(module));
        module.control_fd = memfd_create("nvidiactl", MFD_CLOEXEC);
        fixture->pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
        assert_int_equal(channels_host_new(&fixture->host, ""), 0);
        tell(&fixture->told[0], CLIENT, 8, module.control_fd);
        tell(&fixture->told[1], CLIENT + 1, 8, module.control_fd);
        assert_int_equal(channels_new(&fixture->a, fixture->host, getpid(), fixture->pidfd,
                                      &fixture->told[0]),
                         0);
        assert_int_equal(channels_new(&fixture->b, fixture->host, getpid(), fixture->pidfd,
                                      &fixture->told[1]),
                         0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        channels_free(fixture->a);
        channels_free(fixture->b);
        channels_host_free(fixture->host);
        close(fixture->pidfd);
        close(module.control_fd);
        free(fixture);
        return 0;
}

static void test_next_on_before_last_off(void **state)
{
        struct fixture *fixture = *state;

        channels_switch(&fixture->a, 1, &fixture->b, 1);
        assert_string_equal(module.log, "on 8;off 8;restart 100;");
        assert_true(channels_are_off(fixture->b));
        assert_false(channels_are_off(fixture->a));
        assert_int_equal(channels_get_error(fixture->a), 0);
}

static void test_many_go_in_few_calls(void **state)
{
        struct fixture *fixture = *state;
        struct channels *both[] = { fixture->a, fixture->b };

        tell(&fixture->told[0], CLIENT, INSTANCE_PAGE_CHANNELS, module.control_fd);
        channels_switch(NULL, 0, both, 2);
        assert_string_equal(module.log, "off 64;off 8;force 100;");
        module.log[0] = '\0';
        channels_switch(both, 2, NULL, 0);
        assert_string_equal(module.log, "on 64;on 8;restart 100;");
}

/* Four of the channels are on a second device, which has a subdevice of its own. */
static void move_half(struct instance_page_channels *told)
{
        for (uint32_t i = 4; i < 8; i++)
                told->channel[i].subdevice = SUBDEVICE + 1;
        atomic_fetch_add(&told->sequence, 2);
}

static void test_each_device_is_told_of_its_own_channels(void **state)
{
        struct fixture *fixture = *state;

        move_half(&fixture->told[0]);
        channels_switch(&fixture->a, 1, &fixture->b, 1);
        assert_string_equal(module.log, "on 4;on 4;off 8;restart 100;restart 104;force 100;");
        module.log[0] = '\0';
        channels_switch(&fixture->b, 1, &fixture->a, 1);
        assert_string_equal(module.log, "on 8;off 4;off 4;restart 100;force 100;force 104;");
        assert_true(channels_are_off(fixture->a));
        assert_int_equal(channels_get_error(fixture->a), 0);
}

static void test_processes_on_several_devices_are_told_apart(void **state)
{
        struct fixture *fixture = *state;
        struct channels *both[] = { fixture->a, fixture->b };

        channels_host_set_joint(fixture->host, true);
        channels_switch(both, 2, NULL, 0);
        assert_string_equal(module.log, "on 8;on 8;restart 100;restart 100;");
}

static void test_only_its_own_can_be_named(void **state)
{
        struct fixture *fixture = *state;
        int other = open("/dev/zero", O_RDWR | O_CLOEXEC);

        tell(&fixture->told[0], FOREIGN, 8, module.control_fd); /* another process' client */
        channels_switch(NULL, 0, &fixture->a, 1);
        assert_string_equal(module.log, "");
        assert_int_equal(channels_get_error(fixture->a), -ESRCH);
        tell(&fixture->told[0], CLIENT, 8, other); /* another file */
        channels_switch(NULL, 0, &fixture->a, 1);
        assert_string_equal(module.log, "");
        assert_int_equal(channels_get_error(fixture->a), -EPROTO);
        assert_int_equal(module.n_duplicates, 1);   /* that one was never ours */
        tell(&fixture->told[0], CLIENT, 8, 100000); /* none */
        channels_switch(NULL, 0, &fixture->a, 1);
        assert_int_equal(channels_get_error(fixture->a), -ESRCH);
        assert_false(channels_are_off(fixture->a));
        close(other);
}

/* A socket that lingers, with data under way, in a local socket: nothing makes its close() return early. */
static int new_lingerer(int *ret_peer)
{
        const struct linger hour = { 1, 3600 };
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ends[2];
        static const char bytes[65536];

        assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
        *ret_peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        close(listener);
        while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(packet_send(ends[1], "x", 1, &fd, 1), 0);
        close(fd);
        close(ends[1]);
        return ends[0];
}

/* A process that has a lingerer, which it says is its control node; and that does until it is ours. */
static struct channels *start_liar(struct fixture *fixture, int *ret_peer)
{
        int lingerer = new_lingerer(ret_peer), pidfd;
        struct channels *channels;

        module.liar = fork();
        if (module.liar == 0) {
                for (;;)
                        pause();
        }
        close(lingerer);
        pidfd = (int)syscall(SYS_pidfd_open, module.liar, 0);
        tell(&fixture->told[0], CLIENT, 8, lingerer);
        assert_int_equal(
                channels_new(&channels, fixture->host, module.liar, pidfd, &fixture->told[0]), 0);
        return channels;
}

static void test_nobody_waits_for_a_descriptor_that_lingers(void **state)
{
        struct fixture *fixture = *state;
        struct channels *channels;
        int peer;

        channels = start_liar(fixture, &peer);
        alarm(60); /* it would be an hour */
        channels_switch(&fixture->b, 1, &channels, 1);
        alarm(0);
        assert_int_equal(channels_get_error(channels), -EPROTO);
        assert_false(channels_are_off(channels));
        assert_int_equal(channels_get_error(fixture->b), 0);
        close(channels_get_process_fd(channels));
        channels_free(channels);
        close(peer);
}

static void test_who_names_what_is_wrong_is_asked_no_more(void **state)
{
        struct fixture *fixture = *state;
        int other = open("/dev/zero", O_RDWR | O_CLOEXEC);

        tell(&fixture->told[0], CLIENT, 8, other);
        for (int i = 0; i < 10; i++) {
                module.liar = -1; /* looks right before, and not after */
                channels_switch(NULL, 0, &fixture->a, 1);
                assert_int_equal(channels_get_error(fixture->a), -EPROTO);
        }
        assert_int_equal(module.n_duplicates, 3);
        close(other);
}

/* Of two clients, one has gone since: the other's channels count. */
static void test_what_has_gone_is_left_out(void **state)
{
        struct fixture *fixture = *state;

        tell(&fixture->told[0], CLIENT, 8, module.control_fd);
        for (int i = 0; i < 3; i++)
                fixture->told[0].channel[i].client = FOREIGN;
        channels_switch(NULL, 0, &fixture->a, 1);
        assert_string_equal(module.log, "off 5;force 103;");
        assert_true(channels_are_off(fixture->a));
}

static void test_one_that_fails_does_not_harm_the_others(void **state)
{
        struct fixture *fixture = *state;
        struct channels *both[] = { fixture->a, fixture->b };

        module.fail_command = RM_COMMAND_DISABLE_CHANNELS;
        module.fail_status = RM_INVALID_STATE;
        module.fail_client = CLIENT;
        channels_switch(NULL, 0, both, 2);
        assert_string_equal(module.log, "off 8;force 100;");
        assert_int_equal(channels_get_error(fixture->a), -EAGAIN);
        assert_int_equal(channels_get_error(fixture->b), 0);
        assert_true(channels_are_off(fixture->b));
        assert_true(channels_are_off(fixture->a)); /* what lets it on fails as well */
}

static bool plan_is_off(const struct channels *channels)
{
        struct plan plan;

        assert_int_equal(plan_read(channels_get_plan_fd(channels), &plan), 0);
        return plan.is_off;
}

static void test_one_that_cannot_be_let_on_is_known_to_be_off(void **state)
{
        static const uint32_t commands[] = { RM_COMMAND_DISABLE_CHANNELS,
                                             RM_COMMAND_RESTART_RUN_LIST };
        struct fixture *fixture = *state;

        for (int i = 0; i < 2; i++) {
                module.fail_command = 0;
                channels_switch(NULL, 0, &fixture->a, 1);
                module.fail_command = commands[i];
                module.fail_status = RM_INVALID_STATE;
                channels_switch(&fixture->a, 1, NULL, 0);
                assert_int_equal(channels_get_error(fixture->a), -EAGAIN);
                assert_true(channels_are_off(fixture->a));
                assert_true(plan_is_off(fixture->a));
                module.fail_command = 0;
                module.log[0] = '\0';
                channels_switch(&fixture->a, 1, NULL, 0);
                assert_string_equal(module.log, "on 8;restart 100;");
                assert_int_equal(channels_get_error(fixture->a), 0);
                assert_false(channels_are_off(fixture->a));
                assert_false(plan_is_off(fixture->a));
        }
}

/* The channels are marked, but the run list is as it was: with its next restart they would be off. */
static void test_one_that_cannot_be_held_off_is_let_on(void **state)
{
        struct fixture *fixture = *state;

        module.fail_command = RM_COMMAND_RESTART_RUN_LIST;
        module.fail_status = RM_INVALID_STATE;
        channels_switch(NULL, 0, &fixture->a, 1);
        assert_string_equal(module.log, "off 8;on 8;");
        assert_false(channels_are_off(fixture->a));
        assert_false(plan_is_off(fixture->a));
}

/* What it says is not what it was held off by. */
static void test_one_that_is_off_stays_off_where_it_cannot_be_read(void **state)
{
        struct fixture *fixture = *state;

        channels_switch(NULL, 0, &fixture->a, 1);
        tell(&fixture->told[0], CLIENT, INSTANCE_PAGE_CHANNELS + 1, module.control_fd);
        channels_switch(NULL, 0, &fixture->a, 1);
        assert_int_equal(channels_get_error(fixture->a), -E2BIG);
        assert_true(channels_are_off(fixture->a));
        assert_true(plan_is_off(fixture->a));
        module.log[0] = '\0';
        channels_switch(&fixture->a, 1, NULL, 0);
        assert_string_equal(module.log, "on 8;restart 100;");
        assert_false(channels_are_off(fixture->a));
}

static void test_no_right(void **state)
{
        struct fixture *fixture = *state;

        module.fail_command = RM_COMMAND_RESTART_RUN_LIST;
        module.fail_status = RM_INSUFFICIENT_RIGHT;
        channels_switch(NULL, 0, &fixture->a, 1);
        assert_int_equal(channels_get_error(fixture->a), -EPERM);
}

static void test_more_than_can_be_told(void **state)
{
        struct fixture *fixture = *state;

        tell(&fixture->told[0], CLIENT, INSTANCE_PAGE_CHANNELS + 1, module.control_fd);
        channels_switch(NULL, 0, &fixture->a, 1);
        assert_int_equal(channels_get_error(fixture->a), -E2BIG);
        assert_string_equal(module.log, "");
}

static void test_new_channels_are_seen(void **state)
{
        struct fixture *fixture = *state;

        channels_switch(NULL, 0, &fixture->a, 1);
        assert_false(channels_have_changed(fixture->a));
        tell(&fixture->told[0], CLIENT, 9, module.control_fd);
        assert_true(channels_have_changed(fixture->a));
        module.log[0] = '\0';
        channels_switch(NULL, 0, &fixture->a, 1);
        assert_string_equal(module.log, "off 9;force 100;");
}

/* A process may write while we read, for ever: then what was read before counts. */
static void test_a_table_in_the_middle_of_a_write(void **state)
{
        struct fixture *fixture = *state;

        channels_switch(NULL, 0, &fixture->a, 1);
        atomic_fetch_add(&fixture->told[0].sequence, 1);
        atomic_store(&fixture->told[0].n, 3);
        module.log[0] = '\0';
        channels_switch(NULL, 0, &fixture->a, 1);
        assert_string_equal(module.log, "off 8;force 100;");
}

static void test_the_plan_lets_it_on_again(void **state)
{
        struct fixture *fixture = *state;
        struct plan plan;

        assert_int_equal(plan_read(channels_get_plan_fd(fixture->a), &plan), 0);
        assert_int_equal(plan_undo(&plan, channels_get_process_fd(fixture->a)), 0);
        assert_string_equal(module.log, ""); /* it is not off */
        channels_switch(NULL, 0, &fixture->a, 1);
        module.log[0] = '\0';
        assert_int_equal(plan_read(channels_get_plan_fd(fixture->a), &plan), 0);
        assert_int_equal(plan_undo(&plan, channels_get_process_fd(fixture->a)), 0);
        assert_string_equal(module.log, "on 8;restart 100;");
        assert_int_equal(plan_read(fixture->pidfd, &plan) < 0, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_next_on_before_last_off, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_many_go_in_few_calls, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_each_device_is_told_of_its_own_channels,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_processes_on_several_devices_are_told_apart,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_only_its_own_can_be_named, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nobody_waits_for_a_descriptor_that_lingers,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_who_names_what_is_wrong_is_asked_no_more,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_what_has_gone_is_left_out, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_one_that_fails_does_not_harm_the_others,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_one_that_cannot_be_let_on_is_known_to_be_off,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_one_that_cannot_be_held_off_is_let_on, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_one_that_is_off_stays_off_where_it_cannot_be_read, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_no_right, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_more_than_can_be_told, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_new_channels_are_seen, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_table_in_the_middle_of_a_write, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_the_plan_lets_it_on_again, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
