/* SPDX-License-Identifier: Apache-2.0 */
/* How a host finds its NVML, and what becomes of it. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openvgpu/device.h>
#include <openvgpu/type.h>

#include "base/test.h"
#include "fake/answers.h"
#include "fake/manager.h"
#include "fake/nvml-host.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);

#define NOBODY 65534

/* A folder with a libnvidia-ml.so.1 that is the fake of @age. */
static void make_folder(char *folder, const char *age)
{
        char library[512], link_path[512];

        strcpy(folder, "/tmp/openvgpu-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
        snprintf(library, sizeof(library), "%s-%s.so", getenv("TEST_FAKE_NVML"), age);
        snprintf(link_path, sizeof(link_path), "%s/libnvidia-ml.so.1", folder);
        assert_int_equal(symlink(library, link_path), 0);
}

static void remove_folder(const char *folder)
{
        char link_path[512];

        snprintf(link_path, sizeof(link_path), "%s/libnvidia-ml.so.1", folder);
        assert_int_equal(unlink(link_path), 0);
        assert_int_equal(rmdir(folder), 0);
}

static void expect_driver(const char *path, const char *version)
{
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        const char *found = NULL;

        assert_int_equal(vgpu_host_new(&host, path), 0);
        if (vgpu_host_get_driver_version(host, &found) != 0)
                fail_msg("%s", vgpu_host_get_error(host)->message);
        assert_string_equal(found, version);
}

static void test_a_path_is_taken_by_its_word(void **state)
{
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL, *other = NULL;
        char path[512];
        uint32_t count;
        (void)state;

        snprintf(path, sizeof(path), "%s-535.so", getenv("TEST_FAKE_NVML"));
        expect_driver(path, "535.10");
        setenv("OPENVGPU_NVML", path, 1);
        expect_driver(NULL, "535.10");
        snprintf(path, sizeof(path), "%s-550.so", getenv("TEST_FAKE_NVML"));
        expect_driver(path, "550.10");
        unsetenv("OPENVGPU_NVML");

        assert_int_equal(vgpu_host_new(&host, "/nonexistent/nvml.so"), 0);
        assert_int_equal(vgpu_device_count(host, &count), -ELIBACC);
        assert_int_equal(vgpu_host_get_error(host)->kind, VGPU_ERROR_NO_LIBRARY);
        assert_non_null(strstr(vgpu_host_get_error(host)->message, "/nonexistent/nvml.so"));

        /* Something else that is a library. */
        assert_int_equal(vgpu_host_new(&other, "libm.so.6"), 0);
        assert_int_equal(vgpu_device_count(other, &count), -ENOSYS);
        assert_string_equal(vgpu_host_get_error(other)->message,
                            "nvmlInit is not in this driver (needs R285 or newer)");
}

/* What a manager says whose library is in @folder. */
static void describe_manager(char *answer, size_t room, const char *folder)
{
        snprintf(answer, room,
                 ANSWER("'version':'0.1.0','simulated':true,'cuda_driver_version':13000,"
                        "'driver_path':'','gate_path':'','nvml_path':'%s','run_directory':'',"
                        "'pool':{'limit':0,'size':0,'ready':0,'used':0,'slab_size':0}"),
                 folder);
}

/* Else anybody could have anybody run his code, by listening where a manager might. */
static void test_the_library_of_another_users_manager_is_not_loaded(void **state)
{
        struct fake_step step = { .method = "GetInfo" };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = NULL;
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        char folder[32], answer[1024];
        const char *path = "";
        int r;
        (void)state;

        if (geteuid() != 0)
                skip(); /* nobody else can be played */
        make_folder(folder, "610");
        describe_manager(answer, sizeof(answer), folder);
        step.answers[0] = answer;
        assert_int_equal(seteuid(NOBODY), 0);
        fake = fake_manager_new(&step, 1);
        assert_int_equal(seteuid(0), 0);
        setenv("OPENVGPU_RUN", fake_manager_get_directory(fake), 1);

        /* It was asked, and what it said was not done: here is the system's library, or none. */
        assert_int_equal(vgpu_host_new(&host, NULL), 0);
        r = vgpu_host_get_library_path(host, &path);
        assert_string_not_equal(fake_manager_get_call(fake, 0), "");
        assert_true(r < 0 || strncmp(path, folder, strlen(folder)) != 0);
        setenv("OPENVGPU_RUN", "/nonexistent", 1);
        remove_folder(folder);
}

static void test_the_library_of_the_running_manager_comes_before_the_systems(void **state)
{
        struct fake_step step = { .method = "GetInfo" };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = NULL;
        CLEANUP(vgpu_host_freep) struct vgpu_host *host = NULL;
        char folder[32], answer[1024];
        const char *path = NULL;
        (void)state;

        make_folder(folder, "610");
        describe_manager(answer, sizeof(answer), folder);
        step.answers[0] = answer;
        fake = fake_manager_new(&step, 1);
        setenv("OPENVGPU_RUN", fake_manager_get_directory(fake), 1);

        assert_int_equal(vgpu_host_new(&host, NULL), 0);
        if (vgpu_host_get_library_path(host, &path) != 0)
                fail_msg("%s", vgpu_host_get_error(host)->message);
        assert_memory_equal(path, folder, strlen(folder));
        setenv("OPENVGPU_RUN", "/nonexistent", 1);
        remove_folder(folder);
}

/* The search path of the dynamic linker is read when a program starts: so this starts one. */
static void expect_system_driver(const char *folder, const char *run_directory)
{
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                setenv("LD_LIBRARY_PATH", folder, 1);
                setenv("OPENVGPU_RUN", run_directory, 1);
                execl("/proc/self/exe", "test", "610.10", (char *)NULL);
                _exit(99);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void test_without_a_manager_it_is_the_systems(void **state)
{
        static const struct fake_step old = { "GetInfo",
                                              .answers = { REFUSAL("MethodNotFound", "", "") } };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&old, 1);
        char folder[32];
        (void)state;

        make_folder(folder, "610");
        expect_system_driver(folder, "/nonexistent");
        expect_system_driver(folder, fake_manager_get_directory(fake));
        remove_folder(folder);
}

static void test_a_driver_that_does_not_start_is_tried_again(void **state)
{
        struct fixture fixture;
        uint32_t count = 0;
        (void)state;

        fixture_open(&fixture, "610");
        fixture.fake->answer_of = "nvmlInit_v2";
        fixture.fake->answer = NVML_ERROR_DRIVER_NOT_LOADED;
        fixture_expect(&fixture, vgpu_device_count(fixture.host, &count), VGPU_ERROR_NOT_LOADED,
                       "the driver is not loaded (nvmlInit_v2: DRIVER_NOT_LOADED, 9)");
        assert_int_equal(count, 0);
        fixture.fake->answer_of = NULL;
        fixture.fake->n_init = 0;
        assert_int_equal(vgpu_device_count(fixture.host, &count), 0);
        assert_int_equal(count, 3);
        assert_int_equal(fixture.fake->n_init, 1);
        fixture_close(&fixture);
}

static void test_a_driver_from_before_the_second_forms_will_do(void **state)
{
        CLEANUP(freep) char *bus_id = NULL;
        struct fixture fixture;
        uint32_t number = 0;
        (void)state;

        fixture_open(&fixture, "300");
        assert_int_equal(vgpu_device_count(fixture.host, &number), 0);
        assert_int_equal(number, 3);
        assert_int_equal(vgpu_device_get_pci_bus_id(fixture.host, 1, &bus_id), 0);
        assert_string_equal(bus_id, "00000000:3B:00.0");
        fixture_expect(&fixture, vgpu_type_get_heads(fixture.host, 1, &number),
                       VGPU_ERROR_NOT_IN_DRIVER,
                       "vGPU type 1: nvmlVgpuTypeGetNumDisplayHeads is not in this driver (needs "
                       "R390 or newer)");
        fixture_close(&fixture);
}

static void test_results_outlive_the_host_and_hosts_each_other(void **state)
{
        CLEANUP(freep) struct vgpu_number_list *types = NULL;
        CLEANUP(vgpu_host_freep) struct vgpu_host *second = NULL;
        CLEANUP(freep) char *name = NULL;
        struct fixture fixture;
        char path[512];
        (void)state;

        fixture_open(&fixture, "610");
        snprintf(path, sizeof(path), "%s-610.so", getenv("TEST_FAKE_NVML"));
        assert_int_equal(vgpu_host_new(&second, path), 0);
        assert_int_equal(vgpu_device_lookup_types(fixture.host, 0, &types), 0);
        assert_int_equal(vgpu_type_get_name(second, FAKE_TYPE_BIG, &name), 0);
        second = vgpu_host_free(second);
        assert_null(second);
        assert_string_equal(name, "NVIDIA H200-70C");
        free(name);
        name = NULL;
        assert_int_equal(vgpu_type_get_name(fixture.host, FAKE_TYPE_BIG, &name), 0);
        fixture_close(&fixture);
        assert_int_equal(types->n_numbers, 2);
        assert_int_equal(types->numbers[1], FAKE_TYPE_SMALL);
        types = vgpu_free(types);
        assert_null(vgpu_free(NULL));
        assert_null(vgpu_host_free(NULL));
}

static void test_a_version_range_is_read_and_set(void **state)
{
        CLEANUP(freep) struct vgpu_host_versions *versions = NULL;
        struct fixture fixture;
        bool is_there = false;
        (void)state;

        fixture_open(&fixture, "610");
        assert_int_equal(vgpu_host_lookup_versions(fixture.host, &versions), 0);
        assert_int_equal(versions->supported_minimum, 0x180001);
        assert_int_equal(versions->supported_maximum, 0x1c0001);
        assert_int_equal(versions->current_maximum, 0x1a0001);
        assert_int_equal(vgpu_host_set_version_range(fixture.host, 0x180001, 0x190001), 0);
        assert_int_equal(fixture.fake->set[0], 0x180001);
        assert_int_equal(fixture.fake->set[1], 0x190001);
        fixture_expect(&fixture, vgpu_host_set_version_range(fixture.host, 2, 1),
                       VGPU_ERROR_INVALID_PARAMETER, "0.2 to 0.1 is no range within 24.1 to 28.1");
        assert_string_equal(vgpu_host_get_error(fixture.host)->parameter, "minimum");

        assert_int_equal(vgpu_host_get_capability(fixture.host, VGPU_HOST_WARM_UPDATE, &is_there),
                         0);
        assert_true(is_there);
        assert_string_equal(vgpu_host_capability_get_name(VGPU_HOST_WARM_UPDATE), "warm-update");
        assert_string_equal(vgpu_host_capability_get_name(7), "unknown");
        fixture_close(&fixture);
}

/* With a word, this is the program of expect_system_driver(). */
int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_path_is_taken_by_its_word),
                cmocka_unit_test(test_the_library_of_the_running_manager_comes_before_the_systems),
                cmocka_unit_test(test_the_library_of_another_users_manager_is_not_loaded),
                cmocka_unit_test(test_without_a_manager_it_is_the_systems),
                cmocka_unit_test(test_a_driver_that_does_not_start_is_tried_again),
                cmocka_unit_test(test_a_driver_from_before_the_second_forms_will_do),
                cmocka_unit_test(test_results_outlive_the_host_and_hosts_each_other),
                cmocka_unit_test(test_a_version_range_is_read_and_set),
        };

        unsetenv("OPENVGPU_NVML");
        if (argc > 1) {
                struct vgpu_host *host;
                const char *version = "";

                if (vgpu_host_new(&host, NULL) < 0)
                        return 2;
                vgpu_host_get_driver_version(host, &version);
                argc = strcmp(version, argv[1]) == 0;
                vgpu_host_free(host);
                return argc ? 0 : 1;
        }
        return cmocka_run_group_tests_name("lib-nvml-host", tests, NULL, NULL);
}
