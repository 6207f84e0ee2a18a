/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each kind of operation, at the end of each of its steps: something goes wrong. It is done or undone, no process is lost, and
 * the vGPU runs again afterwards. (tests/system/test_faults.py starts the whole product for one of each kind.)
 */
#include <errno.h>
#include <string.h>

#include "abi/cuda.h"
#include "base/fault.h"
#include "base/packet.h"
#include "base/size.h"
#include "base/test.h"
#include "fuzz/world.h"
#include "manager/methods/instance-create.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/operation/operation-engine.h"
#include "manager/operation/operation.h"
#include "store/store.h"

#define TIMEOUT_MS 100

/* Of 10 ms: longer than that, and than what a gate that is stopped gets beyond it. */
#define STOPPED_LOOKS 20

/* What goes wrong. */
enum trouble {
        STEP_FAILS,
        GATE_FAILS,    /* the next that a gate is asked for */
        MOVER_FAILS,   /* the next that a mover is asked for */
        GUEST_DIES,    /* one of two processes */
        GUEST_STOPS,   /* likewise, for a while */
        STORE_REFUSES, /* the next word about an operation */
        ROOM_IS_LOST,  /* the next restore finds none */
        MANAGER_ENDS,
        N_TROUBLES,
};

static const char *const names[] = {
        [STEP_FAILS] = "the step fails",          [GATE_FAILS] = "a gate fails",
        [MOVER_FAILS] = "a mover fails",          [GUEST_DIES] = "a process dies",
        [GUEST_STOPS] = "a process stops",        [STORE_REFUSES] = "the store refuses",
        [ROOM_IS_LOST] = "a restore has no room", [MANAGER_ENDS] = "the manager ends",
};

static struct {
        char point[64]; /* KIND.STEP; "": nothing goes wrong */
        enum trouble trouble;
        unsigned int n_looks;
        bool was_passed, store_refuses, lacks_room, must_restart;
} armed;

bool __real_fault_point(const char *name);
bool __wrap_fault_point(const char *name);
int __real_store_put_operation(struct store *store, const struct store_operation *operation);
int __wrap_store_put_operation(struct store *store, const struct store_operation *operation);

static void begin_trouble(void)
{
        armed.was_passed = true;
        armed.point[0] = '\0'; /* once */
        armed.store_refuses = armed.trouble == STORE_REFUSES;
        armed.lacks_room = armed.trouble == ROOM_IS_LOST;
        armed.must_restart = armed.trouble == MANAGER_ENDS;
        if (armed.trouble == GATE_FAILS)
                world.guest_error = ENOMEM;
        else if (armed.trouble == MOVER_FAILS)
                world.mover_error = -EIO;
        else if (armed.trouble == GUEST_DIES)
                world_kill(&world.guest[1]);
        else if (armed.trouble == GUEST_STOPS)
                world_stop(&world.guest[1]);
}

bool __wrap_fault_point(const char *name)
{
        if (strcmp(name, armed.point) != 0)
                return false;
        begin_trouble();
        return armed.trouble == STEP_FAILS;
}

int __wrap_store_put_operation(struct store *store, const struct store_operation *operation)
{
        if (armed.store_refuses) {
                armed.store_refuses = false;
                return -ENOSPC;
        }
        return __real_store_put_operation(store, operation);
}

static bool answer_request(size_t device, const struct mover_header *request)
{
        const struct mover_checkpoint *checkpoint = (const void *)request;
        struct mover_done done = { .header = *request,
                                   .error = -ENOSPC,
                                   .call = "cuCheckpointProcessRestore",
                                   .process_state = CU_PROCESS_STATE_CHECKPOINTED };

        if (!armed.lacks_room || request->message != MOVER_CHECKPOINT ||
            checkpoint->action != MOVER_CHECKPOINT_RESUME)
                return false;
        armed.lacks_room = false;
        done.header.message = MOVER_DONE;
        (void)packet_send(world.mover[device].fd, &done, sizeof(done), NULL, 0);
        return true;
}

static struct instance *find(void)
{
        struct failure failure = { 0 };

        return instance_find(world.manager, "a", &failure);
}

/* A gate comes back after its connection broke. */
static void rejoin(void)
{
        for (size_t i = 0; i < WORLD_GUESTS; i++)
                if (world.guest[i].pid && !world.guest[i].is_stopped && world.guest[i].fd < 0)
                        world_join(&world.guest[i], "a");
}

