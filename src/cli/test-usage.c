/* SPDX-License-Identifier: Apache-2.0 */
/* What vgpu accounting, usage and top print; times as people say them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/test.h"
#include "cli/top-view.h"
#include "cli/usage.h"
#include "fake/answers.h"
#include "fake/command.h"

static void expect_out(const char *method, const char *answer, const char *const *words,
                       const char *out)
{
        const struct fake_step step = { .method = method, .answers = { answer } };

        command_expect(vgpu(&step, 1, words), 0, out, "");
}

static void test_accounting_is_a_table(void **state)
{
        (void)state;
        expect_out(
                "GetAccounting", ANSWER("'records':[" ACCOUNT_ENDED "," ACCOUNT "],'more':false"),
                WORDS("accounting", "train"),
                " PID  PROGRAM  STATE    STARTED              TIME  GPU TIME  GPU  MEM  PEAK MEMORY\n"
                "4000  python3  ended    2025-11-24 16:00  1:40:00   1:02:06  62%   1%     31.8 GiB\n"
                "4711  python3  running  2025-11-24 16:00  1:40:00   1:02:06  62%   1%     31.8 GiB\n");
        expect_out("ClearVgpuAccounting", ANSWER("'cleared':1"),
                   WORDS("accounting", "train", "--clear"),
                   "forgot 1 process of train that ended\n");
}

static void test_usage_is_a_table(void **state)
{
        (void)state;
        expect_out(
                "GetUsage", ANSWER("'rows':[" USAGE_PROCESS "," USAGE_PROCESS "],'more':false"),
                WORDS("usage", "--since", "2025-11-01", "--by", "process"),
                "  PID  PROGRAM  VGPU   TENANT  STARTED           ENDED  GPU SECONDS  ENCODER  "
                "QUOTA GiB h  USED GiB h\n"
                " 4711  a,\"b\"    train  root    2025-11-24 16:00  -         3600.000    0.000  "
                "      0.000       1.250\n"
                " 4711  a,\"b\"    train  root    2025-11-24 16:00  -         3600.000    0.000  "
                "      0.000       1.250\n"
                "total                                                      7200.000    0.000  "
                "      0.000       2.500\n");
}

#define USE_OF(name, uuid, gpu)                            \
        "{'tenant':0,'vgpu':'" name "','vgpu_uuid':'" uuid \
        "'," SECONDS(gpu) ","                              \
                          "'quota_gib_hours':0.0,'used_gib_hours':0.0}"

static void test_vgpus_of_one_name_do_not_look_alike(void **state)
{
        (void)state;
        expect_out("GetUsage",
                   ANSWER("'rows':[" USE_OF("train", "0a1b2c3d-0", 1) "," USE_OF(
                           "serve", "11111111-0", 2) "," USE_OF("train", "ffffffff-0",
                                                                3) "],'more':false"),
                   WORDS("usage", "--since", "2025-11-01"),
                   "VGPU              TENANT  GPU SECONDS  ENCODER  QUOTA GiB h  USED GiB h\n"
                   "train (0a1b2c3d)  root          1.000    0.000        0.000       0.000\n"
                   "serve             root          2.000    0.000        0.000       0.000\n"
                   "train (ffffffff)  root          3.000    0.000        0.000       0.000\n"
                   "total                           6.000    0.000        0.000       0.000\n");
}

static void test_usage_as_csv_and_json(void **state)
{
        (void)state;
        expect_out("GetUsage", ANSWER("'rows':[" USAGE_PROCESS "],'more':false"),
                   WORDS("usage", "--since", "2025-11-01", "--by", "process", "--csv"),
                   "pid,name,started,ended,vgpu,vgpu_uuid,tenant,user,gpu_seconds,memory_seconds,"
                   "encoder_seconds,decoder_seconds,jpeg_seconds,ofa_seconds,quota_gib_hours,"
                   "used_gib_hours\n"
                   "4711,\"a,\"\"b\"\"\",1764000000.500,0.000,train,"
                   "0a1b2c3d-0000-4000-8000-00000000000a,0,root,3600.000000000,60.000000000,"
                   "0.000000000,0.000000000,0.000000000,0.000000000,0.000000000,1.250000000\n");
        expect_out("GetUsage", ANSWER("'rows':[],'more':false"),
                   WORDS("usage", "--since", "7d", "--csv"),
                   "vgpu,vgpu_uuid,tenant,user,gpu_seconds,memory_seconds,encoder_seconds,"
                   "decoder_seconds,jpeg_seconds,ofa_seconds,quota_gib_hours,used_gib_hours\n");
        expect_out("GetUsage", ANSWER("'rows':[],'more':false"),
                   WORDS("usage", "--since", "today", "--json"), "{\n  \"rows\": []\n}\n");
}

static void test_logs_are_lines_without_what_a_guest_could_do_with_them(void **state)
{
        static const char answer[] = ANSWER(
                "'events':[{'id':4,'time':1764000000.5,'vgpu':'train','vgpu_uuid':'u',"
                "'owner':0,'event':'created','device':1,'message':'created: 40 GiB'},"
                "{'id':5,'time':1764000001,'vgpu':'train','vgpu_uuid':'u','owner':0,"
                "'event':'process-began','device':1,'pid':7,'message':'process 7 (\\u001b[2J)'}"
                "],'more':false");
        (void)state;
        expect_out("ListEvents", answer, WORDS("logs", "train"),
                   "2025-11-24 16:00:00  created: 40 GiB\n"
                   "2025-11-24 16:00:01  process 7 (?[2J)\n");
        expect_out("ListEvents", answer, WORDS("logs"),
                   "2025-11-24 16:00:00  train             created: 40 GiB\n"
                   "2025-11-24 16:00:01  train             process 7 (?[2J)\n");
        expect_out("ListEvents", ANSWER("'events':[],'more':false"), WORDS("logs", "--json"),
                   "{\n  \"events\": []\n}\n");
}

static void test_wrong_times_and_words_are_refused(void **state)
{
        static const struct {
                const char *const words[6], *said;
        } cases[] = {
                { { "usage", "--since", "yesterdayish" },
                  "vgpu: usage: --since: 'yesterdayish' is no time\n" },
                { { "usage", "--since", "2026-02-30" },
                  "vgpu: usage: --since: '2026-02-30' is no time\n" },
                { { "usage", "--since", "today", "--by", "colour" },
                  "vgpu: usage: usage cannot be summed up by 'colour'\n" },
                { { "top", "--sort", "colour" },
                  "vgpu: top: --sort: vGPUs cannot be sorted by 'colour'\n" },
        };
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const struct outcome *outcome = vgpu(NULL, 0, cases[i].words);

                assert_int_equal(outcome->code, 2);
                assert_memory_equal(outcome->err, cases[i].said, strlen(cases[i].said));
        }
}

static void test_times_are_read(void **state)
{
        const double now = 1764000000; /* 2025-11-24 16:00 UTC */
        static const struct {
                const char *text;
                double seconds; /* -1: none */
        } cases[] = {
                { "2025-11-24", 1763942400 },
                { "2025-11-24 16:00", 1764000000 },
                { "2025-11-24T15:59", 1763999940 },
                { "today", 1763942400 },
                { "7d", 1763395200 },
                { "2h", 1763992800 },
                { "30m", 1763998200 },
                { "1w", 1763395200 },
                { "", -1 },
                { "d", -1 },
                { "-7d", -1 },
                { "7", -1 },
                { "7dd", -1 },
                { "999999999d", -1 },
                { "2025-13-01", -1 },
                { "2025-11-31", -1 },
                { "2025-11-24 25:00", -1 },
                { "1960-01-01", -1 },
        };
        double seconds;
        (void)state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                int r = usage_parse_time(&seconds, cases[i].text, now);

                if (r != (cases[i].seconds < 0 ? -EINVAL : 0) ||
                    (r == 0 && seconds != cases[i].seconds))
                        fail_msg("'%s' gives %d, %f", cases[i].text, r, seconds);
        }
}

