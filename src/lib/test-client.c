/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client makes of a manager that refuses, lies, babbles, falls silent or goes away.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <openvgpu/client.h>
#include <openvgpu/device.h>
#include <openvgpu/instance.h>
#include <openvgpu/manager.h>
#include <openvgpu/operation.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/manager.h"
#include "lib/client.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);
DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_device_list *, vgpu_device_list_free);
DEFINE_CLEANUP(struct vgpu_instance *, vgpu_instance_free);

static struct vgpu_client *new_client(const struct fake_manager *fake)
{
        struct vgpu_client *client = NULL;

        assert_int_equal(vgpu_client_new(&client, fake_manager_get_directory(fake)), 0);
        return client;
}

/* Waits until something has come that no call has read: more bytes, or the end. */
static void wait_for_more(const struct vgpu_client *client)
{
        struct pollfd poller = { .fd = client->connection.fd, .events = POLLIN };

        if (client->connection.size == client->connection.taken)
                assert_int_equal(poll(&poller, 1, 10000), 1);
}

/* One call of ListDevices that must fail with @kind and say @message. */
static void expect_failure(const struct fake_step *step, enum vgpu_error_kind kind,
                           const char *message)
{
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(step, 1);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_device_list *list = (struct vgpu_device_list *)&fake;
        const struct vgpu_error *error;
        int r;

        r = vgpu_device_lookup_all(client, &list);
        error = vgpu_client_get_error(client);
        assert_true(r < 0);
        assert_int_equal(r, error->code);
        assert_int_equal(error->kind, kind);
        if (!strstr(error->message, message))
                fail_msg("'%s' does not say '%s'", error->message, message);
        assert_ptr_equal(list, &fake); /* untouched */
}

static void test_every_refusal_has_its_kind_and_its_errno(void **state)
{
        static const struct {
                const char *answer, *name;
                enum vgpu_error_kind kind;
                int code;
        } cases[] = {
#define CASE(name, kind, code)                                                                  \
        { "{'error':'org.openvgpu." name "','parameters':{'message':'why','hint':'do'}}", name, \
          VGPU_ERROR_##kind, code }
                CASE("NoSuchVgpu", NO_SUCH_VGPU, -ENOENT),
                CASE("NoSuchDevice", NO_SUCH_DEVICE, -ENODEV),
                CASE("VgpuExists", VGPU_EXISTS, -EEXIST),
                CASE("InvalidParameter", INVALID_PARAMETER, -EINVAL),
                CASE("NoRoom", NO_ROOM, -ENOSPC),
                CASE("PoolTooSmall", POOL_TOO_SMALL, -EDQUOT),
                CASE("WrongState", WRONG_STATE, -ESTALE),
                CASE("Busy", BUSY, -EBUSY),
                CASE("TimedOut", TIMED_OUT, -ETIME),
                CASE("NotMovable", NOT_MOVABLE, -EOPNOTSUPP),
                CASE("DriverFailed", DRIVER_FAILED, -EREMOTEIO),
                CASE("GuestLost", GUEST_LOST, -ESRCH),
                CASE("PermissionDenied", PERMISSION_DENIED, -EACCES),
                CASE("Failed", FAILED, -EIO),
#undef CASE
        };
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const struct fake_step step = { "ListDevices", .answers = { cases[i].answer } };
                CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
                CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
                struct vgpu_device_list *list = NULL;
                const struct vgpu_error *error = vgpu_client_get_error(client);

                assert_int_equal(vgpu_device_lookup_all(client, &list), cases[i].code);
                assert_int_equal(error->kind, cases[i].kind);
                assert_string_equal(error->name, cases[i].name);
                assert_string_equal(error->message, "why");
                assert_string_equal(error->hint, "do");
        }
}

