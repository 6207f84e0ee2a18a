/* SPDX-License-Identifier: Apache-2.0 */
/* Both formats are as their specifications say, whatever a label holds. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "exporter/text.h"

static void expect(struct text *text, const char *expected)
{
        assert_int_equal(text_end(text), 0);
        assert_int_equal(text->size, strlen(expected));
        assert_memory_equal(text->bytes, expected, text->size);
        text_deinit(text);
}

static void expect_label(const char *value, const char *expected)
{
        struct labels labels = { .size = 0 };

        labels_add(&labels, "x", value);
        assert_int_equal(labels.size, strlen(expected));
        assert_memory_equal(labels.text, expected, labels.size);
}

static void write_three(struct text *text)
{
        struct labels labels = { .size = 0 };

        labels_add(&labels, "name", "a");
        labels_add_number(&labels, "n", 7);
        text_family(text, "x_bytes", TEXT_GAUGE, "bytes", "Held.");
        text_sample_integer(text, &labels, UINT64_MAX);
        text_family(text, "y_seconds", TEXT_COUNTER, "seconds", "Run.");
        text_sample(text, NULL, 1.25);
        text_family(text, "nobody", TEXT_GAUGE, NULL, "Has no sample, and is not announced.");
        text_family(text, "z", TEXT_INFO, NULL, "Facts.");
        text_sample(text, &labels, 1);
}

static void test_the_older_format(void **state)
{
        struct text text = { 0 };
        (void)state;

        write_three(&text);
        expect(&text, "# HELP x_bytes Held.\n# TYPE x_bytes gauge\n"
                      "x_bytes{name=\"a\",n=\"7\"} 18446744073709551615\n"
                      "# HELP y_seconds_total Run.\n# TYPE y_seconds_total counter\n"
                      "y_seconds_total 1.25\n"
                      "# HELP z_info Facts.\n# TYPE z_info gauge\n"
                      "z_info{name=\"a\",n=\"7\"} 1\n");
}

static void test_open_metrics(void **state)
{
        struct text text = { .is_open_metrics = true };
        (void)state;

        write_three(&text);
        expect(&text, "# HELP x_bytes Held.\n# TYPE x_bytes gauge\n# UNIT x_bytes bytes\n"
                      "x_bytes{name=\"a\",n=\"7\"} 18446744073709551615\n"
                      "# HELP y_seconds Run.\n# TYPE y_seconds counter\n# UNIT y_seconds seconds\n"
                      "y_seconds_total 1.25\n"
                      "# HELP z Facts.\n# TYPE z info\n"
                      "z_info{name=\"a\",n=\"7\"} 1\n# EOF\n");
}

static void test_histograms_end_in_infinity(void **state)
{
        static const double bounds[] = { 0.5, 10 };
        static const uint64_t buckets[] = { 1, 2 };
        const struct text_exemplar exemplar = { .value = 0.75 }; /* this format knows none */
        const struct text_histogram histogram = { bounds, buckets, 2, 3, 99.5, &exemplar };
        struct labels labels = { .size = 0 };
        struct text text = { 0 };
        (void)state;

        labels_add(&labels, "kind", "k");
        text_family(&text, "h_seconds", TEXT_HISTOGRAM, "seconds", "Took.");
        text_histogram(&text, &labels, &histogram);
        text_histogram(&text, NULL, &(struct text_histogram){ .count = 0 });
        expect(&text, "# HELP h_seconds Took.\n# TYPE h_seconds histogram\n"
                      "h_seconds_bucket{kind=\"k\",le=\"0.5\"} 1\n"
                      "h_seconds_bucket{kind=\"k\",le=\"10.0\"} 2\n"
                      "h_seconds_bucket{kind=\"k\",le=\"+Inf\"} 3\n"
                      "h_seconds_sum{kind=\"k\"} 99.5\nh_seconds_count{kind=\"k\"} 3\n"
                      "h_seconds_bucket{le=\"+Inf\"} 0\nh_seconds_sum 0\nh_seconds_count 0\n");
}

static void expect_exemplar(double value, const char *where)
{
        static const double bounds[] = { 0.5, 10 };
        static const uint64_t buckets[] = { 1, 2 };
        struct labels of = { .size = 0 };
        const struct text_exemplar exemplar = { .labels = &of,
                                                .value = value,
                                                .time = 1764000000.5 };
        const struct text_histogram histogram = { bounds, buckets, 2, 3, 99.5, &exemplar };
        struct text text = { .is_open_metrics = true };
        const char *found;

        labels_add(&of, "vgpu", "a\"b");
        text_family(&text, "h", TEXT_HISTOGRAM, NULL, "Took.");
        text_histogram(&text, NULL, &histogram);
        assert_int_equal(text_end(&text), 0);
        found = memmem(text.bytes, text.size, " # {", 4);
        assert_non_null(found);
        assert_null(memmem(found + 1, text.size - (size_t)(found + 1 - text.bytes), " # {", 4));
        assert_non_null(memmem(text.bytes, text.size, where, strlen(where)));
        text_deinit(&text);
}

