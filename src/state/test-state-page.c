/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "state/state-page.h"

#define READERS 2
#define READS   500000

struct fixture {
        char directory[32];
        char path[64];
        struct state_page *state_page;
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        strcpy(fixture->directory, "/tmp/vg-state-XXXXXX");
        assert_non_null(mkdtemp(fixture->directory));
        snprintf(fixture->path, sizeof(fixture->path), "%s/state-page", fixture->directory);
        assert_int_equal(state_create(&fixture->state_page, fixture->path, NULL), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        state_close(fixture->state_page);
        unlink(fixture->path);
        rmdir(fixture->directory);
        free(fixture);
        return 0;
}

/* Every word of a record that is written says the same number: a mixed one shows. */

#define WORDS_MAX 512

union words {
        uint64_t word[WORDS_MAX];
        struct state_device device;
        struct state_instance instance;
        struct state_vm vm;
        struct state_scheduler scheduler;
        struct state_type type;
        struct state_sample sample;
        struct state_account account;
        struct state_turn turn;
};

static void fill(union words *words, uint64_t number)
{
        for (size_t i = 0; i < WORDS_MAX; i++)
                words->word[i] = number;
}

static bool is_mixed(const union words *words, size_t size)
{
        for (size_t i = 1; i < size / sizeof(uint64_t); i++)
                if (words->word[i] != words->word[0])
                        return true;
        return false;
}

struct race {
        struct state_page *state_page;
        _Atomic bool stop;
        _Atomic uint64_t n_read, n_mixed, n_misplaced;
};

static void write_all(struct state_page *state_page, uint64_t number)
{
        union words words;

        fill(&words, number);
        state_write_device(state_page, 0, &words.device);
        state_write_instance(state_page, 3, &words.instance);
        state_write_vm(state_page, 3, &words.vm);
        state_write_scheduler(state_page, 1, &words.scheduler);
        state_write_type(state_page, 7, &words.type);
        state_append_turn(state_page, 1, &words.turn);
        state_append_sample(state_page, 3, &words.sample);
        state_append_account(state_page, 3, &words.account);
}

static void *write_for_ever(void *context)
{
        struct race *race = context;

        for (uint64_t i = 2; !atomic_load(&race->stop); i++)
                write_all(race->state_page, i);
        return NULL;
}

static void check(struct race *race, bool is_read, const union words *words, size_t size)
{
        if (!is_read)
                return;
        atomic_fetch_add_explicit(&race->n_read, 1, memory_order_relaxed);
        if (is_mixed(words, size))
                atomic_fetch_add(&race->n_mixed, 1);
}

static void read_tables(struct race *race)
{
        union words words;

        check(race, state_read_device(race->state_page, 0, &words.device), &words,
              sizeof(words.device));
        check(race, state_read_instance(race->state_page, 3, &words.instance), &words,
              sizeof(words.instance));
        check(race, state_read_vm(race->state_page, 3, &words.vm), &words, sizeof(words.vm));
        check(race, state_read_scheduler(race->state_page, 1, &words.scheduler), &words,
              sizeof(words.scheduler));
        check(race, state_read_type(race->state_page, 7, &words.type), &words, sizeof(words.type));
}

/* The oldest are those that are about to be overwritten. The record number is one less than its words. */
static void read_rings(struct race *race)
{
        uint64_t number = state_first_turn(race->state_page, 1);
        union words words;

        if (state_read_turn(race->state_page, 1, number, &words.turn)) {
                check(race, true, &words, sizeof(words.turn));
                if (words.word[0] != number + 1)
                        atomic_fetch_add(&race->n_misplaced, 1);
        }
        number = state_first_sample(race->state_page, 3);
        check(race, state_read_sample(race->state_page, 3, number, &words.sample), &words,
              sizeof(words.sample));
        number = state_first_account(race->state_page, 3);
        check(race, state_read_account(race->state_page, 3, number, &words.account), &words,
              sizeof(words.account));
}

static void *read_often(void *context)
{
        struct race *race = context;

        for (int i = 0; i < READS / 8; i++) {
                read_tables(race);
                read_rings(race);
        }
        return NULL;
}

static void test_no_record_of_a_million_is_mixed(void **state)
{
        struct fixture *fixture = *state;
        struct race race = { .state_page = fixture->state_page };
        pthread_t writer, reader[READERS];

        write_all(race.state_page, 1);
        assert_int_equal(pthread_create(&writer, NULL, write_for_ever, &race), 0);
        for (int i = 0; i < READERS; i++)
                assert_int_equal(pthread_create(&reader[i], NULL, read_often, &race), 0);
        for (int i = 0; i < READERS; i++)
                pthread_join(reader[i], NULL);
        atomic_store(&race.stop, true);
        pthread_join(writer, NULL);

        /* What was overwritten between the question for the oldest and the reading does not count. */
        assert_true(race.n_read > READERS * (uint64_t)READS * 5 / 8 - 1);
        assert_int_equal(race.n_mixed, 0);
        assert_int_equal(race.n_misplaced, 0);
}

/* A process that does nothing but write two records: it can be stopped in the middle of one. */
static pid_t start_writer(struct state_page *state_page)
{
        pid_t pid = fork();
        union words words;

        assert_true(pid >= 0);
        if (pid > 0)
                return pid;
        for (uint64_t i = 2;; i++) {
                fill(&words, i);
                state_write_vm(state_page, 3, &words.vm);
                state_write_account(state_page, 3, 0, &words.account);
        }
}

static void stop_writer(pid_t pid)
{
        int status;

        assert_int_equal(kill(pid, SIGSTOP), 0);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_true(WIFSTOPPED(status));
}

static void end_writer(pid_t pid)
{
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void assert_both_can_be_read(const struct state_page *state_page)
{
        union words words;

        assert_true(state_read_vm(state_page, 3, &words.vm));
        assert_false(is_mixed(&words, sizeof(words.vm)));
        assert_true(state_read_account(state_page, 3, 0, &words.account));
        assert_false(is_mixed(&words, sizeof(words.account)));
}

/* Wherever the writer is stopped, and then killed, what was there before it can be read. */
static void test_nobody_waits_for_a_writer_that_stops_in_the_middle(void **state)
{
        struct fixture *fixture = *state;
        struct state_page *state_page = fixture->state_page;
        unsigned int n_middle = 0;

        for (int i = 0; i < 200 || n_middle < 2; i++) {
                pid_t pid;

                atomic_store(&state_page->vm[3].head.sequence, 0);
                atomic_store(&state_page->account[3][0].head.sequence, 0);
                write_all(state_page, 1);
                pid = start_writer(state_page);
                while (atomic_load(&state_page->vm[3].head.sequence) < 100)
                        ;
                stop_writer(pid);
                n_middle += atomic_load(&state_page->vm[3].head.sequence) & 1;
                n_middle += atomic_load(&state_page->account[3][0].head.sequence) & 1;
                assert_both_can_be_read(state_page);
                end_writer(pid);
                assert_both_can_be_read(state_page);
        }
}

static void test_a_record_out_of_use_is_not_read(void **state)
{
        struct fixture *fixture = *state;
        struct state_device device = { .memory_total = 7 };

        assert_false(state_read_device(fixture->state_page, 0, &device));
        state_write_device(fixture->state_page, 0, &device);
        assert_true(state_read_device(fixture->state_page, 0, &device));
        assert_int_equal(device.memory_total, 7);
        state_write_device(fixture->state_page, 0, NULL);
        assert_false(state_read_device(fixture->state_page, 0, &device));
        assert_false(state_read_device(fixture->state_page, STATE_DEVICES_MAX, &device));
        assert_false(state_read_device(fixture->state_page, UINT32_MAX, &device));
}

/* Whatever is written there, a reader finds its way: an end of the table, and of each text. */
static void test_a_reader_trusts_no_end(void **state)
{
        struct fixture *fixture = *state;
        struct state_device device;

        memset(&device, 'x', sizeof(device));
        state_write_device(fixture->state_page, 0, &device);
        memset(&device, 0, sizeof(device));
        assert_true(state_read_device(fixture->state_page, 0, &device));
        assert_int_equal(strlen(device.uuid), sizeof(device.uuid) - 1);
        assert_int_equal(strlen(device.name), sizeof(device.name) - 1);

        fixture->state_page->end.device = UINT32_MAX;
        assert_int_equal(state_end_device(fixture->state_page), STATE_DEVICES_MAX);
}

static void test_a_ring_keeps_the_last(void **state)
{
        struct fixture *fixture = *state;
        struct state_page *state_page = fixture->state_page;
        struct state_turn turn;

        assert_int_equal(state_count_turn(state_page, 2), 0);
        assert_false(state_read_turn(state_page, 2, 0, &turn));
        for (uint64_t i = 0; i < STATE_SCHEDULER_LOG + 5; i++) {
                turn = (struct state_turn){ .run = 1000 + i };
                assert_int_equal(state_append_turn(state_page, 2, &turn), i);
        }
        assert_int_equal(state_first_turn(state_page, 2), 5);
        assert_false(state_read_turn(state_page, 2, 4, &turn));
        for (uint64_t i = 5; i < STATE_SCHEDULER_LOG + 5; i++) {
                assert_true(state_read_turn(state_page, 2, i, &turn));
                assert_int_equal(turn.run, 1000 + i);
        }
        assert_false(state_read_turn(state_page, 2, STATE_SCHEDULER_LOG + 5, &turn));
        assert_false(state_read_turn(state_page, STATE_SCHEDULER_SLOTS, 0, &turn));
        assert_int_equal(state_count_turn(state_page, 1), 0);
}

static void test_a_ring_record_is_changed_and_taken_out(void **state)
{
        struct fixture *fixture = *state;
        struct state_page *state_page = fixture->state_page;
        struct state_account account = { .pid = 1, .is_running = 1 };

        for (uint32_t i = 0; i < 3; i++)
                state_append_account(state_page, 0, &account);
        account.is_running = 0;
        state_write_account(state_page, 0, 1, &account);
        state_write_account(state_page, 0, 2, NULL);
        state_write_account(state_page, 0, 3, &account); /* was never appended */

        assert_true(state_read_account(state_page, 0, 0, &account));
        assert_int_equal(account.is_running, 1);
        assert_true(state_read_account(state_page, 0, 1, &account));
        assert_int_equal(account.is_running, 0);
        assert_false(state_read_account(state_page, 0, 2, &account));
        assert_int_equal(state_count_account(state_page, 0), 3);
}

static void test_types_are_found_by_id(void **state)
{
        struct fixture *fixture = *state;
        struct state_page *state_page = fixture->state_page;
        struct state_type type = { 0 };
        uint32_t slot;

        for (uint32_t i = 1; i <= STATE_TYPES_MAX; i++) {
                type.id = (i % 40 + 1) << 8 | i / 40;
                assert_true(state_add_type(state_page, &type) >= 0);
        }
        for (uint32_t i = 1; i <= STATE_TYPES_MAX; i++) {
                uint32_t id = (i % 40 + 1) << 8 | i / 40;

                assert_true(state_find_type(state_page, id, &slot));
                assert_true(state_read_type(state_page, slot, &type));
                assert_int_equal(type.id, id);
        }
        assert_false(state_find_type(state_page, 0x233520, &slot));
        type.id = 0x233520;
        assert_int_equal(state_add_type(state_page, &type), -ENOSPC);
}

static void test_an_added_type_is_replaced_in_place(void **state)
{
        struct fixture *fixture = *state;
        struct state_type type = { .id = 5, .n_heads = 1 };
        int slot = state_add_type(fixture->state_page, &type);

        type.n_heads = 4;
        assert_int_equal(state_add_type(fixture->state_page, &type), slot);
        assert_true(state_read_type(fixture->state_page, (uint32_t)slot, &type));
        assert_int_equal(type.n_heads, 4);
}

static void test_the_file_takes_little_room(void **state)
{
        struct fixture *fixture = *state;
        struct stat status;

        write_all(fixture->state_page, 1);
        assert_int_equal(stat(fixture->path, &status), 0);
        assert_int_equal(status.st_size, sizeof(struct state_page));
        assert_true(status.st_blocks * 512 < 1024 * 1024);
}

static void test_a_board_of_another_version_is_refused(void **state)
{
        struct fixture *fixture = *state;
        const struct state_page *state_page = NULL;

        fixture->state_page->version++;
        assert_int_equal(state_map(&state_page, fixture->path), -EPROTONOSUPPORT);
        fixture->state_page->magic = 0;
        assert_int_equal(state_map(&state_page, fixture->path), -EPROTO);
        assert_int_equal(state_map(&state_page, "/nonexistent/state-page"), -ENOENT);
        assert_null(state_page);
}

/* A file that takes all of the disk of @directory. */
static void fill_disk(const char *directory)
{
        char path[64];
        struct statvfs disk;
        int fd;

        snprintf(path, sizeof(path), "%s/filler", directory);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(statvfs(directory, &disk), 0);
        assert_int_equal(posix_fallocate(fd, 0, (off_t)(disk.f_bavail * disk.f_bsize)), 0);
        close(fd);
}

static void make_room_on_disk(const char *directory)
{
        char path[64];

        snprintf(path, sizeof(path), "%s/filler", directory);
        assert_int_equal(unlink(path), 0);
}

/* A state page on a disk of its own, which is full. */
static int set_up_on_full_disk(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        *state = fixture;
        strcpy(fixture->directory, "/tmp/vg-state-XXXXXX");
        assert_non_null(mkdtemp(fixture->directory));
        snprintf(fixture->path, sizeof(fixture->path), "%s/state-page", fixture->directory);
        if (mount("test", fixture->directory, "tmpfs", 0, "size=4m") < 0)
                return 0; /* the test is skipped */
        fill_disk(fixture->directory);
        assert_int_equal(state_create(&fixture->state_page, fixture->path, NULL), -ENOSPC);
        make_room_on_disk(fixture->directory);
        assert_int_equal(state_create(&fixture->state_page, fixture->path, NULL), 0);
        fill_disk(fixture->directory);
        return 0;
}

static int tear_down_disk(void **state)
{
        struct fixture *fixture = *state;

        state_close(fixture->state_page);
        (void)umount(fixture->directory);
        rmdir(fixture->directory);
        free(fixture);
        return 0;
}

/* Whoever writes or reads what has no room would die by SIGBUS. */
static void test_a_full_disk_costs_records_and_nobodys_life(void **state)
{
        const struct fixture *fixture = *state;
        const struct state_type type = { .id = 600 };
        struct state_account account = { .pid = 7 };
        struct state_process process = { .pid = 7 };
        struct state_page *state_page = fixture->state_page;
        uint32_t slot;

        if (!state_page) {
                print_message("SKIPPED: needs root\n");
                skip();
        }
        state_write_process(state_page, 1000, &process);
        assert_false(state_read_process(state_page, 1000, &process));
        assert_int_equal(state_append_account(state_page, 5, &account), STATE_NO_NUMBER);
        assert_int_equal(state_count_account(state_page, 5), 0);
        state_write_account(state_page, 5, STATE_NO_NUMBER, &account);
        assert_int_equal(state_add_type(state_page, &type), -ENOSPC);
        assert_false(state_find_type(state_page, type.id, &slot));
        assert_int_equal(atomic_load(&state_page->n_dropped), 3);

        make_room_on_disk(fixture->directory);
        state_write_process(state_page, 1000, &process);
        assert_true(state_read_process(state_page, 1000, &process));
        assert_int_equal(state_append_account(state_page, 5, &account), 0);
        assert_true(state_add_type(state_page, &type) >= 0);
        assert_true(state_find_type(state_page, type.id, &slot));
        assert_int_equal(atomic_load(&state_page->n_dropped), 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_no_record_of_a_million_is_mixed, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_nobody_waits_for_a_writer_that_stops_in_the_middle, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_record_out_of_use_is_not_read, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_reader_trusts_no_end, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_ring_keeps_the_last, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_ring_record_is_changed_and_taken_out, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_types_are_found_by_id, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_an_added_type_is_replaced_in_place, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_the_file_takes_little_room, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_board_of_another_version_is_refused, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_a_full_disk_costs_records_and_nobodys_life,
                                                set_up_on_full_disk, tear_down_disk),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
