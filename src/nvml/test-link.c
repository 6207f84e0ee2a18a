/* SPDX-License-Identifier: Apache-2.0 */
/* NVLinks: where they lead, what they count, and what follows for two devices. */
#include <string.h>

#include "abi/nvml-device.h"
#include "abi/nvml-link.h"
#include "base/test.h"
#include "nvml/fixture.h"

#define N_LINKS 18
#define DOWN    3 /* the link that is down */
#define ALL     0xffffffffu

static nvmlDevice_t device_at(unsigned int index)
{
        nvmlDevice_t device;

        assert_int_equal(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
        return device;
}

/* Both devices have links to switches; of the first one is down. */
static nvmlDevice_t link_devices(struct fixture *fixture)
{
        static const struct state_sensors sensors = { .power = 1 };
        struct state_links links = { .n = N_LINKS,
                                     .version = 6,
                                     .speed = 26562,
                                     .active = 0x3ffff & ~(1u << DOWN),
                                     .peer = STATE_LINK_TO_SWITCH,
                                     .tx = 17000,
                                     .rx = 34000,
                                     .errors = { 1, 2, 3, 4 } };

        for (uint8_t i = 0; i < N_LINKS; i++)
                links.peers[i] = i % 4;
        for (uint32_t i = 0; i < 2; i++) {
                state_write_sensors(fixture->state_page, i, &sensors);
                state_write_links(fixture->state_page, i, &links);
                links.active = 0x3ffff;
        }
        return device_at(0);
}

static nvmlFieldValue_t get_field(nvmlDevice_t device, unsigned int id, unsigned int scope)
{
        nvmlFieldValue_t value = { .fieldId = id, .scopeId = scope };

        assert_int_equal(nvmlDeviceGetFieldValues(device, 1, &value), NVML_SUCCESS);
        return value;
}

static unsigned long long get_number(nvmlDevice_t device, unsigned int id, unsigned int scope)
{
        nvmlFieldValue_t value = get_field(device, id, scope);

        assert_int_equal(value.nvmlReturn, NVML_SUCCESS);
        return value.valueType == NVML_VALUE_TYPE_UNSIGNED_INT ? value.value.uiVal
                                                               : value.value.ullVal;
}

static void test_a_link_leads_to_a_switch(void **state)
{
        nvmlDevice_t device = link_devices(*state);
        nvmlIntNvLinkDeviceType_t type;
        nvmlEnableState_t is_active;
        unsigned int version, has;
        nvmlPciInfo_v2_t old;
        nvmlPciInfo_t pci;

        assert_int_equal(nvmlDeviceGetNvLinkState(device, 0, &is_active), NVML_SUCCESS);
        assert_int_equal(is_active, NVML_FEATURE_ENABLED);
        assert_int_equal(nvmlDeviceGetNvLinkVersion(device, 17, &version), NVML_SUCCESS);
        assert_int_equal(version, 6);
        assert_int_equal(
                nvmlDeviceGetNvLinkCapability(device, 0, NVML_NVLINK_CAP_P2P_SUPPORTED, &has),
                NVML_SUCCESS);
        assert_int_equal(has, 1);
        assert_int_equal(
                nvmlDeviceGetNvLinkCapability(device, 0, NVML_NVLINK_CAP_SYSMEM_ACCESS, &has),
                NVML_SUCCESS);
        assert_int_equal(has, 0);
        assert_int_equal(nvmlDeviceGetNvLinkRemoteDeviceType(device, 5, &type), NVML_SUCCESS);
        assert_int_equal(type, NVML_NVLINK_DEVICE_TYPE_SWITCH);
        assert_int_equal(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, 5, &pci), NVML_SUCCESS);
        assert_string_equal(pci.busId, "00000000:D2:00.0");
        assert_int_equal(pci.pciDeviceId, 0x22a310de);
        assert_int_equal(nvmlDeviceGetNvLinkRemotePciInfo(device, 5, &old), NVML_SUCCESS);
        assert_string_equal(old.busId, "0000:D2:00.0");
}

static void test_a_link_that_is_down_leads_nowhere(void **state)
{
        nvmlDevice_t device = link_devices(*state);
        nvmlIntNvLinkDeviceType_t type;
        nvmlEnableState_t is_active;
        unsigned long long count;
        nvmlPciInfo_t pci;
        unsigned int has;

        assert_int_equal(nvmlDeviceGetNvLinkState(device, DOWN, &is_active), NVML_SUCCESS);
        assert_int_equal(is_active, NVML_FEATURE_DISABLED);
        assert_int_equal(nvmlDeviceGetNvLinkCapability(device, DOWN, NVML_NVLINK_CAP_VALID, &has),
                         NVML_SUCCESS);
        assert_int_equal(has, 0);
        assert_int_equal(nvmlDeviceGetNvLinkRemoteDeviceType(device, DOWN, &type), NVML_SUCCESS);
        assert_int_equal(type, NVML_NVLINK_DEVICE_TYPE_UNKNOWN);
        assert_int_equal(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, DOWN, &pci),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(
                nvmlDeviceGetNvLinkErrorCounter(device, DOWN, NVML_NVLINK_ERROR_DL_REPLAY, &count),
                NVML_SUCCESS);
        assert_int_equal(count, 0);
        assert_int_equal(get_number(device, NVML_FI_DEV_NVLINK_GET_SPEED, DOWN), 0);
}

