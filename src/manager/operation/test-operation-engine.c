/* SPDX-License-Identifier: Apache-2.0 */
/* The engine takes the steps of an operation that does nothing, each of which may fail, and undoes them. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "base/test.h"
#include "daemon/process.h"
#include "manager/control/control.h"
#include "manager/model/backlog.h"
#include "manager/model/device.h"
#include "manager/model/guest-life.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"

/* What happened, a letter each: a step, in capitals its undoing, '+' or '-' the answer. */
static char story[64];

/* Which step fails, and how; reset by set_up(). */
static struct {
        char run, undo;   /* its letter */
        bool loses_mover; /* as if that were why, */
        bool is_once;     /* the first time only */
        bool waits;       /* the step ends when told */
} fault;

static struct operation *waiting;

/* What is not there: the keeper, the pool, a client. */

int __wrap_recovery_store_instance(struct instance *instance);
void __wrap_recovery_sync_slabs(struct manager *manager);
void __wrap_pool_pause(struct pool *pool);
void __wrap_pool_unpause(struct pool *pool);
void __wrap_control_reply(struct control_pending *pending, json_t *parameters);
void __wrap_control_fail(struct control_pending *pending, const struct failure *failure);
void __wrap_control_progress(struct control_pending *pending, json_t *parameters);
json_t *__wrap_describe_instance(const struct instance *instance);

int __wrap_recovery_store_instance(struct instance *instance)
{
        return store_remove_operation(instance->manager->store, instance->id);
}

void __wrap_recovery_sync_slabs(struct manager *manager)
{
        (void)manager;
}

void __wrap_pool_pause(struct pool *pool)
{
        (void)pool;
}

void __wrap_pool_unpause(struct pool *pool)
{
        (void)pool;
}

static void note(char letter)
{
        size_t n = strlen(story);

        assert_true(n + 1 < sizeof(story));
        story[n] = letter;
        story[n + 1] = '\0';
}

void __wrap_control_reply(struct control_pending *pending, json_t *parameters)
{
        (void)pending;
        json_decref(parameters);
        note('+');
}

void __wrap_control_fail(struct control_pending *pending, const struct failure *failure)
{
        (void)pending;
        assert_non_null(failure->name);
        note('-');
}

void __wrap_control_progress(struct control_pending *pending, json_t *parameters)
{
        (void)pending;
        json_decref(parameters);
}

json_t *__wrap_describe_instance(const struct instance *instance)
{
        (void)instance;
        return json_object();
}

/* The steps. */

static void act(struct operation *operation, char letter, char *failing)
{
        note(letter);
        if (fault.waits && letter == fault.run) {
                operation_begin_part(operation);
                waiting = operation;
        }
        if (letter != *failing || fault.waits)
                return;
        if (fault.is_once)
                *failing = '\0';
        if (fault.loses_mover)
                operation_lost_mover(operation, operation->target.device[0]);
        else
                operation_fail(operation, -EIO, "Failed", "", "told to fail at %c", letter);
}

