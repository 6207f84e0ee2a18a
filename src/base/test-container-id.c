/* SPDX-License-Identifier: Apache-2.0 */
/* In which container a process is, by what engines write into the names of control groups. */
#include <unistd.h>

#include "base/container-id.h"
#include "base/test.h"

#define ID "0d9d50dd3e1e3c1cd0a1d1f4f2a5b06ad1ab3d9b1b7a3b5e6f7a8b9c0d1e2f30"

static void test_engines_are_known(void **state)
{
        static const char *const texts[] = {
                "0::/libpod_parent/libpod-" ID "\n",
                "0::/machine.slice/libpod-" ID ".scope/container\n",
                "12:devices:/docker/" ID "\n0::/docker/" ID "\n",
                "0::/system.slice/docker-" ID ".scope\n",
                "0::/kubepods.slice/kubepods-pod1f.slice/cri-containerd-" ID ".scope\n",
        };
        char id[CONTAINER_ID_MAX];
        (void)state;

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                assert_true(container_id_find_in(id, texts[i]));
                assert_string_equal(id, ID);
        }
}

static void test_others_are_in_none(void **state)
{
        static const char *const texts[] = {
                "", "0::/\n", "0::/user.slice/user-1000.slice/session-3.scope\n",
                "0::/x-" ID "0\n", /* one digit more */
        };
        char id[CONTAINER_ID_MAX];
        (void)state;

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                assert_false(container_id_find_in(id, texts[i]));
                assert_string_equal(id, "");
        }
}

static void test_who_is_gone_is_in_none(void **state)
{
        char id[CONTAINER_ID_MAX] = "x";
        (void)state;

        assert_false(container_id_find(id, -1));
        assert_string_equal(id, "");
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_engines_are_known),
                cmocka_unit_test(test_others_are_in_none),
                cmocka_unit_test(test_who_is_gone_is_in_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
