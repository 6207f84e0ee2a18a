/* SPDX-License-Identifier: Apache-2.0 */
/* How vgpu ends: exit codes, what it says to errors, and as the program of `vgpu run`. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/command.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);

static void test_every_refusal_has_its_exit_code(void **state)
{
        static const struct {
                const char *answer;
                int code;
        } cases[] = {
                { REFUSAL("NoSuchVgpu", "why", "do"), 3 },
                { REFUSAL("NoSuchDevice", "why", "do"), 3 },
                { REFUSAL("VgpuExists", "why", "do"), 1 },
                { REFUSAL("InvalidParameter", "why", "do"), 2 },
                { REFUSAL("NoRoom", "why", "do"), 1 },
                { REFUSAL("PoolTooSmall", "why", "do"), 1 },
                { REFUSAL("WrongState", "why", "do"), 7 },
                { REFUSAL("Busy", "why", "do"), 7 },
                { REFUSAL("TimedOut", "why", "do"), 4 },
                { REFUSAL("NotMovable", "why", "do"), 1 },
                { REFUSAL("DriverFailed", "why", "do"), 1 },
                { REFUSAL("GuestLost", "why", "do"), 1 },
                { REFUSAL("PermissionDenied", "why", "do"), 6 },
                { REFUSAL("Failed", "why", "do"), 1 },
                { REFUSAL("NotInventedYet", "why", "do"), 1 },
        };
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const struct fake_step step = { .method = "SuspendVgpu",
                                                .answers = { cases[i].answer } };

                command_expect(vgpu(&step, 1, WORDS("suspend", "train")), cases[i].code, "",
                               "vgpu: suspend: why\nhint: do\n");
        }
}

static void test_an_old_manager_exits_with_1_and_says_so(void **state)
{
        const struct fake_step step = { .method = "GetInfo",
                                        .answers = { REFUSAL("MethodNotFound", "", "") } };
        (void)state;

        command_expect(vgpu(&step, 1, WORDS("info")), 1, "",
                       "vgpu: info: vgpud does not know this request: it is older than this "
                       "program (" OPENVGPU_VERSION ")\nhint: upgrade vgpud and restart it\n");
}

static void test_errors_are_json_when_json_is_asked_for(void **state)
{
        const struct fake_step step = { .method = "RemoveVgpu",
                                        .answers = { REFUSAL("Busy", "why", "do") } };
        (void)state;

        command_expect(vgpu(&step, 1, WORDS("rm", "train", "--json")), 7, "",
                       "{\n  \"error\": {\n    \"name\": \"Busy\",\n    \"message\": \"why\",\n"
                       "    \"hint\": \"do\",\n    \"exit_code\": 7\n  }\n}\n");
        command_expect(vgpu(NULL, 0, WORDS("rm", "--wrong", "--json")), 2, "",
                       "{\n  \"error\": {\n    \"name\": \"Usage\",\n"
                       "    \"message\": \"unknown option '--wrong'\",\n"
                       "    \"hint\": \"see 'vgpu help rm'\",\n    \"exit_code\": 2\n  }\n}\n");
        command_expect(
                vgpu(NULL, 0, WORDS("list", "--json")), 2, "",
                "{\n  \"error\": {\n    \"name\": \"Usage\",\n"
                "    \"message\": \"unknown command 'list'\",\n"
                "    \"hint\": \"did you mean 'vgpu ls'?\",\n    \"exit_code\": 2\n  }\n}\n");
}

static void test_without_vgpud_the_exit_code_is_5(void **state)
{
        const struct fake_step gone = { .method = "SuspendVgpu", .hang_up = 1 };
        (void)state;

        /* The hint depends on what else runs here: tests/system/test_bad_input.py has it. */
        command_expect_begin(vgpu(NULL, 0, WORDS("ls")), 5, "",
                             "vgpu: ls: no vgpud answers at /nonexistent/control.sock\nhint: ");
        command_expect(vgpu(&gone, 1, WORDS("suspend", "train")), 5, "",
                       "vgpu: suspend: vgpud went away before it answered: the outcome is "
                       "unknown\nhint: when vgpud runs again, look with 'vgpu ls'\n");
}

