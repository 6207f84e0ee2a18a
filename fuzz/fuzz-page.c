/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest has written into its instance page: the manager adopts it, reads it, gives slots and takes
 * them back. Whatever stands there, no number is greater than the limit. The input is the page.
 */
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz/target.h"
#include "state/page.h"

#define LIMIT ((uint64_t)1 << 30)

static void scribble(const struct page *page, const uint8_t *data, size_t size)
{
        memcpy(page->map, data, size < sizeof(*page->map) ? size : sizeof(*page->map));
}

static void read_all(const struct page *page)
{
        for (uint32_t slot = 0; slot < INSTANCE_PAGE_SLOTS; slot++) {
                struct page_use use;

                page_read(page, slot, LIMIT, &use);
                assert(use.movable <= LIMIT && use.fixed <= LIMIT - use.movable);
                assert(use.launches <= INT64_MAX);
        }
}

static void use_slots(struct page *page)
{
        uint32_t slot;

        for (uint32_t n = 0; page_take_slot(page, &slot) == 0; n++) {
                struct page_use use;

                assert(n < INSTANCE_PAGE_SLOTS && slot < INSTANCE_PAGE_SLOTS);
                page_read(page, slot, LIMIT, &use);
                assert(use.movable == 0 && use.fixed == 0);
                if (n % 2)
                        page_give_slot(page, slot);
                if (n == 8)
                        break;
        }
        page_mend(page);
        page_write_quota(page, LIMIT);
        assert(atomic_load(&page->map->quota) == LIMIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct page page = { .fd = -1 }, next = { .fd = -1 };

        if (page_create(&page, LIMIT) < 0)
                return 0;
        scribble(&page, data, size);
        read_all(&page);
        if (page_adopt(&next, page.fd, LIMIT) == 0) {
                read_all(&next);
                use_slots(&next);
        }
        use_slots(&page);
        page_deinit(&next);
        page_deinit(&page);
        return 0;
}
