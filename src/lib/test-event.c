/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>

#include <openvgpu/event.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/manager.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);
DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_event_list *, vgpu_event_list_free);

#define EVENT(id, event, more)                                                           \
        "{'id':" #id ",'time':1764000000.5,'vgpu':'train','vgpu_uuid':'u','owner':1000," \
        "'event':'" event "','device':1," more "'message':'words'}"

static struct vgpu_client *new_client(const struct fake_manager *fake)
{
        struct vgpu_client *client = NULL;

        assert_int_equal(vgpu_client_new(&client, fake_manager_get_directory(fake)), 0);
        return client;
}

static void test_pages_become_one_list(void **state)
{
        static const struct fake_step steps[] = {
                { "ListEvents",
                  .answers = { ANSWER("'events':[" EVENT(4, "created", "") "," EVENT(
                          7, "suspended", "'bytes':4096,'seconds':0.5,") "],'more':true") } },
                { "ListEvents", .answers = { ANSWER("'events':[" EVENT(
                                        9, "process-began", "'pid':4711,") "],'more':false") } },
        };
        struct vgpu_event_options options = VGPU_EVENT_OPTIONS_INIT;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_event_list_freep) struct vgpu_event_list *list = NULL;
        (void)state;

        options.name = "train";
        options.since = 1764000000;
        assert_int_equal(vgpu_event_lookup(client, &options, &list), 0);
        assert_int_equal(list->n_events, 3);
        assert_int_equal(list->events[0]->id, 4);
        assert_true(list->events[0]->time == 1764000000.5);
        assert_int_equal(list->events[0]->pid, 0);
        assert_int_equal(list->events[1]->bytes, 4096);
        assert_true(list->events[1]->seconds == 0.5);
        assert_int_equal(list->events[2]->pid, 4711);
        assert_string_equal(list->events[2]->message, "words");
        assert_string_equal(fake_manager_get_call(fake, 0),
                            "{'method':'org.openvgpu.ListEvents','parameters':{'name':'train',"
                            "'since':1764000000.0},'more':false}");
        assert_string_equal(fake_manager_get_call(fake, 1),
                            "{'method':'org.openvgpu.ListEvents','parameters':{'name':'train',"
                            "'since':1764000000.0,'after':7},'more':false}");
}

static void test_broken_answers_are_bad(void **state)
{
        static const struct fake_step steps[] = {
                { "ListEvents", .answers = { ANSWER("'more':false") } },
                { "ListEvents", .answers = { ANSWER("'events':[{'id':1}],'more':false") } },
                { "ListEvents", .answers = { ANSWER("'events':[],'more':true") } }, /* for ever? */
        };
        struct vgpu_event_options options = VGPU_EVENT_OPTIONS_INIT;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 3);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_event_list_freep) struct vgpu_event_list *list = NULL;
        (void)state;

        assert_int_equal(vgpu_event_lookup(client, &options, &list), -EPROTO);
        assert_int_equal(vgpu_event_lookup(client, &options, &list), -EPROTO);
        assert_null(list);
        assert_int_equal(vgpu_event_lookup(client, &options, &list), 0);
        assert_int_equal(list->n_events, 0);
        options.since = NAN;
        assert_int_equal(vgpu_event_lookup(client, &options, &list), -EINVAL);
        options.since = -1;
        assert_int_equal(vgpu_event_lookup(client, &options, &list), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pages_become_one_list),
                cmocka_unit_test(test_broken_answers_are_bad),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
