/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that has the ledger: what is handed to it gets there, sooner or later. */

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/test.h"
#include "daemon/log.h"
#include "ledger/ledger-thread.h"

#define MINUTE 60000ull

static const struct ledger_device devices[] = { { "GPU-0", "NVIDIA H200" } };

struct fixture {
        char directory[64], path[96];
        sd_event *event;
        struct ledger_thread *thread;
        int n_answers, error;
        uint64_t sum;
};

static void start(struct fixture *fixture, uint32_t keep_days)
{
        const struct ledger_thread_options options = {
                .path = fixture->path,
                .boot_id = "boot",
                .devices = devices,
                .n_devices = 1,
                .keep_days = keep_days,
        };

        assert_int_equal(ledger_thread_new(&fixture->thread, fixture->event, NULL, &options), 0);
}

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/test-ledger-thread-XXXXXX");
        assert_non_null(mkdtemp(fixture->directory));
        snprintf(fixture->path, sizeof(fixture->path), "%s/ledger.db", fixture->directory);
        assert_true(sd_event_new(&fixture->event) >= 0);
        start(fixture, 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;
        char command[128];

        (void)ledger_thread_free(fixture->thread);
        sd_event_unref(fixture->event);
        snprintf(command, sizeof(command), "rm -r %s", fixture->directory);
        assert_int_equal(system(command), 0);
        free(fixture);
        return 0;
}

static void add(struct fixture *fixture, uint64_t minute, uint64_t ns)
{
        const struct usage_key key = { .process = 5, .vgpu = 1 };
        struct usage_amount amount = { .busy_ns = { [METER_SM] = ns } };
        struct ledger_batch *batch = ledger_thread_begin(fixture->thread);

        assert_int_equal(
                minutes_add(&batch->minutes, &key, &amount, minute * MINUTE, minute * MINUTE), 0);
        assert_int_equal(ledger_batch_add_vgpu(batch, &(struct ledger_vgpu){ .serial = 1 }), 0);
        assert_int_equal(
                ledger_batch_add_process(batch, &(struct ledger_process){ .serial = 5, .vgpu = 1 }),
                0);
        ledger_thread_end(fixture->thread, true);
}

static void on_answer(const struct ledger_answer *answer, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->n_answers++;
        fixture->error = answer->error;
        fixture->sum = 0;
        for (size_t i = 0; i < answer->n_rows; i++)
                fixture->sum += answer->rows[i].amount.busy_ns[METER_SM];
}

static void ask_only(struct fixture *fixture)
{
        const struct ledger_query query = { .group = LEDGER_BY_VGPU,
                                            .until = INT64_MAX,
                                            .tenant = LEDGER_ANY_TENANT,
                                            .limit = 10 };

        assert_int_equal(ledger_thread_ask(fixture->thread, &query, on_answer, fixture), 0);
}

static uint64_t ask(struct fixture *fixture)
{
        int n = fixture->n_answers;

        ask_only(fixture);
        while (fixture->n_answers == n)
                assert_true(sd_event_run(fixture->event, 30000000) > 0);
        assert_int_equal(fixture->error, 0);
        return fixture->sum;
}

static void test_what_is_asked_for_contains_all_before(void **state)
{
        struct fixture *fixture = *state;

        for (uint64_t i = 1; i <= 50; i++) {
                add(fixture, 100 + i % 3, i);
                if (i % 10 == 0)
                        assert_int_equal(ask(fixture), i * (i + 1) / 2);
        }
}

/* The thread answers nothing while it is held; @answered notes whom it answers. */

static struct {
        pthread_mutex_t lock;
        int64_t answered[256];
        size_t n;
} held = { .lock = PTHREAD_MUTEX_INITIALIZER };

int __real_ledger_sum(struct ledger *ledger, const struct ledger_query *query,
                      ledger_row_fn add_row, void *userdata);
int __wrap_ledger_sum(struct ledger *ledger, const struct ledger_query *query,
                      ledger_row_fn add_row, void *userdata);

int __wrap_ledger_sum(struct ledger *ledger, const struct ledger_query *query,
                      ledger_row_fn add_row, void *userdata)
{
        (void)pthread_mutex_lock(&held.lock);
        held.answered[held.n++ % 256] = query->tenant;
        (void)pthread_mutex_unlock(&held.lock);
        return __real_ledger_sum(ledger, query, add_row, userdata);
}

static void ask_as(struct fixture *fixture, int64_t tenant)
{
        const struct ledger_query query = { .until = INT64_MAX, .tenant = tenant, .limit = 10 };

        assert_int_equal(ledger_thread_ask(fixture->thread, &query, on_answer, fixture), 0);
}

static size_t find_answered(int64_t tenant)
{
        for (size_t i = 0; i < held.n; i++)
                if (held.answered[i] == tenant)
                        return i;
        return SIZE_MAX;
}

static void test_who_asks_much_is_answered_in_turn_with_others(void **state)
{
        struct fixture *fixture = *state;

        (void)pthread_mutex_lock(&held.lock);
        held.n = 0;
        for (int i = 0; i < 100; i++)
                ask_as(fixture, 1);
        ask_as(fixture, 2);
        ask_as(fixture, 3);
        (void)pthread_mutex_unlock(&held.lock);
        while (fixture->n_answers < 102)
                assert_true(sd_event_run(fixture->event, 30000000) > 0);
        assert_int_equal(held.n, 102);
        assert_in_range(find_answered(2), 1, 3);
        assert_in_range(find_answered(3), 2, 4);
}

