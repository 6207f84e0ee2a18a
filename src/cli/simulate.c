/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program against a host that does not exist. It passes on the signals that it gets; the
 * terminal itself sends its signals to the program. If vgpu is killed, the program is killed as
 * well.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/device-root.h"
#include "cli/document.h"
#include "cli/example.h"
#include "cli/library-path.h"
#include "cli/manager.h"
#include "cli/private-manager.h"
#include "cli/say.h"

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_device_list *, vgpu_device_list_free);
DEFINE_CLEANUP(struct vgpu_host *, vgpu_host_free);

static const int passed_on[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };

static int list(const struct arguments *arguments)
{
        json_t *examples = example_list();
        const json_t *example;
        size_t i;

        if (arguments->is_json)
                return document_print(arguments, json_pack("{so}", "scenarios", examples));
        if (json_array_size(examples) == 0)
                fprintf(stderr,
                        "no scenario is installed; docs/scenarios.md says how to write one\n");
        json_array_foreach(examples, i, example)
                printf("%-18s %s\n", json_string_value(json_object_get(example, "name")),
                       json_string_value(json_object_get(example, "description")));
        json_decref(examples);
        return 0;
}

/* The program's side of the fork. */

/* For tools that look into the root of the driver: one is in the manager's directory, and goes with it. */
static int set_root(const struct private_manager *manager, struct vgpu_client *client,
                    const struct vgpu_manager *info)
{
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *devices = NULL;
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        char library[PATHS_MAX], root[PATHS_MAX];
        const char *version;
        int r = paths_join(library, info->nvml_path, "libnvidia-ml.so.1");

        if (r == 0)
                r = paths_join(root, manager->directory, "root");
        if (r == 0)
                r = vgpu_device_lookup_all(client, &devices);
        if (r == 0)
                r = vgpu_host_new(&host, library);
        if (r == 0)
                r = vgpu_host_get_driver_version(host, &version);
        if (r == 0)
                r = device_root_make(root, version, library, info->driver_path,
                                     (uint32_t)devices->n_devices);
        if (r == 0 && (setenv("NVIDIA_DRIVER_ROOT", root, 1) < 0 ||
                       setenv("NVIDIA_CTK_DRIVER_ROOT", root, 1) < 0))
                r = -errno;
        return r;
}

static int set_environment(const struct private_manager *manager)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *info = NULL;
        char library_path[LIBRARY_PATH_MAX];
        int r = vgpu_client_new(&client, manager->run_directory);

        if (r == 0)
                r = vgpu_manager_lookup(client, &info);
        if (r < 0)
                return r;
        if (!library_path_make(library_path, info->nvml_path))
                return -ENAMETOOLONG;
        if (setenv("LD_LIBRARY_PATH", library_path, 1) < 0 ||
            setenv("OPENVGPU_RUN", manager->run_directory, 1) < 0 || unsetenv("OPENVGPU_VGPU") < 0)
                return -errno;
        return set_root(manager, client, info);
}

static void become_program(char **words, const sigset_t *mask, pid_t parent, int failed)
{
        int error;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(EXIT_CODE_FAILED);
        (void)sigprocmask(SIG_SETMASK, mask, NULL);
        execvp(words[0], words);
        error = errno;
        (void)!write(failed, &error, sizeof(error));
        _exit(EXIT_CODE_NOT_FOUND);
}

/* Ours. */

static int wait_for(pid_t program, const sigset_t *signals)
{
        siginfo_t info;
        int status;

        for (;;) {
                if (waitpid(program, &status, WNOHANG) == program)
                        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
                if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD &&
                    info.si_code <= 0) /* of a process, not the terminal */
                        (void)kill(program, info.si_signo);
        }
}

