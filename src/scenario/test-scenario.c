/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "scenario/link.h"
#include "scenario/scenario.h"

static int load(const char *text, struct scenario **ret_scenario, char *problem)
{
        char path[] = "/tmp/test-scenario-XXXXXX";
        int fd = mkstemp(path), r;

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
        problem[0] = '\0';
        r = scenario_load(ret_scenario, path, problem);
        unlink(path);
        return r;
}

static struct scenario *load_good(const char *text)
{
        char problem[SCENARIO_PROBLEM_MAX];
        struct scenario *scenario = NULL;

        if (load(text, &scenario, problem) < 0)
                fail_msg("%s", problem);
        return scenario;
}

#define HEAD       "{\"openvgpu_scenario\": 1, \"devices\": [{\"board\": \"H200\"}]"
#define VGPU(more) HEAD ", \"vgpus\": [{\"name\": \"a\", \"type\": \"H200-35C\"" more "}]}"

#define DEVICE(board, more) \
        "{\"openvgpu_scenario\": 1, \"devices\": [{\"board\": \"" board "\", " more "}]}"

static void check_problem(const char *text, const char *wanted)
{
        char problem[SCENARIO_PROBLEM_MAX];
        struct scenario *scenario = NULL;

        assert_true(load(text, &scenario, problem) < 0);
        assert_null(scenario);
        if (!strstr(problem, wanted))
                fail_msg("'%s' has not '%s'", problem, wanted);
        assert_null(strchr(problem, '\n'));
}

static void test_examples_are_good(void **state)
{
        char problem[SCENARIO_PROBLEM_MAX], pattern[512];
        glob_t found;

        (void)state;
        snprintf(pattern, sizeof(pattern), "%s/*.json", getenv("TEST_SCENARIOS"));
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        assert_true(found.gl_pathc >= 10);
        for (size_t i = 0; i < found.gl_pathc; i++) {
                struct scenario *scenario = NULL;

                if (scenario_load(&scenario, found.gl_pathv[i], problem) < 0)
                        fail_msg("%s: %s", found.gl_pathv[i], problem);
                assert_true(scenario->description[0]);
                scenario_free(scenario);
        }
        globfree(&found);
}