static void test_durations_are_written(void **state)
{
        char text[USAGE_DURATION_MAX];
        (void)state;

        assert_string_equal(usage_format_duration(text, 0), "0.0 s");
        assert_string_equal(usage_format_duration(text, 59.94), "59.9 s");
        assert_string_equal(usage_format_duration(text, 59.96), "1:00");
        assert_string_equal(usage_format_duration(text, 3599.6), "1:00:00");
        assert_string_equal(usage_format_duration(text, 90061), "1d 01:01:01");
        assert_string_equal(usage_format_duration(text, 90000000), "1041d 16h");
}

/* Words of no more than the width that is promised, whatever the guests are called. */
#define OF_PERCENTS(...) (&(const struct vgpu_usage_percents){ __VA_ARGS__ })
#define OF_SECONDS(...)  (&(const struct vgpu_usage_seconds){ __VA_ARGS__ })

static const struct vgpu_usage_process
        small = { .pid = 4711,
                  .name = "small",
                  .percents = OF_PERCENTS(.gpu = 10),
                  .memory_used = 5,
                  .seconds = OF_SECONDS(.gpu = 90000000) },
        long_one = { .pid = 2147483647,
                     .name = "a name that is much longer than what there is room for",
                     .percents = OF_PERCENTS(100, 100, 100, 100, 100, 100),
                     .seconds = OF_SECONDS(.gpu = 0),
                     .memory_used = 1ull << 60 };
