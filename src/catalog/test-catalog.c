/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "catalog/board.h"
#include "catalog/catalog.h"
#include "catalog/mig.h"

static const struct state_device h200 = { .pci_device_id = 0x233510de,
                                          .memory_total = 143771 * MIB,
                                          .name = "NVIDIA H200" };

static int set_up(void **state)
{
        static struct state_page *state_page;
        char path[] = "/tmp/test-catalog-XXXXXX";

        close(mkstemp(path));
        assert_int_equal(state_create(&state_page, path, NULL), 0);
        unlink(path);
        state_write_device(state_page, 0, &h200);
        assert_int_equal(catalog_publish(state_page, &h200), 0);
        *state = state_page;
        return 0;
}

static int tear_down(void **state)
{
        state_close(*state);
        return 0;
}

static void test_known_boards_have_nvidias_names(void **state)
{
        static const char *const names[] = { "141", "70", "35", "28", "17", "14", "8", "7", "4" };
        struct catalog_type types[CATALOG_TYPES_MAX];
        char name[STATE_TEXT_MAX];

        (void)state;
        assert_int_equal(catalog_list_types(types, &h200, CATALOG_COMPUTE), 9);
        for (size_t i = 0; i < 9; i++) {
                snprintf(name, sizeof(name), "NVIDIA H200-%sC", names[i]);
                assert_string_equal(types[i].text.name, name);
        }
        assert_int_equal(types[0].type.id, 0x233501);
        assert_int_equal(types[1].type.frame_buffer, 71680 * MIB);
}

static void test_other_boards_are_cut_too(void **state)
{
        const struct state_device other = { .pci_device_id = 0x123410de,
                                            .memory_total = 24 * GIB,
                                            .name = "NVIDIA Test Board" };
        struct catalog_type types[CATALOG_TYPES_MAX];

        (void)state;
        assert_int_equal(catalog_list_types(types, &other, CATALOG_COMPUTE),
                         5); /* a sixth were below 1 GiB */
        assert_string_equal(types[1].text.name, "NVIDIA Test Board-12C");
}

static void test_types_of_another_size_have_another_id(void **state)
{
        const struct state_device small = { .pci_device_id = 0x233510de,
                                            .memory_total = 10 * GIB,
                                            .name = "NVIDIA H200" };
        struct catalog_type types[CATALOG_TYPES_MAX], others[CATALOG_TYPES_MAX];
        uint32_t n = catalog_list_types(types, &h200, CATALOG_COMPUTE);
        uint32_t n_others = catalog_list_types(others, &small, CATALOG_COMPUTE);

        (void)state;
        for (uint32_t i = 0; i < n; i++)
                for (uint32_t j = 0; j < n_others; j++)
                        assert_int_not_equal(types[i].type.id, others[j].type.id);
}

