/* SPDX-License-Identifier: Apache-2.0 */
/* In which container a process is, by what engines write into the names of control groups. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
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

static void make_group(const char *mounts, const char *group, uid_t owner)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", mounts, group);
        assert_int_equal(mkdir(path, 0755), 0);
        assert_int_equal(chown(path, owner, owner), 0);
}

#define SCOPE "docker-" ID ".scope"

static void test_a_group_counts_that_only_root_can_have_made(void **state)
{
        static const struct {
                const char *text;
                bool is_roots;
        } groups[] = {
                { "0::/system.slice/" SCOPE "\n", true },
                { "0::/system.slice/" SCOPE "/below\n", true }, /* what the container makes of it */
                { "0::/user.slice/" SCOPE "\n", false },
                { "0::/user.slice/operator/" SCOPE "\n", false },
                { "0::/system.slice/user/../" SCOPE "\n", false },
                { "0::/nowhere/" SCOPE "\n", false },
                { "0::/system.slice\n", false },
                { "4:name=systemd:/" SCOPE "\n0::/\n", true },
                { "3:cpu,cpuacct:/" SCOPE "\n0::/system.slice\n", false },
                { "0::/system.slice/" SCOPE "\n1:name=systemd:/user/" SCOPE "\n", false },
                { SCOPE, false },
                { "", false },
        };
        char mounts[] = "/tmp/test-container-id-XXXXXX", command[64];
        (void)state;

        if (geteuid() != 0)
                skip(); /* nothing here can be root's */
        assert_non_null(mkdtemp(mounts));
        make_group(mounts, "unified", 0);
        make_group(mounts, "unified/system.slice", 0);
        make_group(mounts, "unified/system.slice/" SCOPE, 0);
        make_group(mounts, "unified/system.slice/" SCOPE "/below", 1000);
        make_group(mounts, "unified/user.slice", 1000);
        make_group(mounts, "unified/user.slice/" SCOPE, 1000);
        make_group(mounts, "unified/user.slice/operator", 0);
        make_group(mounts, "unified/user.slice/operator/" SCOPE, 0);
        make_group(mounts, "systemd", 0);
        make_group(mounts, "systemd/" SCOPE, 0);
        make_group(mounts, "systemd/user", 1000);
        make_group(mounts, "systemd/user/" SCOPE, 1000);
        make_group(mounts, "cpu,cpuacct", 0);
        make_group(mounts, "cpu,cpuacct/" SCOPE, 1000);
        for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
                if (container_id_is_roots_in(ID, groups[i].text, mounts) != groups[i].is_roots)
                        fail_msg("%s", groups[i].text);
        assert_false(container_id_is_roots("", getpid()));
        snprintf(command, sizeof(command), "rm -r %s", mounts);
        assert_int_equal(system(command), 0);
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
                cmocka_unit_test(test_a_group_counts_that_only_root_can_have_made),
                cmocka_unit_test(test_who_is_gone_is_in_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
