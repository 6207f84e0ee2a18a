/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "catalog/catalog.h"

int catalog_publish_types(struct board *board, uint32_t site, const struct catalog_type *types,
                          uint32_t n)
{
        struct board_offers offers = { .n = n < BOARD_OFFERS_MAX ? n : BOARD_OFFERS_MAX };

        for (uint32_t i = 0; i < offers.n; i++) {
                int slot = board_add_type(board, &types[i].type);

                if (slot < 0)
                        return slot;
                board_write_type_text(board, (uint32_t)slot, &types[i].text);
                board_write_placements(board, (uint32_t)slot, &types[i].placements);
                offers.offer[i] = (struct board_offer){
                        .type = (uint16_t)slot,
                        .max_instances = (uint16_t)types[i].type.max_instances,
                        .n_creatable = (uint16_t)types[i].type.max_instances,
                };
        }
        board_write_offers(board, site, &offers);
        return 0;
}

int catalog_publish(struct board *board, const struct board_device *device)
{
        CLEANUP(freep) struct catalog_type *types = calloc(CATALOG_TYPES_MAX, sizeof(*types));

        if (!types)
                return -ENOMEM;
        return catalog_publish_types(board, board_site_of_device(device->index), types,
                                     catalog_list_types(types, device, CATALOG_COMPUTE));
}

uint32_t catalog_type_of_quota(const struct board *board, uint32_t site, uint64_t quota)
{
        struct board_offers offers;
        struct board_type type;
        uint32_t id = 0;

        if (!board_read_offers(board, site, &offers))
                return 0;
        for (uint32_t i = 0; i < offers.n; i++)
                if (board_read_type(board, offers.offer[i].type, &type) &&
                    (i == 0 || type.frame_buffer >= quota))
                        id = type.id;
        return id;
}
