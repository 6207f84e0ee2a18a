/* SPDX-License-Identifier: Apache-2.0 */
/* What programs can write into the log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "daemon/log-limit.h"
#include "daemon/log.h"

static int saved;

/* What is logged from now on goes to a file without a name. */
static int set_up(void **state)
{
        *state = tmpfile();
        saved = dup(STDERR_FILENO);
        return *state && saved >= 0 && dup2(fileno(*state), STDERR_FILENO) >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
        (void)dup2(saved, STDERR_FILENO);
        (void)close(saved);
        return fclose(*state);
}

static int count(FILE *file, const char *text)
{
        char line[512];
        int n = 0;

        rewind(file);
        while (fgets(line, sizeof(line), file))
                n += strstr(line, text) != NULL;
        return n;
}

static void log_lines(uid_t user, uint32_t vgpu, const char *name, int n)
{
        const struct log_program program = { user, vgpu, name };

        for (int i = 0; i < n; i++)
                log_event_of_program(&program, LOG_LEVEL_NOTICE, "process joined", "vgpu=%s", name);
}

static void test_a_program_of_root_does_not_fill_the_log(void **state)
{
        (void)state;
        log_lines(0, 1, "one", LOG_LIMIT_LINES + 7);
        log_lines(0, 2, "two", 3);
        log_event_of(0, LOG_LEVEL_NOTICE, "suspended", "vgpu=one");
        assert_int_equal(count(*state, "joined vgpu=one"), LOG_LIMIT_LINES);
        assert_int_equal(count(*state, "leaving out more lines about programs of a vGPU vgpu=one"),
                         1);
        assert_int_equal(count(*state, "joined vgpu=two"), 3);
        assert_int_equal(count(*state, "suspended vgpu=one"), 1);
}

static void test_programs_of_others_share_their_users_limit(void **state)
{
        uid_t user = geteuid() + 1;

        log_lines(user, 3, "three", LOG_LIMIT_LINES - 10);
        log_lines(user, 4, "four", 20);
        assert_int_equal(count(*state, "joined vgpu=three"), LOG_LIMIT_LINES - 10);
        assert_int_equal(count(*state, "joined vgpu=four"), 10);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_program_of_root_does_not_fill_the_log,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_programs_of_others_share_their_users_limit,
                                                set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
