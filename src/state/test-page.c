/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "base/test.h"
#include "state/page.h"

static void test_a_guest_cannot_resize_the_page(void **state)
{
        struct page page = { .fd = -1 };
        (void)state;

        assert_int_equal(page_create(&page, GIB), 0);
        assert_int_equal(ftruncate(page.fd, 0), -1);
        assert_int_equal(ftruncate(page.fd, MIB), -1);
        page_deinit(&page);
        page_deinit(&page);
}

static void test_garbage_is_cut_off(void **state)
{
        struct page page = { .fd = -1 };
        struct page_use use;
        uint32_t slot;
        (void)state;

        assert_int_equal(page_create(&page, GIB), 0);
        assert_int_equal(page_take_slot(&page, &slot), 0);
        memset(page.map, 0xff, sizeof(*page.map));
        page_read(&page, slot, GIB, &use);
        assert_int_equal(use.movable, GIB);
        assert_true(use.fixed <= GIB);
        page_write_quota(&page, GIB);
        assert_int_equal(page.map->quota, GIB);
        page_deinit(&page);
}

static void test_each_process_has_a_slot_of_its_own_and_leaves_it_empty(void **state)
{
        struct page page = { .fd = -1 };
        struct page_use use;
        uint32_t slot;
        (void)state;

        assert_int_equal(page_create(&page, GIB), 0);
        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++) {
                assert_int_equal(page_take_slot(&page, &slot), 0);
                assert_int_equal(slot, i);
        }
        assert_int_equal(page_take_slot(&page, &slot), -ENOSPC);
        page.map->slot[5].used[INSTANCE_PAGE_FIXED] = MIB;
        page_give_slot(&page, 5);
        page_read(&page, 5, GIB, &use);
        assert_int_equal(use.fixed, 0);
        assert_int_equal(page_take_slot(&page, &slot), 0);
        assert_int_equal(slot, 5);
        page_deinit(&page);
}

static void test_a_new_manager_finds_the_numbers_of_those_that_live(void **state)
{
        struct page page = { .fd = -1 }, adopted = { .fd = -1 };
        struct page_use use;
        uint32_t slot;
        (void)state;

        assert_int_equal(page_create(&page, GIB), 0);
        assert_int_equal(page_take_slot(&page, &slot), 0);
        assert_int_equal(page_take_slot(&page, &slot), 0);
        page.map->slot[1].used[INSTANCE_PAGE_MOVABLE] = MIB;

        assert_int_equal(page_adopt(&adopted, page.fd, 2 * GIB), 0);
        assert_int_equal(page_claim_slot(&adopted, 1), 0);
        assert_int_equal(page_claim_slot(&adopted, 1), -EBUSY);
        assert_int_equal(page_claim_slot(&adopted, INSTANCE_PAGE_SLOTS), -EBUSY);
        page_read(&adopted, 1, GIB, &use);
        assert_int_equal(use.movable, MIB);
        page_mend(&adopted);
        assert_int_equal(page.map->quota, 2 * GIB);
        page_deinit(&adopted);
        page_deinit(&page);
}

static void test_what_is_no_page_is_not_adopted(void **state)
{
        CLEANUP(fd_closep) int fd = memfd_create("other", MFD_CLOEXEC);
        struct page page = { .fd = -1 };
        (void)state;

        assert_int_equal(ftruncate(fd, sizeof(struct instance_page)), 0);
        assert_int_equal(page_adopt(&page, fd, GIB), -EPROTO); /* not sealed */
        assert_int_equal(page.fd, -1);
}

static void test_what_is_taken_asked_for_and_wanted_is_summed_and_cut_off(void **state)
{
        struct page page = { .fd = -1 };
        struct page_claim claim;
        uint32_t slot, other;
        (void)state;

        assert_int_equal(page_create(&page, GIB), 0);
        assert_int_equal(page_take_slot(&page, &slot), 0);
        assert_int_equal(page_take_slot(&page, &other), 0);
        page.map->slot[slot].used[INSTANCE_PAGE_FIXED] = MIB;
        page.map->slot[slot].beside = 4 * MIB;
        page.map->slot[slot].pending = 2 * MIB;
        page.map->slot[other].used[INSTANCE_PAGE_MOVABLE] = 8 * MIB;
        page.map->slot[other].wanted = 16 * MIB;
        page.map->slot[other + 1].wanted = MIB; /* nobody's */
        page_read_claim(&page, GIB, &claim);
        assert_int_equal(claim.taken, 13 * MIB);
        assert_int_equal(claim.pending, 2 * MIB);
        assert_int_equal(claim.wanted, 16 * MIB);
        memset(page.map->slot, 0xff, sizeof(page.map->slot));
        page_read_claim(&page, GIB, &claim);
        assert_int_equal(claim.pending, GIB);
        assert_int_equal(claim.wanted, GIB);
        assert_true(claim.taken < UINT64_MAX / 2);
        page_write_ceiling(&page, GIB, 17);
        assert_int_equal(page.map->ceiling, GIB);
        assert_int_equal(page.map->ceiling_until_ns, 17);
        page_deinit(&page);
}

