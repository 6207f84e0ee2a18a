/* SPDX-License-Identifier: Apache-2.0 */
/* Which vGPU is a container's: one whose container has ended is nobody's, though its namespace comes again. */
#include <errno.h>
#include <string.h>

#include "base/test.h"
#include "manager/guests/container-order.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/manager.h"
#include "wire/gate.h"

#define FORMER "0d2e4c1a-5b6f-4a3c-9d8e-7f6a5b4c3d2e"
#define FRESH  "1d2e4c1a-5b6f-4a3c-9d8e-7f6a5b4c3d2e"
#define FIRST  100
#define PID    4711

static const struct container_space the_space = { 4, 4026532000 };

struct fixture {
        struct manager manager;
        struct instance former, fresh;
        struct guest guest; /* of the former */
        size_t n_made;
};

static struct fixture *now;

int __wrap_container_space_find(struct container_space *ret_space, pid_t *ret_first, pid_t pid);
int __wrap_container_space_find(struct container_space *ret_space, pid_t *ret_first, pid_t pid)
{
        (void)pid;
        *ret_space = the_space;
        *ret_first = FIRST;
        return 0;
}

static int make(struct manager *manager, const struct container_request *request,
                struct instance **ret_instance, struct failure *failure)
{
        (void)manager, (void)request, (void)failure;
        now->n_made++;
        *ret_instance = &now->fresh;
        return 0;
}

static int set_up(void **state)
{
        static const struct container_maker maker = { .make = make };
        static struct fixture fixture;

        fixture = (struct fixture){ 0 };
        now = &fixture;
        list_init(&fixture.manager.instances);
        fixture.manager.container_maker = &maker;
        fixture.former.space = the_space;
        strcpy(fixture.former.uuid, FORMER);
        strcpy(fixture.fresh.uuid, FRESH);
        list_init(&fixture.former.guests);
        list_append(&fixture.manager.instances, &fixture.former.link);
        list_append(&fixture.former.guests, &fixture.guest.link);
        *state = &fixture;
        return 0;
}

static void expect(struct fixture *fixture, const char *uuid)
{
        const struct gate_order order = { .frame_buffer = "1G" };
        struct failure failure = { 0 };
        struct gate_made made;

        assert_int_equal(container_order_answer(&fixture->manager, PID, &order, &made, &failure),
                         0);
        assert_string_equal(made.vgpu, uuid);
        assert_int_equal(fixture->n_made, strcmp(uuid, FRESH) == 0);
        assert_int_equal(container_order_check(&fixture->former, PID),
                         strcmp(uuid, FRESH) == 0 ? -EPERM : 0);
}

static void test_a_container_has_one(void **state)
{
        expect(*state, FORMER);
}

static void test_it_is_there_while_one_of_its_processes_lives(void **state)
{
        struct fixture *fixture = *state;

        fixture->former.is_creator_gone = true;
        expect(fixture, FORMER);
}

static void test_what_an_operation_still_needs_is_no_process(void **state)
{
        struct fixture *fixture = *state;

        fixture->former.is_creator_gone = true;
        fixture->guest.life = GUEST_DEAD;
        expect(fixture, FRESH);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_a_container_has_one, set_up),
                cmocka_unit_test_setup(test_it_is_there_while_one_of_its_processes_lives, set_up),
                cmocka_unit_test_setup(test_what_an_operation_still_needs_is_no_process, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
