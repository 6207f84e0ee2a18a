/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/loader.h"
#include "base/test.h"

struct table {
        int (*absolute)(int);
        int (*missing)(void);
        char *(*getenv_by_any_name)(const char *);
};

#define ENTRY(name_, member_, is_optional_)                            \
        {                                                              \
                (name_), offsetof(struct table, member_), is_optional_ \
        }

static void test_the_first_name_that_is_there_is_taken(void **state)
{
        static const struct loader_function functions[] = {
                ENTRY("abs", absolute, false),
                ENTRY("no_such_function", missing, true),
                ENTRY("no_such_function", getenv_by_any_name, true),
                ENTRY("getenv", getenv_by_any_name, false),
                ENTRY("abs", getenv_by_any_name, false),
        };
        struct table table = { 0 };
        const char *lacks = NULL;
        (void)state;

        assert_int_equal(loader_load("libc.so.6", functions, 5, &table, &lacks), 0);
        assert_int_equal(table.absolute(-7), 7);
        assert_null(table.missing);
        assert_ptr_equal(table.getenv_by_any_name, getenv);
        assert_null(lacks);
}

static void test_what_a_library_lacks_is_named(void **state)
{
        static const struct loader_function functions[] = {
                ENTRY("abs", absolute, false),
                ENTRY("no_such_function", missing, false),
        };
        struct table table = { 0 };
        const char *lacks = NULL;
        (void)state;

        assert_int_equal(loader_load("libc.so.6", functions, 2, &table, &lacks), -ENOSYS);
        assert_string_equal(lacks, "no_such_function");
        assert_int_equal(loader_load("/nowhere/libcuda.so.1", functions, 2, &table, &lacks),
                         -ENOENT);
}

static void test_the_driver_is_the_systems_unless_it_is_named(void **state)
{
        (void)state;

        unsetenv("OPENVGPU_DRIVER");
        assert_string_equal(loader_get_driver(), "libcuda.so.1");
        setenv("OPENVGPU_DRIVER", "", true);
        assert_string_equal(loader_get_driver(), "libcuda.so.1");
        setenv("OPENVGPU_DRIVER", "/opt/libcuda.so.1", true);
        assert_string_equal(loader_get_driver(), "/opt/libcuda.so.1");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_first_name_that_is_there_is_taken),
                cmocka_unit_test(test_what_a_library_lacks_is_named),
                cmocka_unit_test(test_the_driver_is_the_systems_unless_it_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
