/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <openvgpu/guest.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/manager.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);
DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(char **, vgpu_guest_environment_free);

#define PREPARED(variables)                                                      \
        {                                                                        \
                "PrepareRun", .answers = {                                       \
                        ANSWER("'vgpu':" TRAIN ",'environment':{" variables "}") \
                }                                                                \
        }

static int prepare(struct fake_manager *fake, char *const *environment, char ***ret_environment)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;

        assert_int_equal(vgpu_client_new(&client, fake_manager_get_directory(fake)), 0);
        return vgpu_guest_prepare(client, "train", environment, ret_environment);
}

static void test_lists_are_put_first_and_the_rest_is_set(void **state)
{
        static const struct fake_step step =
                PREPARED("'LD_PRELOAD':'/gate','LD_LIBRARY_PATH':'/nvml','OPENVGPU_VGPU':'uuid',"
                         "'CUDA_VISIBLE_DEVICES':'GPU-1'");
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        CLEANUP(vgpu_guest_environment_freep) char **environment = NULL;
        char home[] = "HOME=/root", preload[] = "LD_PRELOAD=/mine",
             devices[] = "CUDA_VISIBLE_DEVICES=3", odd[] = "no equals sign";
        char *const before[] = { home, preload, odd, devices, NULL };
        (void)state;

        assert_int_equal(prepare(fake, before, &environment), 0);
        assert_string_equal(environment[0], "HOME=/root");
        assert_string_equal(environment[1], "LD_PRELOAD=/gate:/mine");
        assert_string_equal(environment[2], "no equals sign");
        assert_string_equal(environment[3], "CUDA_VISIBLE_DEVICES=GPU-1");
        assert_string_equal(environment[4], "LD_LIBRARY_PATH=/nvml");
        assert_string_equal(environment[5], "OPENVGPU_VGPU=uuid");
        assert_null(environment[6]);
        assert_string_equal(preload, "LD_PRELOAD=/mine");
}

static void test_a_guest_of_a_guest_does_not_preload_twice(void **state)
{
        static const struct fake_step step = PREPARED("'LD_PRELOAD':'/gate'");
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        CLEANUP(vgpu_guest_environment_freep) char **environment = NULL;
        char preload[] = "LD_PRELOAD=/gate:/mine";
        char *const before[] = { preload, NULL };
        (void)state;

        assert_int_equal(prepare(fake, before, &environment), 0);
        assert_string_equal(environment[0], "LD_PRELOAD=/gate:/mine");
}

static void test_an_empty_environment_will_do(void **state)
{
        static const struct fake_step step = PREPARED("'LD_PRELOAD':'/gate'");
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        CLEANUP(vgpu_guest_environment_freep) char **environment = NULL;
        char *const before[] = { NULL };
        (void)state;

        assert_int_equal(prepare(fake, before, &environment), 0);
        assert_string_equal(environment[0], "LD_PRELOAD=/gate");
        assert_null(environment[1]);
}

static void test_variables_that_cannot_be_are_a_bad_answer(void **state)
{
        static const struct fake_step steps[] = { PREPARED("'A':7"),
                                                  PREPARED("'':'x'"),
                                                  PREPARED("'A=B':'x'"),
                                                  { "PrepareRun",
                                                    .answers = { ANSWER("'vgpu':" TRAIN) } } };
        char *const before[] = { NULL };
        (void)state;

        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
                CLEANUP(fake_manager_freep)
                struct fake_manager *fake = fake_manager_new(&steps[i], 1);
                char **environment = NULL;

                assert_int_equal(prepare(fake, before, &environment), -EPROTO);
                assert_null(environment);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lists_are_put_first_and_the_rest_is_set),
                cmocka_unit_test(test_a_guest_of_a_guest_does_not_preload_twice),
                cmocka_unit_test(test_an_empty_environment_will_do),
                cmocka_unit_test(test_variables_that_cannot_be_are_a_bad_answer),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
