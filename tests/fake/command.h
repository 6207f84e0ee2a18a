/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_COMMAND_H
#define FAKE_COMMAND_H

/*
 * vgpu as a user meets it: a process, its output and its exit status, against a fake manager.
 * TEST_VGPU is its path. What goes wrong fails the test.
 */

#include <stdio.h>
#include <sys/types.h>

#include "fake/manager.h"

#define COMMAND_WORDS_MAX 16

/* The words behind "vgpu". */
#define WORDS(...) ((const char *const[COMMAND_WORDS_MAX + 1]){ __VA_ARGS__ })

struct outcome {
        int code; /* exit status; 128 + signal */
        char out[16384], err[4096];
};

/* vgpu() - run it against a manager that goes through the steps; without steps there is none. */
struct outcome *vgpu(const struct fake_step *steps, size_t n_steps, const char *const *words);

/* command_start() - only start it. @out and @err are its outputs; -1 for @out: the test's own. */
pid_t command_start(const char *run_directory, const char *const *words, int out, int err);

/* command_wait() - its exit status; 128 + signal. */
int command_wait(pid_t pid);

/* command_read() - all of @file, which is closed. */
void command_read(char *text, size_t room, FILE *file);

void command_expect(const struct outcome *outcome, int code, const char *out, const char *err);

/* command_expect_begin() - of what it says as an error, @err is only how it begins. */
void command_expect_begin(const struct outcome *outcome, int code, const char *out,
                          const char *err);

#endif