/* Where the mistake is, what it is, and what is allowed there. */
static const struct {
        const char *text, *wanted;
} mistakes[] = {
        { "", "line 1" },
        { "{", "line 1, column 1" },
        { "[]", "the document: must be an object, not a list" },
        { "{\"a\": 1, \"a\": 2}", "duplicate object key" },
        { "{}", "openvgpu_scenario: is missing" },
        { "{\"openvgpu_scenario\": 2}", "openvgpu_scenario: is not a version" },
        { "{\"openvgpu_scenario\": 1}", "devices: is missing" },
        { "{\"openvgpu_scenario\": 1, \"devices\": []}", "devices: needs a device" },
        { "{\"openvgpu_scenario\": 1, \"devices\": 7}", "devices: must be a list, not a number" },
        { "{\"openvgpu_scenario\": 1, \"devices\": [{\"board\": \"H300\"}]}",
          "devices[0].board: there is no 'H300'; allowed: H200, H100," },
        { "{\"openvgpu_scenario\": 1, \"devices\": [{\"board\": \"H200\", \"count\": 33}]}",
          "devices[0].count: is 33; allowed: 1 to 32" },
        { "{\"openvgpu_scenario\": 1, \"devices\": [{\"board\": \"L4\", \"mig\": true}]}",
          "devices[0]: a L4 has no MIG" },
        { DEVICE("L4", "\"events\": [{\"at\": 1, \"kind\": \"clock\", \"severity\": \"fatal\"}]"),
          "devices[0].events[0]: only an event of the kind \"operational\" has a module" },
        { DEVICE("L4", "\"events\": [{\"at\": 1, \"kind\": \"operational\"}]"),
          "devices[0].events[0]: an operational event needs the module" },
        { DEVICE("L4", "\"events\": [{\"at\": 1, \"kind\": \"operational\", "
                       "\"module\": \"GPU-RAS\", \"log_level\": \"fatal\"}]"),
          "devices[0].events[0].log_level: there is no 'fatal'; allowed: telemetry," },
        { DEVICE("H200", "\"nvlink\": {\"links\": 19}"),
          "devices[0].nvlink.links: is 19; allowed: 0 to 18" },
        { DEVICE("A100", "\"nvlink\": {\"links\": 18}"),
          "devices[0].nvlink.links: a A100 has 12 links" },
        { DEVICE("H200", "\"nvlink\": {\"inactive\": [18]}"),
          "devices[0].nvlink.inactive[0]: must be the number of a link, 0 to 17" },
        { DEVICE("H200", "\"nvlink\": {\"peers\": [0]}"),
          "devices[0].nvlink.peers: must name another device" },
        { DEVICE("H200", "\"nvlink\": {\"peers\": [1]}"),
          "devices[0].nvlink.peers: there is no device 1" },
        { DEVICE("H200", "\"nvlink\": {\"peers\": [1]}}, {\"board\": \"H200\""),
          "devices[0].nvlink.peers: no link of device 1 leads back" },
        { HEAD ", \"hots\": {}}", "there is no member 'hots' here; allowed: openvgpu_scenario" },
        { HEAD ", \"host\": {\"driver_version\": 580}}",
          "host.driver_version: must be text, not a number" },
        { HEAD ", \"host\": {\"vgpu_versions_supported\": {\"min\": \"30.1\", \"max\": \"2.1\"}}}",
          "host: the min of a range of versions is above its max" },
        { HEAD ", \"vgpus\": [{\"type\": \"H200-35C\"}]}", "vgpus[0].name: is missing" },
        { HEAD ", \"vgpus\": [{\"name\": \"a\", \"type\": \"H200-36C\"}]}",
          "vgpus[0].type: device 0 has no type 'H200-36C'; allowed: NVIDIA H200-141C," },
        { VGPU(", \"device\": 1"), "vgpus[0].device: there is no device 1; allowed: 0 to 0" },
        { VGPU(", \"id\": 3"), "vgpus[0].id: is 3; allowed: 1000 to" },
        { VGPU(", \"uuid\": \"GPU-1\""), "vgpus[0].uuid: is not a UUID" },
        { VGPU(", \"licence\": {\"state\": \"licenced\"}"),
          "vgpus[0].licence.state: there is no 'licenced'; allowed: licensed, unlicensed" },
        { VGPU(", \"licence\": {\"expires\": \"2026-13-01T00:00:00Z\"}"),
          "vgpus[0].licence.expires: '2026-13-01T00:00:00Z' is not a date" },
        { VGPU(", \"utilization\": {\"gpu\": 101}"),
          "vgpus[0].utilization.gpu: is above 100 percent" },
        { VGPU(", \"utilization\": {\"gpu\": {\"wave\": [1, 2]}}"),
          "vgpus[0].utilization.gpu: a wave needs a period" },
        { VGPU(", \"utilization\": {\"gpu\": {\"steps\": [[1, 2], [1, 3]]}}"),
          "vgpus[0].utilization.gpu.steps[1]: the seconds must grow" },
        { VGPU(", \"utilization\": {\"gpu\": {}}"), "must have one of steps, line and wave" },
        { VGPU(", \"memory\": \"lots\""), "vgpus[0].memory: must be a number" },
        { VGPU(", \"processes\": [{\"pid\": 1, \"name\": \"x\", \"memory\": \"40G\"}]"),
          "vgpus[0].processes[0]: holds more memory than the vGPU has" },
        { VGPU(", \"processes\": [{\"pid\": 1, \"name\": \"x\"}, {\"pid\": 1, \"name\": \"y\"}]"),
          "vgpus[0].processes[1]: the pid 1 is used twice" },
        { VGPU(", \"vm\": {\"driver\": {\"state\": \"none\"}}, \"encoder_sessions\": "
               "[{\"id\": 1, \"pid\": 2}]"),
          "vgpus[0].vm.driver: without a running driver" },
        { VGPU(", \"placement\": 0"), "vgpus[0].placement: only vGPUs of different sizes" },
        { VGPU(", \"gpu_instance\": 1"), "vgpus[0].gpu_instance: device 0 is not in MIG" },
        { VGPU("}, {\"name\": \"a\", \"type\": \"H200-35C\""),
          "vgpus[1]: has the name, id or UUID of vgpus[0]" },
        { VGPU("}, {\"name\": \"b\", \"type\": \"H200-70C\""),
          "vgpus[1].type: vgpus[0] on the same device has another size" },
        { VGPU("}, {\"name\": \"b\", \"type\": \"H200-35C\"}, {\"name\": \"c\", \"type\": "
               "\"H200-35C\"}, {\"name\": \"d\", \"type\": \"H200-35C\"}, {\"name\": \"e\", "
               "\"type\": \"H200-35C\""),
          "vgpus[4].type: the vGPUs of device 0 need more memory" },
};

