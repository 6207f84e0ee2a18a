/* SPDX-License-Identifier: Apache-2.0 */
/* NVLinks of a device: how many, where they lead, what goes over them. */
#include "scenario/link.h"

#include <stdio.h>

#include "catalog/board.h"
#include "scenario/parse.h"

#define LINKS(member) .offset = offsetof(struct scenario_links, member)
#define CURVE(word, member)                                                          \
        {                                                                            \
                .name = word, .kind = FIELD_OTHER, .read = curve_read, LINKS(member) \
        }

/* A number below @end, as a bit. */
static int parse_bit(struct reader *reader, const json_t *value, uint32_t end, const char *what,
                     uint32_t *bits)
{
        json_int_t number = json_integer_value(value);

        if (!json_is_integer(value) || number < 0 || number >= end)
                return reader_fail(reader, "must be %s, 0 to %u", what, end - 1);
        *bits |= 1u << number;
        return 0;
}

static int parse_inactive(struct reader *reader, const json_t *value, void *to)
{
        return parse_bit(reader, value, STATE_LINKS_MAX, "the number of a link",
                         &((struct scenario_links *)to)->inactive);
}

static int parse_peer(struct reader *reader, const json_t *value, void *to)
{
        return parse_bit(reader, value, STATE_DEVICES_MAX, "the index of a device",
                         &((struct scenario_links *)to)->peers);
}

int link_parse(struct reader *reader, const json_t *value, void *to)
{
        static const struct field fields[] = {
                { .name = "links", .kind = FIELD_NUMBER, .max = STATE_LINKS_MAX, LINKS(n) },
                { .name = "inactive", .kind = FIELD_LIST, .read = parse_inactive },
                { .name = "peers", .kind = FIELD_LIST, .read = parse_peer },
                CURVE("tx", tx),
                CURVE("rx", rx),
                CURVE("replay_errors", errors[STATE_LINK_REPLAY]),
                CURVE("recovery_errors", errors[STATE_LINK_RECOVERY]),
                CURVE("crc_flit_errors", errors[STATE_LINK_CRC_FLIT]),
                CURVE("crc_data_errors", errors[STATE_LINK_CRC_DATA]),
                { 0 },
        };

        return reader_fields(reader, value, fields, to);
}

/* Fabric: NVML's numbers. */

enum { STATE_NOT_SUPPORTED, STATE_NOT_STARTED, STATE_IN_PROGRESS, STATE_COMPLETED };

#define FABRIC(member) .offset = offsetof(struct scenario_fabric, member)

int link_parse_fabric(struct reader *reader, const json_t *value, void *to)
{
        static const struct choice states[] = { { "not supported", STATE_NOT_SUPPORTED },
                                                { "not started", STATE_NOT_STARTED },
                                                { "in progress", STATE_IN_PROGRESS },
                                                { "completed", STATE_COMPLETED },
                                                { 0 } };
        static const struct choice mistakes[] = { { "none", 1 },
                                                  { "system GUID", 2 },
                                                  { "chassis serial number", 3 },
                                                  { "no partition", 4 },
                                                  { "insufficient NVLinks", 5 },
                                                  { "incompatible firmware", 6 },
                                                  { "invalid location", 7 },
                                                  { 0 } };
        static const struct field fields[] = {
                { .name = "state", .kind = FIELD_CHOICE, .choices = states, FABRIC(state) },
                { .name = "clique", .kind = FIELD_NUMBER, .max = UINT32_MAX, FABRIC(clique) },
                { .name = "cluster", .kind = FIELD_UUID, .size = STATE_UUID_MAX, FABRIC(cluster) },
                { .name = "degraded_bandwidth",
                  .kind = FIELD_SWITCH,
                  FABRIC(has_degraded_bandwidth) },
                { .name = "route_recovery", .kind = FIELD_SWITCH, FABRIC(has_route_recovery) },
                { .name = "unhealthy_route", .kind = FIELD_SWITCH, FABRIC(has_unhealthy_route) },
                { .name = "access_timeout_recovery",
                  .kind = FIELD_SWITCH,
                  FABRIC(has_access_timeout_recovery) },
                { .name = "misconfiguration",
                  .kind = FIELD_CHOICE,
                  .choices = mistakes,
                  FABRIC(misconfiguration) },
                { 0 },
        };
        struct scenario_fabric *fabric = to;

        fabric->state = STATE_COMPLETED;
        fabric->misconfiguration = 1;
        return reader_fields(reader, value, fields, fabric);
}

#define HEALTHY   1
#define UNHEALTHY 2

