/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/quota-page.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int page_check(const struct instance_page *page, uint32_t slot)
{
        if (page->magic != INSTANCE_PAGE_MAGIC || page->version != INSTANCE_PAGE_VERSION ||
            page->n_slots != INSTANCE_PAGE_SLOTS || slot >= INSTANCE_PAGE_SLOTS)
                return -EPROTO;
        return 0;
}

static int page_map(struct instance_page **ret_page, int fd, uint32_t slot)
{
        struct instance_page *page;
        struct stat status;
        int r;

        if (fstat(fd, &status) < 0)
                return -errno;
        if ((uint64_t)status.st_size < sizeof(*page))
                return -EPROTO;
        page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                return -errno;
        r = page_check(page, slot);
        if (r < 0) {
                munmap(page, sizeof(*page));
                return r;
        }
        *ret_page = page;
        return 0;
}

int quota_map_pages(struct instance_page **pages, const int *fds, uint32_t n, uint32_t slot)
{
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < n; i++)
                r = page_map(&pages[i], fds[i], slot);
        for (uint32_t i = 0; r < 0 && i < n; i++)
                if (pages[i])
                        munmap(pages[i], sizeof(*pages[i]));
        return r;
}

struct instance_page *quota_replace_page(struct instance_page *old, struct instance_page *new)
{
        void *moved =
                old ? mremap(new, sizeof(*new), sizeof(*new), MREMAP_MAYMOVE | MREMAP_FIXED, old)
                    : new;

        return moved == MAP_FAILED ? new : moved;
}
