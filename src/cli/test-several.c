/* SPDX-License-Identifier: Apache-2.0 */
/* Several vGPUs in one command: each has its turn, whatever becomes of the others. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/command.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);

#define SUSPENDED                                                                             \
        {                                                                                     \
                .method = "SuspendVgpu", .answers = { ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0)) } \
        }
#define REMOVED                                                                     \
        {                                                                           \
                .method = "RemoveVgpu", .answers = { ANSWER("'vgpu':" TRAIN_IDLE) } \
        }

static void test_a_failure_stops_none_of_the_others(void **state)
{
        static const struct fake_step steps[] = {
                REMOVED,
                { .method = "RemoveVgpu", .answers = { REFUSAL("NoSuchVgpu", "no b", "look") } },
                { .method = "RemoveVgpu", .answers = { REFUSAL("Busy", "c is busy", "") } },
                REMOVED,
        };
        (void)state;

        command_expect(vgpu(steps, 4, WORDS("rm", "a", "b", "c", "train")), 3,
                       "removed train\nremoved train\n",
                       "vgpu: rm: b: no b\nhint: look\nvgpu: rm: c: c is busy\n");
}

static void test_an_error_of_an_operation_names_its_vgpu(void **state)
{
        static const struct fake_step steps[] = {
                { .method = "SuspendVgpu", .answers = { REFUSAL("Busy", "why", "do") } },
                { .method = "SuspendVgpu", .answers = { REFUSAL("Busy", "why", "do") } },
        };
        (void)state;

        command_expect(vgpu(steps, 2, WORDS("suspend", "a", "b")), 7, "",
                       "vgpu: suspend: a: why\nhint: do\nvgpu: suspend: b: why\nhint: do\n");
}

#define TURNS(device_)                                                          \
        "'device':" #device_ ",'mode':'off','reason':'','policy':2,'arr':true," \
        "'averaging_factor':33,'frequency':480,'time_slice':2083333,'turns':0," \
        "'taking_turns':false,'vgpus':[]"

static void test_a_policy_is_of_all_devices(void **state)
{
        static const struct fake_step list = { .method = "ListDevices",
                                               .answers = { ANSWER("'devices':[" DEVICE_0
                                                                   "," DEVICE_1 "]") } };
        const struct fake_step steps[] = {
                list,
                { .method = "SetScheduler",
                  .answers = { REFUSAL("Unsupported", "programs run", "end them") } },
                { .method = "SetScheduler", .answers = { ANSWER("'policy':2") } },
                { .method = "GetScheduler", .answers = { ANSWER(TURNS(1)) } },
        };
        (void)state;

        command_expect(vgpu(steps, 4, WORDS("scheduler", "set", "--policy", "equal-share")), 1,
                       "GPU 1: equal-share, time slice 2.08 ms\n",
                       "vgpu: scheduler set: GPU 0: programs run\nhint: end them\n");
}

static void test_a_name_that_is_given_twice_counts_once(void **state)
{
        static const struct fake_step removed[] = { REMOVED, REMOVED };
        static const struct fake_step suspended[] = { SUSPENDED };
        const struct outcome *outcome;
        (void)state;

        outcome = vgpu(suspended, 1, WORDS("suspend", "train", "train"));
        assert_int_equal(outcome->code, 0);
        assert_string_equal(outcome->err, "");
        assert_non_null(strstr(outcome->out, "suspended train"));
        command_expect(vgpu(removed, 2, WORDS("rm", "train", "b", "train", "b")), 0,
                       "removed train\nremoved train\n", "");
}

static void test_an_empty_name_is_refused(void **state)
{
        static const char *const commands[] = { "migrate", "suspend", "resume", "rm", "show" };
        (void)state;

        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
                const struct outcome *outcome = vgpu(NULL, 0, WORDS(commands[i], ""));

                assert_int_equal(outcome->code, 2);
                assert_non_null(
                        strstr(outcome->err, ": the name of the vGPU is empty\nhint: see "));
        }
        command_expect(vgpu(NULL, 0, WORDS("rm", "train", "")), 2, "",
                       "vgpu: rm: the name of the vGPU is empty\nhint: see 'vgpu help rm'\n");
        command_expect(vgpu(NULL, 0, WORDS("create", "", "--fb", "1G")), 2, "",
                       "vgpu: create: the name is empty\nhint: see 'vgpu help create'\n");
}

static void test_without_vgpud_it_is_said_once(void **state)
{
        static const struct fake_step step = { .method = "ResumeVgpu", .hang_up = 1 };
        (void)state;

        command_expect(vgpu(&step, 1, WORDS("resume", "a", "b")), 5, "",
                       "vgpu: resume: vgpud went away before it answered: the outcome is "
                       "unknown\nhint: when vgpud runs again, look with 'vgpu ls'\n");
}

static void test_several_move_to_the_device_that_is_named(void **state)
{
        static const struct fake_step moved = { .method = "MigrateVgpu",
                                                .answers = { ANSWER(REPORT(TRAIN, 1, 0)) } };
        const struct fake_step steps[] = { moved, moved };
        const struct outcome *outcome =
                vgpu(steps, 2, WORDS("migrate", "train", "infer", "--device", "0"));
        const char *first = strstr(outcome->out, "migrated train from GPU 1 to GPU 0");
        (void)state;

        assert_int_equal(outcome->code, 0);
        assert_non_null(first);
        assert_non_null(strstr(first + 1, "migrated train"));
        command_expect(vgpu(NULL, 0, WORDS("migrate", "train", "infer")), 2, "",
                       "vgpu: migrate: --device DEVICE is missing\n"
                       "hint: 'vgpu devices' lists the GPUs\n");
}

static void test_json_of_several_are_results_and_errors(void **state)
{
        static const struct fake_step steps[] = {
                { .method = "RemoveVgpu", .answers = { REFUSAL("Busy", "why", "do") } },
                { .method = "RemoveVgpu", .answers = { ANSWER("'vgpu':" TRAIN_IDLE) } },
        };
        const struct outcome *outcome = vgpu(steps, 2, WORDS("rm", "a", "train", "--json"));
        (void)state;

        assert_int_equal(outcome->code, 7);
        assert_non_null(strstr(outcome->err, "\"name\": \"Busy\""));
        assert_ptr_equal(strstr(outcome->out, "{\n  \"results\": [\n    {\n      \"vgpu\": {\n"),
                         outcome->out);
        assert_null(strstr(outcome->out, "error"));
        assert_non_null(strstr(outcome->err, "\"vgpu\": \"a\""));
}

/* What the fake is asked, call for call, with all of the vGPUs in @list. */
static void expect_calls(const char *list, const struct fake_step *operation, const char *verb,
                         const char *const *calls)
{
        const struct fake_step steps[] = { { .method = "ListVgpus", .answers = { list } },
                                           *operation };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        FILE *out = tmpfile();

        assert_non_null(out);
        assert_int_equal(command_wait(command_start(fake_manager_get_directory(fake),
                                                    WORDS(verb, "--all"), fileno(out), 2)),
                         0);
        for (size_t i = 0; calls[i]; i++)
                assert_non_null(strstr(fake_manager_get_call(fake, i), calls[i]));
        fclose(out);
}

