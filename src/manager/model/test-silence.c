/* SPDX-License-Identifier: Apache-2.0 */
/* A restore that has not returned keeps the room that it was promised. */
#include <errno.h>
#include <stdio.h>

#include "base/size.h"
#include "base/test.h"
#include "daemon/failure.h"
#include "manager/model/device.h"
#include "manager/model/guest.h"
#include "manager/model/instance.h"
#include "manager/model/silence.h"

static struct fixture {
        struct instance instance;
        struct device device;
        struct guest guest;
        struct room_promise promise;
} fixture;

static int set_up(void **state)
{
        (void)state;
        fixture = (struct fixture){
                .guest = { .instance = &fixture.instance, .pid = 42, .name = "train" }
        };
        (void)snprintf(fixture.instance.name, sizeof(fixture.instance.name), "a");
        room_init(&fixture.device.room);
        room_promise(&fixture.device.room, &fixture.promise, 3 * GIB);
        return 0;
}

static void test_room_stays_promised_while_it_lasts(void **state)
{
        (void)state;
        silence_begin(&fixture.guest, &fixture.device, "cuCheckpointProcessRestore");
        silence_keep_room(&fixture.guest, 0, &fixture.promise);
        assert_int_equal(room_owed(&fixture.device.room), 3 * GIB);
        room_forget(&fixture.promise); /* its operation is over */
        assert_int_equal(room_owed(&fixture.device.room), 3 * GIB);
        silence_end(&fixture.guest);
        assert_int_equal(room_owed(&fixture.device.room), 0);
        assert_false(silence_lasts(&fixture.guest));
}

static void test_what_was_not_promised_is_not_kept(void **state)
{
        struct room_promise none = { 0 };

        (void)state;
        silence_begin(&fixture.guest, &fixture.device, "cuCheckpointProcessRestore");
        silence_keep_room(&fixture.guest, 0, &none);
        silence_end(&fixture.guest);
        assert_int_equal(room_owed(&fixture.device.room), 3 * GIB);
}

static void test_the_first_call_is_named(void **state)
{
        struct failure failure = { 0 };

        (void)state;
        assert_false(silence_lasts(&fixture.guest));
        silence_begin(&fixture.guest, &fixture.device, "cuCheckpointProcessRestore");
        silence_begin(&fixture.guest, &fixture.device, "cuCheckpointProcessGetState");
        assert_true(silence_lasts(&fixture.guest));
        assert_int_equal(silence_refuse(&fixture.guest, &failure), -ETIMEDOUT);
        assert_string_equal(failure.message, "the driver does not answer for process 42 (train): "
                                             "cuCheckpointProcessRestore has not returned");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_room_stays_promised_while_it_lasts, set_up),
                cmocka_unit_test_setup(test_what_was_not_promised_is_not_kept, set_up),
                cmocka_unit_test_setup(test_the_first_call_is_named, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