#define STEP(letter, capital)                                  \
        static void run_##letter(struct operation *operation)  \
        {                                                      \
                act(operation, #letter[0], &fault.run);        \
        }                                                      \
        static void undo_##letter(struct operation *operation) \
        {                                                      \
                act(operation, #capital[0], &fault.undo);      \
        }
STEP(a, A)
STEP(b, B)
STEP(c, C)

static void record(struct operation *operation)
{
        act(operation, 'r', &fault.run);
        if (operation->error == 0)
                operation->instance->state = STATE_SUSPENDED;
}

static void tell(struct operation *operation)
{
        act(operation, 't', &fault.run);
}

static void tidy(struct operation *operation)
{
        act(operation, 'z', &fault.run);
}

static int check(struct operation *operation, struct failure *failure)
{
        (void)operation, (void)failure;
        return 0;
}

static const struct operation_step steps[] = {
        { "a", "draining", run_a, undo_a, 0 },
        { "b", "draining", run_b, undo_b, 0 },
        { "nothing-to-undo", "copying", run_c, NULL, 0 },
        { "c", "copying", run_c, undo_c, 0 },
        { "recorded", "finishing", record, NULL, OPERATION_RECORDS },
        { "told", "finishing", tell, NULL, OPERATION_ANSWERS },
        { "tidied", "finishing", tidy, NULL, 0 },
};
static const struct operation_kind kind = {
        .name = "pretend",
        .past = "pretended",
        .steps = steps,
        .n_steps = sizeof(steps) / sizeof(steps[0]),
        .busy_state = STATE_SUSPENDING,
        .settled_state = STATE_RUNNING,
        .check = check,
};

struct fixture {
        char path[64];
        struct manager manager;
        struct device device;
        struct instance instance;
        struct guest guest;
        struct control_pending pending;
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct manager *manager = &fixture->manager;
        struct store_instance stored = { .name = "train", .uuid = "u", .device_uuid = "GPU-0" };
        struct failure failure = { 0 };

        snprintf(fixture->path, sizeof(fixture->path), "/tmp/test-engine-XXXXXX");
        fd_close(mkstemp(fixture->path));
        list_init(&manager->instances);
        assert_true(sd_event_new(&manager->event) >= 0);
        assert_int_equal(backlog_new(&manager->backlog, manager), 0);
        assert_int_equal(store_open(&manager->store, fixture->path, "boot", &failure), 0);
        assert_int_equal(store_add_instance(manager->store, &stored), 0);
        fixture->device = (struct device){ .manager = manager, .uuid = "GPU-0" };
        room_init(&fixture->device.room);
        list_init(&fixture->device.admissions);
        fixture->instance = (struct instance){ .manager = manager,
                                               .id = stored.id,
                                               .part[0].device = &fixture->device,
                                               .n_parts = 1,
                                               .state = STATE_EVICTED,
                                               .part[0].page.fd = -1 };
        assert_int_equal(page_create(&fixture->instance.part[0].page, GIB), 0);
        list_init(&fixture->instance.guests);
        list_init(&fixture->instance.turns);
        list_init(&fixture->instance.launches);
        list_append(&manager->instances, &fixture->instance.link);
        fixture->guest = (struct guest){ .instance = &fixture->instance, .slot = UINT32_MAX };
        list_append(&fixture->instance.guests, &fixture->guest.link);
        story[0] = '\0';
        memset(&fault, 0, sizeof(fault));
        waiting = NULL;
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        assert_null(fixture->instance.operation);
        page_deinit(&fixture->instance.part[0].page);
        store_close(fixture->manager.store);
        backlog_free(fixture->manager.backlog);
        sd_event_unref(fixture->manager.event);
        unlink(fixture->path);
        free(fixture);
        return 0;
}

static void turn(struct fixture *fixture)
{
        while (sd_event_run(fixture->manager.event, 0) > 0)
                ;
}

static void start(struct fixture *fixture)
{
        const struct operation_request request = { .pending = &fixture->pending };
        struct failure failure = { 0 };

        assert_int_equal(operation_start(&fixture->instance, &kind, &request, &failure), 0);
        assert_int_equal(fixture->instance.state, STATE_SUSPENDING);
        turn(fixture);
}

static void expect(struct fixture *fixture, const char *expected)
{
        struct store_operation stored;

        assert_string_equal(story, expected);
        assert_int_equal(store_get_operation(fixture->manager.store, fixture->instance.id, &stored),
                         -ENOENT);
}

static void test_all_steps_are_taken_in_their_order(void **state)
{
        struct fixture *fixture = *state;

        start(fixture);
        assert_string_equal(story, "abccrt+z");
}

static void test_what_fails_is_undone_from_the_last_to_the_first(void **state)
{
        static const struct {
                char step;
                const char *story;
        } cases[] = { { 'a', "aA-" }, { 'b', "abBA-" }, { 'c', "abcBA-" }, { 'r', "abccrCBA-" } };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                void *fixture;

                set_up(&fixture);
                fault.run = cases[i].step;
                start(fixture);
                expect(fixture, cases[i].story);
                tear_down(&fixture);
        }
}

static void test_after_the_point_of_no_return_it_goes_on(void **state)
{
        struct fixture *fixture = *state;

        fault.run = 't';
        start(fixture);
        assert_string_equal(story, "abccrt+z");
}

static void test_with_a_new_mover_a_step_is_tried_once_more(void **state)
{
        struct fixture *fixture = *state;

        fault.run = 'b';
        fault.loses_mover = fault.is_once = true;
        start(fixture);
        assert_string_equal(story, "abbccrt+z");
}

static void test_when_that_mover_dies_too_all_is_undone(void **state)
{
        struct fixture *fixture = *state;

        fault.run = 'b';
        fault.loses_mover = true;
        start(fixture);
        expect(fixture, "abbBA-");
}

static void test_what_cannot_be_undone_has_failed(void **state)
{
        struct fixture *fixture = *state;
        struct store_operation stored;

        fault.run = 'c';
        fault.undo = 'B';
        start(fixture);
        assert_string_equal(story, "abcBA-");
        assert_int_equal(store_get_operation(fixture->manager.store, fixture->instance.id, &stored),
                         0); /* the next manager undoes it from there on */
        assert_string_equal(stored.step, "b");
}

static void test_a_step_is_over_with_the_last_of_its_parts(void **state)
{
        struct fixture *fixture = *state;

        fault.run = 'b';
        fault.waits = true;
        start(fixture);
        assert_string_equal(story, "ab");
        operation_begin_part(waiting);
        operation_end_part(waiting);
        turn(fixture);
        assert_string_equal(story, "ab");
        operation_end_part(waiting);
        turn(fixture);
        assert_string_equal(story, "abccrt+z");
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void)source, (void)usec, (void)userdata;
        return 0;
}

