/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the NVLinks of a scenario, which NVIDIA's library does not know. All links of a device are alike, but
 * for where they lead and whether they are up. A guest sees no links.
 */
#include "nvml/link.h"

#include "nvml/bus-id.h"
#include "nvml/sensors.h"
#include "nvml/slots.h"
#include "nvml/view.h"

/* Where switches are on the bus: behind all devices, and each generation has its own. */
#define SWITCH_BUS_AMPERE 0xc1
#define SWITCH_BUS_HOPPER 0xd1

#define SWITCH_PCI_AMPERE 0x1af110deu
#define SWITCH_PCI_HOPPER 0x22a310deu

#define VERSION_HOPPER 6 /* NVML_NVLINK_VERSION_4_0 */

#define ALL_LINKS UINT32_MAX /* of a field's scope */

/* NOT_SUPPORTED: the device has none. */
static nvmlReturn_t find(struct state_links *ret_links, nvmlDevice_t handle, bool has_pointers)
{
        struct state_sensors sensors;
        struct state_device device;
        nvmlReturn_t r = sensors_find(&sensors, handle, has_pointers);

        if (r == NVML_SUCCESS)
                r = view_device(&device, handle, true);
        if (r != NVML_SUCCESS)
                return r;
        return state_read_links(view_state_page(), device.index, ret_links) && ret_links->n > 0 &&
                               ret_links->n <= STATE_LINKS_MAX
                       ? NVML_SUCCESS
                       : NVML_ERROR_NOT_SUPPORTED;
}

/* A link that another device may have is not supported: nvidia-smi gives up when it is told that its number is wrong. */
static nvmlReturn_t find_link(struct state_links *ret_links, nvmlDevice_t handle, unsigned int link,
                              bool has_pointers)
{
        nvmlReturn_t r = find(ret_links, handle, has_pointers && link < NVML_NVLINK_MAX_LINKS);

        return r == NVML_SUCCESS && link >= ret_links->n ? NVML_ERROR_NOT_SUPPORTED : r;
}

static bool is_active(const struct state_links *links, unsigned int link)
{
        return links->active >> link & 1;
}

nvmlReturn_t our_nvmlDeviceGetNvLinkState(nvmlDevice_t handle, unsigned int link,
                                          nvmlEnableState_t *state)
{
        struct state_links links;
        nvmlReturn_t r = find_link(&links, handle, link, state);

        if (r == NVML_SUCCESS)
                *state = is_active(&links, link) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
        return r;
}

nvmlReturn_t our_nvmlDeviceGetNvLinkVersion(nvmlDevice_t handle, unsigned int link,
                                            unsigned int *version)
{
        struct state_links links;
        nvmlReturn_t r = find_link(&links, handle, link, version);

        if (r == NVML_SUCCESS)
                *version = links.version;
        return r;
}

/* Between devices, not to the memory of the machine. */
nvmlReturn_t our_nvmlDeviceGetNvLinkCapability(nvmlDevice_t handle, unsigned int link,
                                               nvmlNvLinkCapability_t capability, unsigned int *has)
{
        struct state_links links;
        nvmlReturn_t r = find_link(&links, handle, link, has && capability < NVML_NVLINK_CAP_COUNT);

        if (r == NVML_SUCCESS)
                *has = is_active(&links, link) && (capability == NVML_NVLINK_CAP_P2P_SUPPORTED ||
                                                   capability == NVML_NVLINK_CAP_P2P_ATOMICS ||
                                                   capability == NVML_NVLINK_CAP_VALID);
        return r;
}

