/* SPDX-License-Identifier: Apache-2.0 */
#include "fake/command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);

void command_read(char *text, size_t room, FILE *file)
{
        rewind(file);
        text[fread(text, 1, room - 1, file)] = '\0';
        fclose(file);
}

pid_t command_start(const char *run_directory, const char *const *words, int out, int err)
{
        char *argv[COMMAND_WORDS_MAX + 2] = { getenv("TEST_VGPU") };
        pid_t pid;

        assert_non_null(argv[0]);
        for (size_t i = 0; i < COMMAND_WORDS_MAX && words[i]; i++)
                argv[i + 1] = (char *)(uintptr_t)words[i];

        pid = fork();
        assert_true(pid >= 0);
        if (pid > 0)
                return pid;
        setenv("OPENVGPU_RUN", run_directory, 1);
        unsetenv("LD_LIBRARY_PATH");
        setenv("LD_PRELOAD", "", 1);
        setenv("PATH", "/usr/bin:/bin",
               1); /* one may have folders in it that may not be searched */
        if (out >= 0)
                dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        execv(argv[0], argv);
        _exit(99);
}

int command_wait(pid_t pid)
{
        int status;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct outcome *vgpu(const struct fake_step *steps, size_t n_steps, const char *const *words)
{
        static struct outcome outcome;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = NULL;
        FILE *out = tmpfile(), *err = tmpfile();

        assert_non_null(out);
        assert_non_null(err);
        if (n_steps > 0)
                fake = fake_manager_new(steps, n_steps);
        outcome.code =
                command_wait(command_start(fake ? fake_manager_get_directory(fake) : "/nonexistent",
                                           words, fileno(out), fileno(err)));
        command_read(outcome.out, sizeof(outcome.out), out);
        command_read(outcome.err, sizeof(outcome.err), err);
        return &outcome;
}

void command_expect_begin(const struct outcome *outcome, int code, const char *out, const char *err)
{
        assert_memory_equal(outcome->err, err, strlen(err));
        assert_string_equal(outcome->out, out);
        assert_int_equal(outcome->code, code);
}

void command_expect(const struct outcome *outcome, int code, const char *out, const char *err)
{
        assert_string_equal(outcome->err, err);
        assert_string_equal(outcome->out, out);
        assert_int_equal(outcome->code, code);
}
