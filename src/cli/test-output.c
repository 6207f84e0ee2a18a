/* SPDX-License-Identifier: Apache-2.0 */
/* What vgpu prints when all is well: tables, one-line reports, bars, JSON, help. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/command.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);

/* The command line @words, answered with @answer to @method, prints @out. */
static void expect_out(const char *method, const char *answer, const char *const *words,
                       const char *out)
{
        const struct fake_step step = { .method = method, .answers = { answer } };

        command_expect(vgpu(&step, 1, words), 0, out, "");
}

static void test_devices_are_a_table(void **state)
{
        (void)state;
        expect_out("ListDevices", ANSWER("'devices':[" DEVICE_0 "," DEVICE_1 "]"), WORDS("devices"),
                   "INDEX  NAME            MEMORY  PROMISED  LEFT      USED  SWAPPED  VGPUS  "
                   "UUID\n"
                   "    0  NVIDIA H200  140.4 GiB    40 GiB   0 B  31.8 GiB      0 B      1  "
                   "GPU-11111111-2222-3333-4444-555555555555\n"
                   "    1  NVIDIA H200  140.4 GiB       0 B   0 B       0 B      0 B      0  "
                   "GPU-66666666-7777-8888-9999-000000000000\n");
        expect_out("ListDevices", ANSWER("'devices':[" DEVICE_0 "," DEVICE_1 "]"),
                   WORDS("devices", "--names"), "0\n1\n");
}

static void test_vgpus_are_a_table(void **state)
{
        const struct fake_step steps[] = {
                { .method = "ListVgpus",
                  .answers = { ANSWER("'vgpus':[" TRAIN "," TRAIN_SUSPENDED "]") } },
                { .method = "GetUtilization", .answers = { ANSWER(UTILIZATION) } },
        };
        (void)state;

        command_expect(vgpu(steps, 2, WORDS("ls")), 0,
                       "NAME   DEVICE  STATE      SHARE   USE       FRAME BUFFER  PROCESSES\n"
                       "train       0  running        -  74 %  31.8 GiB / 40 GiB          1\n"
                       "train       -  suspended      -     -  31.8 GiB / 40 GiB          1\n",
                       "");
        expect_out("ListVgpus", ANSWER("'vgpus':[]"), WORDS("ls"),
                   "NAME  DEVICE  STATE  SHARE  USE  FRAME BUFFER  PROCESSES\n");
        expect_out("ListVgpus", ANSWER("'vgpus':[" TRAIN "," TRAIN_IDLE "]"),
                   WORDS("ls", "--names"), "train\ntrain\n");
}

#define THREE                                                          \
        ANSWER("'vgpus':[" VGPU("b", "running", 10, PROCESS) "," VGPU( \
                "c", "suspended", 30, PROCESS) "," VGPU("a", "idle", 20, "") "]")

static void test_a_listing_is_chosen_and_sorted(void **state)
{
        static const struct fake_step device_1[] = {
                { .method = "ListVgpus", .answers = { THREE } },
                { .method = "ListDevices",
                  .answers = { ANSWER("'devices':[" DEVICE_0 "," DEVICE_1 "]") } },
        };
        (void)state;
        expect_out("ListVgpus", THREE, WORDS("ls", "--names", "--sort", "name"), "a\nb\nc\n");
        expect_out("ListVgpus", THREE, WORDS("ls", "--names", "--sort", "memory"), "c\na\nb\n");
        expect_out("ListVgpus", THREE, WORDS("ls", "--names", "--sort", "device"), "b\na\nc\n");
        expect_out("ListVgpus", THREE, WORDS("ls", "--names", "--state", "suspended"), "c\n");
        expect_out("ListVgpus", THREE, WORDS("ls", "--names", "--device", "0"), "b\na\n");
        expect_out("ListVgpus", THREE, WORDS("ls", "--names", "--device", "gpu-1111"), "b\na\n");
        command_expect(vgpu(device_1, 2, WORDS("ls", "--names", "--device", "1")), 0, "", "");
        command_expect(vgpu(device_1, 2, WORDS("ls", "--device", "5")), 3, "",
                       "vgpu: ls: there is no device '5'\n"
                       "hint: vgpu devices shows those that there are\n");
        expect_out("ListVgpus", THREE, WORDS("ls", "--names", "--owner", "0"), "b\nc\na\n");
        command_expect(vgpu(NULL, 0, WORDS("ls", "--sort", "colour")), 2, "",
                       "vgpu: ls: --sort: not by 'colour'\nhint: name, device, state, share, use, "
                       "memory, created (default: as created)\n");
        command_expect(vgpu(NULL, 0, WORDS("ls", "--state", "asleep")), 2, "",
                       "vgpu: ls: --state: there is no state 'asleep'\n"
                       "hint: idle, running, suspended, evicted, failed, ..., or away\n");
}