static void test_the_quota_is_lowered_to_what_is_held_and_no_further(void **state)
{
        struct page page = { .fd = -1 };
        uint32_t first, second;
        uint64_t held;
        (void)state;

        assert_int_equal(page_create(&page, GIB), 0);
        assert_int_equal(page_take_slot(&page, &first), 0);
        assert_int_equal(page_take_slot(&page, &second), 0);
        page.map->slot[first].used[INSTANCE_PAGE_MOVABLE] = 100 * MIB;
        page.map->slot[second].used[INSTANCE_PAGE_FIXED] = 50 * MIB;
        page.map->slot[second].beside = 500 * MIB; /* of contexts: no part of the quota */

        assert_int_equal(page_lower_quota(&page, 150 * MIB - 1, &held), -EDQUOT);
        assert_int_equal(held, 150 * MIB);
        assert_int_equal(page.map->quota, GIB);
        assert_int_equal(page_lower_quota(&page, 150 * MIB, &held), 0);
        assert_int_equal(page.map->quota, 150 * MIB);
        page_mend(&page);
        assert_int_equal(page.map->quota, 150 * MIB);
        page_deinit(&page);
}

static void test_the_quota_is_not_lowered_below_what_a_gate_asks_for(void **state)
{
        struct page page = { .fd = -1 };
        uint64_t held;
        uint32_t slot;
        (void)state;

        assert_int_equal(page_create(&page, GIB), 0);
        assert_int_equal(page_take_slot(&page, &slot), 0);
        page.map->slot[slot].pending = 20 * MIB;
        assert_int_equal(page_lower_quota(&page, 20 * MIB - 1, &held), -EAGAIN);
        assert_int_equal(page.map->quota, GIB);
        assert_int_equal(page_lower_quota(&page, 20 * MIB, &held), 0);
        page.map->slot[slot].pending = UINT64_MAX; /* whoever lies keeps his quota */
        page.map->slot[slot].used[INSTANCE_PAGE_MOVABLE] = UINT64_MAX;
        assert_int_equal(page_lower_quota(&page, 10 * MIB, &held), -EDQUOT);
        assert_int_equal(held, 20 * MIB);
        assert_int_equal(page.map->quota, 20 * MIB);
        page_deinit(&page);
}

static void test_who_asks_for_room_is_answered(void **state)
{
        struct page page = { .fd = -1 };
        uint32_t slot;
        (void)state;

        assert_int_equal(page_create(&page, GIB), 0);
        assert_int_equal(page_take_slot(&page, &slot), 0);
        page.map->slot[slot + 1].n_asks = 1; /* nobody's */
        assert_false(page_is_asking(&page));
        page.map->slot[slot].n_asks = UINT32_MAX;
        assert_false(page_is_asking(&page)); /* it wants nothing any more */
        page.map->slot[slot].wanted = MIB;
        assert_true(page_is_asking(&page));
        page_answer(&page, false);
        assert_false(page_is_asking(&page));
        assert_true(page.map->slot[slot].answer == UINT32_MAX);
        page.map->slot[slot].n_asks++;
        assert_true(page_is_asking(&page));
        page_answer(&page, true);
        assert_true(page.map->slot[slot].answer == INSTANCE_PAGE_DENIED);
        assert_true(page.map->slot[slot + 1].answer == 0);
        page_write_waits(&page, true);
        assert_true(page.map->waits);
        page_give_slot(&page, slot);
        assert_true(page.map->slot[slot].answer == 0 && page.map->slot[slot + 1].n_asks == 0);
        page_deinit(&page);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_guest_cannot_resize_the_page),
                cmocka_unit_test(test_garbage_is_cut_off),
                cmocka_unit_test(test_each_process_has_a_slot_of_its_own_and_leaves_it_empty),
                cmocka_unit_test(test_a_new_manager_finds_the_numbers_of_those_that_live),
                cmocka_unit_test(test_what_is_no_page_is_not_adopted),
                cmocka_unit_test(test_what_is_taken_asked_for_and_wanted_is_summed_and_cut_off),
                cmocka_unit_test(test_who_asks_for_room_is_answered),
                cmocka_unit_test(test_the_quota_is_lowered_to_what_is_held_and_no_further),
                cmocka_unit_test(test_the_quota_is_not_lowered_below_what_a_gate_asks_for),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
