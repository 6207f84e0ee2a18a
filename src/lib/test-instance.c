/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <openvgpu/instance.h>
#include <openvgpu/manager.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/manager.h"
#include "lib/instance.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);
DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_instance_list *, vgpu_instance_list_free);
DEFINE_CLEANUP(struct vgpu_manager *, vgpu_manager_free);

static struct vgpu_client *new_client(const struct fake_manager *fake)
{
        struct vgpu_client *client = NULL;

        assert_int_equal(vgpu_client_new(&client, fake_manager_get_directory(fake)), 0);
        return client;
}

static void test_a_vgpu_outlives_the_client_that_asked_for_it(void **state)
{
        static const struct fake_step step = { "ListVgpus",
                                               .answers = { ANSWER("'vgpus':[" TRAIN "]") } };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *train = NULL;
        (void)state;

        assert_int_equal(vgpu_instance_lookup(client, "train", &train), 0);
        vgpu_client_free(client);

        assert_string_equal(train->name, "train");
        assert_int_equal(train->id, 7);
        assert_string_equal(train->uuid, "0a1b2c3d-0000-4000-8000-00000000000a");
        assert_int_equal(train->state, VGPU_INSTANCE_RUNNING);
        assert_int_equal(train->frame_buffer, 42949672960);
        assert_false(train->is_transient);
        assert_int_equal(train->created_seconds, 1764000000);
        assert_int_equal(train->n_processes, 1);
        assert_int_equal(train->processes[0]->pid, 4711);
        assert_int_equal(train->processes[0]->n_launches, 120034);
}

static void test_all_vgpus_are_listed_in_the_order_of_the_manager(void **state)
{
        static const struct fake_step steps[] = {
                { "ListVgpus", .answers = { ANSWER("'vgpus':[" TRAIN "," TRAIN_IDLE "]") } },
                { "ListVgpus", .answers = { ANSWER("'vgpus':[" TRAIN ",{}]") } },
                { "ListVgpus", .answers = { ANSWER("'vgpus':7") } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 3);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_instance_list_freep) struct vgpu_instance_list *list = NULL;
        struct vgpu_instance_list *none = NULL;
        (void)state;

        assert_int_equal(vgpu_instance_lookup_all(client, &list), 0);
        assert_int_equal(list->n_instances, 2);
        assert_int_equal(list->instances[0]->n_processes, 1);
        assert_int_equal(list->instances[1]->state, VGPU_INSTANCE_IDLE);
        assert_int_equal(vgpu_instance_lookup_all(client, &none), -EPROTO);
        assert_int_equal(vgpu_instance_lookup_all(client, &none), -EPROTO);
        assert_null(none);
}

static void test_an_answer_without_the_vgpu_is_a_bad_answer(void **state)
{
        static const struct fake_step steps[] = {
                { "ListVgpus", .answers = { ANSWER("'vgpus':[]") } },
                { "CreateVgpu", .answers = { ANSWER("") } },
                { "RemoveVgpu", .answers = { ANSWER("'vgpu':null") } },
        };
        struct vgpu_instance_options options = VGPU_INSTANCE_OPTIONS_INIT;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 3);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_instance *instance = NULL;
        (void)state;

        options.frame_buffer = 1;
        assert_int_equal(vgpu_instance_lookup(client, "train", &instance), -EPROTO);
        assert_int_equal(vgpu_instance_create(client, &options, &instance), -EPROTO);
        assert_int_equal(vgpu_instance_remove(client, "train", &instance), -EPROTO);
        assert_null(instance);
}