static void test_a_name_that_there_is_not_hides_none_of_the_others(void **state)
{
        static const struct fake_step steps[] = {
                { .method = "ListVgpus", .answers = { ANSWER("'vgpus':[" TRAIN "]") } },
                { .method = "ListVgpus", .answers = { REFUSAL("NoSuchVgpu", "no b", "look") } },
        };
        (void)state;

        command_expect(vgpu(steps, 2, WORDS("ls", "--names", "train", "b")), 3, "train\n",
                       "vgpu: ls: b: no b\nhint: look\n");
}

/* The fake plays these steps: whatever else is asked of it fails. */
static void test_a_dry_run_changes_nothing(void **state)
{
        static const char text[] = "[train]\nmemory = 30G\n[new]\nfb = 1G\ndevice = 1\n";
        static const struct fake_step steps[] = {
                { .method = "ListVgpus", .answers = { ANSWER("'vgpus':[" TRAIN "]") } },
                { .method = "CreateVgpu", .answers = { ANSWER("") } },
        };
        const struct outcome *outcome;
        char path[] = "/tmp/vgpu-test-XXXXXX";
        CLEANUP(fd_closep) int fd = mkstemp(path);
        char expected[160];
        (void)state;

        assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
        snprintf(expected, sizeof(expected), "%swould create new: 1 GiB on GPU 1\n",
                 geteuid() == 0 ? "train: its quota would be 30 GiB and is 40 GiB\n" : "");
        outcome = vgpu(steps, 2, WORDS("apply", "--dry-run", path));
        assert_string_equal(outcome->out, expected);
        unlink(path);
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

static void test_what_is_made_removed_or_suspended_is_one_line(void **state)
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
        expect_out("SuspendVgpu",
                   ANSWER("'vgpu':" VGPU(
                           "train", "suspended", 0,
                           "") ",'bytes':34145055539,'seconds':2.61,"
                               "'copy_seconds':0.655,'context_seconds':0.35,'drain_seconds':0,"
                               "'processes':1,'from_device':0,'to_device':0"),
                   WORDS("suspend", "train"),
                   "suspended train: 31.8 GiB out in 0.66 s (52.1 GB/s), context 0.35 s, 2.61 s in "
                   "all, GPU 0 is free of it\n");
        expect_out("SuspendVgpu",
                   ANSWER("'vgpu':" VGPU(
                           "train", "suspended", 0,
                           "") ",'bytes':34145055539,'seconds':2.61,"
                               "'copy_seconds':0.655,'context_seconds':0.35,'drain_seconds':0,"
                               "'pool_seconds':1.9,'processes':1,'from_device':0,'to_device':0"),
                   WORDS("suspend", "train"),
                   "suspended train: 31.8 GiB out in 0.66 s (52.1 GB/s), context 0.35 s, 2.61 s in "
                   "all (waited 1.90 s for host memory to be pinned), GPU 0 is free of it\n");
        expect_out(
                "SuspendVgpu",
                ANSWER("'vgpu':" VGPU(
                        "train", "suspended", 0,
                        "") ",'bytes':0,'seconds':0,"
                            "'copy_seconds':0,'context_seconds':0,'drain_seconds':0,'processes':0,"
                            "'from_device':0,'to_device':0"),
                WORDS("suspend", "train"),
                "suspended train: no program in it, GPU 0 is free of it\n");
        expect_out("SuspendVgpu", ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0) ",'had_left':true"),
                   WORDS("suspend", "train"),
                   "train had left GPU 0 by itself; it stays away until 'vgpu resume train'\n");
        expect_out("SuspendVgpu",
                   ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0) ",'bytes_unchanged':33071313715,"
                                                        "'stopped_seconds':0.42,"
                                                        "'pre_copy_seconds':0.75,"
                                                        "'pre_copy_bytes':36292539187"),
                   WORDS("suspend", "train", "--pre-copy"),
                   "suspended train: 33.8 GiB out in 0.75 s while its programs ran, then 1 GiB "
                   "in 0.66 s, context 0.35 s, its programs stood still for 0.42 s, GPU 0 is free "
                   "of it\n");
}

