/* SPDX-License-Identifier: Apache-2.0 */
/* What engines call the container of a process, and which processes are in it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "container/container.h"
#include "container/name.h"

#define ID    "0d9d50dd3e1e3c1cd0a1d1f4f2a5b06ad1ab3d9b1b7a3b5e6f7a8b9c0d1e2f30"
#define OTHER "1d9d50dd3e1e3c1cd0a1d1f4f2a5b06ad1ab3d9b1b7a3b5e6f7a8b9c0d1e2f30"

static void test_podmans_name_is_in_the_arguments_of_conmon(void **state)
{
        static const char text[] = "/usr/bin/conmon\0--api-version\0"
                                   "1\0-c\0" ID "\0-u\0" ID "\0-n\0web\0--full-attach";
        char name[CONTAINER_NAME_MAX];
        (void)state;

        assert_true(container_name_in(name, ID, text, sizeof(text)));
        assert_string_equal(name, "web");
        assert_false(container_name_in(name, OTHER, text, sizeof(text)));
        assert_false(container_name_in(name, ID, text, 0));
        assert_false(container_name_in(name, ID, "-c\0", 3));
        assert_false(container_name_in(name, ID, "-n\0x", 4));
        assert_string_equal(name, "");
}

static void test_a_name_cannot_do_anything_to_a_terminal(void **state)
{
        static const char text[] = "conmon\0-c\0" ID "\0-n\0\033[2Jweb\nroot";
        char name[CONTAINER_NAME_MAX];
        (void)state;

        assert_true(container_name_in(name, ID, text, sizeof(text)));
        assert_string_equal(name, "?[2Jweb?root");
}

/* The file, with its folders, below @root. */
static void write_file(const char *root, const char *path, const char *text)
{
        char whole[512];
        FILE *file;

        snprintf(whole, sizeof(whole), "%s/%s", root, path);
        for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
                *slash = '\0';
                (void)mkdir(whole, 0700);
                *slash = '/';
        }
        file = fopen(whole, "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void test_docker_and_containerd_have_it_in_their_state(void **state)
{
        char root[] = "/tmp/openvgpu-containers-XXXXXX", name[CONTAINER_NAME_MAX], command[64];
        pid_t first = 0;
        (void)state;

        assert_non_null(mkdtemp(root));
        assert_false(container_name_of_docker(name, root, ID, &first));
        assert_false(container_name_of_containerd(name, root, ID, &first));
        write_file(root, "var/lib/docker/containers/" ID "/config.v2.json",
                   "{\"Name\": \"/web\", \"State\": {\"Pid\": 4711}}");
        assert_true(container_name_of_docker(name, root, ID, &first));
        assert_string_equal(name, "web");
        assert_int_equal(first, 4711);
        write_file(root, "run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
                   "{\"annotations\": {\"io.kubernetes.cri.sandbox-name\": \"pod\", "
                   "\"io.kubernetes.cri.container-name\": \"train\"}}");
        assert_true(container_name_of_containerd(name, root, ID, &first));
        assert_string_equal(name, "pod/train");
        assert_int_equal(first, 0); /* it has ended, or not begun */
        write_file(root, "run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/init.pid",
                   "4712");
        assert_true(container_name_of_containerd(name, root, ID, &first));
        assert_int_equal(first, 4712);
        write_file(root,
                   "run/containerd/io.containerd.runtime.v2.task/default/" OTHER "/config.json",
                   "{\"annotations\": {\"nerdctl/name\": 3}}");
        assert_false(container_name_of_containerd(name, root, OTHER, &first));
        snprintf(command, sizeof(command), "rm -r %s", root);
        assert_int_equal(system(command), 0);
}

/* Whoever has a control group with the id of somebody's container is not in that. */
static void test_a_process_is_with_its_container_only_below_the_first_one(void **state)
{
        pid_t child = fork();
        (void)state;

        if (child == 0)
                for (;;)
                        (void)pause();
        assert_true(child > 0);
        assert_true(container_is_with(child, child));
        assert_true(container_is_with(child, getpid()));
        assert_false(container_is_with(getpid(), child)); /* the namespace is the same: ours */
        assert_false(container_is_with(child, 0));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_podmans_name_is_in_the_arguments_of_conmon),
                cmocka_unit_test(test_a_name_cannot_do_anything_to_a_terminal),
                cmocka_unit_test(test_a_process_is_with_its_container_only_below_the_first_one),
                cmocka_unit_test(test_docker_and_containerd_have_it_in_their_state),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
