/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "catalog/catalog.h"

int catalog_publish_types(struct state_page *state_page, uint32_t site,
                          const struct catalog_type *types, uint32_t n)
{
        struct state_offers offers = { .n = n < STATE_OFFERS_MAX ? n : STATE_OFFERS_MAX };

        for (uint32_t i = 0; i < offers.n; i++) {
                int slot = state_add_type(state_page, &types[i].type);

                if (slot < 0)
                        return slot;
                state_write_type_text(state_page, (uint32_t)slot, &types[i].text);
                state_write_placements(state_page, (uint32_t)slot, &types[i].placements);
                offers.offer[i] = (struct state_offer){
                        .type = (uint16_t)slot,
                        .max_instances = (uint16_t)types[i].type.max_instances,
                        .n_creatable = (uint16_t)types[i].type.max_instances,
                };
        }
        state_write_offers(state_page, site, &offers);
        return 0;
}

int catalog_publish(struct state_page *state_page, const struct state_device *device)
{
        CLEANUP(freep) struct catalog_type *types = calloc(CATALOG_TYPES_MAX, sizeof(*types));

        if (!types)
                return -ENOMEM;
        return catalog_publish_types(state_page, state_site_of_device(device->index), types,
                                     catalog_list_types(types, device, CATALOG_COMPUTE));
}

uint32_t catalog_type_of_quota(const struct state_page *state_page, uint32_t site, uint64_t quota)
{
        struct state_offers offers;
        struct state_type type;
        uint32_t id = 0;

        if (!state_read_offers(state_page, site, &offers))
                return 0;
        for (uint32_t i = 0; i < offers.n; i++)
                if (state_read_type(state_page, offers.offer[i].type, &type) &&
                    (i == 0 || type.frame_buffer >= quota))
                        id = type.id;
        return id;
}