/* What is at the other end; nobody knows of a link that is down. */
static nvmlReturn_t find_remote(struct state_device *ret_remote, nvmlDevice_t handle,
                                unsigned int link, bool has_pointers)
{
        struct state_links links;
        nvmlReturn_t r = find_link(&links, handle, link, has_pointers);
        bool is_hopper;

        if (r != NVML_SUCCESS)
                return r;
        if (!is_active(&links, link))
                return NVML_ERROR_NOT_SUPPORTED;
        is_hopper = links.version >= VERSION_HOPPER;
        if (links.peer == STATE_LINK_TO_DEVICE)
                return state_read_device(view_state_page(), links.peers[link], ret_remote)
                               ? NVML_SUCCESS
                               : NVML_ERROR_UNKNOWN;
        *ret_remote = (struct state_device){
                .pci_bus = (is_hopper ? SWITCH_BUS_HOPPER : SWITCH_BUS_AMPERE) + links.peers[link],
                .pci_device_id = is_hopper ? SWITCH_PCI_HOPPER : SWITCH_PCI_AMPERE,
        };
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t handle, unsigned int link,
                                                     nvmlPciInfo_t *pci)
{
        struct state_device remote;
        nvmlReturn_t r = find_remote(&remote, handle, link, pci);

        if (r != NVML_SUCCESS)
                return r;
        *pci = (nvmlPciInfo_t){ .domain = remote.pci_domain,
                                .bus = remote.pci_bus,
                                .device = remote.pci_device,
                                .pciDeviceId = remote.pci_device_id };
        bus_id_format_legacy(pci->busIdLegacy, &remote);
        bus_id_format(pci->busId, &remote);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t handle, unsigned int link,
                                                  nvmlPciInfo_v2_t *pci)
{
        struct state_device remote;
        nvmlReturn_t r = find_remote(&remote, handle, link, pci);

        if (r != NVML_SUCCESS)
                return r;
        *pci = (nvmlPciInfo_v2_t){ .domain = remote.pci_domain,
                                   .bus = remote.pci_bus,
                                   .device = remote.pci_device,
                                   .pciDeviceId = remote.pci_device_id };
        bus_id_format_legacy(pci->busId, &remote);
        return NVML_SUCCESS;
}

nvmlReturn_t our_nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t handle, unsigned int link,
                                                     nvmlIntNvLinkDeviceType_t *type)
{
        struct state_links links;
        nvmlReturn_t r = find_link(&links, handle, link, type);

        if (r != NVML_SUCCESS)
                return r;
        if (!is_active(&links, link))
                *type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
        else
                *type = links.peer == STATE_LINK_TO_DEVICE ? NVML_NVLINK_DEVICE_TYPE_GPU
                                                           : NVML_NVLINK_DEVICE_TYPE_SWITCH;
        return NVML_SUCCESS;
}

/* The fifth is not counted by links of these versions. */
nvmlReturn_t our_nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t handle, unsigned int link,
                                                 nvmlNvLinkErrorCounter_t counter,
                                                 unsigned long long *count)
{
        struct state_links links;
        nvmlReturn_t r =
                find_link(&links, handle, link, count && counter < NVML_NVLINK_ERROR_COUNT);

        if (r != NVML_SUCCESS)
                return r;
        if ((unsigned int)counter >= STATE_LINK_ERRORS)
                return NVML_ERROR_NOT_SUPPORTED;
        *count = is_active(&links, link) ? links.errors[counter] : 0;
        return NVML_SUCCESS;
}

uint32_t link_count_between(uint32_t a, uint32_t b)
{
        struct state_links of_a, of_b;
        uint32_t n_a, n_b, n = 0;

        if (view_is_guest() || a == b || !state_read_links(view_state_page(), a, &of_a) ||
            !state_read_links(view_state_page(), b, &of_b) || of_a.peer != of_b.peer ||
            of_a.version != of_b.version)
                return 0;
        n_a = (uint32_t)__builtin_popcount(of_a.active);
        n_b = (uint32_t)__builtin_popcount(of_b.active);
        if (of_a.peer == STATE_LINK_TO_SWITCH)
                return n_a < n_b ? n_a : n_b;
        for (uint32_t i = 0; i < of_a.n && i < STATE_LINKS_MAX; i++)
                n += is_active(&of_a, i) && of_a.peers[i] == b;
        return n;
}

/* Fields. */

static nvmlReturn_t put(nvmlFieldValue_t *value, unsigned int number)
{
        value->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        value->value.uiVal = number;
        return NVML_SUCCESS;
}

static nvmlReturn_t put_long(nvmlFieldValue_t *value, unsigned long long number)
{
        value->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
        value->value.ullVal = number;
        return NVML_SUCCESS;
}

static bool is_between(unsigned int id, unsigned int first, unsigned int last)
{
        return id >= first && id <= last;
}

/* In the order of the fields; the functions have another. */
static const enum state_link_error errors_in_fields[] = { STATE_LINK_CRC_FLIT, STATE_LINK_CRC_DATA,
                                                          STATE_LINK_REPLAY, STATE_LINK_RECOVERY };

