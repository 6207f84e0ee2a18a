/* SPDX-License-Identifier: Apache-2.0 */
/* 'vgpu wait' against a manager that answers otherwise each time. */
#include <string.h>

#include "base/test.h"
#include "fake/answers.h"
#include "fake/command.h"

#define LOOK(vgpu)                                                                 \
        {                                                                          \
                .method = "ListVgpus", .answers = { ANSWER("'vgpus':[" vgpu "]") } \
        }
#define GONE                                                                               \
        {                                                                                  \
                .method = "ListVgpus", .answers = { REFUSAL("NoSuchVgpu", "no such", "") } \
        }

static void test_a_state_is_waited_for(void **state)
{
        static const struct fake_step steps[] = { LOOK(TRAIN), LOOK(TRAIN_SUSPENDED) };
        (void)state;

        command_expect(vgpu(steps, 2, WORDS("wait", "train", "--for", "suspended")), 0,
                       "train: suspended\n", "");
}

/* One that has not come to CUDA yet is a program, too. */
static void test_programs_have_ended_or_went_with_their_vgpu(void **state)
{
        static const struct fake_step ended[] = {
                LOOK(TRAIN),
                LOOK(TRAIN_IDLE),
                { .method = "GetUtilization", .answers = { ANSWER("'devices':[],'vgpus':[]") } },
        };
        static const struct fake_step gone[] = { LOOK(TRAIN), GONE };
        (void)state;

        command_expect(vgpu(ended, 3, WORDS("wait", "train")), 0, "train: ended\n", "");
        command_expect(vgpu(gone, 2, WORDS("wait", "train")), 0, "train: ended\n", "");
        command_expect(vgpu(gone, 2, WORDS("wait", "train", "--for", "removed", "--json")), 0,
                       "{\n  \"vgpus\": [\n    {\n      \"name\": \"train\",\n"
                       "      \"reached\": \"removed\"\n    }\n  ]\n}\n",
                       "");
}

static void test_what_cannot_come_any_more_is_an_error(void **state)
{
        static const struct fake_step gone[] = { LOOK(TRAIN), GONE };
        static const struct fake_step failed[] = { LOOK(VGPU("train", "failed", 1, PROCESS)) };
        (void)state;

        command_expect(vgpu(gone, 2, WORDS("wait", "train", "--for", "suspended")), 3, "",
                       "vgpu: wait: no such\n");
        command_expect(vgpu(gone + 1, 1, WORDS("wait", "train")), 3, "", "vgpu: wait: no such\n");
        command_expect(vgpu(failed, 1, WORDS("wait", "train", "--for", "suspended")), 7, "",
                       "vgpu: wait: vGPU train has failed\nhint: vgpu logs says why\n");
        command_expect(vgpu(failed, 1, WORDS("wait", "train", "--for", "failed")), 0,
                       "train: failed\n", "");
}

static void test_the_time_is_over(void **state)
{
        static const struct fake_step steps[] = { LOOK(TRAIN), LOOK(TRAIN) };
        (void)state;

        command_expect(
                vgpu(steps, 2,
                     WORDS("wait", "train", "--for", "suspended", "--timeout", "0.000001ms")),
                4, "",
                "vgpu: wait: vGPU train is running and has 1 program: not 'suspended' in time\n"
                "hint: --timeout says how long\n");
        command_expect(vgpu(NULL, 0, WORDS("wait", "train", "--for", "dinner")), 2, "",
                       "vgpu: wait: --for: nothing is called 'dinner'\n"
                       "hint: ended (default), removed, no-work[=TIME], or a state: running, "
                       "suspended, evicted, failed\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_state_is_waited_for),
                cmocka_unit_test(test_programs_have_ended_or_went_with_their_vgpu),
                cmocka_unit_test(test_what_cannot_come_any_more_is_an_error),
                cmocka_unit_test(test_the_time_is_over),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
