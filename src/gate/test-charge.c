/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that charge one quota at the same time, and one of them that does not go on. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/quota.h"

#define QUOTA     (12 * MIB)
#define PROCESSES 4
#define TIMES     3000

/* What the processes of a test share beside the page. */
struct board {
        _Atomic unsigned int n_charged, n_refused;
};

struct fixture {
        int fd;
        struct instance_page *page;
        struct board *board;
        pid_t pid[PROCESSES];
        int n;
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        fixture->fd = memfd_create("page", MFD_CLOEXEC);
        assert_int_equal(ftruncate(fixture->fd, sizeof(*fixture->page)), 0);
        fixture->page = mmap(NULL, sizeof(*fixture->page), PROT_READ | PROT_WRITE, MAP_SHARED,
                             fixture->fd, 0);
        fixture->board = mmap(NULL, sizeof(*fixture->board), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(fixture->page != MAP_FAILED && fixture->board != MAP_FAILED);
        fixture->page->magic = INSTANCE_PAGE_MAGIC;
        fixture->page->version = INSTANCE_PAGE_VERSION;
        fixture->page->n_slots = INSTANCE_PAGE_SLOTS;
        fixture->page->quota = QUOTA;
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        for (int i = 0; i < fixture->n; i++) {
                kill(fixture->pid[i], SIGKILL);
                waitpid(fixture->pid[i], NULL, 0);
        }
        munmap(fixture->page, sizeof(*fixture->page));
        munmap(fixture->board, sizeof(*fixture->board));
        close(fixture->fd);
        free(fixture);
        return 0;
}

/* Runs @body in a process of the vGPU, as gates do; its result is the exit status. */
static void start(struct fixture *fixture, int (*body)(struct fixture *))
{
        uint32_t slot = (uint32_t)fixture->n;
        pid_t pid = fork();
        int fd;

        assert_true(pid >= 0);
        if (pid == 0) {
                fd = dup(fixture->fd);
                _exit(quota_attach(&fd, 1, slot) == 0 ? body(fixture) : 100);
        }
        fixture->pid[fixture->n++] = pid;
}

static void join(struct fixture *fixture)
{
        int status;

        while (fixture->n > 0) {
                pid_t pid = fixture->pid[--fixture->n];

                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_true(WIFEXITED(status));
                assert_int_equal(WEXITSTATUS(status), 0);
        }
}

/* As much as leaves room for all of them: none is refused for what another is about to have. */
static int charge_a_share(struct fixture *fixture)
{
        (void)fixture;
        for (int i = 0; i < TIMES; i++) {
                if (quota_charge(0, INSTANCE_PAGE_MOVABLE, QUOTA / PROCESSES) < 0)
                        return 1;
                quota_settle(0, QUOTA / PROCESSES);
                quota_refund(0, INSTANCE_PAGE_MOVABLE, QUOTA / PROCESSES);
        }
        return 0;
}

static void test_nobody_is_refused_who_fits_beside_all_others(void **state)
{
        struct fixture *fixture = *state;

        for (int i = 0; i < PROCESSES; i++)
                start(fixture, charge_a_share);
        join(fixture);
}

/* So much that one of them never fits. */
static int charge_too_much(struct fixture *fixture)
{
        const uint64_t part = QUOTA / (PROCESSES - 1);
        struct board *board = fixture->board;

        for (int i = 0; i < TIMES; i++) {
                if (quota_charge(0, INSTANCE_PAGE_MOVABLE, part) < 0) {
                        atomic_fetch_add(&board->n_refused, 1);
                        continue;
                }
                quota_settle(0, part);
                if (atomic_fetch_add(&board->n_charged, 1) >= PROCESSES - 1)
                        return 1;
                atomic_fetch_sub(&board->n_charged, 1);
                quota_refund(0, INSTANCE_PAGE_MOVABLE, part);
        }
        return 0;
}

static void test_together_they_never_have_more_than_the_quota(void **state)
{
        struct fixture *fixture = *state;

        for (int i = 0; i < PROCESSES; i++)
                start(fixture, charge_too_much);
        join(fixture);
}

/* As if stopped in the middle of a charge, at the time of gates that took a lock for it. */
static int lock_the_page(struct fixture *fixture)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

        if (fcntl(fixture->fd, F_SETLKW, &lock) < 0)
                return 1;
        atomic_store(&fixture->board->n_charged, 1);
        for (;;)
                pause();
}

static void test_no_lock_of_another_process_is_waited_for(void **state)
{
        struct fixture *fixture = *state;
        int fd = dup(fixture->fd);

        start(fixture, lock_the_page);
        while (atomic_load(&fixture->board->n_charged) == 0)
                usleep(1000);
        assert_int_equal(quota_attach(&fd, 1, PROCESSES), 0);
        assert_int_equal(quota_charge(0, INSTANCE_PAGE_MOVABLE, QUOTA), 0);
        quota_settle(0, QUOTA);
        quota_refund(0, INSTANCE_PAGE_MOVABLE, QUOTA);
}