/* The socket of one that was killed: no other vgpud is meant, whatever else runs here. */
static void test_a_vgpud_that_has_ended_is_told_from_none(void **state)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        char folder[] = "/tmp/vgpu-test-XXXXXX", expected[256];
        CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        FILE *err = tmpfile();
        char text[512];
        (void)state;

        assert_non_null(mkdtemp(folder));
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", folder);
        assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(command_wait(command_start(folder, WORDS("ls"), -1, fileno(err))), 5);
        command_read(text, sizeof(text), err);
        snprintf(expected, sizeof(expected),
                 "vgpu: ls: the vgpud at %s has ended\n"
                 "hint: its vGPUs are kept and their programs run on: start vgpud again, ",
                 address.sun_path);
        unlink(address.sun_path);
        rmdir(folder);
        assert_memory_equal(text, expected, strlen(expected));
}

static const struct {
        const char *words[COMMAND_WORDS_MAX + 1], *err;
} wrong_lines[] = {
        { { "suspned", "train" },
          "vgpu: unknown command 'suspned'\nhint: did you mean 'vgpu suspend'?\n" },
        { { "list" }, "vgpu: unknown command 'list'\nhint: did you mean 'vgpu ls'?\n" },
        { { "nvml" }, "vgpu: nvml: which query?\nhint: 'vgpu help nvml' lists the queries\n" },
        { { "nvml", "typse" },
          "vgpu: nvml: unknown query 'typse'\nhint: did you mean 'vgpu nvml types'?\n" },
        { { "typse" }, "vgpu: unknown command 'typse'\nhint: did you mean 'vgpu nvml types'?\n" },
        { { "inspect", "a" },
          "vgpu: unknown command 'inspect'\nhint: did you mean 'vgpu show'?\n" },
        { { "kill", "a" },
          "vgpu: unknown command 'kill'\nhint: did you mean 'vgpu rm --force'?\n" },
        { { "version" },
          "vgpu: unknown command 'version'\nhint: did you mean 'vgpu --version'?\n" },
        { { "ls", "-q" }, "vgpu: ls: unknown option '-q'\nhint: did you mean '--names'?\n" },
        { { "run", "--gpu", "1" },
          "vgpu: run: unknown option '--gpu'\nhint: did you mean '--device'?\n" },
        { { "susp", "a" },
          "vgpu: unknown command 'susp'\nhint: 'vgpu --help' lists the commands\n" },
        { { "hlep" }, "vgpu: unknown command 'hlep'\nhint: did you mean 'vgpu help'?\n" },
        { { "--all", "ls" },
          "vgpu: the command comes first, then '--all'\nhint: vgpu ls --json\n" },
        { { "help", "foo" },
          "vgpu: unknown command 'foo'\nhint: 'vgpu --help' lists the commands\n" },
        { { "ls", "--jsn" }, "vgpu: ls: unknown option '--jsn'\nhint: did you mean '--json'?\n" },
        { { "help", "flurb" },
          "vgpu: unknown command 'flurb'\nhint: 'vgpu --help' lists the commands\n" },
        { { "create", "a", "--fb", "40X" },
          "vgpu: create: --fb: '40X' is not a size\nhint: write it as 40G, 1.5G or 512M\n" },
        { { "create", "a", "--fb", "99999999T" },
          "vgpu: create: --fb: '99999999T' is more than there can be\n" },
        { { "create", "a", "--fb", "40" },
          "vgpu: create: --fb: '40' has no unit\nhint: did you mean '--fb 40G'?\n" },
        { { "create", "a", "--fb", "1G", "--idle-after", "5x" },
          "vgpu: create: --idle-after: '5x' is not a time\n"
          "hint: write it as 30s, 5m or 1h; 'never' ends it\n" },
        { { "scheduler", "set", "--policy", "equal-share", "--timeslice", "5" },
          "vgpu: scheduler set: --timeslice must be 1ms to 30ms, not 5 s\n"
          "hint: for example --timeslice 5ms\n" },
        { { "usage", "--since", "7" },
          "vgpu: usage: --since: '7' is no time\n"
          "hint: 2026-11-01, '2026-11-01 09:30', today, or 7d (ago)\n" },
        { { "create", "a", "--fb", "0" },
          "vgpu: create: --fb: '0' is nothing at all\n"
          "hint: write it as 40G, 1.5G or 512M\n" },
        { { "create", "a" },
          "vgpu: create: --fb SIZE is missing\n"
          "hint: how much memory may it hold? for example --fb 40G\n" },
        { { "create", "a", "--fb" },
          "vgpu: create: --fb needs SIZE\nhint: see 'vgpu help create'\n" },
        { { "create", "a", "--memory=1G", "--fb", "2G" },
          "vgpu: create: --fb is given twice\nhint: see 'vgpu help create'\n" },
        { { "resize", "a", "--memory", "40" },
          "vgpu: resize: --fb: '40' has no unit\nhint: did you mean '--fb 40G'?\n" },
        { { "create", "a", "--fb", "1G", "--fb=2G" },
          "vgpu: create: --fb is given twice\nhint: see 'vgpu help create'\n" },
        { { "create", "a", "b", "--fb", "1G" },
          "vgpu: create: unexpected 'b'\nhint: one at a time, please\n" },
        { { "resize", "a", "40G" },
          "vgpu: resize: unexpected '40G'\nhint: did you mean '--fb 40G'?\n" },
        { { "migrate", "a", "1" },
          "vgpu: migrate: unexpected '1'\nhint: did you mean '--device 1'?\n" },
        { { "help", "--all" }, "vgpu: unknown option '--all'\nhint: vgpu help COMMAND\n" },
        { { "create", "a", "--devcie", "1" },
          "vgpu: create: unknown option '--devcie'\nhint: did you mean '--device'?\n" },
        { { "create", "a", "--dev", "1" },
          "vgpu: create: unknown option '--dev'\nhint: see 'vgpu help create'\n" },
        { { "suspend" },
          "vgpu: suspend: the name of the vGPU is missing\n"
          "hint: see 'vgpu help suspend'\n" },
        { { "suspend", "a", "--keep-context=yes" },
          "vgpu: suspend: --keep-context takes no value\nhint: see 'vgpu help suspend'\n" },
        { { "suspend", "a", "--timeout", "soon" },
          "vgpu: suspend: --timeout: 'soon' is not a time\n"
          "hint: write it as 500ms, 30s, 5m or 1h; without a unit it is seconds\n" },
        { { "suspend", "a", "--timeout", "-1" },
          "vgpu: suspend: --timeout: '-1' is not a time\n"
          "hint: write it as 500ms, 30s, 5m or 1h; without a unit it is seconds\n" },
        { { "migrate", "a" },
          "vgpu: migrate: --device DEVICE is missing\n"
          "hint: 'vgpu devices' lists the GPUs\n" },
        { { "run", "true" },
          "vgpu: run: in which vGPU?\nhint: --vgpu NAME runs the program in an existing vGPU, --fb 20G in a new one\n" },
        { { "run", "--vgpu", "a" },
          "vgpu: run: the program is missing\nhint: see 'vgpu help run'\n" },
        { { "run", "--vgpu", "a", "--fb", "1G", "true" },
          "vgpu: run: --vgpu and --fb exclude each other\n"
          "hint: --vgpu names an existing vGPU, --fb creates a new one\n" },
        { { "ls", "-x" }, "vgpu: ls: unknown option '-x'\nhint: see 'vgpu help ls'\n" },
        { { "rm", "\377a" }, "vgpu: rm: the name '?a' is not UTF-8\n" },
};

