/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command as a user meets it: a process, its output and its exit status, against a manager that
 * says what the test wants.
 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/manager.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);

#define WORDS_MAX 16

struct outcome {
        int code; /* exit status; 128 + signal */
        char out[16384], err[4096];
};

static void read_all(char *text, size_t room, FILE *file)
{
        rewind(file);
        text[fread(text, 1, room - 1, file)] = '\0';
        fclose(file);
}

static pid_t start(const char *run_directory, const char *const *words, int out, int err)
{
        char *argv[WORDS_MAX + 2] = { getenv("TEST_VGPU") };
        pid_t pid;

        assert_non_null(argv[0]);
        for (size_t i = 0; i < WORDS_MAX && words[i]; i++)
                argv[i + 1] = (char *)(uintptr_t)words[i];

        pid = fork();
        assert_true(pid >= 0);
        if (pid > 0)
                return pid;
        setenv("OPENVGPU_RUN", run_directory, 1);
        unsetenv("LD_LIBRARY_PATH");
        setenv("LD_PRELOAD", "", 1);
        if (out >= 0)
                dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        execv(argv[0], argv);
        _exit(99);
}

static int wait_for(pid_t pid)
{
        int status;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs `vgpu WORDS` against a manager that goes through the steps. */
static struct outcome *vgpu(const struct fake_step *steps, size_t n_steps, const char *const *words)
{
        static struct outcome outcome;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = NULL;
        FILE *out = tmpfile(), *err = tmpfile();

        assert_non_null(out);
        assert_non_null(err);
        if (n_steps > 0)
                fake = fake_manager_new(steps, n_steps);
        outcome.code = wait_for(start(fake ? fake_manager_get_directory(fake) : "/nonexistent",
                                      words, fileno(out), fileno(err)));
        read_all(outcome.out, sizeof(outcome.out), out);
        read_all(outcome.err, sizeof(outcome.err), err);
        return &outcome;
}

#define WORDS(...) ((const char *const[WORDS_MAX + 1]){ __VA_ARGS__ })

static void expect(const struct outcome *outcome, int code, const char *out, const char *err)
{
        assert_string_equal(outcome->err, err);
        assert_string_equal(outcome->out, out);
        assert_int_equal(outcome->code, code);
}

/* The command line @words, answered with @answer to @method, prints @out. */
static void expect_out(const char *method, const char *answer, const char *const *words,
                       const char *out)
{
        const struct fake_step step = { .method = method, .answers = { answer } };

        expect(vgpu(&step, 1, words), 0, out, "");
}

static void test_devices_are_a_table(void **state)
{
        (void)state;
        expect_out("ListDevices", ANSWER("'devices':[" DEVICE_0 "," DEVICE_1 "]"), WORDS("devices"),
                   "INDEX  NAME            MEMORY  PROMISED      USED  VGPUS  UUID\n"
                   "    0  NVIDIA H200  140.4 GiB    40 GiB  31.8 GiB      1  "
                   "GPU-11111111-2222-3333-4444-555555555555\n"
                   "    1  NVIDIA H200  140.4 GiB       0 B       0 B      0  "
                   "GPU-66666666-7777-8888-9999-000000000000\n");
        expect_out("ListDevices", ANSWER("'devices':[" DEVICE_0 "," DEVICE_1 "]"),
                   WORDS("devices", "--names"), "0\n1\n");
}

static void test_vgpus_are_a_table(void **state)
{
        (void)state;
        expect_out("ListVgpus", ANSWER("'vgpus':[" TRAIN "," TRAIN_SUSPENDED "]"), WORDS("ls"),
                   "NAME   DEVICE  STATE           FRAME BUFFER  PROCESSES\n"
                   "train       0  running    31.8 GiB / 40 GiB          1\n"
                   "train       -  suspended  31.8 GiB / 40 GiB          1\n");
        expect_out("ListVgpus", ANSWER("'vgpus':[]"), WORDS("ls"),
                   "NAME  DEVICE  STATE  FRAME BUFFER  PROCESSES\n");
        expect_out("ListVgpus", ANSWER("'vgpus':[" TRAIN "," TRAIN_IDLE "]"),
                   WORDS("ls", "--names"), "train\ntrain\n");
}

static void test_a_long_listing_has_the_programs(void **state)
{
        const struct fake_step step = { .method = "ListVgpus",
                                        .answers = { ANSWER("'vgpus':[" TRAIN "]") } };
        const struct outcome *outcome;
        (void)state;

        outcome = vgpu(&step, 1, WORDS("ls", "-l", "train"));
        assert_int_equal(outcome->code, 0);
        assert_non_null(strstr(outcome->out, "root"));
        assert_non_null(strstr(outcome->out, "0a1b2c3d-0000-4000-8000-00000000000a\n"));
        assert_non_null(strstr(outcome->out,
                               "\n\nVGPU    PID  PROGRAM    MEMORY   MOVABLE  LAUNCHES\n"
                               "train  4711  python3  31.8 GiB  31.8 GiB    120034\n"));
}

static void test_a_guest_cannot_write_to_the_terminal_of_who_lists_it(void **state)
{
#define EVIL "{'pid':1,'name':'\\u001b[2J\\nx','memory_used':0,'memory_movable':0,'launches':0}"
        const struct fake_step step = { .method = "ListVgpus",
                                        .answers = { ANSWER(
                                                "'vgpus':[" VGPU("a", "running", 0, EVIL) "]") } };
        const struct outcome *outcome;
        (void)state;

        outcome = vgpu(&step, 1, WORDS("ls", "--long"));
        assert_non_null(strstr(outcome->out, "\na       1  ?[2J?x      0 B"));
        assert_null(strchr(outcome->out, '\033'));
}

static void test_what_was_done_is_one_line(void **state)
{
        (void)state;
        expect_out("CreateVgpu", ANSWER("'vgpu':" TRAIN_IDLE),
                   WORDS("create", "train", "--fb", "40G"), "created train: 40 GiB on GPU 0\n");
        expect_out("RemoveVgpu", ANSWER("'vgpu':" TRAIN_IDLE), WORDS("rm", "train"),
                   "removed train\n");
        expect_out("SuspendVgpu", ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0)), WORDS("suspend", "train"),
                   "suspended train: 31.8 GiB out in 0.66 s (52.1 GB/s), context 0.35 s, GPU 0 is "
                   "free of it\n");
        expect_out(
                "SuspendVgpu",
                ANSWER("'vgpu':" VGPU(
                        "train", "evicted", 34145055539,
                        PROCESS) ",'bytes':"
                                 "34145055539,'seconds':0.67,'copy_seconds':0.655,'context_seconds':0,"
                                 "'drain_seconds':0,'processes':1,'from_device':0,'to_device':0"),
                WORDS("suspend", "train", "--keep-context"),
                "evicted train: 31.8 GiB out in 0.66 s (52.1 GB/s), its context stays on GPU 0\n");
        expect_out(
                "SuspendVgpu",
                ANSWER("'vgpu':" VGPU(
                        "train", "suspended", 0,
                        "") ",'bytes':0,'seconds':0,"
                            "'copy_seconds':0,'context_seconds':0,'drain_seconds':0,'processes':0,"
                            "'from_device':0,'to_device':0"),
                WORDS("suspend", "train"),
                "suspended train: no program in it, GPU 0 is free of it\n");
        expect_out(
                "ResumeVgpu", ANSWER(REPORT(TRAIN, 0, 1)),
                WORDS("resume", "train", "--device", "1"),
                "resumed train: 31.8 GiB back in 0.66 s (52.1 GB/s), context 0.35 s, on GPU 1\n");
        expect_out("MigrateVgpu", ANSWER(REPORT(TRAIN, 1, 0)),
                   WORDS("migrate", "train", "--device=0"),
                   "migrated train from GPU 1 to GPU 0 in 0.67 s: 31.8 GiB across in 0.66 s "
                   "(52.1 GB/s), context 0.35 s\n");
}