static void test_only_what_is_asked_for_is_sent(void **state)
{
        static const struct fake_step steps[] = {
                { "CreateVgpu", .answers = { ANSWER("'vgpu':" TRAIN_IDLE) } },
                { "CreateVgpu", .answers = { ANSWER("'vgpu':" TRAIN_IDLE) } },
                { "RemoveVgpu", .answers = { ANSWER("'vgpu':" TRAIN_IDLE) } },
        };
        struct vgpu_instance_options options = VGPU_INSTANCE_OPTIONS_INIT;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 3);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *a = NULL, *b = NULL;
        (void)state;

        options.frame_buffer = 1073741824;
        assert_int_equal(vgpu_instance_create(client, &options, &a), 0);
        options.name = "train";
        options.device = "1";
        options.is_transient = true;
        assert_int_equal(vgpu_instance_create(client, &options, &b), 0);
        assert_int_equal(vgpu_instance_remove(client, "train", NULL), 0);

        assert_string_equal(fake_manager_get_call(fake, 0),
                            "{'method':'org.openvgpu.CreateVgpu','parameters':"
                            "{'frame_buffer':1073741824},'more':false}");
        assert_string_equal(fake_manager_get_call(fake, 1),
                            "{'method':'org.openvgpu.CreateVgpu','parameters':{'name':'train',"
                            "'device':'1','frame_buffer':1073741824,'transient':true},"
                            "'more':false}");
        assert_string_equal(fake_manager_get_call(fake, 2),
                            "{'method':'org.openvgpu.RemoveVgpu','parameters':{'name':'train'},"
                            "'more':false}");
}

static void test_a_dry_creation_has_no_vgpu(void **state)
{
        static const struct fake_step step = { "CreateVgpu", .answers = { ANSWER("") } };
        struct vgpu_instance_options options = VGPU_INSTANCE_OPTIONS_INIT;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *instance = NULL;
        (void)state;

        options.frame_buffer = 1073741824;
        options.is_dry = true;
        assert_int_equal(vgpu_instance_create(client, &options, &instance), 0);
        assert_null(instance);
        assert_string_equal(fake_manager_get_call(fake, 0),
                            "{'method':'org.openvgpu.CreateVgpu','parameters':"
                            "{'frame_buffer':1073741824,'dry':true},'more':false}");
}

static void test_a_caller_need_not_want_the_answer(void **state)
{
        static const struct fake_step steps[] = {
                { "CreateVgpu", .answers = { ANSWER("'vgpu':" TRAIN_IDLE) } },
                { "ListVgpus", .answers = { ANSWER("'vgpus':[" TRAIN_IDLE "]") } },
        };
        struct vgpu_instance_options options = VGPU_INSTANCE_OPTIONS_INIT;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        (void)state;

        options.frame_buffer = 1;
        assert_int_equal(vgpu_instance_create(client, &options, NULL), 0);
        assert_int_equal(vgpu_instance_lookup_all(client, NULL), 0);
}

static void test_states_have_the_protocols_names_and_a_new_one_is_unknown(void **state)
{
        static const struct fake_step step = {
                "ListVgpus", .answers = { ANSWER("'vgpus':[" VGPU("train", "paused", 0, "") "]") }
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_instance_freep) struct vgpu_instance *train = NULL;
        (void)state;

        assert_int_equal(vgpu_instance_lookup(client, "train", &train), 0);
        assert_int_equal(train->state, VGPU_INSTANCE_UNKNOWN);
        assert_string_equal(vgpu_instance_state_get_name(VGPU_INSTANCE_EVICTED), "evicted");
        assert_string_equal(vgpu_instance_state_get_name((enum vgpu_instance_state)99), "unknown");
}

static void test_the_manager_tells_of_itself_and_its_pool(void **state)
{
        static const struct fake_step steps[] = {
                { "GetInfo", .answers = { ANSWER(INFO) } },
                { "GetInfo", .answers = { ANSWER("'version':'9'") } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_manager_freep) struct vgpu_manager *manager = NULL;
        struct vgpu_manager *none = NULL;
        (void)state;

        assert_int_equal(vgpu_manager_lookup(client, &manager), 0);
        assert_string_equal(manager->version, "0.1.0");
        assert_int_equal(manager->cuda_driver_version, 13000);
        assert_int_equal(manager->pool->limit, 68719476736);
        assert_int_equal(vgpu_manager_lookup(client, &none), -EPROTO);
        assert_null(none);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_vgpu_outlives_the_client_that_asked_for_it),
                cmocka_unit_test(test_all_vgpus_are_listed_in_the_order_of_the_manager),
                cmocka_unit_test(test_an_answer_without_the_vgpu_is_a_bad_answer),
                cmocka_unit_test(test_only_what_is_asked_for_is_sent),
                cmocka_unit_test(test_a_dry_creation_has_no_vgpu),
                cmocka_unit_test(test_a_caller_need_not_want_the_answer),
                cmocka_unit_test(test_states_have_the_protocols_names_and_a_new_one_is_unknown),
                cmocka_unit_test(test_the_manager_tells_of_itself_and_its_pool),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