static void test_mistakes_are_named(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
                check_problem(mistakes[i].text, mistakes[i].wanted);
}

static void test_gpu_instances_have_room_and_profiles(void **state)
{
#define MIG(instances)                                                                   \
        "{\"openvgpu_scenario\": 1, \"devices\": [{\"board\": \"H200\", \"mig\": true, " \
        "\"gpu_instances\": [" instances "]}]}"

        (void)state;
        check_problem(
                MIG("{\"id\": 1, \"profile\": \"5g.90gb\"}"),
                "devices[0].gpu_instances[0]: there is no profile '5g.90gb'; allowed: 7g.141gb");
        check_problem(MIG("{\"id\": 1, \"profile\": \"7g.141gb\"}, {\"id\": 2, \"profile\": "
                          "\"1g.18gb\"}"),
                      "more than 7 slices");
        check_problem(MIG("{\"id\": 1, \"profile\": \"3g.71gb\", \"placement\": 1}"),
                      "cannot begin at slice 1");
        check_problem(MIG("{\"id\": 1, \"profile\": \"4g.71gb\", \"placement\": 4}"),
                      "cannot begin at slice 4");
        check_problem(MIG("{\"id\": 1, \"profile\": \"2g.35gb\", \"placement\": 6}"),
                      "cannot begin at slice 6");
        check_problem(MIG("{\"id\": 1, \"profile\": \"1g.18gb\"}, {\"id\": 1, \"profile\": "
                          "\"1g.18gb\"}"),
                      "the id 1 is used twice");
}

static void test_what_is_not_said_follows(void **state)
{
        struct scenario *scenario = load_good(VGPU(""));
        const struct scenario_vgpu *vgpu = &scenario->vgpus[0];

        (void)state;
        assert_int_equal(scenario->n_devices, 1);
        assert_int_equal(scenario->devices[0].memory, 143770 * MIB);
        assert_int_equal(vgpu->type.id, 0x233504);
        assert_int_equal(vgpu->id, SCENARIO_FIRST_ID);
        assert_string_equal(vgpu->vm.name, "a");
        assert_string_equal(vgpu->vm.driver_version, scenario->driver_version);
        assert_int_equal(vgpu->placement, STATE_PLACEMENT_NONE);
        assert_int_equal(vgpu->ecc, STATE_NONE);
        assert_int_equal(vgpu->vm.licence_expiry.status, STATE_EXPIRY_PERMANENT);
        scenario_free(scenario);
}

static void test_several_devices_are_made_of_one(void **state)
{
        struct scenario *scenario =
                load_good("{\"openvgpu_scenario\": 1, \"devices\": [{\"board\": "
                          "\"L4\", \"count\": 2, \"sensors\": {\"fan\": {\"line\": "
                          "[[0, 1], [2, 3]]}}}, {\"board\": \"T4\", \"memory\": "
                          "\"1G\"}]}");
        char devices[128];

        (void)state;
        assert_int_equal(scenario->n_devices, 3);
        assert_int_equal(scenario_format_devices(scenario, devices, sizeof(devices)), 0);
        assert_string_equal(devices, "L4:24152899584,L4:24152899584,T4:1073741824");
        assert_int_equal(scenario_format_devices(scenario, devices, 8), -ENAMETOOLONG);
        scenario_free(scenario);
}