static void test_info_is_read_by_people_and_env_by_shells(void **state)
{
        (void)state;
        expect_out("GetInfo", ANSWER(INFO), WORDS("info"),
                   "vgpu           " OPENVGPU_VERSION "\n"
                   "vgpud          0.1.0\n"
                   "CUDA driver    13.0, /usr/lib/x86_64-linux-gnu/libcuda.so.1\n"
                   "gate           /usr/lib/openvgpu/gate/libcuda.so.1\n"
                   "NVML           /usr/lib/openvgpu/nvml\n"
                   "run directory  /run/openvgpu\n"
                   "pool           0 B of 64 GiB used by suspended vGPUs\n"
                   "               36 GiB pinned and ready, in slabs of 256 MiB, 36 GiB in huge "
                   "pages\n");
        expect_out("GetInfo", ANSWER(INFO), WORDS("env"),
                   "export LD_LIBRARY_PATH='/usr/lib/openvgpu/nvml'\n"
                   "export OPENVGPU_RUN='/run/openvgpu'\n");
}

static void test_progress_is_not_drawn_where_nobody_looks(void **state)
{
        const struct fake_step step = { .method = "SuspendVgpu",
                                        .answers = { ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0)) } };
        (void)state;

        assert_string_equal(vgpu(&step, 1, WORDS("suspend", "train"))->err, "");
}