/* The timer of a process that has died would find it freed. */
static void test_what_it_has_of_the_dead_goes_with_it(void **state)
{
        struct fixture *fixture = *state;
        struct guest *guests[2]; /* one that has died, and one that has not joined */
        sd_event_source *timer;
        uint64_t start_time;

        assert_int_equal(process_get_start_time(getpid(), &start_time), 0);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(
                        guest_new(&guests[i], &fixture->instance, getpid(), getuid(), start_time),
                        0);
        guest_set_presence(guests[1], GUEST_JOINING);
        fault.run = 'b';
        fault.waits = true;
        start(fixture);
        assert_null(guests[1]->participant);
        assert_true(sd_event_add_time_relative(
                            fixture->manager.event, &guests[0]->participant->arrival.timer,
                            CLOCK_MONOTONIC, 3600 * UINT64_C(1000000), 0, on_time, guests[0]) >= 0);
        timer = sd_event_source_ref(guests[0]->participant->arrival.timer);
        guests[0]->life = GUEST_DEAD;
        operation_end_part(waiting);
        turn(fixture);
        assert_string_equal(story, "abccrt+z");
        assert_int_equal(sd_event_source_get_enabled(timer, NULL), 0);
        sd_event_source_unref(timer);
        guest_unload(guests[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void test_what_a_kind_does_not_take_is_refused(void **state)
{
        struct fixture *fixture = *state;
        const struct operation_request request = { .keep_context = true };
        struct failure failure = { 0 };

        assert_int_equal(operation_start(&fixture->instance, &kind, &request, &failure), -EINVAL);
        assert_null(fixture->instance.operation);
        assert_string_equal(failure.name, "InvalidParameter");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_all_steps_are_taken_in_their_order),
                cmocka_unit_test(test_what_fails_is_undone_from_the_last_to_the_first),
                TEST(test_after_the_point_of_no_return_it_goes_on),
                TEST(test_with_a_new_mover_a_step_is_tried_once_more),
                TEST(test_when_that_mover_dies_too_all_is_undone),
                TEST(test_what_a_kind_does_not_take_is_refused),
                TEST(test_what_cannot_be_undone_has_failed),
                TEST(test_a_step_is_over_with_the_last_of_its_parts),
                TEST(test_what_it_has_of_the_dead_goes_with_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