static const struct vgpu_usage_process *const processes[] = { &small, &long_one };
static const struct vgpu_usage_instance instances[] = {
        { .name = "b",
          .uuid = "b",
          .state = VGPU_INSTANCE_SUSPENDED,
          .percents = OF_PERCENTS(.gpu = 0),
          .seconds = OF_SECONDS(.gpu = 0),
          .frame_buffer = 1ull << 40 },
        { .name = "a",
          .uuid = "a",
          .state = VGPU_INSTANCE_SUSPENDING,
          .percents = OF_PERCENTS(.gpu = 60),
          .seconds = OF_SECONDS(.gpu = 0),
          .frame_buffer = 150754820096,
          .frame_buffer_used = 150000000000,
          .entitled = 100,
          .n_processes = 2,
          .processes = processes },
        { .name = "\u00fcber-\u00fcber-\u00fcber-\u00fcber",
          .uuid = "c",
          .device = 31,
          .state = VGPU_INSTANCE_MIGRATING,
          .percents = OF_PERCENTS(.gpu = 0),
          .seconds = OF_SECONDS(.gpu = 1e9) },
};
static const struct vgpu_usage_instance *const pointers[] = { &instances[0], &instances[1],
                                                              &instances[2] };
static const struct vgpu_usage_device device = { .name = "NVIDIA H200 with a long name",
                                                 .index = 31,
                                                 .percents = OF_PERCENTS(100, 100, 0, 0, 0, 0),
                                                 .memory_total = 150754820096,
                                                 .memory_used = 150754820096 };
static const struct vgpu_usage_device *const devices[] = { &device };
static const struct vgpu_usage_snapshot snapshot = { 1, devices, 3, pointers };

static size_t width(const char *text)
{
        size_t n = 0;

        for (; *text; text++)
                n += (*text & 0xc0) != 0x80;
        return n;
}

static void expect_order(enum top_order order, const char *names)
{
        struct top_view view = { 0 };
        char is[64] = "";

        assert_int_equal(top_view_make(&view, &snapshot, order, true, 79), 0);
        for (size_t i = 0; i < view.n_lines; i++) {
                const struct top_line *line = &view.lines[i];

                strncat(is, line->process ? line->process->name : line->instance->uuid, 1);
                if (line->process)
                        assert_ptr_equal(line->instance, &instances[1]);
        }
        assert_string_equal(is, names);
        top_view_deinit(&view);
}

static void test_top_is_sorted(void **state)
{
        struct top_view view = { 0 };
        (void)state;

        expect_order(TOP_BY_GPU, "aasbc");
        expect_order(TOP_BY_NAME, "aasbc");
        expect_order(TOP_BY_MEMORY, "aasbc");
        expect_order(TOP_BY_TIME, "casab");
        assert_int_equal(top_view_make(&view, &snapshot, TOP_BY_GPU, false, 79), 0);
        assert_int_equal(view.n_lines, 3);
        top_view_deinit(&view);
        assert_int_equal(top_order_find("memory"), TOP_BY_MEMORY);
        assert_int_equal(top_order_find("none"), TOP_ORDERS);
}