static void test_progress_is_drawn_on_a_terminal_and_wiped_away(void **state)
{
        static const struct fake_step step = {
                .method = "SuspendVgpu",
                .answers = { PROGRESS("draining", 0, 0), PROGRESS("copying", 512, 1024),
                             PROGRESS("\\u001b[2J", 2048, 1024),
                             ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0)) }
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        CLEANUP(fd_closep) int terminal = -1;
        CLEANUP(fd_closep) int other_end = -1;
        CLEANUP(fd_closep) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        struct winsize size = { .ws_row = 24, .ws_col = 80 };
        char text[4096];
        ssize_t n;
        (void)state;

        assert_int_equal(openpty(&other_end, &terminal, NULL, NULL, &size), 0);
        setenv("TERM", "xterm", 1);
        assert_int_equal(wait_for(start(fake_manager_get_directory(fake), WORDS("suspend", "train"),
                                        null, terminal)),
                         0);
        n = read(other_end, text, sizeof(text) - 1);
        assert_true(n > 0);
        text[n] = '\0';
        assert_string_equal(
                text, "\rsuspend train: waiting for its programs to come to rest\033[K"
                      "\rsuspend train [############............] 512 B of 1 KiB, copying\033[K"
                      "\rsuspend train: ?[2J\033[K"
                      "\r\033[K");
}

static void test_json_is_what_the_protocol_calls_it(void **state)
{
        (void)state;
        expect_out("ListDevices", ANSWER("'devices':[" DEVICE_1 "]"), WORDS("devices", "--json"),
                   "{\n"
                   "  \"devices\": [\n"
                   "    {\n"
                   "      \"index\": 1,\n"
                   "      \"uuid\": \"GPU-66666666-7777-8888-9999-000000000000\",\n"
                   "      \"name\": \"NVIDIA H200\",\n"
                   "      \"pci_bus_id\": \"00000000:5E:00.0\",\n"
                   "      \"memory_total\": 150754820096,\n"
                   "      \"memory_promised\": 0,\n"
                   "      \"memory_used\": 0,\n"
                   "      \"vgpus\": 0\n"
                   "    }\n"
                   "  ]\n"
                   "}\n");
        expect_out("ListVgpus", ANSWER("'vgpus':[]"), WORDS("ls", "--json"),
                   "{\n  \"vgpus\": []\n}\n");
}

static void test_json_has_everything_for_every_command(void **state)
{
        static const struct {
                const char *method, *answer, *word, *wanted;
        } cases[] = {
                { "ListVgpus", ANSWER("'vgpus':[" TRAIN "]"), "ls", "\"launches\": 120034" },
                { "ListVgpus", ANSWER("'vgpus':[" TRAIN "]"), "ls", "\"state\": \"running\"" },
                { "RemoveVgpu", ANSWER("'vgpu':" TRAIN_IDLE), "rm", "\"created\": 1764000000" },
                { "SuspendVgpu", ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0)), "suspend",
                  "\"context_seconds\": 0.35," },
                { "ResumeVgpu", ANSWER(REPORT(TRAIN, 0, 1)), "resume", "\"to_device\": 1" },
                { "ResumeVgpu", ANSWER(REPORT(TRAIN, 0, 1)), "resume", "\"processes\": 1," },
        };
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const struct fake_step step = { .method = cases[i].method,
                                                .answers = { cases[i].answer } };
                const struct outcome *outcome =
                        vgpu(&step, 1, WORDS(cases[i].word, "train", "--json"));

                assert_int_equal(outcome->code, 0);
                if (!strstr(outcome->out, cases[i].wanted))
                        fail_msg("%s has no %s", outcome->out, cases[i].wanted);
        }
}

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

                expect(vgpu(&step, 1, WORDS("suspend", "train")), cases[i].code, "",
                       "vgpu: suspend: why\nhint: do\n");
        }
}

static void test_an_old_manager_exits_with_1_and_says_so(void **state)
{
        const struct fake_step step = { .method = "GetInfo",
                                        .answers = { REFUSAL("MethodNotFound", "", "") } };
        (void)state;

        expect(vgpu(&step, 1, WORDS("info")), 1, "",
               "vgpu: info: vgpud does not know GetInfo: it is older than this program "
               "(" OPENVGPU_VERSION ")\nhint: upgrade vgpud and restart it\n");
}

