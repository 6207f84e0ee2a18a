/* SPDX-License-Identifier: Apache-2.0 */
/* The rule by which a vGPU can be on a device. */
#include <stdlib.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "state/kind.h"

#define SHARED_TYPE 0x233504
#define MIG_TYPE    0x233530

static int set_up(void **state)
{
        static struct state_page *state_page;
        char path[] = "/tmp/test-kind-XXXXXX";

        close(mkstemp(path));
        assert_int_equal(state_create(&state_page, path, NULL), 0);
        unlink(path);
        *state = state_page;
        return 0;
}

static int tear_down(void **state)
{
        state_close(*state);
        return 0;
}

static void put_device(struct state_page *state_page, uint32_t index, uint64_t memory, uint32_t mig)
{
        const struct state_type shared = { .id = SHARED_TYPE, .profile_id = STATE_NONE };
        const struct state_type backed = { .id = MIG_TYPE, .profile_id = 19 };
        struct state_device device = {
                .index = index, .pci_device_id = 0x233510de, .mig = mig, .memory_total = memory
        };
        struct state_device_detail detail = { .metadata_text = "233518BE00000000" };
        struct state_offers offers = {
                .n = 2,
                .offer = { { .type = (uint16_t)state_add_type(state_page, &shared) },
                           { .type = (uint16_t)state_add_type(state_page, &backed) } },
        };

        state_write_device(state_page, index, &device);
        state_write_device_detail(state_page, index, &detail);
        state_write_offers(state_page, state_site_of_device(index), &offers);
}

static enum state_misfit ask(const struct state_page *state_page,
                             const struct state_instance *instance, uint32_t device)
{
        struct state_target target;
        struct state_claim claim;

        assert_true(state_read_claim(state_page, instance, &claim));
        assert_true(state_read_target(state_page, device, &target));
        return state_find_misfit(&claim, &target);
}

static void test_a_quota_must_fit_into_the_device(void **state)
{
        struct state_instance vgpu = { .frame_buffer_quota = 20 * GIB, .type_id = 0x999 };

        put_device(*state, 0, 140 * GIB, STATE_NONE);
        put_device(*state, 1, 10 * GIB, STATE_NONE);
        assert_int_equal(ask(*state, &vgpu, 0), STATE_FITS);
        assert_int_equal(ask(*state, &vgpu, 1), STATE_TOO_SMALL);
        vgpu.frame_buffer_quota = 10 * GIB;
        assert_int_equal(ask(*state, &vgpu, 1), STATE_FITS);
}

static void test_the_type_of_a_virtual_vgpu_must_be_on_offer(void **state)
{
        struct state_instance vgpu = { .is_virtual = 1, .type_id = 0x999 };

        put_device(*state, 0, 140 * GIB, STATE_NONE);
        assert_int_equal(ask(*state, &vgpu, 0), STATE_OTHER_TYPES);
        vgpu.type_id = SHARED_TYPE;
        assert_int_equal(ask(*state, &vgpu, 0), STATE_FITS);
}

static void test_types_go_by_the_mig_mode(void **state)
{
        struct state_instance vgpu = { .is_virtual = 1, .type_id = MIG_TYPE };

        put_device(*state, 0, 140 * GIB, 1);
        put_device(*state, 1, 140 * GIB, 0);
        assert_int_equal(ask(*state, &vgpu, 0), STATE_FITS);
        assert_int_equal(ask(*state, &vgpu, 1), STATE_OTHER_TYPES);
        vgpu.type_id = SHARED_TYPE;
        assert_int_equal(ask(*state, &vgpu, 0), STATE_OTHER_TYPES);
        assert_int_equal(ask(*state, &vgpu, 1), STATE_FITS);
}

static void test_the_kind_comes_first(void **state)
{
        struct state_instance vgpu = { .frame_buffer_quota = 20 * GIB };
        struct state_device_detail detail = { .metadata_text = "20B0134F00000000" };

        put_device(*state, 0, 140 * GIB, STATE_NONE);
        put_device(*state, 1, 10 * GIB, STATE_NONE);
        state_write_device_detail(*state, 1, &detail);
        assert_int_equal(ask(*state, &vgpu, 1), STATE_OTHER_KIND);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_quota_must_fit_into_the_device),
                cmocka_unit_test(test_the_type_of_a_virtual_vgpu_must_be_on_offer),
                cmocka_unit_test(test_types_go_by_the_mig_mode),
                cmocka_unit_test(test_the_kind_comes_first),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
