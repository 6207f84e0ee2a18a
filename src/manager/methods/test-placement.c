/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "manager/methods/placement.h"
#include "manager/model/device.h"

#define N 6

struct fixture {
        struct device device[N];
        struct placement_candidate candidates[N];
};

/* Devices of which those with the same letter in @groups can use each other's memory, each with @left. */
static void make(struct fixture *fixture, const char *groups, const int64_t left[N])
{
        for (uint32_t i = 0; i < N; i++) {
                fixture->device[i] = (struct device){ .index = i };
                for (uint32_t k = 0; k < N; k++)
                        if (k != i && groups[k] == groups[i])
                                fixture->device[i].peers |= 1ull << k;
                fixture->candidates[i] =
                        (struct placement_candidate){ &fixture->device[i], left[i] };
        }
}

static void expect(struct fixture *fixture, size_t n, const uint32_t *indices)
{
        struct device *chosen[N];

        assert_true(placement_choose(chosen, n, fixture->candidates, N));
        for (size_t i = 0; i < n; i++)
                assert_int_equal(chosen[i]->index, indices[i]);
}

static void test_linked_devices_come_before_roomy_ones(void **state)
{
        const int64_t left[N] = { 9, 1, 8, 2, 7, 1 };
        struct fixture fixture;

        (void)state;
        make(&fixture, "abcbde", left);
        expect(&fixture, 2, (const uint32_t[]){ 1, 3 });
}

static void test_of_linked_ones_the_roomiest_are_taken(void **state)
{
        const int64_t left[N] = { 1, 2, 3, 4, 5, 6 };
        struct fixture fixture;

        (void)state;
        make(&fixture, "ababab", left);
        expect(&fixture, 2, (const uint32_t[]){ 3, 5 });
        expect(&fixture, 3, (const uint32_t[]){ 1, 3, 5 });
        make(&fixture, "aaaaaa", left);
        expect(&fixture, 1, (const uint32_t[]){ 5 });
        expect(&fixture, 6, (const uint32_t[]){ 0, 1, 2, 3, 4, 5 });
}

static void test_where_not_all_are_linked_most_are(void **state)
{
        const int64_t left[N] = { 9, 1, 1, 1, 9, 9 };
        struct fixture fixture;

        (void)state;
        make(&fixture, "abbbcd", left);
        expect(&fixture, 4, (const uint32_t[]){ 0, 1, 2, 3 });
}

static void test_there_may_be_too_few(void **state)
{
        const int64_t left[N] = { 1, 1, 1, 1, 1, 1 };
        struct fixture fixture;
        struct device *chosen[N + 1];

        (void)state;
        make(&fixture, "aaaaaa", left);
        assert_false(placement_choose(chosen, 2, fixture.candidates, 1));
        assert_false(placement_choose(chosen, 1, fixture.candidates, 0));
        assert_false(placement_choose(chosen, 0, fixture.candidates, N));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_linked_devices_come_before_roomy_ones),
                cmocka_unit_test(test_of_linked_ones_the_roomiest_are_taken),
                cmocka_unit_test(test_where_not_all_are_linked_most_are),
                cmocka_unit_test(test_there_may_be_too_few),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