static void test_errors_are_json_when_json_is_asked_for(void **state)
{
        const struct fake_step step = { .method = "RemoveVgpu",
                                        .answers = { REFUSAL("Busy", "why", "do") } };
        (void)state;

        expect(vgpu(&step, 1, WORDS("rm", "train", "--json")), 7, "",
               "{\n  \"error\": {\n    \"name\": \"Busy\",\n    \"message\": \"why\",\n"
               "    \"hint\": \"do\",\n    \"exit_code\": 7\n  }\n}\n");
        expect(vgpu(NULL, 0, WORDS("rm", "--wrong", "--json")), 2, "",
               "{\n  \"error\": {\n    \"name\": \"Usage\",\n"
               "    \"message\": \"unknown option '--wrong'\",\n"
               "    \"hint\": \"see 'vgpu help rm'\",\n    \"exit_code\": 2\n  }\n}\n");
}

static void test_without_vgpud_the_exit_code_is_5(void **state)
{
        const struct fake_step gone = { .method = "SuspendVgpu", .hang_up = 1 };
        (void)state;

        expect(vgpu(NULL, 0, WORDS("ls")), 5, "",
               "vgpu: ls: no vgpud answers at /nonexistent/control.sock\n"
               "hint: start vgpud (to try it without a GPU: vgpud --simulate 2xH200), or set "
               "OPENVGPU_RUN to the run directory of a running one\n");
        expect(vgpu(&gone, 1, WORDS("suspend", "train")), 5, "",
               "vgpu: suspend: vgpud went away before it answered SuspendVgpu: the outcome is "
               "unknown\nhint: when vgpud runs again, look with 'vgpu ls'\n");
}

static void test_a_wrong_command_line_exits_with_2_and_names_the_word(void **state)
{
        static const struct {
                const char *words[WORDS_MAX + 1], *err;
        } cases[] = {
                { { "suspned", "train" },
                  "vgpu: unknown command 'suspned'\nhint: did you mean 'vgpu suspend'?\n" },
                { { "list" }, "vgpu: unknown command 'list'\nhint: did you mean 'vgpu ls'?\n" },
                { { "susp", "a" },
                  "vgpu: unknown command 'susp'\nhint: 'vgpu --help' lists the commands\n" },
                { { "--json", "ls" },
                  "vgpu: the command comes first, then '--json'\nhint: vgpu ls --json\n" },
                { { "help", "flurb" },
                  "vgpu: unknown command 'flurb'\nhint: 'vgpu --help' lists the commands\n" },
                { { "create", "a", "--fb", "40X" },
                  "vgpu: create: --fb: '40X' is not a size\nhint: write it as 40G, 1.5G or 512M\n" },
                { { "create", "a", "--fb", "99999999T" },
                  "vgpu: create: --fb: '99999999T' is more than there can be\n" },
                { { "create", "a", "--fb", "0" },
                  "vgpu: create: --fb: '0' is nothing at all\n"
                  "hint: write it as 40G, 1.5G or 512M\n" },
                { { "create", "a" },
                  "vgpu: create: --fb SIZE is missing\n"
                  "hint: how much memory may it hold? for example --fb 40G\n" },
                { { "create", "a", "--fb" },
                  "vgpu: create: --fb needs SIZE\nhint: see 'vgpu help create'\n" },
                { { "create", "a", "--fb", "1G", "--fb=2G" },
                  "vgpu: create: --fb is given twice\nhint: see 'vgpu help create'\n" },
                { { "create", "a", "b", "--fb", "1G" },
                  "vgpu: create: unexpected 'b'\nhint: one at a time, please\n" },
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
                  "hint: write seconds, as 30 or 0.5\n" },
                { { "suspend", "a", "--timeout", "-1" },
                  "vgpu: suspend: --timeout: '-1' is not a time\n"
                  "hint: write seconds, as 30 or 0.5\n" },
                { { "migrate", "a" },
                  "vgpu: migrate: --device DEVICE is missing\n"
                  "hint: 'vgpu devices' lists the GPUs\n" },
                { { "run", "true" },
                  "vgpu: run: in which vGPU?\nhint: --vgpu NAME runs it in a vGPU of 'vgpu ls', "
                  "--fb 20G in one of its own\n" },
                { { "run", "--vgpu", "a" },
                  "vgpu: run: the program is missing\nhint: see 'vgpu help run'\n" },
                { { "run", "--vgpu", "a", "--fb", "1G", "true" },
                  "vgpu: run: --vgpu and --fb exclude each other\n"
                  "hint: --vgpu is for one that exists, --fb makes a new one\n" },
                { { "ls", "-x" },
                  "vgpu: ls: unknown option '-x'\nhint: names cannot begin with '-'\n" },
                { { "rm", "\377a" }, "vgpu: rm: the name '?a' is not UTF-8\n" },
        };
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                expect(vgpu(NULL, 0, cases[i].words), 2, "", cases[i].err);
}

