/* SPDX-License-Identifier: Apache-2.0 */
/* A struct becomes JSON and the same struct again. JSON that is nonsense is refused by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openvgpu/instance.h>
#include <openvgpu/operation.h>
#include <openvgpu/time-sharing.h>
#include <openvgpu/usage.h>

#include "base/test.h"
#include "record/records.h"
#include "record/writer.h"

static const struct vgpu_process train_process = {
        .pid = 77,
        .name = "python3",
        .memory_used = 4096,
        .memory_movable = 2048,
        .n_launches = 9,
        .container_name = "web",
        .context = "unwhole",
        .context_reason = "a channel is busy",
};
static const struct vgpu_process *const train_processes[] = { &train_process };
static const struct vgpu_instance train = {
        .id = 3,
        .name = "train",
        .uuid = "0a0b",
        .device = 1,
        .device_uuid = "GPU-1",
        .state = VGPU_INSTANCE_EVICTED,
        .frame_buffer = 1ull << 40,
        .frame_buffer_used = 4096,
        .is_transient = true,
        .owner = 4294967294u,
        .created_seconds = 1764000000,
        .n_processes = 1,
        .processes = train_processes,
        .share = 25,
        .idle_after = 2.5,
        .idle = -1,
        .demand = "",
        .demand_reason = "no \"room\"",
        .swap_class = "batch",
        .pool_group = "models",
        .outside = "",
        .gone = "",
};

/* The same without JSON's objects; with whatever @text has behind it. */
static int parse(const struct record *record, const char *text, void *object,
                 struct record_memory *memory, char **ret_copy)
{
        char *at = *ret_copy = strdup(text);
        int r;

        assert_non_null(at);
        r = record_parse(record, &at, object, memory);
        return r == 0 && *at ? -EBADMSG : r;
}

static json_t *write_and_parse(const struct record *record, const void *object)
{
        CLEANUP(freep) char *text = NULL;
        struct writer writer = { 0 };
        json_t *json;

        writer_begin_object(&writer, NULL);
        record_write(record, object, &writer);
        writer_end_object(&writer);
        text = writer_take(&writer);
        assert_non_null(text);
        json = json_loads(text, 0, NULL);
        assert_non_null(json);
        return json;
}

static void check_train(const struct vgpu_instance *instance)
{
        assert_int_equal(instance->id, 3);
        assert_string_equal(instance->name, "train");
        assert_int_equal(instance->state, VGPU_INSTANCE_EVICTED);
        assert_true(instance->frame_buffer == 1ull << 40);
        assert_true(instance->is_transient);
        assert_true(instance->owner == 4294967294u);
        assert_int_equal(instance->created_seconds, 1764000000);
        assert_int_equal(instance->share, 25);
        assert_true(instance->idle_after == 2.5);
        assert_true(instance->idle == 0); /* was not known, so it was left out */
        assert_string_equal(instance->demand_reason, "no \"room\"");
        assert_int_equal(instance->n_processes, 1);
        assert_int_equal(instance->processes[0]->pid, 77);
        assert_string_equal(instance->processes[0]->name, "python3");
        assert_int_equal(instance->processes[0]->n_launches, 9);
        assert_string_equal(instance->processes[0]->container_name, "web");
}

static void test_what_is_made_and_written_is_read_back(void **state)
{
        CLEANUP(json_decrefp) json_t *made = record_make(&record_instance, &train);
        CLEANUP(json_decrefp) json_t *written = write_and_parse(&record_instance, &train);
        const json_t *forms[] = { made, written };
        (void)state;

        for (size_t i = 0; i < 2; i++) {
                struct record_memory memory = { 0 };
                struct vgpu_instance instance = { 0 };
                const char *bad = NULL;

                assert_null(json_object_get(forms[i], "idle"));
                assert_int_equal(record_read(&record_instance, forms[i], &instance, &memory, &bad),
                                 0);
                check_train(&instance);
                record_memory_deinit(&memory);
        }
}

static void test_a_list_that_is_null_is_left_out(void **state)
{
        struct vgpu_instance instance = train;
        CLEANUP(json_decrefp) json_t *json = NULL;
        (void)state;

        instance.processes = NULL;
        json = write_and_parse(&record_instance, &instance);
        assert_null(json_object_get(json, "processes"));
        assert_int_equal(json_object_size(json),
                         record_instance.n_fields - 3); /* "idle" and "parts" too */
}

/* Replaces one member of a good object; NULL: removes it. */
static int read_with(const char *name, const char *value, const char **ret_bad)
{
        CLEANUP(json_decrefp) json_t *json = record_make(&record_instance, &train);
        struct record_memory memory = { 0 };
        struct vgpu_instance instance = { 0 };
        int r;

        if (value)
                json_object_set_new(json, name, json_loads(value, JSON_DECODE_ANY, NULL));
        else
                json_object_del(json, name);
        r = record_read(&record_instance, json, &instance, &memory, ret_bad);
        record_memory_deinit(&memory);
        return r;
}