static void expect_not_wider(const struct top_view *view, size_t columns)
{
        assert_in_range(width(view->title), 1, columns);
        for (size_t i = 0; i < view->n_devices; i++)
                assert_in_range(width(view->devices[i]), 1, columns);
        for (size_t i = 0; i < view->n_lines; i++)
                if (width(view->lines[i].text) > columns)
                        fail_msg("%zu of %zu columns: %s", width(view->lines[i].text), columns,
                                 view->lines[i].text);
}

static void test_top_fits_every_width(void **state)
{
        (void)state;
        for (size_t columns = 24; columns <= TOP_WIDTH_MAX; columns++) {
                struct top_view view = { 0 };

                assert_int_equal(top_view_make(&view, &snapshot, TOP_BY_NAME, true, columns), 0);
                expect_not_wider(&view, columns);
                top_view_deinit(&view);
        }
}

/* The lines of the title, the device, the vGPU "a", its second program and the vGPU with umlauts. */
static void expect_view(size_t columns, const char *title, const char *gpu, const char *a,
                        const char *program, const char *umlauts)
{
        struct top_view view = { 0 };

        assert_int_equal(top_view_make(&view, &snapshot, TOP_BY_NAME, true, columns), 0);
        assert_string_equal(view.title, title);
        assert_string_equal(view.devices[0], gpu);
        assert_string_equal(view.lines[0].text, a);
        assert_string_equal(view.lines[1].text, program);
        assert_string_equal(view.lines[4].text, umlauts);
        top_view_deinit(&view);
}

static void test_top_drops_columns_by_importance_and_marks_what_it_cuts(void **state)
{
        (void)state;
        expect_view(39, "VGPU        STATE       USE      MEMORY",
                    "GPU 31 NVIDIA H200 wi+ 100%  140G/140G",
                    "a           suspending  60%  140G/140G", "  2147483647 a name t+ 100%    1E",
                    "über-über-+ migrating    0%    0B/0B");
        expect_view(
                79,
                "VGPU / PROGRAM    STATE      GPU ENTITL  USE  MEM  ENC      MEMORY     GPU TIME",
                "GPU 31 NVIDIA H200 with a lon+ 100% [||||||||||||||||||||] bus 100%  140G/140G",
                "a                 suspending   0   100%  60%   0%   0%  140G/140G         0.0 s",
                "  2147483647 a name that is+            100% 100% 100%    1E              0.0 s",
                "über-über-über-ü+ migrating   31     0%   0%   0%   0%    0B/0B      11574d 01h");
        /* All of it, also of the names. */
        expect_view(
                0,
                "VGPU / PROGRAM                                           STATE      GPU ENTITL  USE"
                "  MEM  ENC  DEC JPEG  OFA      MEMORY     GPU TIME",
                "GPU 31 NVIDIA H200 with a long name 100% [||||||||||||||||||||] bus 100% "
                " 140G/140G",
                "a                                                        suspending   0   100%  60%"
                "   0%   0%   0%   0%   0%  140G/140G         0.0 s",
                "  2147483647 a name that is much longer than what there is room for            100%"
                " 100% 100% 100% 100% 100%    1E              0.0 s",
                "über-über-über-über                                      migrating   31     0%   0%"
                "   0%   0%   0%   0%   0%    0B/0B      11574d 01h");
}

