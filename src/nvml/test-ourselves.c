/* SPDX-License-Identifier: Apache-2.0 */
/* The manager may name our own library as NVIDIA's, under any path: we don't load ourselves. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "nvml/fixture.h"

static void init_with(struct fixture *fixture, const char *path)
{
        unsigned int count;

        fixture->state_page->simulated = 0;
        snprintf(fixture->state_page->real_nvml, sizeof(fixture->state_page->real_nvml), "%s",
                 path);
        assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
        assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
        assert_int_equal(count, 2);
        nvmlShutdown();
}

static void test_we_do_not_forward_to_ourselves(void **state)
{
        struct fixture *fixture = fixture_new();
        const char *library = getenv("TEST_NVML");
        char path[128];

        (void)state;
        assert_non_null(library);
        init_with(fixture, library);
        snprintf(path, sizeof(path), "%s/alias", fixture->directory);
        assert_int_equal(symlink(library, path), 0);
        init_with(fixture, path);
        unlink(path);
        fixture_free(fixture);
}

static void test_a_path_that_leads_nowhere_leaves_the_state_page(void **state)
{
        struct fixture *fixture = fixture_new();

        (void)state;
        init_with(fixture, "/nonexistent/libnvidia-ml.so.1");
        init_with(fixture, "/dev/null");
        fixture_free(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_we_do_not_forward_to_ourselves),
                cmocka_unit_test(test_a_path_that_leads_nowhere_leaves_the_state_page),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