static void test_what_another_claims_counts_as_if_it_had_it(void **state)
{
        struct fixture *fixture = *state;
        struct quota_view view;
        int fd = dup(fixture->fd);

        assert_int_equal(quota_attach(&fd, 1, PROCESSES), 0);
        atomic_store(&fixture->page->slot[0].claim, QUOTA / 2);
        assert_int_equal(quota_charge(0, INSTANCE_PAGE_MOVABLE, QUOTA / 2), 0);
        quota_settle(0, QUOTA / 2);
        assert_int_equal(quota_charge(0, INSTANCE_PAGE_MOVABLE, 1), -EDQUOT);
        atomic_store(&fixture->page->slot[0].claim, 0);
        assert_int_equal(quota_charge(0, INSTANCE_PAGE_MOVABLE, QUOTA / 2), 0);
        quota_settle(0, QUOTA / 2);
        quota_get(0, &view);
        assert_int_equal(view.used[INSTANCE_PAGE_MOVABLE], QUOTA);
        assert_int_equal(fixture->page->slot[PROCESSES].claim, 0);
        assert_int_equal(fixture->page->slot[PROCESSES].pending, 0);
        quota_refund(0, INSTANCE_PAGE_MOVABLE, QUOTA);
}

/* Another process, seen while it moves memory from one kind to the other. */
static void test_what_changes_its_kind_counts_all_the_time(void **state)
{
        struct fixture *fixture = *state;
        int fd = dup(fixture->fd);

        assert_int_equal(quota_attach(&fd, 1, PROCESSES), 0);
        atomic_store(&fixture->page->slot[0].sum, QUOTA);
        assert_int_equal(quota_charge(0, INSTANCE_PAGE_MOVABLE, 1), -EDQUOT);
        atomic_store(&fixture->page->slot[0].sum, 0);
}

static int move_all(struct fixture *fixture)
{
        if (quota_charge(0, INSTANCE_PAGE_MOVABLE, QUOTA) < 0)
                return 1;
        quota_settle(0, QUOTA);
        atomic_store(&fixture->board->n_charged, 1);
        while (atomic_load(&fixture->board->n_refused) < PROCESSES - 1) {
                quota_move(0, INSTANCE_PAGE_MOVABLE, INSTANCE_PAGE_FIXED, QUOTA);
                quota_move(0, INSTANCE_PAGE_FIXED, INSTANCE_PAGE_MOVABLE, QUOTA);
        }
        return 0;
}

static int charge_beside(struct fixture *fixture)
{
        int r = -EDQUOT;

        while (atomic_load(&fixture->board->n_charged) == 0)
                usleep(100);
        for (int i = 0; i < TIMES && r == -EDQUOT; i++)
                r = quota_charge(0, INSTANCE_PAGE_MOVABLE, 1);
        atomic_fetch_add(&fixture->board->n_refused, 1);
        return r == -EDQUOT ? 0 : 1;
}

static void test_beside_one_that_changes_kinds_nobody_gets_more(void **state)
{
        struct fixture *fixture = *state;

        start(fixture, move_all);
        for (int i = 1; i < PROCESSES; i++)
                start(fixture, charge_beside);
        join(fixture);
}

static _Atomic bool has_returned;

/* It is cancelled already: the next cancellation point ends it. */
static void *charge_when_cancelled(void *argument)
{
        int r;

        (void)argument;
        (void)pthread_cancel(pthread_self());
        r = quota_charge(0, INSTANCE_PAGE_MOVABLE, QUOTA);
        atomic_store(&has_returned, r == -EDQUOT);
        pthread_testcancel();
        return NULL;
}

/* It waits for a moment for what another claims. Whatever it had locked would stay so. */
static void test_a_thread_that_is_cancelled_ends_outside_of_the_gate(void **state)
{
        struct fixture *fixture = *state;
        int fd = dup(fixture->fd);
        pthread_t thread;
        void *result;

        assert_int_equal(quota_attach(&fd, 1, PROCESSES), 0);
        atomic_store(&fixture->page->slot[0].claim, 1);
        assert_int_equal(pthread_create(&thread, NULL, charge_when_cancelled, NULL), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_ptr_equal(result, PTHREAD_CANCELED);
        assert_true(atomic_load(&has_returned));
        atomic_store(&fixture->page->slot[0].claim, 0);
        assert_int_equal(quota_charge(0, INSTANCE_PAGE_MOVABLE, QUOTA), 0);
        quota_settle(0, QUOTA);
        quota_refund(0, INSTANCE_PAGE_MOVABLE, QUOTA);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_nobody_is_refused_who_fits_beside_all_others),
                TEST(test_together_they_never_have_more_than_the_quota),
                TEST(test_no_lock_of_another_process_is_waited_for),
                TEST(test_a_thread_that_is_cancelled_ends_outside_of_the_gate),
                TEST(test_what_another_claims_counts_as_if_it_had_it),
                TEST(test_what_changes_its_kind_counts_all_the_time),
                TEST(test_beside_one_that_changes_kinds_nobody_gets_more),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