static void test_nonsense_is_refused_by_name(void **state)
{
        static const struct {
                const char *name, *value;
        } cases[] = {
                { "id", "-1" },      { "id", "4294967296" },    { "id", "\"3\"" },
                { "id", NULL },      { "name", "7" },           { "name", "null" },
                { "state", "2" },    { "frame_buffer", "1.5" }, { "transient", "1" },
                { "created", "-1" }, { "created", "1e300" },    { "idle_after", "-0.5" },
                { "demand", "[]" },  { "processes", "{}" },     { "processes", NULL },
        };
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const char *bad = NULL;

                assert_int_equal(read_with(cases[i].name, cases[i].value, &bad), -EBADMSG);
                assert_string_equal(bad, cases[i].name);
        }
}

static void test_nonsense_in_a_list_is_refused_by_its_own_name(void **state)
{
        const char *bad = NULL;
        (void)state;

        assert_int_equal(read_with("processes", "[{\"pid\": 1, \"name\": 2}]", &bad), -EBADMSG);
        assert_string_equal(bad, "name");
        assert_int_equal(read_with("processes", "[7]", &bad), -EBADMSG);
        assert_string_equal(bad, "pid");
}

static void test_what_an_older_manager_leaves_out_is_empty(void **state)
{
        CLEANUP(json_decrefp) json_t *json = record_make(&record_instance, &train);
        struct record_memory memory = { 0 };
        struct vgpu_instance instance = { 0 };
        const char *bad = NULL;
        (void)state;

        json_object_del(json, "share");
        json_object_del(json, "demand");
        json_object_set_new(json, "demand_reason", json_null());
        json_object_set_new(json, "a_later_member", json_true());
        assert_int_equal(record_read(&record_instance, json, &instance, &memory, &bad), 0);
        assert_int_equal(instance.share, 0);
        assert_string_equal(instance.demand, "");
        assert_string_equal(instance.demand_reason, "");
        record_memory_deinit(&memory);
}

static void test_an_unknown_word_is_unknown(void **state)
{
        CLEANUP(json_decrefp) json_t *json = record_make(&record_instance, &train);
        struct record_memory memory = { 0 };
        struct vgpu_instance instance = { 0 };
        const char *bad = NULL;
        (void)state;

        json_object_set_new(json, "state", json_string("dreaming"));
        assert_int_equal(record_read(&record_instance, json, &instance, &memory, &bad), 0);
        assert_int_equal(instance.state, VGPU_INSTANCE_UNKNOWN);
        record_memory_deinit(&memory);
}

static void test_a_part_has_an_object_of_its_own_or_none(void **state)
{
        const struct vgpu_operation_report report = {
                .instance = &train, .bytes = 5, .lost = "", .left_behind = ""
        };
        const struct vgpu_usage_seconds seconds = { .gpu = 1.5, .ofa = 2 };
        const struct vgpu_usage_account account = { .id = 1, .name = "a", .seconds = &seconds };
        CLEANUP(json_decrefp) json_t *made = record_make(&record_report, &report);
        CLEANUP(json_decrefp) json_t *flat = write_and_parse(&record_account, &account);
        struct vgpu_usage_account read = { 0 };
        struct record_memory memory = { 0 };
        const char *bad = NULL;
        (void)state;

        assert_int_equal(json_integer_value(json_object_get(json_object_get(made, "vgpu"), "id")),
                         3);
        assert_true(json_real_value(json_object_get(flat, "gpu_seconds")) == 1.5);
        assert_int_equal(record_read(&record_account, flat, &read, &memory, &bad), 0);
        assert_true(read.seconds->gpu == 1.5 && read.seconds->ofa == 2);
        record_memory_deinit(&memory);

        json_object_del(flat, "ofa_seconds");
        assert_int_equal(record_read(&record_account, flat, &read, &memory, &bad), -EBADMSG);
        assert_string_equal(bad, "ofa_seconds");
        record_memory_deinit(&memory);
}

static void check_parsed(const struct record *record, const void *object, void *ret_object,
                         struct record_memory *memory, char **ret_copy)
{
        CLEANUP(freep) char *text = NULL;
        struct writer writer = { 0 };

        writer_begin_object(&writer, NULL);
        record_write(record, object, &writer);
        writer_end_object(&writer);
        text = writer_take(&writer);
        assert_non_null(text);
        assert_int_equal(parse(record, text, ret_object, memory, ret_copy), 0);
}