static void test_what_came_back_or_moved_is_one_line(void **state)
{
        (void)state;
        expect_out("ResumeVgpu",
                   ANSWER("'vgpu':" TRAIN ",'bytes':34145055539,'seconds':700.0,"
                          "'copy_seconds':699.0,'context_seconds':0.35,'drain_seconds':0,"
                          "'processes':1,'from_device':1,'to_device':1"),
                   WORDS("resume", "train"),
                   "resumed train: 31.8 GiB back in 699.00 s, context 0.35 s, on GPU 1\n");
        expect_out(
                "ResumeVgpu", ANSWER(REPORT(TRAIN, 0, 1)),
                WORDS("resume", "train", "--device", "1"),
                "resumed train: 31.8 GiB back in 0.66 s (52.1 GB/s), context 0.35 s, on GPU 1\n");
        expect_out(
                "ResumeVgpu",
                ANSWER("'vgpu':" VGPU(
                        "train", "running", 34145055539,
                        PROCESS) ",'bytes':"
                                 "34145055539,'seconds':11.2,'copy_seconds':0.655,'context_seconds':0.35,"
                                 "'drain_seconds':0,'fetch_seconds':10.1,'processes':1,'from_device':1,"
                                 "'to_device':1"),
                WORDS("resume", "train"),
                "resumed train: 31.8 GiB back in 0.66 s (52.1 GB/s), context 0.35 s, 11.20 s in "
                "all, 10.10 s of it to read from disk, on GPU 1\n");
        expect_out(
                "ResumeVgpu",
                ANSWER("'vgpu':" VGPU(
                        "train", "running", 34145055539,
                        PROCESS
                        "," PROCESS) ",'bytes':34145055539,'seconds':0.67,'copy_seconds':0.655,'context_seconds':0.35,"
                                     "'drain_seconds':0,'processes':1,'from_device':0,'to_device':0,"
                                     "'left_behind':'process 7 (a) is stopped and follows after kill -CONT 7'"),
                WORDS("resume", "train"),
                "resumed train: 1 of 2 processes, 31.8 GiB back in 0.66 s (52.1 GB/s), context "
                "0.35 s, on GPU 0; process 7 (a) is stopped and follows after kill -CONT 7\n");
        expect_out("ResumeVgpu", ANSWER(REPORT(TRAIN, 0, 1) ",'stopped_seconds':75.25"),
                   WORDS("resume", "train"),
                   "resumed train: 31.8 GiB back in 0.66 s (52.1 GB/s), context 0.35 s, its "
                   "programs stood still for 75.25 s, on GPU 1\n");
        expect_out("MigrateVgpu", ANSWER(REPORT(TRAIN, 1, 0) ",'stopped_seconds':0.42"),
                   WORDS("migrate", "train", "--device=0"),
                   "migrated train from GPU 1 to GPU 0 in 0.67 s: 31.8 GiB across in 0.66 s "
                   "(52.1 GB/s), context 0.35 s, its programs stood still for 0.42 s\n");
        expect_out("MigrateVgpu", ANSWER(REPORT(TRAIN, 1, 0)),
                   WORDS("migrate", "train", "--device=0"),
                   "migrated train from GPU 1 to GPU 0 in 0.67 s: 31.8 GiB across in 0.66 s "
                   "(52.1 GB/s), context 0.35 s\n");
        expect_out("MigrateVgpu", ANSWER(REPORT(TRAIN, 1, 1)),
                   WORDS("migrate", "train", "--device=1"),
                   "resumed train: 31.8 GiB back in 0.66 s (52.1 GB/s), context 0.35 s, on GPU "
                   "1\n");
}

