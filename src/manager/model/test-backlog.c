/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "base/test.h"
#include "manager/model/backlog.h"
#include "manager/model/device.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/model/observer.h"

#define PID 4711

struct fixture {
        char path[64];
        struct manager manager;
        struct device device;
        struct instance instance;
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct manager *manager = &fixture->manager;
        struct store_instance stored = { .name = "train", .uuid = "u", .device_uuid = "GPU-0" };
        struct failure failure = { 0 };

        snprintf(fixture->path, sizeof(fixture->path), "/tmp/test-backlog-XXXXXX");
        fd_close(mkstemp(fixture->path));
        list_init(&manager->instances);
        manager->device = &fixture->device;
        snprintf(manager->device[0].uuid, sizeof(manager->device[0].uuid), "GPU-0");
        assert_true(sd_event_default(&manager->event) >= 0);
        assert_int_equal(backlog_new(&manager->backlog, manager), 0);
        assert_int_equal(store_open(&manager->store, fixture->path, "boot", &failure), 0);
        assert_int_equal(store_add_instance(manager->store, &stored), 0);
        fixture->instance = (struct instance){ .manager = manager,
                                               .id = stored.id,
                                               .part[0].device = &manager->device[0],
                                               .n_parts = 1,
                                               .part[0].page.fd = -1 };
        assert_int_equal(page_create(&fixture->instance.part[0].page, GIB), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        page_deinit(&fixture->instance.part[0].page);
        store_close(fixture->manager.store);
        backlog_free(fixture->manager.backlog);
        sd_event_unref(fixture->manager.event);
        unlink(fixture->path);
        free(fixture);
        return 0;
}

static int note(const struct store_process *process, void *userdata)
{
        *(uint64_t *)userdata = process->start_time;
        return 0;
}

static void test_a_process_that_was_not_forgotten_takes_no_later_one_with_it(void **state)
{
        struct fixture *fixture = *state;
        struct guest old = { .instance = &fixture->instance, .pid = PID, .start_time = 1 };
        struct guest new = { .instance = &fixture->instance, .pid = PID, .start_time = 2 };
        uint64_t start_time = 0;

        assert_int_equal(guest_admit(&old), 0);
        backlog_add_process(&old); /* as if the store had refused to forget it */
        assert_int_equal(guest_admit(&new), 0);
        assert_int_equal(backlog_forget_process(&fixture->instance, PID), 0);
        assert_int_equal(
                store_each_process(fixture->manager.store, fixture->instance.id, note, &start_time),
                0);
        assert_int_equal(start_time, 2);
}

static size_t n_tries;
static bool begins;

static void count_tries(struct instance *instance, enum instance_event event, void *userdata)
{
        (void)userdata;
        assert_int_equal(event, INSTANCE_RETRY);
        assert_int_equal(instance->state, STATE_FAILED);
        n_tries++;
        if (begins)
                instance->operation = (struct operation *)instance; /* looked at by nobody here */
}

static struct observer tries = { .of_instance = count_tries };

/* Everything that is due at once. */
static void run_loop(struct fixture *fixture)
{
        while (sd_event_run(fixture->manager.event, 0) > 0)
                ;
}

static void test_who_lacks_room_tries_again_when_others_make_some(void **state)
{
        struct fixture *fixture = *state;
        struct backlog *backlog = fixture->manager.backlog;

        observer_add(&fixture->manager.observers, &tries, NULL);
        n_tries = 0;
        fixture->instance.state = STATE_FAILED;
        for (int i = 0; i < 5; i++) /* by now it is seconds before it does so by itself */
                backlog_add_lack(&fixture->instance);
        run_loop(fixture);
        assert_int_equal(n_tries, 0);

        backlog_room_came(backlog);
        run_loop(fixture);
        assert_int_equal(n_tries, 1);
        begins = true; /* that one could not: it is tried again */
        backlog_room_came(backlog);
        run_loop(fixture);
        assert_int_equal(n_tries, 2);
        backlog_room_came(backlog); /* it is at it */
        run_loop(fixture);
        assert_int_equal(n_tries, 2);
        fixture->instance.operation = NULL;

        backlog_add_lack(&fixture->instance);
        backlog_end_lack(&fixture->instance);
        backlog_room_came(backlog);
        run_loop(fixture);
        assert_int_equal(n_tries, 2);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        test_a_process_that_was_not_forgotten_takes_no_later_one_with_it, set_up,
                        tear_down),
                cmocka_unit_test_setup_teardown(
                        test_who_lacks_room_tries_again_when_others_make_some, set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
