/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>

#include <openvgpu/statistics.h>
#include <openvgpu/usage.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "fake/answers.h"
#include "fake/manager.h"

DEFINE_CLEANUP(struct fake_manager *, fake_manager_free);
DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_usage_list *, vgpu_usage_list_free);
DEFINE_CLEANUP(struct vgpu_usage_account_list *, vgpu_usage_account_list_free);
DEFINE_CLEANUP(struct vgpu_usage_snapshot *, vgpu_usage_snapshot_free);

static struct vgpu_client *new_client(const struct fake_manager *fake)
{
        struct vgpu_client *client = NULL;

        assert_int_equal(vgpu_client_new(&client, fake_manager_get_directory(fake)), 0);
        return client;
}

static void test_a_snapshot_outlives_its_client(void **state)
{
        static const struct fake_step step = { "GetUtilization",
                                               .answers = { ANSWER(UTILIZATION) } };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_usage_snapshot_freep) struct vgpu_usage_snapshot *snapshot = NULL;
        const struct vgpu_usage_instance *train;
        (void)state;

        assert_int_equal(vgpu_usage_take_snapshot(client, &snapshot), 0);
        vgpu_client_free(client);
        assert_int_equal(snapshot->n_devices, 1);
        assert_string_equal(snapshot->devices[0]->source, "turns");
        assert_int_equal(snapshot->devices[0]->percents->gpu, 98);
        assert_int_equal(snapshot->n_instances, 2);
        train = snapshot->instances[0];
        assert_string_equal(train->name, "train");
        assert_int_equal(train->state, VGPU_INSTANCE_RUNNING);
        assert_true(train->entitled == 75);
        assert_int_equal(train->percents->memory, 40);
        assert_true(train->seconds->gpu == 3725.5);
        assert_int_equal(train->n_processes, 2);
        assert_int_equal(train->processes[1]->pid, 4712);
        assert_int_equal(train->processes[0]->percents->encoder, 3);
        assert_int_equal(snapshot->instances[1]->n_processes, 0);
}

static void test_a_short_snapshot_is_asked_for(void **state)
{
        static const struct fake_step steps[] = {
                { "GetUtilization", .answers = { ANSWER(UTILIZATION) } },
                { "GetUtilization",
                  .answers = { ANSWER("'devices':[],'vgpus':[{'name':'a','uuid':'u','device':1,"
                                      "'state':'idle','frame_buffer':2,'frame_buffer_used':1,"
                                      "'entitled':0.0,'id':9,'owner':1000,'process_count':3,"
                                      "'gpu_seconds_total':7.5," PERCENTS(0, 0, 0) "," SECONDS(
                                              1.0) ",'processes':[]}]") } },
        };
        struct vgpu_usage_snapshot_options options = VGPU_USAGE_SNAPSHOT_OPTIONS_INIT;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_usage_snapshot_freep) struct vgpu_usage_snapshot *old = NULL, *new = NULL;
        (void)state;

        assert_int_equal(vgpu_usage_take_snapshot_with(client, NULL, &old), 0);
        assert_string_equal(
                fake_manager_get_call(fake, 0),
                "{'method':'org.openvgpu.GetUtilization','parameters':{},'more':false}");
        assert_int_equal(old->instances[0]->n_programs, 0); /* a vgpud that does not say */
        options.is_without_processes = true;
        assert_int_equal(vgpu_usage_take_snapshot_with(client, &options, &new), 0);
        assert_string_equal(
                fake_manager_get_call(fake, 1),
                "{'method':'org.openvgpu.GetUtilization','parameters':{'short':true},'more':false}");
        assert_int_equal(new->instances[0]->id, 9);
        assert_int_equal(new->instances[0]->owner, 1000);
        assert_int_equal(new->instances[0]->n_programs, 3);
        assert_true(new->instances[0]->gpu_seconds_total == 7.5);
}

#define LEDGER "'started':5.0,'ledger':{'working':true},"
#define COUNT_BYTES(buckets, bytes)                                                                    \
        "{'operation':'suspend','result':'done','count':3,'seconds':1.5,'bytes':7,'buckets':[" buckets \
        "],'byte_buckets':[" bytes "],'last_bytes':4,'pre_copies':1,'pre_copy_rounds':3,"              \
        "'pre_copy_bytes':6,'pre_copy_seconds':0.5,'pre_copy_stopped_seconds':0.25}"
#define COUNT(buckets)                                                                                 \
        "{'operation':'suspend','result':'done','count':3,'seconds':1.5,'bytes':7,'buckets':[" buckets \
        "]}"

