/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_TEST_NVML_H
#define LIB_TEST_NVML_H

/* For test-nvml-*.c: a host over the newest driver for each test, and how its answers are compared. */

#include <openvgpu/device.h>

#include "base/test.h"
#include "fake/nvml-host.h"

#define ALL VGPU_WHOLE_DEVICE

static struct fixture fixture;

static inline int open_newest(void **state)
{
        (void)state;
        fixture_open(&fixture, "610");
        return 0;
}

static inline int close_newest(void **state)
{
        (void)state;
        fixture_close(&fixture);
        return 0;
}

/* The question @call_ succeeds and its number is @value_. */
#define EXPECT_NUMBER(value_, call_, ...)                                        \
        do {                                                                     \
                uint32_t number_ = 4711;                                         \
                                                                                 \
                assert_int_equal(call_(fixture.host, __VA_ARGS__, &number_), 0); \
                assert_int_equal(number_, value_);                               \
        } while (0)
#define EXPECT_BYTES(value_, call_, ...)                                         \
        do {                                                                     \
                uint64_t number_ = 4711;                                         \
                                                                                 \
                assert_int_equal(call_(fixture.host, __VA_ARGS__, &number_), 0); \
                assert_int_equal(number_, value_);                               \
        } while (0)
#define EXPECT_TEXT(value_, call_, ...)                                        \
        do {                                                                   \
                CLEANUP(freep) char *text_ = NULL;                             \
                                                                               \
                assert_int_equal(call_(fixture.host, __VA_ARGS__, &text_), 0); \
                assert_string_equal(text_, value_);                            \
        } while (0)

static inline void expect_list(const struct vgpu_number_list *list, size_t n,
                               const uint32_t *numbers)
{
        assert_int_equal(list->n_numbers, n);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(list->numbers[i], numbers[i]);
}

/* TEST() - a row of the tests. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_newest, close_newest)

#endif
