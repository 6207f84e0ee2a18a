/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include <openvgpu/operation.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/manager.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);
DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_operation_report *, vgpu_operation_report_free);

static struct vgpu_client *new_client(const struct fake_manager *fake)
{
        struct vgpu_client *client = NULL;

        assert_int_equal(vgpu_client_new(&client, fake_manager_get_directory(fake)), 0);
        return client;
}

struct diary {
        char text[256];
};

static void write_down(const struct vgpu_operation_progress *progress, void *userdata)
{
        struct diary *diary = userdata;
        size_t used = strlen(diary->text);

        snprintf(diary->text + used, sizeof(diary->text) - used, "%s %zu/%zu; ", progress->stage,
                 (size_t)progress->bytes_done, (size_t)progress->bytes_total);
}

static void test_progress_is_told_in_order_and_then_the_report_comes(void **state)
{
        static const struct fake_step steps[] = {
                { "SuspendVgpu",
                  .answers = { PROGRESS("draining", 0, 0), PROGRESS("copying", 5, 10),
                               PROGRESS("copying", 10, 10), PROGRESS("polishing", 10, 10),
                               ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0)) } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 1);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_operation_report_freep) struct vgpu_operation_report *report = NULL;
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;
        struct diary diary = { "" };
        (void)state;

        options.timeout_seconds = 2.5;
        options.keep_context = true;
        options.progress = write_down;
        options.userdata = &diary;
        assert_int_equal(vgpu_operation_suspend(client, "train", &options, &report), 0);

        assert_string_equal(fake_manager_get_call(fake, 0),
                            "{'method':'org.openvgpu.SuspendVgpu','parameters':{'name':'train',"
                            "'timeout':2.5,'keep_context':true},'more':true}");
        assert_string_equal(diary.text, "draining 0/0; copying 5/10; copying 10/10; "
                                        "polishing 10/10; ");
        assert_int_equal(report->bytes, 34145055539);
        assert_true(report->seconds == 0.67);
        assert_true(report->context_seconds == 0.35);
        assert_true(report->pool_seconds == 0); /* an older manager does not say it */
        assert_int_equal(report->n_processes, 1);
        assert_int_equal(report->instance->state, VGPU_INSTANCE_SUSPENDED);
        assert_string_equal(report->instance->processes[0]->name, "python3");
}