static void test_statistics(void **state)
{
        static const struct fake_step steps[] = {
                { "GetStatistics",
                  .answers = { ANSWER(LEDGER
                                      "'buckets':[0.5,1],'operations':[" COUNT("1,2") "]") } },
                { "GetStatistics",
                  .answers = { ANSWER(
                          LEDGER "'buckets':[1],'byte_buckets':[0,4,8],'operations':[" COUNT_BYTES(
                                  "2", "0,1,3") "]") } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_statistics *statistics = NULL;
        (void)state;

        assert_int_equal(vgpu_statistics_lookup(client, &statistics), 0);
        assert_true(statistics->started == 5);
        assert_true(statistics->is_ledger_fine);
        assert_int_equal(statistics->n_bounds, 2);
        assert_true(statistics->bounds[1] == 1);
        assert_int_equal(statistics->n_operations, 1);
        assert_string_equal(statistics->operations[0]->result, "done");
        assert_true(statistics->operations[0]->seconds == 1.5);
        assert_int_equal(statistics->operations[0]->buckets[1], 2);
        assert_string_equal(statistics->operations[0]->last_vgpu,
                            ""); /* a vgpud that does not say */
        assert_int_equal(statistics->n_byte_bounds, 0);
        assert_int_equal(statistics->operations[0]->n_pre_copies, 0);
        assert_null(vgpu_statistics_free(statistics));

        assert_int_equal(vgpu_statistics_lookup(client, &statistics), 0);
        assert_int_equal(statistics->n_byte_bounds, 3);
        assert_int_equal(statistics->byte_bounds[2], 8);
        assert_int_equal(statistics->operations[0]->buckets[0], 2);
        assert_int_equal(statistics->operations[0]->byte_buckets[2], 3);
        assert_int_equal(statistics->operations[0]->last_bytes, 4);
        assert_int_equal(statistics->operations[0]->n_pre_copies, 1);
        assert_int_equal(statistics->operations[0]->n_pre_copy_rounds, 3);
        assert_int_equal(statistics->operations[0]->pre_copy_bytes, 6);
        assert_true(statistics->operations[0]->pre_copy_seconds == 0.5);
        assert_true(statistics->operations[0]->pre_copy_stopped_seconds == 0.25);
        assert_null(vgpu_statistics_free(statistics));
}

static void test_broken_statistics_are_bad_answers(void **state)
{
        static const struct fake_step steps[] = {
                { "GetStatistics", .answers = { ANSWER("'started':5.0") } },
                { "GetStatistics", .answers = { ANSWER(LEDGER "'operations':[]") } },
                { "GetStatistics",
                  .answers = { ANSWER(LEDGER "'buckets':['x'],'operations':[]") } },
                { "GetStatistics",
                  .answers = { ANSWER(LEDGER "'buckets':[2,1],'operations':[]") } },
                { "GetStatistics",
                  .answers = { ANSWER(LEDGER "'buckets':[1],'operations':[" COUNT("1,2") "]") } },
                { "GetStatistics",
                  .answers = { ANSWER(LEDGER "'buckets':[1],'operations':[" COUNT("-1") "]") } },
                { "GetStatistics",
                  .answers = { ANSWER(LEDGER
                                      "'buckets':[1],'byte_buckets':[2,1],'operations':[]") } },
                { "GetStatistics",
                  .answers = { ANSWER(LEDGER
                                      "'buckets':[1],'byte_buckets':[0.5],'operations':[]") } },
                { "GetStatistics",
                  .answers = { ANSWER(
                          LEDGER
                          "'buckets':[1],'byte_buckets':[1],'operations':[" COUNT("1") "]") } },
        };
        enum { N = sizeof(steps) / sizeof(steps[0]) };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, N);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_statistics *statistics = NULL;
        (void)state;

        for (int i = 0; i < N; i++)
                assert_int_equal(vgpu_statistics_lookup(client, &statistics), -EPROTO);
        assert_null(statistics);
}

static void test_broken_snapshots_are_bad_answers(void **state)
{
        static const struct fake_step steps[] = {
                { "GetUtilization", .answers = { ANSWER("'devices':[]") } },
                { "GetUtilization", .answers = { ANSWER("'devices':[{}],'vgpus':[]") } },
                { "GetUtilization", .answers = { ANSWER("'devices':[],'vgpus':[{'name':7}]") } },
                { "GetUtilization",
                  .answers = { ANSWER("'devices':[],'vgpus':[" USE_SERVE_WITHOUT_PROCESSES "]") } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 4);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        struct vgpu_usage_snapshot *snapshot = NULL;
        (void)state;

        for (int i = 0; i < 4; i++)
                assert_int_equal(vgpu_usage_take_snapshot(client, &snapshot), -EPROTO);
        assert_null(snapshot);
}

static void test_pages_become_one_list(void **state)
{
        static const struct fake_step steps[] = {
                { "GetAccounting", .answers = { ANSWER("'records':[" ACCOUNT_ENDED "," ACCOUNT_ENDED
                                                       "],'more':true") } },
                { "GetAccounting", .answers = { ANSWER("'records':[" ACCOUNT "],'more':false") } },
        };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 2);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_usage_account_list_freep) struct vgpu_usage_account_list *list = NULL;
        (void)state;

        assert_int_equal(vgpu_usage_lookup_accounts(client, "train", &list), 0);
        assert_int_equal(list->n_accounts, 3);
        assert_false(list->accounts[0]->is_running);
        assert_true(list->accounts[2]->is_running);
        assert_int_equal(list->accounts[2]->pid, 4711);
        assert_int_equal(list->accounts[2]->gpu_utilization, 62);
        assert_true(list->accounts[2]->life == 6000);
        assert_string_equal(fake_manager_get_call(fake, 1),
                            "{'method':'org.openvgpu.GetAccounting','parameters':{'name':'train',"
                            "'offset':2},'more':false}");
}