/* Of all users' for root, else the user's own: the answers are of root's. */
static void test_all_are_those_that_can_be(void **state)
{
        static const struct fake_step suspended = SUSPENDED;
        static const struct fake_step resumed = { .method = "ResumeVgpu",
                                                  .answers = { ANSWER(REPORT(TRAIN, 0, 0)) } };
        static const char list[] = ANSWER("'vgpus':[" VGPU("idle", "idle", 0, "") "," VGPU(
                "off", "suspended", 1, PROCESS) "," VGPU("on", "running", 1, PROCESS) "]");
        (void)state;

        if (geteuid() != 0)
                skip();
        expect_calls(list, &suspended, "suspend",
                     (const char *const[]){ "ListVgpus", "'name':'on'", NULL });
        expect_calls(list, &resumed, "resume",
                     (const char *const[]){ "ListVgpus", "'name':'off'", NULL });
}

static void test_all_of_none_is_no_error(void **state)
{
        static const struct fake_step step = { .method = "ListVgpus",
                                               .answers = { ANSWER("'vgpus':[]") } };
        (void)state;

        command_expect(vgpu(&step, 1, WORDS("suspend", "--all")), 0,
                       "no vGPU of yours has a program on a GPU\n", "");
        command_expect(vgpu(&step, 1, WORDS("resume", "--all")), 0,
                       "no vGPU of yours is suspended\n", "");
        command_expect(vgpu(&step, 1, WORDS("resume", "--all", "--json")), 0,
                       "{\n  \"results\": []\n}\n", "");
}

static void test_names_and_all_exclude_each_other(void **state)
{
        (void)state;
        command_expect(vgpu(NULL, 0, WORDS("suspend", "--all", "train")), 2, "",
                       "vgpu: suspend: --all and the name of a vGPU exclude each other\n"
                       "hint: see 'vgpu help suspend'\n");
        command_expect(vgpu(NULL, 0, WORDS("rm", "--force")), 2, "",
                       "vgpu: rm: the name of the vGPU is missing\nhint: see 'vgpu help rm'\n");
        command_expect(vgpu(NULL, 0, WORDS("resume", "train", "1")), 2, "",
                       "vgpu: resume: unexpected '1'\nhint: did you mean '--device 1'?\n");
}

static void test_programs_are_not_ended_unasked(void **state)
{
        static const struct fake_step steps[] = {
                { .method = "RemoveVgpu", .answers = { REFUSAL("Busy", "why", "do") } },
                { .method = "ListVgpus", .answers = { ANSWER("'vgpus':[" TRAIN "]") } },
        };
        int saved = dup(STDIN_FILENO), ends[2];
        (void)state;

        assert_int_equal(pipe(ends), 0);
        dup2(ends[0], STDIN_FILENO);
        close(ends[1]);
        command_expect(vgpu(steps, 2, WORDS("rm", "train", "--force")), 2, "",
                       "vgpu: rm: vGPU train has 1 program, and there is no terminal to ask on\n"
                       "hint: add --yes to end them\n");
        dup2(saved, STDIN_FILENO);
        close(saved);
        close(ends[0]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_failure_stops_none_of_the_others),
                cmocka_unit_test(test_an_error_of_an_operation_names_its_vgpu),
                cmocka_unit_test(test_a_policy_is_of_all_devices),
                cmocka_unit_test(test_a_name_that_is_given_twice_counts_once),
                cmocka_unit_test(test_an_empty_name_is_refused),
                cmocka_unit_test(test_without_vgpud_it_is_said_once),
                cmocka_unit_test(test_several_move_to_the_device_that_is_named),
                cmocka_unit_test(test_json_of_several_are_results_and_errors),
                cmocka_unit_test(test_all_are_those_that_can_be),
                cmocka_unit_test(test_all_of_none_is_no_error),
                cmocka_unit_test(test_names_and_all_exclude_each_other),
                cmocka_unit_test(test_programs_are_not_ended_unasked),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