static void test_what_is_no_link_is_refused(void **state)
{
        nvmlDevice_t device = link_devices(*state);
        struct fixture *fixture = *state;
        nvmlEnableState_t is_active = 7;
        unsigned long long count;
        unsigned int has;

        assert_int_equal(nvmlDeviceGetNvLinkState(device, NVML_NVLINK_MAX_LINKS, &is_active),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetNvLinkState(device, N_LINKS, &is_active),
                         NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(nvmlDeviceGetNvLinkState(device, 0, NULL), NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(nvmlDeviceGetNvLinkCapability(device, 0, NVML_NVLINK_CAP_COUNT, &has),
                         NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(
                nvmlDeviceGetNvLinkErrorCounter(device, 0, NVML_NVLINK_ERROR_COUNT, &count),
                NVML_ERROR_INVALID_ARGUMENT);
        assert_int_equal(
                nvmlDeviceGetNvLinkErrorCounter(device, 0, NVML_NVLINK_ERROR_DL_ECC_DATA, &count),
                NVML_ERROR_NOT_SUPPORTED);
        state_write_links(fixture->state_page, 0, &(struct state_links){ .n = 0 });
        assert_int_equal(nvmlDeviceGetNvLinkState(device, 0, &is_active), NVML_ERROR_NOT_SUPPORTED);
        assert_int_equal(is_active, 7);
        assert_int_equal(get_number(device, NVML_FI_DEV_NVLINK_LINK_COUNT, 0), 0);
}

static void test_fields_tell_of_each_link_and_of_all(void **state)
{
        static const struct {
                unsigned int id, scope, value;
        } rows[] = {
                { NVML_FI_DEV_NVLINK_LINK_COUNT, 0, 18 },
                { NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, 0, 26562 },
                { NVML_FI_DEV_NVLINK_SPEED_MBPS_L0 + DOWN, 0, 0 },
                { NVML_FI_DEV_NVLINK_SPEED_MBPS_L11, 0, 26562 },
                { NVML_FI_DEV_NVLINK_GET_SPEED, 17, 26562 },
                { NVML_FI_DEV_NVLINK_GET_STATE, 17, 1 },
                { NVML_FI_DEV_NVLINK_GET_STATE, DOWN, 0 },
                { NVML_FI_DEV_NVLINK_GET_VERSION, 0, 6 },
                { NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT, 0, 17 },
                { NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 0, 1000 },
                { NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL, 17000 },
                { NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, ALL, 34000 },
                { NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, DOWN, 0 },
                { NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0, 0, 3 },
                { NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, 0, 3 * 17 },
                { NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L0, 0, 4 },
                { NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0 + DOWN, 0, 0 },
                { NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, 0, 2 * 17 },
                { NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6, 0, 3 },
                { NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L11, 0, 2 },
                { NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, 0, 1 },
                { NVML_FI_DEV_NVLINK_ERROR_DL_CRC, 17, 3 },
        };
        nvmlDevice_t device = link_devices(*state);

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                assert_int_equal(get_number(device, rows[i].id, rows[i].scope), rows[i].value);
        assert_int_equal(get_field(device, NVML_FI_DEV_NVLINK_GET_STATE, N_LINKS).nvmlReturn,
                         NVML_ERROR_INVALID_ARGUMENT);
}

static void test_linked_devices_are_peers(void **state)
{
        nvmlGpuP2PStatus_t status;
        struct fixture *fixture = *state;
        struct state_links links = { .n = 2, .active = 3, .peer = STATE_LINK_TO_DEVICE },
                           other_links;
        nvmlDevice_t device = link_devices(*state), other = device_at(1);

        assert_int_equal(nvmlDeviceGetP2PStatus(device, other, NVML_P2P_CAPS_INDEX_NVLINK, &status),
                         NVML_SUCCESS);
        assert_int_equal(status, NVML_P2P_STATUS_OK);
        assert_true(state_read_links(fixture->state_page, 1, &other_links));
        other_links.version = 4; /* at switches of another generation */
        state_write_links(fixture->state_page, 1, &other_links);
        assert_int_equal(nvmlDeviceGetP2PStatus(device, other, NVML_P2P_CAPS_INDEX_NVLINK, &status),
                         NVML_SUCCESS);
        assert_int_equal(status, NVML_P2P_STATUS_NOT_SUPPORTED);
        links.peers[0] = links.peers[1] = 7; /* some other device */
        state_write_links(fixture->state_page, 0, &links);
        state_write_links(fixture->state_page, 1, &links);
        assert_int_equal(nvmlDeviceGetP2PStatus(device, other, NVML_P2P_CAPS_INDEX_NVLINK, &status),
                         NVML_SUCCESS);
        assert_int_equal(status, NVML_P2P_STATUS_NOT_SUPPORTED);
        links.peers[0] = 1;
        state_write_links(fixture->state_page, 0, &links);
        assert_int_equal(nvmlDeviceGetP2PStatus(device, other, NVML_P2P_CAPS_INDEX_NVLINK, &status),
                         NVML_SUCCESS);
        assert_int_equal(status, NVML_P2P_STATUS_OK);
}

int main(void)
{
#define with_state_page(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
                with_state_page(test_a_link_leads_to_a_switch),
                with_state_page(test_a_link_that_is_down_leads_nowhere),
                with_state_page(test_what_is_no_link_is_refused),
                with_state_page(test_fields_tell_of_each_link_and_of_all),
                with_state_page(test_linked_devices_are_peers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