static void check_curve(const char *text, const double *at, const double *wanted, size_t n)
{
        char document[512];
        struct scenario *scenario;

        snprintf(document, sizeof(document), VGPU(", \"utilization\": {\"gpu\": %s}"), text);
        scenario = load_good(document);
        for (size_t i = 0; i < n; i++)
                assert_true(fabs(curve_get(&scenario->vgpus[0].utilization.gpu, at[i]) -
                                 wanted[i]) < 1e-6);
        scenario_free(scenario);
}

static void test_each_of_several_devices_has_a_serial_of_its_own(void **state)
{
#define SERIES(count, serial)                                                            \
        "{\"openvgpu_scenario\": 1, \"devices\": [{\"board\": \"L4\", \"count\": " count \
        ", \"serial\": \"" serial "\"}]}"
        struct scenario *scenario = load_good(SERIES("3", "A1098"));

        (void)state;
        assert_string_equal(scenario->devices[0].texts.serial, "A1098");
        assert_string_equal(scenario->devices[1].texts.serial, "A1099");
        assert_string_equal(scenario->devices[2].texts.serial, "A1100");
        scenario_free(scenario);
        scenario_free(load_good(SERIES("1", "none")));
        check_problem(SERIES("2", "none"), "devices[0]: the serial is that of the first");
        check_problem(SERIES("3", "B8"), "devices[0]: the serial is that of the first");
}

static void test_each_mig_device_has_a_uuid_of_its_own(void **state)
{
#define TWO_MIG_DEVICES(count, first, second)                                                             \
        "{\"openvgpu_scenario\": 1, \"devices\": [{\"board\": \"H200\", \"mig\": true, \"count\": " count \
        ", \"gpu_instances\": [{\"id\": 1, \"profile\": \"3g.71gb\", \"compute_instances\": "             \
        "[{\"profile\": \"1c.3g.71gb\"" first "}, {\"profile\": \"1c.3g.71gb\"" second "}]}]}]}"
#define UUID ", \"uuid\": \"11111111-2222-3333-4444-555555555555\""
        (void)state;
        scenario_free(load_good(TWO_MIG_DEVICES("2", "", "")));
        scenario_free(load_good(TWO_MIG_DEVICES("1", UUID, "")));
        check_problem(
                TWO_MIG_DEVICES("2", "", UUID),
                "devices[0]: gpu_instances[0].compute_instances[1] has a uuid, which several");
        check_problem(TWO_MIG_DEVICES("1", UUID, UUID),
                      "devices[0].gpu_instances[0].compute_instances[0].uuid: is used twice");
}

static void test_the_driver_has_a_version_of_nvidias_form(void **state)
{
        struct scenario *scenario = load_good(HEAD "}");
        unsigned int a, b, c;
        int end = 0;

        (void)state;
        assert_int_equal(sscanf(scenario->driver_version, "%3u.%3u.%2u%n", &a, &b, &c, &end), 3);
        assert_int_equal(scenario->driver_version[end], '\0');
        scenario_free(scenario);
}

static void test_curves(void **state)
{
        const double at[] = { 0, 1, 2, 3, 4, 5, 9 };

        (void)state;
        check_curve("30", at, (const double[]){ 30, 30, 30, 30, 30, 30, 30 }, 7);
        check_curve("{\"steps\": [[0, 10], [3, 80]], \"every\": 4}", at,
                    (const double[]){ 10, 10, 10, 80, 10, 10, 10 }, 7);
        check_curve("{\"steps\": [[1, 10], [3, 80]]}", at,
                    (const double[]){ 10, 10, 10, 80, 80, 80, 80 }, 7);
        check_curve("{\"line\": [[0, 0], [4, 40]]}", at,
                    (const double[]){ 0, 10, 20, 30, 40, 40, 40 }, 7);
        check_curve("{\"line\": [[0, 0], [4, 40]], \"every\": 5}", at,
                    (const double[]){ 0, 10, 20, 30, 40, 0, 40 }, 7);
        check_curve("{\"wave\": [20, 60], \"period\": 4}", at,
                    (const double[]){ 20, 40, 60, 40, 20, 40, 40 }, 7);
}

