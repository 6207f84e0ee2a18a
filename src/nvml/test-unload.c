/* SPDX-License-Identifier: Apache-2.0 */
/* A program may load and unload us as often as it likes: nothing of ours stays in its memory. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "nvml/fixture.h"

/* How many mappings there are of what is at @path. */
static unsigned int count_mappings(const char *path)
{
        FILE *maps = fopen("/proc/self/maps", "re");
        unsigned int n = 0;
        char line[512];

        assert_non_null(maps);
        while (fgets(line, sizeof(line), maps))
                n += strstr(line, path) != NULL;
        fclose(maps);
        return n;
}

static void *load(void)
{
        /* Another file than the one that this program is linked with, which stays. */
        void *library = dlopen(getenv("TEST_NVML_AGAIN"), RTLD_NOW | RTLD_LOCAL);

        assert_non_null(library);
        return library;
}

static void call(void *library, const char *name)
{
        nvmlReturn_t (*function)(void) = (nvmlReturn_t(*)(void))dlsym(library, name);

        assert_non_null(function);
        assert_int_equal(function(), NVML_SUCCESS);
}

/* A manager that starts anew leaves its former state page with those who read. */
static void test_what_was_mapped_is_given_back(void **state)
{
        struct fixture *fixture = fixture_new();
        unsigned int before = count_mappings(fixture->path);

        (void)state;
        for (int i = 0; i < 3; i++) {
                void *library = load();

                call(library, "nvmlInit_v2");
                assert_int_equal(count_mappings(fixture->path), before + 1);
                call(library, "nvmlShutdown");
                fixture_publish(fixture);
                call(library, "nvmlInit_v2");
                assert_int_equal(count_mappings(fixture->path), before + 2);
                call(library, "nvmlShutdown");
                assert_int_equal(dlclose(library), 0);
                assert_int_equal(count_mappings(fixture->path), before);
        }
        fixture_free(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_was_mapped_is_given_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