/* Two bits for each matter, of which 1 is bad and 2 is good; four bits for the configuration. */
static uint32_t get_health(const struct scenario_fabric *fabric)
{
        return (fabric->has_degraded_bandwidth ? 1u : 2u) |
               (fabric->has_route_recovery ? 1u : 2u) << 2 |
               (fabric->has_unhealthy_route ? 1u : 2u) << 4 |
               (fabric->has_access_timeout_recovery ? 1u : 2u) << 6 | fabric->misconfiguration << 8;
}

static bool is_healthy(const struct scenario_fabric *fabric)
{
        return !fabric->has_degraded_bandwidth && !fabric->has_route_recovery &&
               !fabric->has_unhealthy_route && !fabric->has_access_timeout_recovery &&
               fabric->misconfiguration == 1;
}

/* Where nothing is said, a board of Hopper at switches has registered, and tells no health. */
static void describe_fabric(const struct scenario_fabric *fabric, struct state_links *links)
{
        struct state_fabric *to = &links->fabric;
        unsigned int byte, n = 0;

        if (fabric->state == SCENARIO_NOTHING) {
                to->state = links->n && links->peer == STATE_LINK_TO_SWITCH && links->version >= 6
                                    ? STATE_COMPLETED
                                    : STATE_NOT_SUPPORTED;
                return;
        }
        to->state = fabric->state;
        to->clique = fabric->clique;
        to->health = get_health(fabric);
        to->summary = is_healthy(fabric) ? HEALTHY : UNHEALTHY;
        for (const char *at = fabric->cluster; *at && n < sizeof(to->cluster); at += 2) {
                at += *at == '-';
                (void)sscanf(at, "%2x", &byte);
                to->cluster[n++] = (uint8_t)byte;
        }
}

static bool leads_to(const struct scenario *scenario, size_t from, size_t to)
{
        return from != to && scenario->devices[from].links.peers >> to & 1;
}

static int check_peers(const struct scenario *scenario, size_t index, struct reader *reader)
{
        uint32_t peers = scenario->devices[index].links.peers & ~(1u << index);
        uint32_t n = (uint32_t)__builtin_popcount(peers);

        for (size_t i = 0; i < STATE_DEVICES_MAX; i++) {
                if (!(peers >> i & 1))
                        continue;
                if (i >= scenario->n_devices)
                        return reader_fail(reader, "there is no device %zu", i);
                if (!leads_to(scenario, i, index))
                        return reader_fail(reader, "no link of device %zu leads back", i);
        }
        if (scenario->devices[index].links.peers && n == 0)
                return reader_fail(reader, "must name another device");
        if (n > scenario->devices[index].links.n)
                return reader_fail(reader, "there are more devices than links");
        return 0;
}

int link_check(struct scenario *scenario, size_t index, struct reader *reader)
{
        struct scenario_device *device = &scenario->devices[index];
        const struct catalog_board *board = catalog_find_kind(device->kind);

        reader_set_place(reader, "devices[%zu].nvlink.links", index);
        if (device->links.n == SCENARIO_NOTHING)
                device->links.n = board->links;
        if (device->links.n > board->links)
                return reader_fail(reader, "a %s has %u links", device->kind, board->links);
        reader_set_place(reader, "devices[%zu].nvlink.peers", index);
        return check_peers(scenario, index, reader);
}

static void lead(const struct scenario_device *device, size_t index, struct state_links *links)
{
        uint32_t peers = device->links.peers & ~(1u << index), n = 0;
        uint32_t switches = catalog_find_kind(device->kind)->switches;
        uint8_t list[STATE_DEVICES_MAX];

        for (uint8_t i = 0; i < STATE_DEVICES_MAX; i++)
                if (peers >> i & 1)
                        list[n++] = i;
        links->peer = n ? STATE_LINK_TO_DEVICE : STATE_LINK_TO_SWITCH;
        for (uint32_t i = 0; i < links->n; i++)
                links->peers[i] = n ? list[i * n / links->n] : (uint8_t)(i % switches);
}

void link_describe(const struct scenario_device *device, size_t index,
                   struct state_links *ret_links)
{
        struct catalog_link link = catalog_get_link(catalog_find_kind(device->kind));
        uint32_t n = device->links.n;

        *ret_links = (struct state_links){
                .n = n,
                .version = link.version,
                .speed = link.speed,
                .active = ((1u << n) - 1) & ~device->links.inactive,
        };
        lead(device, index, ret_links);
        describe_fabric(&device->fabric, ret_links);
}

void link_deinit(struct scenario_links *links)
{
        curve_deinit(&links->tx);
        curve_deinit(&links->rx);
        for (size_t i = 0; i < STATE_LINK_ERRORS; i++)
                curve_deinit(&links->errors[i]);
}