static void test_an_empty_page_ends_the_list(void **state)
{
        static const struct fake_step step = { "GetAccounting",
                                               .answers = { ANSWER("'records':[],'more':true") } };
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(&step, 1);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_usage_account_list_freep) struct vgpu_usage_account_list *list = NULL;
        (void)state;

        assert_int_equal(vgpu_usage_lookup_accounts(client, "train", &list), 0);
        assert_int_equal(list->n_accounts, 0);
}

static void test_usage_is_asked_for_and_told(void **state)
{
        static const struct fake_step steps[] = {
                { "GetUsage", .answers = { ANSWER("'rows':[" USAGE_TENANT "],'more':false") } },
                { "GetUsage", .answers = { ANSWER("'rows':[{'tenant':0}],'more':false") } },
                { "ClearVgpuAccounting", .answers = { ANSWER("'cleared':12") } },
        };
        struct vgpu_usage_options options = VGPU_USAGE_OPTIONS_INIT;
        CLEANUP(fake_manager_freep) struct fake_manager *fake = fake_manager_new(steps, 3);
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = new_client(fake);
        CLEANUP(vgpu_usage_list_freep) struct vgpu_usage_list *list = NULL;
        struct vgpu_usage_list *none = NULL;
        uint32_t cleared;
        (void)state;

        options.since = 1764000000;
        options.until = 1764086400;
        options.group = VGPU_USAGE_BY_TENANT;
        assert_int_equal(vgpu_usage_lookup(client, &options, &list), 0);
        assert_int_equal(list->n_rows, 1);
        assert_int_equal(list->rows[0]->tenant, 1000);
        assert_string_equal(list->rows[0]->vgpu, "");
        assert_true(list->rows[0]->seconds->gpu == 86400.25);
        assert_true(list->rows[0]->quota_gib_hours == 960);
        assert_string_equal(fake_manager_get_call(fake, 0),
                            "{'method':'org.openvgpu.GetUsage','parameters':{'since':1764000000.0,"
                            "'until':1764086400.0,'by':'tenant'},'more':false}");
        assert_int_equal(vgpu_usage_lookup(client, &options, &none), -EPROTO);
        options.until = INFINITY;
        assert_int_equal(vgpu_usage_lookup(client, &options, &none), -EINVAL);
        assert_string_equal(vgpu_client_get_error(client)->parameter, "until");
        options.since = -1;
        assert_int_equal(vgpu_usage_lookup(client, &options, &none), -EINVAL);
        assert_string_equal(vgpu_client_get_error(client)->parameter, "since");
        assert_int_equal(vgpu_usage_clear_accounts(client, "train", &cleared), 0);
        assert_int_equal(cleared, 12);
        assert_null(none);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_snapshot_outlives_its_client),
                cmocka_unit_test(test_a_short_snapshot_is_asked_for),
                cmocka_unit_test(test_statistics),
                cmocka_unit_test(test_broken_statistics_are_bad_answers),
                cmocka_unit_test(test_broken_snapshots_are_bad_answers),
                cmocka_unit_test(test_pages_become_one_list),
                cmocka_unit_test(test_an_empty_page_ends_the_list),
                cmocka_unit_test(test_usage_is_asked_for_and_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