static void test_a_wrong_command_line_exits_with_2_and_names_the_word(void **state)
{
        (void)state;

        for (size_t i = 0; i < sizeof(wrong_lines) / sizeof(wrong_lines[0]); i++)
                command_expect(vgpu(NULL, 0, wrong_lines[i].words), 2, "", wrong_lines[i].err);
}

#define PREPARED                                                                                   \
        {                                                                                          \
                .method = "PrepareRun", .answers = {                                               \
                        ANSWER("'vgpu':" TRAIN_IDLE ",'environment':{'OPENVGPU_VGPU':'the-uuid'}") \
                }                                                                                  \
        }

static void test_run_becomes_the_program(void **state)
{
        static const struct fake_step steps[] = { PREPARED };
        const struct outcome *outcome;
        (void)state;

        outcome = vgpu(steps, 1,
                       WORDS("run", "--vgpu", "train", "--", "sh", "-c",
                             "echo $OPENVGPU_VGPU \"$@\"; exit 42", "sh", "--json", "--"));
        command_expect(outcome, 42, "the-uuid --json --\n", "");
        outcome = vgpu(steps, 1, WORDS("run", "--vgpu", "train", "sh", "-c", "kill -9 $$"));
        command_expect(outcome, 128 + SIGKILL, "", "");
}