static void test_what_is_written_is_parsed(void **state)
{
        const struct vgpu_usage_seconds seconds = { .gpu = 1.5, .memory = 0.1, .ofa = 1e-7 };
        const struct vgpu_usage_account account = { .id = 1,
                                                    .pid = INT32_MIN,
                                                    .name = "a\\\"b",
                                                    .started = 1764000000.123456,
                                                    .life = 0x1p53,
                                                    .seconds = &seconds };
        struct record_memory memory = { 0 };
        struct vgpu_instance instance = { 0 };
        struct vgpu_usage_account read = { 0 };
        char *text, *other;
        (void)state;

        check_parsed(&record_instance, &train, &instance, &memory, &text);
        check_train(&instance);
        check_parsed(&record_account, &account, &read, &memory, &other);
        assert_string_equal(read.name, "a\\\"b");
        assert_int_equal(read.pid, INT32_MIN);
        assert_true(read.started == 1764000000.123456 && read.life == 0x1p53);
        assert_true(read.seconds->gpu == 1.5 && read.seconds->memory == 0.1 &&
                    read.seconds->ofa == 1e-7);
        record_memory_deinit(&memory);
        free(text);
        free(other);
}

#define ENTRY(more)                                                                                     \
        "{\"number\":1,\"timestamp\":2,\"id\":3,\"name\":\"a\",\"run\":4,\"run_total\":5,\"target\":6," \
        "\"preempted\":7,\"weight\":8" more "}"
#define LOG(entries) "{\"next\":9,\"turns\":[" entries "]}"

static void test_many_items_are_parsed_and_what_is_new_is_skipped(void **state)
{
        static const char text[] = LOG(ENTRY() "," ENTRY(
                ",\"new\":{\"a\":[1,-2.5e3,true,null,\"x\"],\"b\":{}}") "," ENTRY() "," ENTRY() "," ENTRY() "," ENTRY() "," ENTRY() "," ENTRY() "," ENTRY());
        struct record_memory memory = { 0 };
        struct vgpu_time_sharing_log log = { 0 };
        char *copy;
        (void)state;

        assert_int_equal(parse(&record_turns_log, text, &log, &memory, &copy), 0);
        assert_int_equal(log.next, 9);
        assert_int_equal(log.n_entries, 9);
        for (size_t i = 0; i < log.n_entries; i++) {
                assert_int_equal(log.entries[i]->number, 1);
                assert_string_equal(log.entries[i]->name, "a");
                assert_int_equal(log.entries[i]->weight, 8);
        }
        record_memory_deinit(&memory);
        free(copy);
}

/* Some of it is right: then record_read() has to say so. */
static void test_what_is_unusual_is_not_parsed(void **state)
{
        static const char *const texts[] = {
                "",
                "{",
                "[]",
                "null",
                LOG() " ",
                LOG() "x",
                "{\"next\":9}",
                "{ \"next\":9,\"turns\":[]}",
                "{\"next\":9,\"turns\":[],}",
                "{\"next\":9,\"turns\":[",
                "{\"next\":9,\"turns\":[{}]}",
                "{\"next\":9,\"turns\":{}}",
                "{\"next\":9,\"turns\":null}",
                "{\"next\":9,\"next\":9,\"turns\":[]}",
                "{\"next\":\"9\",\"turns\":[]}",
                "{\"next\":-1,\"turns\":[]}",
                "{\"next\":09,\"turns\":[]}",
                "{\"next\":9.0,\"turns\":[]}",
                "{\"next\":9.,\"turns\":[]}",
                "{\"next\":9223372036854775808,\"turns\":[]}",
                "{\"next\":99999999999999999999,\"turns\":[]}",
                LOG(ENTRY(",\"x\":\"\xc3\"")),
                LOG(ENTRY(",\"x\":\"\\u0041\"")),
                LOG(ENTRY(",\"x\":1.e5")),
                LOG(ENTRY(",\"x\":nan")),
                LOG(ENTRY(",\"x\":0x10")),
                LOG(ENTRY(",\"x\":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]")),
        };
        (void)state;

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                struct record_memory memory = { 0 };
                struct vgpu_time_sharing_log log = { 0 };
                char *copy;

                assert_int_equal(parse(&record_turns_log, texts[i], &log, &memory, &copy),
                                 -EBADMSG);
                record_memory_deinit(&memory);
                free(copy);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_made_and_written_is_read_back),
                cmocka_unit_test(test_a_list_that_is_null_is_left_out),
                cmocka_unit_test(test_nonsense_is_refused_by_name),
                cmocka_unit_test(test_nonsense_in_a_list_is_refused_by_its_own_name),
                cmocka_unit_test(test_what_an_older_manager_leaves_out_is_empty),
                cmocka_unit_test(test_an_unknown_word_is_unknown),
                cmocka_unit_test(test_a_part_has_an_object_of_its_own_or_none),
                cmocka_unit_test(test_what_is_written_is_parsed),
                cmocka_unit_test(test_many_items_are_parsed_and_what_is_new_is_skipped),
                cmocka_unit_test(test_what_is_unusual_is_not_parsed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