static void test_the_end_writes_the_rest(void **state)
{
        struct fixture *fixture = *state;

        add(fixture, 100, 7);
        fixture->thread = ledger_thread_free(fixture->thread);
        start(fixture, 0);
        assert_int_equal(ask(fixture), 7);
}

static void test_what_cannot_be_written_is_written_later(void **state)
{
        struct fixture *fixture = *state;
        sqlite3 *other;

        add(fixture, 100, 1);
        assert_int_equal(ask(fixture), 1);
        assert_int_equal(sqlite3_open(fixture->path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        for (uint64_t i = 0; i < 20; i++) {
                add(fixture, 100 + i, 1);
                assert_int_equal(ask(fixture), 1); /* meanwhile it can be read */
        }
        assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(other);
        assert_int_equal(ask(fixture), 21);
}

static void test_a_damaged_ledger_is_replaced_while_it_runs(void **state)
{
        struct fixture *fixture = *state;
        char garbage[8192];
        int fd;

        add(fixture, 100, 1);
        assert_int_equal(ask(fixture), 1);
        fixture->thread = ledger_thread_free(fixture->thread);
        memset(garbage, 0x5a, sizeof(garbage));
        fd = open(fixture->path, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
        fd_close(fd);
        start(fixture, 0);
        add(fixture, 100, 5);
        assert_int_equal(ask(fixture), 5);
}

static void test_old_rows_go_and_new_ones_stay(void **state)
{
        struct fixture *fixture = *state;
        uint64_t now = (uint64_t)time(NULL) / 60;

        add(fixture, 100, 1);
        add(fixture, now, 2);
        assert_int_equal(ask(fixture), 3);
        fixture->thread = ledger_thread_free(fixture->thread);
        start(fixture, 30);
        add(fixture, now, 4); /* after which it looks what is old */
        while (ask(fixture) != 6)
                ;
}

static void tell_vgpu(struct fixture *fixture, uint64_t serial, const char *name, bool is_gone)
{
        struct ledger_vgpu vgpu = { .serial = serial, .is_gone = is_gone };

        snprintf(vgpu.name, sizeof(vgpu.name), "%s", name);
        assert_int_equal(ledger_batch_add_vgpu(ledger_thread_begin(fixture->thread), &vgpu), 0);
        ledger_thread_end(fixture->thread, false);
}

static int append_name(void *userdata, int n, char **columns, char **names)
{
        char *list = userdata;

        (void)n, (void)names;
        strcat(strcat(list, columns[0]), " ");
        return 0;
}

static void assert_vgpus(const struct fixture *fixture, const char *expected)
{
        char names[256] = "";
        sqlite3 *other;

        assert_int_equal(sqlite3_open(fixture->path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_exec(other, "SELECT name FROM vgpu ORDER BY serial", append_name,
                                      names, NULL),
                         SQLITE_OK);
        sqlite3_close(other);
        assert_string_equal(names, expected);
}

static void test_a_vgpu_without_usage_has_a_row_while_it_is_there(void **state)
{
        struct fixture *fixture = *state;

        tell_vgpu(fixture, 1, "used", false);
        tell_vgpu(fixture, 2, "there", false);
        tell_vgpu(fixture, 3, "gone", false);
        tell_vgpu(fixture, 3, "gone", true);
        add(fixture, 100, 7); /* of number 1, and it is written with all before */
        tell_vgpu(fixture, 1, "used", true);
        assert_int_equal(ask(fixture), 7);
        assert_vgpus(fixture, "used there ");
}

static void test_the_later_of_two_records_of_a_vgpu_counts(void **state)
{
        struct fixture *fixture = *state;

        tell_vgpu(fixture, 2, "old", false);
        tell_vgpu(fixture, 2, "new", false);
        assert_int_equal(ask(fixture), 0);
        assert_vgpus(fixture, "new ");
        tell_vgpu(fixture, 2, "newer", false);
        assert_int_equal(ask(fixture), 0);
        assert_vgpus(fixture, "newer ");
}

static size_t get_allocated(void)
{
        struct mallinfo2 info = mallinfo2();

        return info.uordblks + info.hblkhd;
}

/* 160 bytes each would be 10 MB; SQLite's cache grows to 2 MB. */
static void test_vgpus_that_are_gone_take_no_memory(void **state)
{
        struct fixture *fixture = *state;
        size_t before;

        assert_int_equal(ask(fixture), 0);
        before = get_allocated();
        for (uint64_t i = 1; i <= 60000; i++) {
                tell_vgpu(fixture, i, "short", false);
                tell_vgpu(fixture, i, "short", true);
                if (i % 1000 == 0)
                        assert_int_equal(ask(fixture), 0);
        }
        assert_true(get_allocated() < before + 5000000);
}

static void test_an_end_answers_who_waits(void **state)
{
        struct fixture *fixture = *state;

        for (int i = 0; i < 20; i++)
                ask_only(fixture);
        fixture->thread = ledger_thread_free(fixture->thread);
        assert_int_equal(fixture->n_answers, 20);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_what_is_asked_for_contains_all_before, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_who_asks_much_is_answered_in_turn_with_others,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_the_end_writes_the_rest, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_what_cannot_be_written_is_written_later,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_damaged_ledger_is_replaced_while_it_runs,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_old_rows_go_and_new_ones_stay, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_vgpu_without_usage_has_a_row_while_it_is_there, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_the_later_of_two_records_of_a_vgpu_counts,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_vgpus_that_are_gone_take_no_memory, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_an_end_answers_who_waits, set_up, tear_down),
        };

        log_init(LOG_LEVEL_ERROR, false);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