static void test_top_shows_each_of_several_devices(void **state)
{
        const struct vgpu_usage_part of_part[] = {
                { .id = 1,
                  .device = 2,
                  .entitled = 100,
                  .frame_buffer_used = 1ull << 30,
                  .percents = OF_PERCENTS(.gpu = 0),
                  .seconds = OF_SECONDS(.gpu = 0) },
                { .id = 2,
                  .device = 0,
                  .entitled = 50,
                  .frame_buffer_used = 3ull << 30,
                  .percents = OF_PERCENTS(.gpu = 80),
                  .seconds = OF_SECONDS(.gpu = 12) },
        };
        const struct vgpu_usage_part *const parts[] = { &of_part[0], &of_part[1] };
        const struct vgpu_usage_instance job = { .name = "job",
                                                 .uuid = "j",
                                                 .device = 2,
                                                 .state = VGPU_INSTANCE_RUNNING,
                                                 .frame_buffer = 8ull << 30,
                                                 .frame_buffer_used = 4ull << 30,
                                                 .entitled = 75,
                                                 .percents = OF_PERCENTS(.gpu = 40),
                                                 .seconds = OF_SECONDS(.gpu = 12),
                                                 .n_processes = 1,
                                                 .processes = processes,
                                                 .n_parts = 2,
                                                 .parts = parts };
        const struct vgpu_usage_instance *const one[] = { &job };
        const struct vgpu_usage_snapshot with_parts = { 1, devices, 1, one };
        struct top_view view = { 0 };
        (void)state;

        assert_int_equal(top_view_make(&view, &with_parts, TOP_BY_GPU, true, 79), 0);
        assert_int_equal(view.n_lines, 4);
        assert_string_equal(
                view.lines[0].text,
                "job               running     2x    75%  40%   0%   0%    4G/8G          12.0 s");
        assert_string_equal(
                view.lines[1].text,
                "  on GPU 2                     2   100%   0%   0%   0%    1G/4G           0.0 s");
        assert_string_equal(
                view.lines[2].text,
                "  on GPU 0                     0    50%  80%   0%   0%    3G/4G          12.0 s");
        assert_ptr_equal(view.lines[2].part, &of_part[1]);
        assert_int_equal(view.lines[2].gpu, 80);
        assert_ptr_equal(view.lines[3].process, &small);
        top_view_deinit(&view);
        assert_int_equal(top_view_make(&view, &with_parts, TOP_BY_GPU, false, 79), 0);
        assert_int_equal(view.n_lines, 3);
        expect_not_wider(&view, 79);
        top_view_deinit(&view);
}

static void test_top_once_is_text(void **state)
{
        (void)state;
        expect_out(
                "GetUtilization", ANSWER(UTILIZATION), WORDS("top", "--once"),
                "GPU 0  NVIDIA H200        98% [||||||||||||||||||||] bus  45% 31.8G/140G\n"
                "VGPU / PROGRAM     STATE      GPU ENTITL  USE  MEM  ENC  DEC JPEG  OFA      MEMORY"
                "     GPU TIME\n"
                "train              running      0    75%  74%  40%   3%   0%   0%   0% 31.8G/40G  "
                "      1:02:06\n"
                "  4711 python3                            50%  20%   3%   0%   0%   0% 15.9G      "
                "        31:03\n"
                "  4712 worker                             24%  20%   3%   0%   0%   0% 15.9G      "
                "        31:03\n"
                "serve              suspended    -     0%   0%   0%   0%   0%   0%   0%    0B/40G  "
                "       12.0 s\n");
        /* A pipe is no screen. */
        expect_out(
                "GetUtilization", ANSWER("'devices':[],'vgpus':[]"), WORDS("top"),
                "VGPU / PROGRAM     STATE      GPU ENTITL  USE  MEM  ENC  DEC JPEG  OFA      MEMORY"
                "     GPU TIME\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_accounting_is_a_table),
                cmocka_unit_test(test_usage_is_a_table),
                cmocka_unit_test(test_vgpus_of_one_name_do_not_look_alike),
                cmocka_unit_test(test_usage_as_csv_and_json),
                cmocka_unit_test(test_logs_are_lines_without_what_a_guest_could_do_with_them),
                cmocka_unit_test(test_wrong_times_and_words_are_refused),
                cmocka_unit_test(test_times_are_read),
                cmocka_unit_test(test_durations_are_written),
                cmocka_unit_test(test_top_is_sorted),
                cmocka_unit_test(test_top_fits_every_width),
                cmocka_unit_test(test_top_drops_columns_by_importance_and_marks_what_it_cuts),
                cmocka_unit_test(test_top_shows_each_of_several_devices),
                cmocka_unit_test(test_top_once_is_text),
        };

        (void)setenv("TZ", "UTC", 1);
        tzset();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