static void test_help_goes_to_standard_output(void **state)
{
        const struct outcome *outcome;
        (void)state;

        outcome = vgpu(NULL, 0, WORDS("--help"));
        assert_int_equal(outcome->code, 0);
        assert_non_null(strstr(outcome->out, "  migrate   move a running vGPU"));
        outcome = vgpu(NULL, 0, WORDS("help", "create"));
        assert_non_null(strstr(outcome->out, "Usage: vgpu create [NAME] --fb SIZE"));
        assert_non_null(strstr(outcome->out, "  --fb SIZE "));
        outcome = vgpu(NULL, 0, WORDS("suspend", "--help"));
        assert_int_equal(outcome->code, 0);
        assert_string_equal(outcome->err, "");
        outcome = vgpu(NULL, 0, WORDS(NULL));
        assert_int_equal(outcome->code, 2);
        assert_non_null(strstr(outcome->out, "Usage: vgpu COMMAND"));
        expect(vgpu(NULL, 0, WORDS("--version")), 0, "vgpu " OPENVGPU_VERSION "\n", "");
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
        expect(outcome, 42, "the-uuid --json --\n", "");
        outcome = vgpu(steps, 1, WORDS("run", "--vgpu", "train", "sh", "-c", "kill -9 $$"));
        expect(outcome, 128 + SIGKILL, "", "");
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
        assert_int_equal(wait_for(start(fake_manager_get_directory(fake),
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

        expect(vgpu(steps, 1, WORDS("run", "--vgpu", "train", "no-such-program")), 127, "",
               "vgpu: run: cannot execute 'no-such-program': No such file or directory\n");
        expect(vgpu(steps, 1, WORDS("run", "--vgpu", "train", "/dev/null")), 126, "",
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
        assert_int_equal(wait_for(start(fake_manager_get_directory(fake), WORDS("devices"), full,
                                        fileno(err))),
                         1);
        read_all(text, sizeof(text), err);
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
        pid = start(fake_manager_get_directory(fake), WORDS("suspend", "train"), -1, fileno(err));
        atomic_store(&to_interrupt, pid);
        assert_int_equal(wait_for(pid), 128 + SIGINT);
        read_all(text, sizeof(text), err);
        assert_string_equal(text, "\nvgpu: suspend: interrupted, but vgpud goes on with it\n"
                                  "hint: look with 'vgpu ls'\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_devices_are_a_table),
                cmocka_unit_test(test_vgpus_are_a_table),
                cmocka_unit_test(test_a_long_listing_has_the_programs),
                cmocka_unit_test(test_a_guest_cannot_write_to_the_terminal_of_who_lists_it),
                cmocka_unit_test(test_what_was_done_is_one_line),
                cmocka_unit_test(test_info_is_read_by_people_and_env_by_shells),
                cmocka_unit_test(test_progress_is_not_drawn_where_nobody_looks),
                cmocka_unit_test(test_progress_is_drawn_on_a_terminal_and_wiped_away),
                cmocka_unit_test(test_json_is_what_the_protocol_calls_it),
                cmocka_unit_test(test_json_has_everything_for_every_command),
                cmocka_unit_test(test_every_refusal_has_its_exit_code),
                cmocka_unit_test(test_an_old_manager_exits_with_1_and_says_so),
                cmocka_unit_test(test_errors_are_json_when_json_is_asked_for),
                cmocka_unit_test(test_without_vgpud_the_exit_code_is_5),
                cmocka_unit_test(test_a_wrong_command_line_exits_with_2_and_names_the_word),
                cmocka_unit_test(test_help_goes_to_standard_output),
                cmocka_unit_test(test_run_becomes_the_program),
                cmocka_unit_test(test_run_makes_a_vgpu_that_lives_as_long_as_the_program),
                cmocka_unit_test(test_run_tells_not_found_from_not_executable),
                cmocka_unit_test(test_a_full_disk_is_an_error),
                cmocka_unit_test(test_an_interrupt_says_that_the_operation_goes_on),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