static bool is_over(void)
{
        rejoin();
        return armed.must_restart || (world.manager->is_ready && !find()->operation);
}

/* One that is stopped, for as long as a request to it may take. */
static bool is_noticed(void)
{
        if (armed.trouble != GUEST_STOPS || is_over())
                return true;
        return armed.was_passed && armed.n_looks++ >= STOPPED_LOOKS;
}

/* The manager may end in the middle: the next one undoes what that left. */
static void wait_until_over(void)
{
        world_wait(is_noticed);
        world_continue(&world.guest[1]);
        world_wait(is_over);
        if (armed.must_restart) {
                armed.must_restart = false;
                world_restart();
                world_wait(is_over);
        }
        world_run();
        world_wait(is_over);
}

static void start(const struct operation_kind *kind, uint32_t device)
{
        struct operation_request request = { .timeout_ms = TIMEOUT_MS };
        struct failure failure = { 0 };
        int r;

        request.target.device[0] = &world.manager->device[device];
        r = operation_start(find(), kind, &request, &failure);
        if (r < 0)
                print_error("%s\n", failure.message);
        assert_int_equal(r, 0);
        wait_until_over();
}

static void create(void)
{
        struct instance_request request = { .name = "a", .frame_buffer = 64 * MIB, .n_devices = 1 };
        struct failure failure = { 0 };
        struct instance *instance;

        request.device[0] = &world.manager->device[0];
        assert_int_equal(instance_create(world.manager, &request, &instance, &failure), 0);
        for (size_t i = 0; i < WORLD_GUESTS; i++)
                world_join(&world.guest[i], "a");
}

/* Those that were left behind have followed. */
static bool do_all_run(void)
{
        for (size_t i = 0; i < WORLD_GUESTS; i++)
                if (world.guest[i].pid && world.guest[i].state != GATE_STATE_OPEN)
                        return false;
        return is_over();
}

/* Whatever came of it, no process is lost but one that has died, and all of them run. */
static void check_all_run(enum trouble trouble)
{
        armed.point[0] = '\0';
        armed.store_refuses = armed.lacks_room = false;
        world.guest_error = world.mover_error = 0;
        if (instance_is_off(find()))
                start(&operation_resume, find()->part[0].device->index);
        world_wait(do_all_run);
        assert_int_equal(find()->state, STATE_RUNNING);
        assert_int_equal(guests_count(find()), trouble == GUEST_DIES && armed.was_passed ? 1 : 2);
        assert_int_equal(room_owed(&world.manager->device[0].room) +
                                 room_owed(&world.manager->device[1].room),
                         0);
}

static bool is_done(const struct operation_kind *kind)
{
        const struct instance *instance = find();

        if (kind == &operation_migrate)
                return instance->part[0].device == &world.manager->device[1];
        return instance_is_off(instance) == (kind == &operation_suspend);
}

static void try(const struct operation_kind *kind, size_t step, enum trouble trouble)
{
        create();
        if (kind == &operation_resume)
                start(&operation_suspend, 0);
        memset(&armed, 0, sizeof(armed));
        armed.trouble = trouble;
        (void)snprintf(armed.point, sizeof(armed.point), "%s.%s", kind->name,
                       kind->steps[step].name);
        start(kind, kind == &operation_migrate);
        if (trouble == STEP_FAILS)
                assert_int_equal(is_done(kind),
                                 step >= operation_find_step(kind, OPERATION_RECORDS));
        if (trouble == GUEST_DIES)
                assert_true(is_done(kind));
        if (!armed.was_passed)
                fail_msg("%s.%s was not passed", kind->name, kind->steps[step].name);
        check_all_run(trouble);
        world_reset();
        world_clear();
}

static void try_all(const struct operation_kind *kind)
{
        for (size_t step = 0; step < kind->n_steps; step++)
                for (unsigned int i = 0; i < N_TROUBLES; i++) {
                        print_message("%s.%s: %s\n", kind->name, kind->steps[step].name, names[i]);
                        try(kind, step, (enum trouble)i);
                }
}

static void test_suspend(void **state)
{
        (void)state;
        try_all(&operation_suspend);
}

static void test_resume(void **state)
{
        (void)state;
        try_all(&operation_resume);
}

static void test_migrate(void **state)
{
        (void)state;
        try_all(&operation_migrate);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_suspend),
                cmocka_unit_test(test_resume),
                cmocka_unit_test(test_migrate),
        };

        world_set_up();
        world.answer_request = answer_request;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