static void test_info_is_read_by_people(void **state)
{
        (void)state;
        expect_out(
                "GetInfo", ANSWER(INFO), WORDS("info"),
                "vgpu           " OPENVGPU_VERSION "\n"
                "vgpud          0.1.0\n"
                "CUDA driver    13.0, /usr/lib/x86_64-linux-gnu/libcuda.so.1\n"
                "gate           /usr/lib/openvgpu/gate/libcuda.so.1\n"
                "NVML           /usr/lib/openvgpu/nvml\n"
                "run directory  /run/openvgpu\n"
                "pool           0 B of 64 GiB used by vGPUs that are suspended, leaving or coming "
                "back\n"
                "               36 GiB pinned and ready, in slabs of 256 MiB\n");
}

/* Of a manager whose NVML library is in @folder. */
static void expect_env(const char *folder, int code, const char *out, const char *err)
{
        char answer[512];
        const struct fake_step step = { .method = "GetInfo", .answers = { answer } };

        snprintf(answer, sizeof(answer),
                 ANSWER("'version':'0.1.0','simulated':false,'cuda_driver_version':13000,"
                        "'driver_path':'/none','gate_path':'/none','nvml_path':'%s',"
                        "'run_directory':'/run/openvgpu','pool':{'limit':1,'size':0,'ready':0,"
                        "'used':0,'slab_size':1}"),
                 folder);
        command_expect_begin(vgpu(&step, 1, WORDS("env")), code, out, err);
}

static void test_env_is_read_by_shells(void **state)
{
        char folder[] = "/tmp/vg-XXXXXX", library[64], out[256], err[256];
        int fd;
        (void)state;

        assert_non_null(mkdtemp(folder));
        snprintf(err, sizeof(err), "vgpu: env: there is no NVML library of OpenVGPU in %s\n",
                 folder);
        expect_env(folder, 1, "", err);

        snprintf(library, sizeof(library), "%s/libnvidia-ml.so.1", folder);
        fd = open(library, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        close(fd);
        snprintf(out, sizeof(out),
                 "export LD_LIBRARY_PATH='%s'\nexport OPENVGPU_RUN='/run/openvgpu'\n", folder);
        expect_env(folder, 0, out, "");
        assert_int_equal(unlink(library), 0);
        assert_int_equal(rmdir(folder), 0);
}

static void test_progress_is_not_drawn_where_nobody_looks(void **state)
{
        const struct fake_step step = { .method = "SuspendVgpu",
                                        .answers = { ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0)) } };
        (void)state;

        assert_string_equal(vgpu(&step, 1, WORDS("suspend", "train"))->err, "");
}

/* A terminal gives what was written to it when it likes, in parts. */
static void expect_on_terminal(int other_end, const char *expected)
{
        struct pollfd ready = { .fd = other_end, .events = POLLIN };
        char text[4096] = "";
        size_t n = 0;

        while (n < strlen(expected) && poll(&ready, 1, 30000) == 1) {
                ssize_t got = read(other_end, text + n, sizeof(text) - 1 - n);

                assert_true(got > 0);
                n += (size_t)got;
        }
        assert_string_equal(text, expected);
}

