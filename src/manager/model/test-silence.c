/* SPDX-License-Identifier: Apache-2.0 */
/* A call of the driver that has not returned is named, and lasts until it has. */
#include <errno.h>
#include <stdio.h>

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
} fixture;

static int set_up(void **state)
{
        (void)state;
        fixture = (struct fixture){
                .guest = { .instance = &fixture.instance, .pid = 42, .name = "train" }
        };
        (void)snprintf(fixture.instance.name, sizeof(fixture.instance.name), "a");
        return 0;
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
        silence_end(&fixture.guest);
        assert_false(silence_lasts(&fixture.guest));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_the_first_call_is_named, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