/* @ret_error: why it could not be executed; 0: it was. */
static int run_program(char **words, int *ret_error)
{
        pid_t self = getpid(), program;
        sigset_t signals, mask;
        int failed[2], code;

        sigemptyset(&signals);
        sigaddset(&signals, SIGCHLD);
        for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
                sigaddset(&signals, passed_on[i]);
        sigprocmask(SIG_BLOCK, &signals, &mask);
        if (pipe2(failed, O_CLOEXEC) < 0) {
                *ret_error = errno;
                return -1;
        }
        program = fork();
        if (program == 0)
                become_program(words, &mask, self, failed[1]);
        fd_close(failed[1]);
        *ret_error = program < 0 ? errno : 0;
        if (program > 0 && read(failed[0], ret_error, sizeof(*ret_error)) < 0)
                *ret_error = 0;
        fd_close(failed[0]);
        code = program > 0 ? wait_for(program, &signals) : -1;
        sigprocmask(SIG_SETMASK, &mask, NULL);
        return code;
}

static int simulate(const struct arguments *arguments, const char *scenario, char **words)
{
        CLEANUP(private_manager_freep) struct private_manager *manager = NULL;
        char problem[PRIVATE_MANAGER_PROBLEM_MAX];
        int error, code, r;

        r = private_manager_new(&manager, scenario, problem);
        if (r < 0)
                return say_failure(arguments, problem[0] ? EXIT_CODE_USAGE : EXIT_CODE_FAILED,
                                   "BadScenario", "docs/scenarios.md says what can be in one", "%s",
                                   problem[0] ? problem : strerrordesc_np(-r));
        r = set_environment(manager);
        if (r < 0)
                return say_failure(arguments, EXIT_CODE_FAILED, "Failed",
                                   r == -ELIBACC ? LIBRARY_PATH_NVML_HINT : "",
                                   "the simulated host does not answer: %s", strerrordesc_np(-r));
        code = run_program(words, &error);
        if (error == 0)
                return code;
        return say_failure(
                arguments, error == ENOENT ? EXIT_CODE_NOT_FOUND : EXIT_CODE_CANNOT_EXECUTE,
                "CannotExecute", "", "cannot execute '%s': %s", words[0], strerrordesc_np(error));
}

static int run_simulate(const struct arguments *arguments, struct vgpu_client *client)
{
        char **words = arguments->words;
        char path[PATHS_MAX];

        (void)client;
        if (arguments_get(arguments, "list"))
                return list(arguments);
        if (arguments->n_words == 0)
                return say_usage(arguments, "'vgpu simulate --list' lists the scenarios",
                                 "the scenario is missing");
        if (example_find(path, words[0]) < 0)
                return say_failure(arguments, EXIT_CODE_NO_SUCH, "NoSuchScenario",
                                   "'vgpu simulate --list' lists the scenarios",
                                   "there is no scenario '%.200s', and no such file", words[0]);
        words++;
        if (*words && strcmp(*words, "--") == 0)
                words++;
        if (!*words)
                return say_usage(arguments, "vgpu simulate plain -- nvidia-smi vgpu",
                                 "the command is missing");
        return simulate(arguments, path, words);
}

static const struct option options[] = {
        { .name = "list", .help = "list the installed scenarios" },
        { .name = NULL },
};

const struct command command_simulate = {
        .name = "simulate",
        .usage = "(--list | SCENARIO [--] COMMAND [ARGUMENT]...)",
        .summary = "run an NVML tool against a host that does not exist",
        .description =
                "Starts a manager of its own that plays a scenario, runs the command with the NVML\n"
                "library that shows the scenario, and removes everything afterwards. A scenario is a\n"
                "JSON file that describes a host with GPUs and vGPUs in some state. This needs\n"
                "neither a GPU nor root. Tools that look for device nodes and for the driver's files\n"
                "find them below $NVIDIA_DRIVER_ROOT (nvidia-ctk does by itself).\n"
                "\n"
                "SCENARIO is a file, or the name of an example:\n"
                "\n"
                "  vgpu simulate licences -- nvidia-smi vgpu -q\n"
                "\n"
                "The exit status is that of the command; 127 if the command was not found, 126 if it\n"
                "could not be executed, 128 plus the signal's number if a signal has ended it.\n",
        .examples = "vgpu simulate --list\n"
                    "vgpu simulate mig -- vgpu nvml types\n",
        .options = options,
        .word = "scenario",
        .takes_program = true,
        .run = run_simulate,
};