/* Six links and their sum, and again for each kind of error. */
static nvmlReturn_t put_first_errors(nvmlFieldValue_t *value, const struct state_links *links)
{
        unsigned int at = value->fieldId - NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0;
        uint64_t errors = links->errors[errors_in_fields[at / 7]];

        if (at % 7 == 6)
                return put_long(value, errors * (unsigned)__builtin_popcount(links->active));
        return at % 7 < links->n ? put_long(value, is_active(links, at % 7) ? errors : 0)
                                 : NVML_ERROR_NOT_SUPPORTED;
}

/* The six links from the sixth on, and again for each kind of error. */
static nvmlReturn_t put_later_errors(nvmlFieldValue_t *value, const struct state_links *links)
{
        unsigned int at = value->fieldId - NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6;
        unsigned int link = 6 + at % 6;

        if (link >= links->n)
                return NVML_ERROR_NOT_SUPPORTED;
        return put_long(value,
                        is_active(links, link) ? links->errors[errors_in_fields[at / 6]] : 0);
}

static nvmlReturn_t put_speed(nvmlFieldValue_t *value, const struct state_links *links,
                              unsigned int link)
{
        return link < links->n ? put(value, is_active(links, link) ? links->speed : 0)
                               : NVML_ERROR_NOT_SUPPORTED;
}

/* Sent and received without overhead, and then with it, of which nothing is known: it is the same. */
static nvmlReturn_t put_throughput(nvmlFieldValue_t *value, const struct state_links *links)
{
        unsigned int at = value->fieldId - NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX;
        uint64_t sum = at % 2 ? links->rx : links->tx;

        if (value->scopeId == ALL_LINKS)
                return put_long(value, sum);
        if (value->scopeId >= links->n)
                return NVML_ERROR_INVALID_ARGUMENT;
        return put_long(value, is_active(links, value->scopeId)
                                       ? sum / (unsigned)__builtin_popcount(links->active)
                                       : 0);
}

/* Of the link that the scope names. */
static nvmlReturn_t put_scoped(nvmlFieldValue_t *value, const struct state_links *links)
{
        static const enum state_link_error errors[] = { STATE_LINK_REPLAY, STATE_LINK_RECOVERY,
                                                        STATE_LINK_CRC_FLIT };
        bool is_up;

        if (value->scopeId >= links->n)
                return NVML_ERROR_INVALID_ARGUMENT;
        is_up = is_active(links, value->scopeId);
        switch (value->fieldId) {
        case NVML_FI_DEV_NVLINK_GET_SPEED:
                return put(value, is_up ? links->speed : 0);
        case NVML_FI_DEV_NVLINK_GET_STATE:
                return put(value, is_up);
        case NVML_FI_DEV_NVLINK_GET_VERSION:
                return put(value, links->version);
        default:
                return put_long(value,
                                is_up ? links->errors[errors[value->fieldId -
                                                             NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY]]
                                      : 0);
        }
}

static nvmlReturn_t read_field(nvmlFieldValue_t *value, const struct state_links *links)
{
        unsigned int id = value->fieldId;

        if (is_between(id, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0,
                       NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL))
                return put_first_errors(value, links);
        if (is_between(id, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6,
                       NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L11))
                return put_later_errors(value, links);
        if (id == NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON)
                return put(value, links->active ? links->speed : 0);
        if (is_between(id, NVML_FI_DEV_NVLINK_SPEED_MBPS_L0, NVML_FI_DEV_NVLINK_SPEED_MBPS_L0 + 5))
                return put_speed(value, links, id - NVML_FI_DEV_NVLINK_SPEED_MBPS_L0);
        if (is_between(id, NVML_FI_DEV_NVLINK_SPEED_MBPS_L6, NVML_FI_DEV_NVLINK_SPEED_MBPS_L11))
                return put_speed(value, links, 6 + id - NVML_FI_DEV_NVLINK_SPEED_MBPS_L6);
        if (is_between(id, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
                       NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX))
                return put_throughput(value, links);
        if (id == NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT)
                return put(value, links->peer == STATE_LINK_TO_SWITCH
                                          ? (unsigned)__builtin_popcount(links->active)
                                          : 0);
        if (is_between(id, NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, NVML_FI_DEV_NVLINK_GET_VERSION))
                return put_scoped(value, links);
        return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t link_read_field(nvmlDevice_t handle, nvmlFieldValue_t *value)
{
        struct state_links links;
        nvmlReturn_t r = find(&links, handle, true);

        if (value->fieldId == NVML_FI_DEV_NVLINK_LINK_COUNT)
                return r == NVML_SUCCESS ? put(value, links.n) : r;
        return r == NVML_SUCCESS ? read_field(value, &links) : r;
}
