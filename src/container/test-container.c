/* SPDX-License-Identifier: Apache-2.0 */
/* What engines call the container of a process, and which processes are in it. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "container/container.h"
#include "container/name.h"
#include "container/space.h"

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

static pid_t get_child_of(pid_t pid)
{
        char path[64], text[64];

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
        assert_true(container_read(text, sizeof(text), path) > 0);
        return (pid_t)strtol(text, NULL, 10);
}

/* The first process of a namespace of its own, which has a child; both wait. False: not for this user. */
static bool start_container(pid_t *ret_first, pid_t *ret_child, pid_t *ret_outside)
{
        int ready[2];
        pid_t numbers[2];
        ssize_t n;

        assert_int_equal(pipe(ready), 0);
        *ret_outside = fork();
        if (*ret_outside == 0) {
                if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
                        _exit(1);
                if (fork() == 0) { /* two in the namespace */
                        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                        (void)fork();
                        (void)!write(ready[1], "x", 1);
                }
                for (;;)
                        (void)pause();
        }
        fd_close(ready[1]);
        for (size_t i = 0; i < 2; i++) {
                n = read(ready[0], &(char){ 0 }, 1);
                if (n != 1) {
                        fd_close(ready[0]);
                        return false;
                }
        }
        fd_close(ready[0]);
        numbers[0] = get_child_of(*ret_outside);
        numbers[1] = get_child_of(numbers[0]);
        *ret_first = numbers[0];
        *ret_child = numbers[1];
        return true;
}

static void test_a_container_is_a_namespace_below_ours(void **state)
{
        struct container_space space, other;
        pid_t first = 0, child = 0, outside, found;
        (void)state;

        assert_int_equal(container_space_find(&space, &found, getpid()), -ENOENT);
        if (access("/proc/thread-self/children", R_OK) < 0) /* CONFIG_PROC_CHILDREN */
                skip();
        if (!start_container(&first, &child, &outside)) {
                assert_int_equal(waitpid(outside, NULL, 0), outside);
                skip();
        }
        assert_int_equal(container_space_find(&space, &found, child), 0);
        assert_int_equal(found, first);
        assert_int_equal(container_space_find(&other, &found, first), 0);
        assert_int_equal(found, first);
        assert_true(container_space_is_equal(&space, &other) && space.inode != 0);
        assert_int_equal(container_space_find(&other, &found, outside), -ENOENT);
        assert_int_equal(container_find_first(&found, child), 0);
        assert_int_equal(found, first);
        assert_int_equal(container_find_first(&found, getpid()), -ESRCH);
        assert_int_equal(kill(outside, SIGKILL), 0);
        assert_int_equal(waitpid(outside, NULL, 0), outside);
        assert_int_equal(container_space_find(&space, &found, outside), -ESRCH);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_podmans_name_is_in_the_arguments_of_conmon),
                cmocka_unit_test(test_a_name_cannot_do_anything_to_a_terminal),
                cmocka_unit_test(test_a_process_is_with_its_container_only_below_the_first_one),
                cmocka_unit_test(test_a_container_is_a_namespace_below_ours),
                cmocka_unit_test(test_docker_and_containerd_have_it_in_their_state),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