static void test_quotas_get_the_smallest_type_that_holds_them(void **state)
{
        static const struct {
                uint64_t quota;
                uint32_t instances;
        } cases[] = {
                { GIB, 32 }, { 18 * GIB, 5 }, { 34 * GIB, 4 }, { 40 * GIB, 2 }, { GIB << 10, 1 }
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_int_equal(catalog_type_of_quota(*state, 0, cases[i].quota),
                                 0x233500 + cases[i].instances);
        assert_int_equal(catalog_type_of_quota(*state, 1, GIB), 0);
}

static void check_names(const struct state_device *device, uint32_t series,
                        const char *const *names)
{
        struct catalog_type types[CATALOG_TYPES_MAX];
        uint32_t n = catalog_list_types(types, device, series);

        for (uint32_t i = 0; i < n; i++) {
                assert_non_null(names[i]);
                assert_string_equal(types[i].text.name, names[i]);
                for (uint32_t j = 0; j < i; j++)
                        assert_int_not_equal(types[i].type.id, types[j].type.id);
        }
        assert_null(names[n]);
}

static void test_boards_with_graphics_have_more_series(void **state)
{
        const struct state_device t4 = { .pci_device_id = 0x1eb810de,
                                         .memory_total = 14913 * MIB,
                                         .name = "Tesla T4" };

        (void)state;
        check_names(&t4, CATALOG_COMPUTE | CATALOG_WORKSTATION | CATALOG_PC,
                    (const char *const[]){ "NVIDIA T4-16C", "NVIDIA T4-8C", "NVIDIA T4-4C",
                                           "NVIDIA T4-16Q", "NVIDIA T4-8Q", "NVIDIA T4-4Q",
                                           "NVIDIA T4-2Q", "NVIDIA T4-1Q", "NVIDIA T4-2B",
                                           "NVIDIA T4-1B", NULL });
        check_names(&h200, CATALOG_WORKSTATION, (const char *const[]){ NULL });
}

static void test_mig_cuts_a_board_as_nvidia_does(void **state)
{
        struct catalog_profile profiles[CATALOG_MIG_PROFILES];

        (void)state;
        check_names(&h200, CATALOG_MIG,
                    (const char *const[]){ "NVIDIA H200-7-141C", "NVIDIA H200-4-71C",
                                           "NVIDIA H200-3-71C", "NVIDIA H200-2-35C",
                                           "NVIDIA H200-1-35C", "NVIDIA H200-1-18C",
                                           "NVIDIA H200-1-18CME", NULL });
        assert_int_equal(catalog_list_profiles(profiles, &h200), CATALOG_MIG_PROFILES);
        assert_string_equal(profiles[5].profile.name, "1g.18gb");
        assert_int_equal(profiles[5].profile.id, 19);
}

static struct state_device make_whole(const char *kind)
{
        const struct catalog_board *board = catalog_find_kind(kind);
        struct state_device device = { .pci_device_id = (uint32_t)board->pci_device << 16 | 0x10de,
                                       .memory_total = board->memory * MIB };

        return device;
}

/* MIG leaves ten of the 108 multiprocessors of an A100 unused, as nvidia-smi lists it. */
static void test_the_largest_instance_is_the_whole_device(void **state)
{
        static const struct {
                const char *kind;
                uint32_t cores; /* of a multiprocessor */
                uint32_t unused;
        } boards[] = { { "H200", 128, 0 }, { "H100", 128, 0 }, { "A100", 64, 10 } };
        struct catalog_profile profiles[CATALOG_MIG_PROFILES];

        (void)state;
        for (size_t i = 0; i < sizeof(boards) / sizeof(boards[0]); i++) {
                const struct state_device device = make_whole(boards[i].kind);
                const struct state_profile *whole = &profiles[0].profile;

                assert_int_equal(catalog_list_profiles(profiles, &device), CATALOG_MIG_PROFILES);
                assert_int_equal(whole->slices, 7);
                assert_int_equal(whole->memory_size, device.memory_total);
                assert_int_equal((whole->n_multiprocessors + boards[i].unused) * boards[i].cores,
                                 catalog_find_kind(boards[i].kind)->n_cores);
                for (size_t k = 1; k < CATALOG_MIG_PROFILES; k++) {
                        const struct state_profile *part = &profiles[k].profile;

                        assert_true(part->n_multiprocessors * part->max_instances <=
                                    whole->n_multiprocessors);
                        assert_true(part->n_decoders * part->max_instances <= whole->n_decoders);
                        assert_true(part->n_jpegs * part->max_instances <= whole->n_jpegs);
                        assert_true(part->n_ofas * part->max_instances <= whole->n_ofas);
                        assert_true(part->n_copy_engines * part->max_instances <=
                                    whole->n_copy_engines);
                        assert_true(part->memory_size * part->max_instances < whole->memory_size);
                }
        }
}

static void test_an_a100_has_the_engines_of_nvidias_table(void **state)
{
        const struct state_device device = make_whole("A100");
        struct catalog_profile profiles[CATALOG_MIG_PROFILES];

        (void)state;
        assert_int_equal(catalog_list_profiles(profiles, &device), CATALOG_MIG_PROFILES);
        assert_string_equal(profiles[2].profile.name, "3g.20gb");
        assert_int_equal(profiles[2].profile.n_decoders, 2);
        assert_int_equal(profiles[2].profile.n_jpegs, 0);
        assert_int_equal(profiles[2].profile.memory_size, 19968 * MIB);
        assert_int_equal(profiles[5].profile.n_decoders, 0);
        assert_int_equal(profiles[6].profile.n_decoders, 1);
}

/* By id: 7g, 4g, 3g, 2g, 1g with two slices of memory, 1g, 1g with the media engines. */
static void check_room(uint32_t taken, const uint32_t *wanted)
{
        struct catalog_profile profiles[CATALOG_MIG_PROFILES];

        assert_int_equal(catalog_list_profiles(profiles, &h200), CATALOG_MIG_PROFILES);
        for (uint32_t i = 0; i < CATALOG_MIG_PROFILES; i++)
                assert_int_equal(catalog_count_room(&profiles[i], taken), wanted[i]);
}

/* Where they may begin is in NVIDIA's MIG user guide: 4g at 0, 3g at 0 and 4, 2g at 0, 2 and 4. */
static void test_mig_has_the_room_that_the_others_leave(void **state)
{
        (void)state;
        check_room(0, (const uint32_t[]){ 1, 1, 2, 3, 4, 7, 7 });
        check_room(catalog_slices(0, 4), (const uint32_t[]){ 0, 0, 1, 1, 2, 3, 3 });
        check_room(catalog_slices(4, 2), (const uint32_t[]){ 0, 1, 1, 2, 3, 5, 5 });
        check_room(catalog_slices(0, 4) | catalog_slices(4, 2) | catalog_slices(6, 1),
                   (const uint32_t[]){ 0, 0, 0, 0, 0, 0, 0 });
}

/* As nvidia-smi shows them. */
static void test_the_window_to_the_memory_is_that_of_the_board(void **state)
{
        (void)state;
        assert_int_equal(catalog_get_bar1(catalog_find_kind("H200")), 256 * GIB);
        assert_int_equal(catalog_get_bar1(catalog_find_kind("H100")), 128 * GIB);
        assert_int_equal(catalog_get_bar1(catalog_find_kind("A100")), 64 * GIB);
        assert_int_equal(catalog_get_bar1(catalog_find_kind("L4")), 32 * GIB);
        assert_int_equal(catalog_get_bar1(catalog_find_kind("T4")), 256 * MIB);
}

/* Rows of the tables in NVIDIA's user guide. */
static void test_mixed_placements_are_nvidias(void **state)
{
        static const struct {
                uint32_t region, size, max_instances;
                int ids[17];
        } rows[] = {
                { 94, 94, 1, { 0, -1 } },
                { 94, 15, 6, { 0, 32, 47, 79, -1 } },
                { 94, 11, 8, { 0, 12, 23, 36, 47, 59, 70, 83, -1 } },
                { 94, 4, 23, { 0, 7, 11, 19, 23, 31, 35, 43, 47, 54, 58, 66, 70, 78, 82, 90, -1 } },
                { 80, 16, 5, { 0, 24, 40, 64, -1 } },
                { 80, 5, 16, { 0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, -1 } },
                { 40, 8, 5, { 0, 12, 20, 32, -1 } },
                { 24, 8, 3, { 0, 16, -1 } },
                { 24, 1, 24, { 0, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21, 23, -1 } },
                { 20, 1, 20, { 0, 1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16, 17, 19, -1 } },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct catalog_type type = { .type = { .max_instances = rows[i].max_instances,
                                                       .placement_size = rows[i].size } };
                uint32_t n = 0;

                catalog_place(&type, rows[i].region);
                while (rows[i].ids[n] >= 0) {
                        assert_int_equal(type.placements.mixed[n], rows[i].ids[n]);
                        n++;
                }
                assert_int_equal(type.placements.n_mixed, n);
                assert_int_equal(type.placements.n_uniform, rows[i].max_instances);
        }
}

static uint32_t get_creatable(struct state_page *state_page, uint32_t instances)
{
        struct state_offers offers;
        struct state_type type;

        assert_true(state_read_offers(state_page, 0, &offers));
        for (uint32_t i = 0; i < offers.n; i++)
                if (state_read_type(state_page, offers.offer[i].type, &type) &&
                    type.id == 0x233500 + instances)
                        return offers.offer[i].n_creatable;
        fail();
        return 0;
}

static void add_half(struct state_page *state_page, uint32_t placement)
{
        const struct state_instance instance = { .id = 1,
                                                 .state = STATE_RUNNING,
                                                 .type_id = 0x233502,
                                                 .gpu_instance = STATE_NONE,
                                                 .placement = placement,
                                                 .placement_size = 70 };

        state_write_instance(state_page, 0, &instance);
}

static void test_what_can_be_created_follows_from_what_runs(void **state)
{
        struct state_page *state_page = *state;

        add_half(state_page, catalog_find_placement(state_page, 0, 0x233502, true));
        catalog_update_offers(state_page, 0, 72000 * MIB, true);
        assert_int_equal(get_creatable(state_page, 1), 0);
        assert_int_equal(get_creatable(state_page, 2), 1);
        assert_int_equal(get_creatable(state_page, 4), 2);
        assert_int_equal(catalog_find_placement(state_page, 0, 0x233502, true), 71);
        assert_int_equal(catalog_find_placement(state_page, 0, 0x233501, true),
                         STATE_PLACEMENT_NONE);
}

static void test_without_mixing_only_the_same_size_can_be_created(void **state)
{
        struct state_page *state_page = *state;

        catalog_update_offers(state_page, 0, h200.memory_total, false);
        assert_int_equal(get_creatable(state_page, 4), 4);
        add_half(state_page, STATE_PLACEMENT_NONE);
        catalog_update_offers(state_page, 0, 72000 * MIB, false);
        assert_int_equal(get_creatable(state_page, 2), 1);
        assert_int_equal(get_creatable(state_page, 4), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known_boards_have_nvidias_names),
                cmocka_unit_test(test_other_boards_are_cut_too),
                cmocka_unit_test(test_types_of_another_size_have_another_id),
                cmocka_unit_test_setup_teardown(test_quotas_get_the_smallest_type_that_holds_them,
                                                set_up, tear_down),
                cmocka_unit_test(test_boards_with_graphics_have_more_series),
                cmocka_unit_test(test_mig_cuts_a_board_as_nvidia_does),
                cmocka_unit_test(test_the_largest_instance_is_the_whole_device),
                cmocka_unit_test(test_an_a100_has_the_engines_of_nvidias_table),
                cmocka_unit_test(test_mig_has_the_room_that_the_others_leave),
                cmocka_unit_test(test_the_window_to_the_memory_is_that_of_the_board),
                cmocka_unit_test(test_mixed_placements_are_nvidias),
                cmocka_unit_test_setup_teardown(test_what_can_be_created_follows_from_what_runs,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(
                        test_without_mixing_only_the_same_size_can_be_created, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