static void test_an_exemplar_is_in_the_bucket_that_it_falls_into(void **state)
{
        (void)state;
        expect_exemplar(0.5, "h_bucket{le=\"0.5\"} 1 # {vgpu=\"a\\\"b\"} 0.5 1764000000.5\n");
        expect_exemplar(0.75, "h_bucket{le=\"10.0\"} 2 # {vgpu=\"a\\\"b\"} 0.75 1764000000.5\n");
        expect_exemplar(90, "h_bucket{le=\"+Inf\"} 3 # {vgpu=\"a\\\"b\"} 90 1764000000.5\n");
}

static void test_numbers(void **state)
{
        static const struct {
                double value;
                const char *text;
        } numbers[] = {
                { 0, "0" },
                { -1, "-1" },
                { 1e14, "100000000000000" },
                { 1e300, "1e+300" },
                { NAN, "NaN" },
                { INFINITY, "+Inf" },
                { -INFINITY, "-Inf" },
                { 0.1, "0.1" },
                { 1795369659.7418, "1795369659.7418" },
        };
        char expected[128];
        (void)state;

        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
                struct text text = { 0 };

                text_family(&text, "x", TEXT_GAUGE, NULL, "X.");
                text_sample(&text, NULL, numbers[i].value);
                snprintf(expected, sizeof(expected), "# HELP x X.\n# TYPE x gauge\nx %s\n",
                         numbers[i].text);
                expect(&text, expected);
        }
}

static void test_hostile_names_stay_in_their_quotes(void **state)
{
        (void)state;
        expect_label("", "x=\"\"");
        expect_label("a\"} 1\nevil{y=\"", "x=\"a\\\"} 1\\nevil{y=\\\"\"");
        expect_label("\\", "x=\"\\\\\"");
        expect_label("\\n", "x=\"\\\\n\"");
        expect_label("\x1b[31m\r\t", "x=\"\x1b[31m\r\t\""); /* both formats allow them */
        expect_label("<script>", "x=\"<script>\"");
        expect_label("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
                     "x=\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

static void test_what_is_no_utf_8_is_replaced(void **state)
{
        (void)state;
        expect_label("a\xff\xfe", "x=\"a\xef\xbf\xbd\xef\xbf\xbd\"");
        expect_label("\xc3", "x=\"\xef\xbf\xbd\"");                 /* cut off */
        expect_label("\xc3\"", "x=\"\xef\xbf\xbd\\\"\"");           /* and cannot hide a quote */
        expect_label("\xc0\xaf", "x=\"\xef\xbf\xbd\xef\xbf\xbd\""); /* longer than need be */
        expect_label("\xed\xa0\x80", "x=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
        expect_label("\xf4\x90\x80\x80", "x=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
        expect_label("\xf5\x80\x80\x80", "x=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void test_a_label_that_does_not_fit_is_left_out_whole(void **state)
{
        struct labels labels = { .size = 0 };
        char value[sizeof(labels.text) + 1];
        size_t fits = sizeof(labels.text) - sizeof("x=\"\"") + 1;
        (void)state;

        for (size_t n = fits - 12; n < sizeof(value); n++) {
                labels.size = 0;
                memset(value, '"', n); /* takes two bytes each */
                memset(value, 'a', fits < n ? fits : n);
                value[n] = '\0';
                labels_add(&labels, "x", value);
                assert_true(labels.size == 0 || (labels.size == n + 4 && n <= fits));
                labels_add(&labels, "y", "1");
                assert_true(labels.size <= sizeof(labels.text));
                assert_true(labels.size == 0 || labels.text[labels.size - 1] == '"');
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_older_format),
                cmocka_unit_test(test_open_metrics),
                cmocka_unit_test(test_histograms_end_in_infinity),
                cmocka_unit_test(test_an_exemplar_is_in_the_bucket_that_it_falls_into),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_hostile_names_stay_in_their_quotes),
                cmocka_unit_test(test_what_is_no_utf_8_is_replaced),
                cmocka_unit_test(test_a_label_that_does_not_fit_is_left_out_whole),
        };

        return cmocka_run_group_tests_name("exporter-text", tests, NULL, NULL);
}