static void test_a_refusal_keeps_its_details(void **state)
{
        static const struct fake_step steps[] = {
                { "ListDevices",
                  .answers = { "{'error':'org.openvgpu.DriverFailed','parameters':{'message':'m',"
                               "'hint':'','call':'cuMemCreate','code':2,'process':4711}}" } },
                { "ListDevices",
                  .answers = { "{'error':'org.openvgpu.InvalidParameter','parameters':"
                               "{'message':'m','hint':'','parameter':'name'}}" } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        const struct vgpu_error *error = vgpu_client_get_error(client);
        struct vgpu_device_list *list = NULL;
        (void)state;

        assert_true(vgpu_device_lookup_all(client, &list) < 0);
        assert_string_equal(error->driver_call, "cuMemCreate");
        assert_int_equal(error->driver_code, 2);
        assert_int_equal(error->process, 4711);
        assert_true(vgpu_device_lookup_all(client, &list) < 0);
        assert_string_equal(error->parameter, "name");
        assert_string_equal(error->driver_call, "");
}

static void test_an_older_manager_is_called_old(void **state)
{
        const struct fake_step step = {
                "ListDevices",
                .answers = { REFUSAL("MethodNotFound", "no such method", "") },
        };
        (void)state;

        expect_failure(&step, VGPU_ERROR_METHOD_NOT_FOUND, "vgpud does not know this request");
}

static void test_an_error_of_a_newer_manager_keeps_its_words(void **state)
{
        const struct fake_step step = { "ListDevices",
                                        .answers = { REFUSAL("Tired", "go away", "") } };
        const struct fake_step bare = { "ListDevices", .answers = { "{'error':'Tired'}" } };
        const struct fake_step odd = { "ListDevices",
                                       .answers = { "{'error':'Busy','parameters':[{}]}" } };
        (void)state;

        expect_failure(&step, VGPU_ERROR_FAILED, "go away");
        expect_failure(&bare, VGPU_ERROR_FAILED, "the manager failed");
        expect_failure(&odd, VGPU_ERROR_BUSY, "in use");
}

static void test_a_message_is_one_line_without_escapes(void **state)
{
        const struct fake_step step = {
                "ListDevices",
                .answers = { REFUSAL("Failed", "two\\nlines \\u001b[2J", "") },
        };
        (void)state;

        expect_failure(&step, VGPU_ERROR_FAILED, "two?lines ?[2J");
}

static void test_nonsense_is_a_bad_answer(void **state)
{
        static const struct {
                const char *answer, *message;
        } cases[] = {
                { "", "cannot understand" },
                { "{", "cannot understand" },
                { "[]", "not an object" },
                { "{'parameters':{'devices':[]}} trailing", "cannot understand" },
                { "{}", "no parameters" },
                { "{'error':7}", "no parameters" },
                { "{'parameters':7}", "no parameters" },
                { "{'parameters':{}}", "no usable devices" },
                { "{'parameters':{'devices':{}}}", "no usable devices" },
                { "{'parameters':{'devices':[7]}}", "no usable index" },
                { "{'parameters':{'devices':[{'index':-1}]}}", "no usable index" },
                { "{'parameters':{'devices':[{'index':4294967296}]}}", "no usable index" },
                { "{'parameters':{'devices':[{'index':0,'vgpus':1.5}]}}", "no usable vgpus" },
                { "{'parameters':{'devices':[{'index':0,'vgpus':0,'uuid':null}]}}", "usable uuid" },
                { "{'parameters':{'devices':[]},'continues':true}", "nobody asked for" },
                { "{'parameters':{'devices':['\\u0000']}}", "cannot understand" },
        };
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const struct fake_step step = { "ListDevices", .answers = { cases[i].answer } };

                expect_failure(&step, VGPU_ERROR_BAD_ANSWER, cases[i].message);
        }
}

static void test_deep_nesting_is_refused(void **state)
{
        CLEANUP(freep) char *deep = malloc(200001);
        struct fake_step step = { "ListDevices", .answers = { deep } };
        (void)state;

        memset(deep, '[', 200000);
        deep[200000] = '\0';
        expect_failure(&step, VGPU_ERROR_BAD_ANSWER, "cannot understand");
}

static void test_an_answer_cut_short_is_a_lost_connection(void **state)
{
        const struct fake_step cut = { "ListDevices", .cut = "{'parameters':{'dev", .hang_up = 1 };
        const struct fake_step none = { "ListDevices", .hang_up = 1 };
        (void)state;

        expect_failure(&cut, VGPU_ERROR_CONNECTION_LOST, "went away");
        expect_failure(&none, VGPU_ERROR_CONNECTION_LOST, "went away");
}

static void test_an_answer_above_1_mib_is_refused_without_reading_on(void **state)
{
        const struct fake_step endless = { "ListDevices", .junk = (size_t)64 << 20 };
        const struct fake_step just = { "ListDevices", .junk = 1 << 20 };
        (void)state;

        expect_failure(&endless, VGPU_ERROR_BAD_ANSWER, "longer than a message may be");
        expect_failure(&just, VGPU_ERROR_BAD_ANSWER, "longer than a message may be");
}

static void test_a_long_list_arrives_whole(void **state)
{
        enum { N = 3000 };
        CLEANUP(freep) char *answer = malloc((size_t)N * sizeof(DEVICE_0) + 64);
        struct fake_step step = { "ListDevices", .answers = { answer } };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = NULL;
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *list = NULL;
        char *end = stpcpy(answer, "{'parameters':{'devices':[" DEVICE_0);
        (void)state;

        for (size_t i = 1; i < N; i++)
                end = stpcpy(end, "," DEVICE_1);
        stpcpy(end, "]}}");
        assert_true(strlen(answer) > 512 << 10);

        fake = fake_manager_new(&step, 1);
        client = new_client(fake);
        assert_int_equal(vgpu_device_lookup_all(client, &list), 0);
        assert_int_equal(list->n_devices, N);
        assert_int_equal(list->devices[0]->memory_promised, 42949672960);
        assert_int_equal(list->devices[N - 1]->index, 1);
}

static void test_silence_ends_the_call_and_a_late_answer_is_not_taken_for_the_next(void **state)
{
        static const struct fake_step steps[] = {
                { .method = "ListDevices" },
                { "GetInfo", .answers = { ANSWER(INFO) } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_device_list *list = NULL;
        struct vgpu_manager *manager = NULL;
        (void)state;

        vgpu_client_set_timeout_ms(client, 50);
        assert_int_equal(vgpu_device_lookup_all(client, &list), -ETIMEDOUT);
        assert_int_equal(vgpu_client_get_error(client)->kind, VGPU_ERROR_NO_ANSWER);
        assert_string_equal(vgpu_client_get_error(client)->message,
                            "vgpud did not answer within 0.05 s");

        vgpu_client_set_timeout_ms(client, 0);
        assert_int_equal(vgpu_manager_lookup(client, &manager), 0);
        assert_int_equal(vgpu_client_get_error(client)->kind, VGPU_ERROR_NONE);
        vgpu_manager_free(manager);
}

static void test_what_was_not_asked_for_is_not_taken_for_the_next_answer(void **state)
{
        static const struct fake_step steps[] = {
                { "ListDevices", .answers = { ANSWER("'devices':[]"), ANSWER("'devices':[7]") } },
                { "ListDevices", .answers = { ANSWER("'devices':[" DEVICE_0 "]") } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        (void)state;

        for (size_t i = 0; i < 2; i++) {
                CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *list = NULL;

                assert_int_equal(vgpu_device_lookup_all(client, &list), 0);
                assert_int_equal(list->n_devices, i);
                if (i == 0)
                        wait_for_more(client);
        }
}

static void test_a_client_connects_again_to_the_next_manager(void **state)
{
        static const struct fake_step steps[] = {
                { "ListDevices", .answers = { ANSWER("'devices':[]") }, .hang_up = 1 },
                { "ListDevices", .answers = { ANSWER("'devices':[]") } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        (void)state;

        for (size_t i = 0; i < 2; i++) {
                CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *list = NULL;

                assert_int_equal(vgpu_device_lookup_all(client, &list), 0);
                if (i == 0)
                        wait_for_more(client);
        }
}

static void test_without_a_manager_the_message_names_the_socket(void **state)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        struct vgpu_device_list *list = NULL;
        (void)state;

        assert_int_equal(vgpu_client_new(&client, "/nonexistent/run"), 0);
        assert_int_equal(vgpu_device_lookup_all(client, &list), -ECONNREFUSED);
        assert_int_equal(vgpu_client_get_error(client)->kind, VGPU_ERROR_NO_MANAGER);
        assert_string_equal(vgpu_client_get_error(client)->message,
                            "no vgpud answers at /nonexistent/run/control.sock");
}

/* Opens the socket of the run directory, as a vgpud that has been busy with its driver until now; hangs up on one. */
static void *open_late(void *directory)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd, connection;

        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock",
                       (const char *)directory);
        (void)usleep(100000);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(fd, 1), 0);
        connection = accept(fd, NULL, NULL);
        close(connection);
        close(fd);
        (void)unlink(address.sun_path);
        return NULL;
}

static void test_a_manager_that_is_starting_is_waited_for(void **state)
{
        char directory[] = "/tmp/vgpu-starting-XXXXXX", path[64], name[16];
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        struct vgpu_device_list *list = NULL;
        pthread_t thread;
        FILE *file;
        (void)state;

        assert_non_null(mkdtemp(directory));
        assert_int_equal(vgpu_client_new(&client, directory), 0);
        (void)snprintf(path, sizeof(path), "%s/vgpud.pid", directory);
        file = fopen(path, "we");
        assert_non_null(file);
        (void)fprintf(file, "%d\n", (int)getpid());
        (void)fclose(file);

        /* A process of that number that is no vgpud says nothing. */
        assert_int_equal(vgpu_device_lookup_all(client, &list), -ECONNREFUSED);
        assert_int_equal(prctl(PR_GET_NAME, name), 0);
        assert_int_equal(prctl(PR_SET_NAME, "vgpud"), 0);
        assert_int_equal(pthread_create(&thread, NULL, open_late, directory), 0);
        assert_int_equal(vgpu_device_lookup_all(client, &list), -ECONNRESET);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(prctl(PR_SET_NAME, name), 0);
        (void)unlink(path);
        (void)rmdir(directory);
}

static void test_a_run_directory_that_no_socket_can_have_is_refused(void **state)
{
        struct vgpu_client *client = NULL;
        char path[300];
        (void)state;

        memset(path, 'x', sizeof(path) - 1);
        path[0] = '/';
        path[sizeof(path) - 1] = '\0';
        assert_int_equal(vgpu_client_new(&client, path), -ENAMETOOLONG);
        assert_null(client);
}

static void test_bad_arguments_never_reach_the_manager(void **state)
{
        static const struct fake_step none[1] = { { .method = "none" } };
        struct vgpu_instance_options create = VGPU_INSTANCE_OPTIONS_INIT;
        struct vgpu_operation_options operation = VGPU_OPERATION_OPTIONS_INIT;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(none, 1);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_instance *instance = NULL;
        (void)state;

        assert_int_equal(vgpu_instance_lookup(client, NULL, &instance), -EINVAL);
        assert_int_equal(vgpu_instance_lookup(client, "", &instance), -EINVAL);
        assert_int_equal(vgpu_instance_lookup(client, "\377", &instance), -EINVAL);
        assert_string_equal(vgpu_client_get_error(client)->message, "the name '?' is not UTF-8");
        assert_int_equal(vgpu_instance_create(client, &create, &instance), -EINVAL);
        assert_string_equal(vgpu_client_get_error(client)->parameter, "frame_buffer");
        create.size = 0;
        assert_int_equal(vgpu_instance_create(client, &create, &instance), -EINVAL);
        assert_int_equal(vgpu_operation_migrate(client, "a", NULL, NULL, NULL), -EINVAL);
        operation.timeout_seconds = -1;
        assert_int_equal(vgpu_operation_suspend(client, "a", &operation, NULL), -EINVAL);
        operation.timeout_seconds = 0.0 / 0.0;
        assert_int_equal(vgpu_operation_suspend(client, "a", &operation, NULL), -EINVAL);
        assert_string_equal(fake_manager_get_call(fake, 0), "");
}

static void test_options_of_a_newer_program_are_refused_only_when_they_are_set(void **state)
{
        static const struct fake_step steps[] = {
                { "CreateVgpu", .answers = { ANSWER("'vgpu':" TRAIN_IDLE) } },
        };
        struct {
                struct vgpu_instance_options known;
                char *unknown;
        } options = { .known = VGPU_INSTANCE_OPTIONS_INIT };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 1);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        char text[] = "x";
        (void)state;

        options.known.size = sizeof(options);
        options.known.frame_buffer = 1 << 20;
        options.unknown = text;
        assert_int_equal(vgpu_instance_create(client, &options.known, &instance), -EINVAL);
        options.unknown = NULL;
        assert_int_equal(vgpu_instance_create(client, &options.known, &instance), 0);
}

static void *list_many_times(void *userdata)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(userdata);

        for (size_t i = 0; i < 4; i++) {
                CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *list = NULL;

                assert_int_equal(vgpu_device_lookup_all(client, &list), 0);
        }
        return NULL;
}

static void test_two_threads_with_a_client_each_do_not_meet(void **state)
{
        struct fake_step steps[8];
        CLEANUP(fake_manager_freep) struct fake_manager *fake = NULL;
        pthread_t threads[2];
        (void)state;

        for (size_t i = 0; i < 8; i++)
                steps[i] = (struct fake_step){ "ListDevices",
                                               .answers = { ANSWER("'devices':[" DEVICE_0 "]") } };
        fake = fake_manager_new(steps, 8);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, list_many_times, fake), 0);
        for (size_t i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_refusal_has_its_kind_and_its_errno),
                cmocka_unit_test(test_a_refusal_keeps_its_details),
                cmocka_unit_test(test_an_older_manager_is_called_old),
                cmocka_unit_test(test_an_error_of_a_newer_manager_keeps_its_words),
                cmocka_unit_test(test_a_message_is_one_line_without_escapes),
                cmocka_unit_test(test_nonsense_is_a_bad_answer),
                cmocka_unit_test(test_deep_nesting_is_refused),
                cmocka_unit_test(test_an_answer_cut_short_is_a_lost_connection),
                cmocka_unit_test(test_an_answer_above_1_mib_is_refused_without_reading_on),
                cmocka_unit_test(test_a_long_list_arrives_whole),
                cmocka_unit_test(
                        test_silence_ends_the_call_and_a_late_answer_is_not_taken_for_the_next),
                cmocka_unit_test(test_what_was_not_asked_for_is_not_taken_for_the_next_answer),
                cmocka_unit_test(test_a_client_connects_again_to_the_next_manager),
                cmocka_unit_test(test_without_a_manager_the_message_names_the_socket),
                cmocka_unit_test(test_a_manager_that_is_starting_is_waited_for),
                cmocka_unit_test(test_a_run_directory_that_no_socket_can_have_is_refused),
                cmocka_unit_test(test_bad_arguments_never_reach_the_manager),
                cmocka_unit_test(
                        test_options_of_a_newer_program_are_refused_only_when_they_are_set),
                cmocka_unit_test(test_two_threads_with_a_client_each_do_not_meet),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