static void test_without_a_listener_no_progress_is_asked_for(void **state)
{
        static const struct fake_step steps[] = {
                { "ResumeVgpu", .answers = { ANSWER(REPORT(TRAIN, 0, 1)) } },
                { "MigrateVgpu", .answers = { ANSWER(REPORT(TRAIN, 1, 0)) } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        (void)state;

        assert_int_equal(vgpu_operation_resume(client, "train", "1", NULL, NULL), 0);
        assert_int_equal(vgpu_operation_migrate(client, "train", "GPU-1", NULL, NULL), 0);
        assert_string_equal(fake_manager_get_call(fake, 0),
                            "{'method':'org.openvgpu.ResumeVgpu','parameters':{'device':'1',"
                            "'name':'train'},'more':false}");
        assert_string_equal(fake_manager_get_call(fake, 1),
                            "{'method':'org.openvgpu.MigrateVgpu','parameters':{'device':'GPU-1',"
                            "'name':'train'},'more':false}");
}

static void test_progress_that_cannot_be_understood_is_skipped(void **state)
{
        static const struct fake_step steps[] = {
                { "SuspendVgpu", .answers = { "{'parameters':{'stage':7},'continues':true}",
                                              ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0)) } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 1);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;
        struct diary diary = { "" };
        (void)state;

        options.progress = write_down;
        options.userdata = &diary;
        assert_int_equal(vgpu_operation_suspend(client, "train", &options, NULL), 0);
        assert_string_equal(diary.text, "");
}

static void test_a_refusal_after_progress_is_a_refusal(void **state)
{
        static const struct fake_step steps[] = {
                { "SuspendVgpu", .answers = { PROGRESS("draining", 0, 0),
                                              REFUSAL("TimedOut", "pid 7 is busy", "") } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 1);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;
        struct diary diary = { "" };
        (void)state;

        options.progress = write_down;
        options.userdata = &diary;
        assert_int_equal(vgpu_operation_suspend(client, "train", &options, NULL), -ETIME);
        assert_string_equal(vgpu_client_get_error(client)->message, "pid 7 is busy");
}

static void test_a_manager_that_goes_away_leaves_the_outcome_unknown(void **state)
{
        static const struct fake_step steps[] = {
                { "SuspendVgpu", .answers = { PROGRESS("copying", 5, 10) }, .hang_up = 1 },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 1);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_operation_options options = VGPU_OPERATION_OPTIONS_INIT;
        struct diary diary = { "" };
        const struct vgpu_error *error = vgpu_client_get_error(client);
        (void)state;

        options.progress = write_down;
        options.userdata = &diary;
        assert_int_equal(vgpu_operation_suspend(client, "train", &options, NULL), -ECONNRESET);
        assert_int_equal(error->kind, VGPU_ERROR_CONNECTION_LOST);
        assert_non_null(strstr(error->message, "the outcome is unknown"));
        assert_non_null(strstr(error->hint, "vgpu ls"));
}

static void test_a_report_that_lacks_something_is_a_bad_answer(void **state)
{
        static const struct fake_step steps[] = {
                { "SuspendVgpu", .answers = { ANSWER("'vgpu':" TRAIN) } },
                { "SuspendVgpu", .answers = { ANSWER(REPORT("{}", 0, 0)) } },
                { "SuspendVgpu", .answers = { ANSWER(REPORT("null", 0, 0)) } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 3);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_operation_report *report = NULL;
        (void)state;

        for (size_t i = 0; i < 3; i++)
                assert_int_equal(vgpu_operation_suspend(client, "train", NULL, &report), -EPROTO);
        assert_null(report);
}

static atomic_int n_signals;

static void count_signal(int number)
{
        (void)number;
        atomic_fetch_add(&n_signals, 1);
}

static void answer_after_signals(void)
{
        const struct timespec interval = { .tv_nsec = 1000000 };

        while (atomic_load(&n_signals) < 20)
                nanosleep(&interval, NULL);
}

static void test_an_operation_outlasts_signals_and_the_time_out_of_calls(void **state)
{
        static const struct fake_step steps[] = {
                { "SuspendVgpu", .before = answer_after_signals,
                  .answers = { ANSWER(REPORT(TRAIN_SUSPENDED, 0, 0)) } },
        };
        const struct sigaction action = { .sa_handler = count_signal }; /* no SA_RESTART */
        const struct itimerval fast = { { 0, 5000 }, { 0, 5000 } }, off = { { 0, 0 }, { 0, 0 } };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = NULL;
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        sigset_t alarm;
        (void)state;

        /* The fake's thread inherits the mask, so every signal interrupts the client. */
        sigemptyset(&alarm);
        sigaddset(&alarm, SIGALRM);
        pthread_sigmask(SIG_BLOCK, &alarm, NULL);
        fake = fake_manager_new(steps, 1);
        pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
        client = new_client(fake);
        vgpu_client_set_timeout_ms(client, 50);

        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &fast, NULL);
        assert_int_equal(vgpu_operation_suspend(client, "train", NULL, NULL), 0);
        setitimer(ITIMER_REAL, &off, NULL);
        assert_true(atomic_load(&n_signals) >= 20);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_progress_is_told_in_order_and_then_the_report_comes),
                cmocka_unit_test(test_without_a_listener_no_progress_is_asked_for),
                cmocka_unit_test(test_progress_that_cannot_be_understood_is_skipped),
                cmocka_unit_test(test_a_refusal_after_progress_is_a_refusal),
                cmocka_unit_test(test_a_manager_that_goes_away_leaves_the_outcome_unknown),
                cmocka_unit_test(test_a_report_that_lacks_something_is_a_bad_answer),
                cmocka_unit_test(test_an_operation_outlasts_signals_and_the_time_out_of_calls),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
