/* SPDX-License-Identifier: Apache-2.0 */
/* How the thread of the turns waits, whatever the kernel and the guests do. */
#include <errno.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/test.h"
#include "manager/model/device.h"
#include "manager/model/manager.h"
#include "manager/schedule/schedule-internal.h"
#include "manager/schedule/schedule.h"

static struct fixture {
        struct options options;
        struct manager manager;
        struct device device;
        struct instance_page page;
        struct schedule_vgpu vgpu;
} fixture;

static int waitv_error;  /* what futex_waitv() answers */
static sem_t waited;     /* another way */
static sem_t has_paused; /* between two looks */
static _Atomic time_t now_s = 1;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *rest);

long __wrap_syscall(long number, ...)
{
        long a[6];
        va_list arguments;

        va_start(arguments, number);
        for (size_t i = 0; i < 6; i++)
                a[i] = va_arg(arguments, long);
        va_end(arguments);
        if (number == SYS_futex_waitv) {
                errno = waitv_error;
                return -1;
        }
        if (a[4] == 0 && a[3] != 0)
                sem_post(&waited);
        return __real_syscall(number, a[0], a[1], a[2], 0L, a[4], a[5]); /* as long as it takes */
}

/* A look takes longer than the pause between two. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
        (void)clock;
        *ret_now = (struct timespec){ .tv_sec = atomic_fetch_add(&now_s, 1) };
        return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *rest)
{
        (void)clock, (void)flags, (void)time, (void)rest;
        sem_post(&has_paused);
        return 0;
}

static int set_up(void **state)
{
        (void)state;
        memset(&fixture, 0, sizeof(fixture));
        fixture.options.has_gate_turns = true;
        fixture.manager.options = &fixture.options;
        fixture.device.manager = &fixture.manager;
        sem_init(&waited, 0, 0);
        sem_init(&has_paused, 0, 0);
        return schedule_new(&fixture.device.schedule, &fixture.device);
}

static int tear_down(void **state)
{
        (void)state;
        schedule_free(fixture.device.schedule);
        return 0;
}

static void start_with_error(int error)
{
        waitv_error = error;
        assert_int_equal(schedule_start_thread(fixture.device.schedule), 0);
}

static void test_it_waits_otherwise_where_it_may_not_wait_for_several(void **state)
{
        static const int errors[] = { ENOSYS, EPERM, ENOMEM };

        (void)state;
        for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
                start_with_error(errors[i]);
                assert_int_equal(sem_wait(&waited), 0);
                schedule_end_thread(fixture.device.schedule);
                fixture.device.schedule->must_end = false;
        }
}

static void test_one_that_changes_all_the_time_leaves_others_the_lock(void **state)
{
        struct schedule *schedule = fixture.device.schedule;
        struct schedule_vgpu *vgpu = &fixture.vgpu;

        (void)state;
        vgpu->page = &fixture.page;
        vgpu->member.is_interactive = true;
        vgpu->n_guests = 1;
        list_init(&vgpu->guests);
        list_append(&schedule->vgpus, &vgpu->link);
        start_with_error(EAGAIN);
        for (int i = 0; i < 3; i++)
                assert_int_equal(sem_wait(&has_paused), 0);
        schedule_end_thread(schedule);
        list_remove(&vgpu->link);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        test_it_waits_otherwise_where_it_may_not_wait_for_several, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(
                        test_one_that_changes_all_the_time_leaves_others_the_lock, set_up,
                        tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
