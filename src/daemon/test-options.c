/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files, and how they and the command line come together. */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "daemon/options.h"
#include "daemon/reload.h"

#define WORDS_MAX 8

static char folder[] = "/tmp/test-options-XXXXXX";
static char config[64];
static struct options options;
static char said[4096];

static void write_file(const char *name, const char *text)
{
        char path[128];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

/* Parses "vgpud --config FILE words..." and keeps what was said. */
static enum options_verdict parse(const char *const *words)
{
        static char *argv[WORDS_MAX + 4]; /* is read again by a reload */
        int argc = 0, saved = dup(STDERR_FILENO);
        FILE *err = tmpfile();
        enum options_verdict verdict;

        assert_non_null(err);
        argv[argc++] = (char *)(uintptr_t) "vgpud";
        argv[argc++] = (char *)(uintptr_t) "--config";
        argv[argc++] = config;
        for (size_t i = 0; words[i]; i++)
                argv[argc++] = (char *)(uintptr_t)words[i];
        argv[argc] = NULL;
        fflush(stderr);
        dup2(fileno(err), STDERR_FILENO);
        verdict = options_parse(&options, argc, argv);
        fflush(stderr);
        dup2(saved, STDERR_FILENO);
        close(saved);
        rewind(err);
        said[fread(said, 1, sizeof(said) - 1, err)] = '\0';
        fclose(err);
        return verdict;
}

#define PARSE(...) parse((const char *const[WORDS_MAX + 1]){ __VA_ARGS__ })

static int clear(void **state)
{
        char command[128];
        (void)state;

        snprintf(command, sizeof(command), "rm -rf %s/*", folder);
        assert_int_equal(system(command), 0);
        snprintf(command, sizeof(command), "%s/vgpud.conf.d", folder);
        assert_int_equal(mkdir(command, 0755), 0);
        write_file("vgpud.conf", "");
        return 0;
}

static void test_a_file_sets_what_the_command_line_does_not(void **state)
{
        (void)state;
        write_file("vgpud.conf",
                   "# a comment\n\n  user-vgpus=3\t\r\nslab-size =  4M\nlog-level= debug");
        assert_int_equal(PARSE("--user-vgpus", "5"), OPTIONS_RUN);
        assert_string_equal(said, "");
        assert_int_equal(options.user_vgpus, 5);
        assert_int_equal(options.slab_size, 4 << 20);
        assert_int_equal(options.log_level, LOG_LEVEL_DEBUG);
        assert_int_equal(options.keep_usage_days, 400);
        assert_string_equal(options.config_path, config);
}

static void test_what_containers_may_have_made(void **state)
{
        (void)state;
        assert_int_equal(PARSE(NULL), OPTIONS_RUN);
        assert_int_equal(options.cdi_new, 0);
        assert_int_equal(PARSE("--cdi", "/c.json", "--cdi-new", "1G:25"), OPTIONS_RUN);
        assert_int_equal(options.cdi_new, 1 << 30);
        assert_int_equal(options.cdi_new_share, 25);
        write_file("vgpud.conf", "cdi = /c.json\ncdi-new = 1G:25\n");
        assert_int_equal(PARSE("--cdi-new", "512M"), OPTIONS_RUN);
        assert_int_equal(options.cdi_new, 512 << 20);
        assert_int_equal(options.cdi_new_share, 0);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(PARSE("--cdi-new",
                                       ((const char *const[]){ "0", ":25", "1G:", "1G:101" })[i]),
                                 OPTIONS_BAD);
}

static void test_drop_ins_win_in_the_order_of_their_names(void **state)
{
        (void)state;
        write_file("vgpud.conf", "user-vgpus = 1\nkeep-usage = 1\nslab-size = 2M\n");
        write_file("vgpud.conf.d/20-b.conf", "keep-usage = 3\n");
        write_file("vgpud.conf.d/10-a.conf", "user-vgpus = 2\nkeep-usage = 2\n");
        write_file("vgpud.conf.d/30-c.conf~", "user-vgpus = 9\n");
        write_file("vgpud.conf.d/.hidden.conf", "user-vgpus = 9\n");
        assert_int_equal(PARSE(NULL), OPTIONS_RUN);
        assert_int_equal(options.user_vgpus, 2);
        assert_int_equal(options.keep_usage_days, 3);
        assert_int_equal(options.slab_size, 2 << 20);
}

static void test_a_wrong_option_is_told_what_was_meant(void **state)
{
        (void)state;
        assert_int_equal(PARSE("--overcomit=0"), OPTIONS_BAD);
        assert_non_null(strstr(said, "hint: did you mean '--overcommit'?\n"));
        assert_int_equal(PARSE("--colour"), OPTIONS_BAD);
        assert_non_null(strstr(said, "Try 'vgpud --help'.\n"));
        assert_int_equal(PARSE("--slab-size"), OPTIONS_BAD);
        assert_non_null(strstr(said, "Try 'vgpud --help'.\n"));
}

/* @text makes one complaint, behind "vgpud: FILE:". */
static void expect_complaint(const char *text, const char *complaint)
{
        char wanted[512];

        write_file("vgpud.conf", text);
        snprintf(wanted, sizeof(wanted), "vgpud: %s:%s\n", config, complaint);
        assert_int_equal(PARSE(NULL), OPTIONS_BAD);
        assert_string_equal(said, wanted);
}

static void test_what_is_wrong_is_said_with_file_and_line(void **state)
{
        (void)state;
        expect_complaint("\nslab-size = 3M\n", "2: slab-size: '3M' is not a multiple of 2M");
        expect_complaint("user-vgpus 3\n", "1: 'user-vgpus 3' is not 'key = value'");
        expect_complaint("user-vgpus =\n", "1: user-vgpus: the value is missing");
        expect_complaint(" = 3\n", "1: there is no key before the '=', or a long one");
        expect_complaint("user-vgpu = 3\n",
                         "1: unknown key 'user-vgpu'; did you mean 'user-vgpus'?");
        expect_complaint("colour = red\n", "1: unknown key 'colour'; see vgpud.conf(5)");
        expect_complaint("version = 1\n", "1: unknown key 'version'; see vgpud.conf(5)");
        expect_complaint("config = /etc\n", "1: unknown key 'config'; see vgpud.conf(5)");
        expect_complaint("[limits]\n", "1: there are no sections here");
        expect_complaint("keep-usage = 1\n\nkeep-usage = 1\n",
                         "3: keep-usage: given twice, first in line 1");
        expect_complaint("run-dir = here\n", "1: run-dir: 'here' is not an absolute path");
        expect_complaint("log-level = \033[2Jloud\n",
                         "1: log-level: '?[2Jloud' is not error, warning, notice, info or debug");
        expect_complaint("log-format = xml\n", "1: log-format: 'xml' is not text or json");
        expect_complaint("group = no-such-group-here\n",
                         "1: group: 'no-such-group-here' is not a group of this machine");
}

static void test_all_that_is_wrong_is_said(void **state)
{
        (void)state;
        write_file("vgpud.conf", "a = 1\nturns = gate\nslab-size = x\n");
        write_file("vgpud.conf.d/1.conf", "turns = x\n");
        assert_int_equal(PARSE(NULL), OPTIONS_BAD);
        assert_non_null(strstr(said, "vgpud.conf:1: "));
        assert_non_null(strstr(said, "vgpud.conf:3: "));
        assert_non_null(strstr(said, "vgpud.conf.d/1.conf:1: "));
}

static void test_a_named_file_must_be_there_and_readable(void **state)
{
        char path[128];
        (void)state;

        snprintf(path, sizeof(path), "%s/vgpud.conf", folder);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(PARSE(NULL), OPTIONS_BAD);
        assert_non_null(strstr(said, "No such file or directory"));
        assert_int_equal(mkdir(path, 0755), 0);
        assert_int_equal(PARSE(NULL), OPTIONS_BAD);
        assert_non_null(strstr(said, "Is a directory"));
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(mkfifo(path, 0644), 0);
        assert_int_equal(PARSE(NULL), OPTIONS_RUN); /* and nobody waits for a writer */
}

static void test_gpus_on_the_command_line_replace_those_of_the_files(void **state)
{
        (void)state;
        write_file("vgpud.conf", "driver = /lib/libcuda.so.1\n");
        assert_int_equal(PARSE("--simulate", "1xH200"), OPTIONS_RUN);
        assert_string_equal(options.simulate, "1xH200");
        assert_string_equal(options.driver_path, "");
        assert_int_equal(PARSE(NULL), OPTIONS_RUN);
        assert_null(options.simulate);
        assert_string_equal(options.driver_path, "/lib/libcuda.so.1");
        write_file("vgpud.conf.d/1.conf", "simulate = 1xH200\n");
        assert_int_equal(PARSE(NULL), OPTIONS_BAD);
        assert_non_null(strstr(said, "exclude each other"));
}

static void test_a_device_that_no_engine_reads_of_is_refused(void **state)
{
        (void)state;
        write_file("vgpud.conf", "cdi-new = 20G:25\n");
        assert_int_equal(PARSE(NULL), OPTIONS_BAD);
        assert_non_null(strstr(said, "--cdi-new needs --cdi"));
        assert_int_equal(PARSE("--check-config"), OPTIONS_BAD);
        write_file("vgpud.conf", "cdi = /run/cdi/openvgpu.json\ncdi-new = 20G:25\n");
        assert_int_equal(PARSE(NULL), OPTIONS_RUN);
}

static void test_a_simulation_reads_no_configuration_unasked(void **state)
{
        char *argv[] = { (char *)(uintptr_t) "vgpud", (char *)(uintptr_t) "--simulate",
                         (char *)(uintptr_t) "1xH200", NULL };
        (void)state;

        assert_int_equal(options_parse(&options, 3, argv), OPTIONS_RUN);
        assert_string_equal(options.config_path, "");
}

static void test_devices_are_named_by_indices(void **state)
{
        (void)state;
        write_file("vgpud.conf", "overcommit = 0,2,31\n");
        assert_int_equal(PARSE(NULL), OPTIONS_RUN);
        assert_true(options.overcommit == (1u << 0 | 1u << 2 | 1u << 31));
        assert_int_equal(PARSE("--overcommit", "all"), OPTIONS_RUN);
        assert_true(options.overcommit == UINT64_MAX);
        assert_int_equal(PARSE("--overcommit", "none"), OPTIONS_RUN);
        assert_true(options.overcommit == 0);
        assert_true(options.pin_ahead == 0);
        assert_int_equal(PARSE("--pin-ahead", "1,3"), OPTIONS_RUN);
        assert_true(options.pin_ahead == (1u << 1 | 1u << 3));
        assert_true(options.leave_out == 0);
        assert_int_equal(PARSE("--leave-out", "2"), OPTIONS_RUN);
        assert_true(options.leave_out == 1u << 2);
        for (const char *const *text =
                     (const char *const[]){ "", "32", "1,", "-1", "0 2", "yes", NULL };
             *text; text++) {
                assert_int_equal(PARSE("--overcommit", *text), OPTIONS_BAD);
                assert_non_null(strstr(said, "indices of devices"));
        }
}

static void test_a_reload_takes_what_is_harmless(void **state)
{
        (void)state;
        write_file("vgpud.conf", "user-vgpus = 3\nslab-size = 4M\nuser-frame-buffer = 1G\n");
        assert_int_equal(PARSE("--keep-usage", "7"), OPTIONS_RUN);
        write_file("vgpud.conf",
                   "user-vgpus = 4\nslab-size = 8M\nlog-level = debug\nkeep-usage = 9\n");
        assert_true(reload_options(&options));
        assert_int_equal(options.user_vgpus, 4);
        assert_int_equal(options.user_frame_buffer, 0);
        assert_int_equal(options.log_level, LOG_LEVEL_DEBUG);
        assert_int_equal(options.slab_size, 4 << 20);
        assert_int_equal(options.keep_usage_days, 7);
        write_file("vgpud.conf", "user-vgpus = 5\nslab-size = x\n");
        assert_false(reload_options(&options));
        assert_int_equal(options.user_vgpus, 4);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_a_file_sets_what_the_command_line_does_not, clear),
                cmocka_unit_test_setup(test_what_containers_may_have_made, clear),
                cmocka_unit_test_setup(test_drop_ins_win_in_the_order_of_their_names, clear),
                cmocka_unit_test_setup(test_a_wrong_option_is_told_what_was_meant, clear),
                cmocka_unit_test_setup(test_what_is_wrong_is_said_with_file_and_line, clear),
                cmocka_unit_test_setup(test_all_that_is_wrong_is_said, clear),
                cmocka_unit_test_setup(test_a_named_file_must_be_there_and_readable, clear),
                cmocka_unit_test_setup(test_gpus_on_the_command_line_replace_those_of_the_files,
                                       clear),
                cmocka_unit_test_setup(test_a_device_that_no_engine_reads_of_is_refused, clear),
                cmocka_unit_test_setup(test_a_simulation_reads_no_configuration_unasked, clear),
                cmocka_unit_test_setup(test_devices_are_named_by_indices, clear),
                cmocka_unit_test_setup(test_a_reload_takes_what_is_harmless, clear),
        };
        char command[64];
        int failed;

        if (!mkdtemp(folder))
                return 1;
        snprintf(config, sizeof(config), "%s/vgpud.conf", folder);
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        snprintf(command, sizeof(command), "rm -rf %s", folder);
        return system(command) == 0 ? failed : 1;
}