static void test_progress_is_drawn_on_a_terminal_and_wiped_away(void **state)
{
        static const struct fake_step step = {
                .method = "SuspendVgpu",
                .answers = { PROGRESS("draining", 0, 0), PROGRESS("copying", 512, 1024),
                             PROGRESS("reading", 512, 1024), PROGRESS("\\u001b[2J", 2048, 1024),
                             ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0)) }
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        CLEANUP(fd_closep) int terminal = -1;
        CLEANUP(fd_closep) int other_end = -1;
        CLEANUP(fd_closep) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        struct winsize size = { .ws_row = 24, .ws_col = 80 };
        (void)state;

        assert_int_equal(openpty(&other_end, &terminal, NULL, NULL, &size), 0);
        setenv("TERM", "xterm", 1);
        assert_int_equal(command_wait(command_start(fake_manager_get_directory(fake),
                                                    WORDS("suspend", "train"), null, terminal)),
                         0);
        expect_on_terminal(
                other_end,
                "\rsuspend train: waiting for its programs to come to rest\033[K"
                "\rsuspend train [############............] 512 B of 1 KiB, copying\033[K"
                "\rsuspend train [#########.........] 512 B of 1 KiB, reading its memory from disk\033[K"
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
                   "      \"vgpus\": 0,\n"
                   "      \"uuid\": \"GPU-66666666-7777-8888-9999-000000000000\",\n"
                   "      \"name\": \"NVIDIA H200\",\n"
                   "      \"pci_bus_id\": \"00000000:5E:00.0\",\n"
                   "      \"memory_total\": 150754820096,\n"
                   "      \"memory_promised\": 0,\n"
                   "      \"memory_used\": 0,\n"
                   "      \"memory_swapped\": 0,\n"
                   "      \"overcommitted\": false,\n"
                   "      \"memory_left\": 0,\n"
                   "      \"left_out\": false\n"
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

static void test_help_goes_to_standard_output(void **state)
{
        const struct outcome *outcome;
        (void)state;

        outcome = vgpu(NULL, 0, WORDS("--help"));
        assert_int_equal(outcome->code, 0);
        assert_non_null(strstr(outcome->out, "  migrate      move a running vGPU"));
        outcome = vgpu(NULL, 0, WORDS("help", "nvml"));
        assert_non_null(strstr(outcome->out, "\n  nvml types           list the vGPU types"));
        outcome = vgpu(NULL, 0, WORDS("types", "--help")); /* as it was called */
        assert_non_null(strstr(outcome->out, "Usage: vgpu nvml types "));
        outcome = vgpu(NULL, 0, WORDS("help", "create"));
        assert_non_null(strstr(outcome->out, "Usage: vgpu create [NAME] --fb SIZE"));
        assert_non_null(strstr(outcome->out, "  --fb SIZE "));
        outcome = vgpu(NULL, 0, WORDS("suspend", "--help"));
        assert_int_equal(outcome->code, 0);
        assert_string_equal(outcome->err, "");
        outcome = vgpu(NULL, 0, WORDS(NULL));
        assert_int_equal(outcome->code, 2);
        assert_non_null(strstr(outcome->out, "Usage: vgpu COMMAND"));
        command_expect(vgpu(NULL, 0, WORDS("--version")), 0, "vgpu " OPENVGPU_VERSION "\n", "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_devices_are_a_table),
                cmocka_unit_test(test_vgpus_are_a_table),
                cmocka_unit_test(test_a_listing_is_chosen_and_sorted),
                cmocka_unit_test(test_a_name_that_there_is_not_hides_none_of_the_others),
                cmocka_unit_test(test_a_dry_run_changes_nothing),
                cmocka_unit_test(test_a_long_listing_has_the_programs),
                cmocka_unit_test(test_a_guest_cannot_write_to_the_terminal_of_who_lists_it),
                cmocka_unit_test(test_what_is_made_removed_or_suspended_is_one_line),
                cmocka_unit_test(test_what_came_back_or_moved_is_one_line),
                cmocka_unit_test(test_info_is_read_by_people),
                cmocka_unit_test(test_env_is_read_by_shells),
                cmocka_unit_test(test_progress_is_not_drawn_where_nobody_looks),
                cmocka_unit_test(test_progress_is_drawn_on_a_terminal_and_wiped_away),
                cmocka_unit_test(test_json_is_what_the_protocol_calls_it),
                cmocka_unit_test(test_json_has_everything_for_every_command),
                cmocka_unit_test(test_help_goes_to_standard_output),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