static void test_run_makes_a_vgpu_that_lives_as_long_as_the_program(void **state)
{
        static const struct fake_step steps[] = {
                { .method = "CreateVgpu", .answers = { ANSWER("'vgpu':" TRAIN_IDLE) } },
                PREPARED,
                { .method = "RemoveVgpu", .answers = { ANSWER("'vgpu':" TRAIN_IDLE) } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 3);
        CLEANUP(fd_closep) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)state;

        /* A program that cannot be executed leaves nothing behind. */
        assert_int_equal(
                command_wait(command_start(fake_manager_get_directory(fake),
                                           WORDS("run", "--fb", "1G", "--name", "train", "--device",
                                                 "1", "--", "/nonexistent/program"),
                                           -1, null)),
                127);
        assert_string_equal(fake_manager_get_call(fake, 0),
                            "{'method':'org.openvgpu.CreateVgpu','parameters':{'name':'train',"
                            "'device':'1','frame_buffer':1073741824,'transient':true},"
                            "'more':false}");
        assert_non_null(strstr(fake_manager_get_call(fake, 2), "RemoveVgpu"));
}

static void test_run_tells_not_found_from_not_executable(void **state)
{
        static const struct fake_step steps[] = { PREPARED };
        (void)state;

        command_expect(vgpu(steps, 1, WORDS("run", "--vgpu", "train", "no-such-program")), 127, "",
                       "vgpu: run: cannot execute 'no-such-program': No such file or directory\n");
        command_expect(vgpu(steps, 1, WORDS("run", "--vgpu", "train", "/dev/null")), 126, "",
                       "vgpu: run: cannot execute '/dev/null': Permission denied\n");
}

static void test_a_full_disk_is_an_error(void **state)
{
        static const struct fake_step step = { .method = "ListDevices",
                                               .answers = { ANSWER("'devices':[" DEVICE_0 "]") } };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        CLEANUP(fd_closep) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
        FILE *err = tmpfile();
        char text[256];
        (void)state;

        assert_non_null(err);
        assert_int_equal(command_wait(command_start(fake_manager_get_directory(fake),
                                                    WORDS("devices"), full, fileno(err))),
                         1);
        command_read(text, sizeof(text), err);
        assert_string_equal(text, "vgpu: cannot write to standard output: "
                                  "No space left on device\n");
}

static atomic_int to_interrupt;

/* In the fake's thread: the call is there, so the command waits for its answer. */
static void interrupt_the_command(void)
{
        pid_t pid;

        while ((pid = atomic_load(&to_interrupt)) == 0)
                usleep(1000);
        kill(pid, SIGINT);
}

static void test_an_interrupt_says_that_the_operation_goes_on(void **state)
{
        static const struct fake_step step = { .method = "SuspendVgpu",
                                               .before = interrupt_the_command };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        FILE *err = tmpfile();
        char text[256];
        pid_t pid;
        (void)state;

        assert_non_null(err);
        pid = command_start(fake_manager_get_directory(fake), WORDS("suspend", "train"), -1,
                            fileno(err));
        atomic_store(&to_interrupt, pid);
        assert_int_equal(command_wait(pid), 128 + SIGINT);
        command_read(text, sizeof(text), err);
        assert_string_equal(text,
                            "\nvgpu: suspend: interrupted, but vgpud continues the operation\n"
                            "hint: see 'vgpu ls'\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_refusal_has_its_exit_code),
                cmocka_unit_test(test_an_old_manager_exits_with_1_and_says_so),
                cmocka_unit_test(test_errors_are_json_when_json_is_asked_for),
                cmocka_unit_test(test_without_vgpud_the_exit_code_is_5),
                cmocka_unit_test(test_a_vgpud_that_has_ended_is_told_from_none),
                cmocka_unit_test(test_a_wrong_command_line_exits_with_2_and_names_the_word),
                cmocka_unit_test(test_run_becomes_the_program),
                cmocka_unit_test(test_run_makes_a_vgpu_that_lives_as_long_as_the_program),
                cmocka_unit_test(test_run_tells_not_found_from_not_executable),
                cmocka_unit_test(test_a_full_disk_is_an_error),
                cmocka_unit_test(test_an_interrupt_says_that_the_operation_goes_on),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