/* Each byte of a good file is changed in turn: it is read or refused, and nothing else. */
static void test_no_damage_does_harm(void **state)
{
        const char good[] =
                VGPU(", \"memory\": {\"line\": [[0, \"1G\"], [5, \"2G\"]]}, \"processes\": "
                     "[{\"pid\": 5, \"name\": \"x\"}]");
        char problem[SCENARIO_PROBLEM_MAX], damaged[sizeof(good)];

        (void)state;
        for (size_t i = 0; i < sizeof(good) - 1; i++)
                for (const char *with = "]0\"-"; *with; with++) {
                        struct scenario *scenario = NULL;

                        memcpy(damaged, good, sizeof(good));
                        damaged[i] = *with;
                        if (load(damaged, &scenario, problem) < 0)
                                assert_true(problem[0]);
                        scenario_free(scenario);
                }
}

static void test_links_are_those_of_the_board(void **state)
{
        CLEANUP(scenario_freep)
        struct scenario *scenario =
                load_good("{\"openvgpu_scenario\": 1, \"devices\": ["
                          "{\"board\": \"H200\", \"nvlink\": {\"inactive\": [0, 17]}},"
                          "{\"board\": \"A100\", \"count\": 2, \"nvlink\": {\"peers\": [1, 2]}},"
                          "{\"board\": \"L4\"}]}");
        struct state_links links;

        (void)state;
        link_describe(&scenario->devices[0], 0, &links);
        assert_int_equal(links.n, 18);
        assert_int_equal(links.fabric.state, 3);
        assert_int_equal(links.fabric.summary, 0);
        assert_int_equal(links.active, 0x1fffe);
        assert_int_equal(links.peer, STATE_LINK_TO_SWITCH);
        assert_int_equal(links.peers[5], 1);
        link_describe(&scenario->devices[1], 1, &links);
        assert_int_equal(links.n, 12);
        assert_int_equal(links.peer, STATE_LINK_TO_DEVICE);
        assert_int_equal(links.peers[0], 2);
        assert_int_equal(links.peers[11], 2);
        assert_int_equal(links.fabric.state, 0);
        link_describe(&scenario->devices[3], 3, &links);
        assert_int_equal(links.n, 0);
        assert_int_equal(links.active, 0);
}

static void test_a_fabric_has_health(void **state)
{
        CLEANUP(scenario_freep)
        struct scenario *scenario = load_good(DEVICE(
                "H200", "\"fabric\": {\"clique\": 3, \"unhealthy_route\": true, \"cluster\": "
                        "\"00000000-0000-0000-0000-0000000000ab\"}"));
        struct state_links links;

        (void)state;
        link_describe(&scenario->devices[0], 0, &links);
        assert_int_equal(links.fabric.state, 3);
        assert_int_equal(links.fabric.clique, 3);
        assert_int_equal(links.fabric.health, 0x19a);
        assert_int_equal(links.fabric.summary, 2);
        assert_int_equal(links.fabric.cluster[15], 0xab);
        assert_int_equal(links.fabric.cluster[14], 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_examples_are_good),
                cmocka_unit_test(test_mistakes_are_named),
                cmocka_unit_test(test_gpu_instances_have_room_and_profiles),
                cmocka_unit_test(test_what_is_not_said_follows),
                cmocka_unit_test(test_several_devices_are_made_of_one),
                cmocka_unit_test(test_each_of_several_devices_has_a_serial_of_its_own),
                cmocka_unit_test(test_each_mig_device_has_a_uuid_of_its_own),
                cmocka_unit_test(test_the_driver_has_a_version_of_nvidias_form),
                cmocka_unit_test(test_curves),
                cmocka_unit_test(test_no_damage_does_harm),
                cmocka_unit_test(test_links_are_those_of_the_board),
                cmocka_unit_test(test_a_fabric_has_health),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
