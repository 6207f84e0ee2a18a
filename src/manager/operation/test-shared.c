/* SPDX-License-Identifier: Apache-2.0 */
/* May processes that share memory go to another device? After a restart that is known when their gates are back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/sharing.h"
#include "manager/operation/operation.h"
#include "manager/operation/participant.h"
#include "manager/operation/shared.h"

static struct device device[2];
static struct instance instance;
static struct guest maker, user;
static struct operation operation;

/* That they have one is all that counts. */
static struct participant participant;

static void add(struct guest *guest, const char *name)
{
        *guest = (struct guest){ .instance = &instance,
                                 .pid = getpid(),
                                 .participant = &participant };
        snprintf(guest->name, sizeof(guest->name), "%s", name);
        list_init(&guest->sharing.makers);
        list_init(&guest->sharing.users);
        list_append(&instance.guests, &guest->link);
}

static int set_up(void **state)
{
        (void)state;
        device[0] = (struct device){ .index = 0, .uuid = "GPU-0" };
        device[1] = (struct device){ .index = 1, .uuid = "GPU-1" };
        instance = (struct instance){ .part[0].device = &device[0], .n_parts = 1 };
        snprintf(instance.name, sizeof(instance.name), "job");
        list_init(&instance.guests);
        add(&maker, "maker");
        add(&user, "user");
        operation = (struct operation){ .instance = &instance,
                                        .kind = &operation_migrate,
                                        .source.device[0] = &device[0],
                                        .target.device[0] = &device[1] };
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        sharing_end(&user);
        sharing_end(&maker);
        return 0;
}

static void come_back(struct guest *guest, bool has_seen_all)
{
        guest->n_connections = 1;
        guest->sharing.has_told = true;
        guest->seen[0] = gate_mark(device[0].uuid);
        guest->seen[1] = has_seen_all ? gate_mark(device[1].uuid) : 0;
}

static void check(int error, const char *name, const char *message)
{
        struct failure failure = { 0 };

        assert_int_equal(shared_check(&operation, &failure), error);
        if (error == 0)
                return;
        assert_string_equal(failure.name, name);
        assert_non_null(strstr(failure.message, message));
}

/* Its user is back, so it is known to share memory; what its driver has seen is not. */
static void test_a_gate_that_is_not_back_is_waited_for(void **state)
{
        (void)state;
        come_back(&user, true);
        assert_int_equal(sharing_add(&user, &maker), 0);
        check(-EAGAIN, "TimedOut", "(maker) of vGPU job has not come back to vgpud yet");
        assert_ptr_equal(shared_find_unheard(&instance), &maker);
        come_back(&maker, true);
        check(0, NULL, NULL);
        assert_null(shared_find_unheard(&instance));
}

static void test_a_gate_that_is_back_has_told_what_its_driver_saw(void **state)
{
        (void)state;
        come_back(&user, true);
        come_back(&maker, false);
        assert_int_equal(sharing_add(&user, &maker), 0);
        check(-EOPNOTSUPP, "NotMovable", "did not see that device when it was initialised");
}

/* Nobody knows yet that they share memory. */
static void test_all_gates_that_run_are_waited_for(void **state)
{
        (void)state;
        check(-EAGAIN, "TimedOut", "(maker) of vGPU job has not come back to vgpud yet");
        come_back(&maker, false);
        user.n_connections = 1;
        user.sharing.n_imports = 1;
        check(-EAGAIN, "TimedOut", "(user) of vGPU job has not told vgpud");
        come_back(&user, false);
        user.sharing.n_imports = 0;
        check(0, NULL, NULL);
}

static void test_where_they_are_they_can_share_memory(void **state)
{
        (void)state;
        operation.target = operation.source;
        assert_int_equal(sharing_add(&user, &maker), 0);
        check(0, NULL, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_gate_that_is_not_back_is_waited_for, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(
                        test_a_gate_that_is_back_has_told_what_its_driver_saw, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_all_gates_that_run_are_waited_for, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_where_they_are_they_can_share_memory, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
