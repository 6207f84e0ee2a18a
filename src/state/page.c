/* SPDX-License-Identifier: Apache-2.0 */
#include "state/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define PAGE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int map_page(struct page *page, int fd)
{
        void *map = mmap(NULL, sizeof(*page->map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (map == MAP_FAILED)
                return -errno;
        page->map = map;
        page->fd = fd;
        memset(page->taken, 0, sizeof(page->taken));
        return 0;
}

/* It is nearly always 0, and a store of this kind costs as much as twenty looks. */
static void clear(_Atomic uint64_t *value)
{
        if (atomic_load_explicit(value, memory_order_relaxed) != 0)
                atomic_store(value, 0);
}

static void clear_slot(struct instance_page_slot *slot)
{
        for (int kind = 0; kind < INSTANCE_PAGE_KINDS; kind++)
                clear(&slot->used[kind]);
        clear(&slot->peak);
        clear(&slot->n_allocations);
        clear(&slot->n_refused);
        clear(&slot->n_launches);
        clear(&slot->pending);
        clear(&slot->beside);
        clear(&slot->wanted);
        clear(&slot->answer);
        clear(&slot->claim);
        clear(&slot->sum);
        if (atomic_load_explicit(&slot->n_asks, memory_order_relaxed) != 0)
                atomic_store(&slot->n_asks, 0);
        if (atomic_load_explicit(&slot->holds, memory_order_relaxed) != 0)
                atomic_store(&slot->holds, 0);
        if (atomic_load_explicit(&slot->whole, memory_order_relaxed) != 0)
                atomic_store(&slot->whole, 0);
}

void page_mend(struct page *page)
{
        page->map->magic = INSTANCE_PAGE_MAGIC;
        page->map->version = INSTANCE_PAGE_VERSION;
        page->map->n_slots = INSTANCE_PAGE_SLOTS;
        page_write_quota(page, page->quota);
        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++)
                if (!page->taken[i])
                        clear_slot(&page->map->slot[i]);
}

int page_create(struct page *page, uint64_t quota)
{
        CLEANUP(fd_closep) int fd = memfd_create("vgpu-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        int r;

        if (fd < 0 || ftruncate(fd, sizeof(*page->map)) < 0 ||
            fcntl(fd, F_ADD_SEALS, PAGE_SEALS) < 0)
                return -errno;
        r = map_page(page, fd);
        if (r < 0)
                return r;
        page->quota = quota;
        page_mend(page);
        fd = -1;
        return 0;
}

int page_adopt(struct page *page, int fd, uint64_t quota)
{
        CLEANUP(fd_closep) int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        struct stat status;
        int r;

        if (own < 0 || fstat(own, &status) < 0)
                return -errno;
        if (status.st_size != sizeof(*page->map) || fcntl(own, F_GET_SEALS) != PAGE_SEALS)
                return -EPROTO;
        r = map_page(page, own);
        if (r < 0)
                return r;
        page->quota = quota;
        own = -1;
        return 0;
}

void page_deinit(struct page *page)
{
        if (page->map)
                munmap(page->map, sizeof(*page->map));
        page->map = NULL;
        page->fd = fd_close(page->fd);
}

int page_take_slot(struct page *page, uint32_t *ret_slot)
{
        page_mend(page);
        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++)
                if (!page->taken[i]) {
                        page->taken[i] = 1;
                        *ret_slot = i;
                        return 0;
                }
        return -ENOSPC;
}

int page_claim_slot(struct page *page, uint32_t slot)
{
        if (slot >= INSTANCE_PAGE_SLOTS || page->taken[slot])
                return -EBUSY;
        page->taken[slot] = 1;
        return 0;
}

void page_give_slot(struct page *page, uint32_t slot)
{
        page->taken[slot] = 0;
        page_mend(page);
}

void page_write_quota(struct page *page, uint64_t quota)
{
        if (atomic_load_explicit(&page->map->quota, memory_order_relaxed) != quota)
                atomic_store_explicit(&page->map->quota, quota, memory_order_relaxed);
}

static uint64_t read_limited(const _Atomic uint64_t *value, uint64_t limit)
{
        uint64_t n = atomic_load(value);

        return n < limit ? n : limit;
}

static uint64_t sum_used(const struct page *page, uint64_t limit)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++)
                for (int kind = 0; page->taken[i] && kind < INSTANCE_PAGE_KINDS; kind++)
                        sum += read_limited(&page->map->slot[i].used[kind], limit);
        return sum;
}

static uint64_t sum_pending(const struct page *page, uint64_t limit)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++)
                if (page->taken[i])
                        sum += read_limited(&page->map->slot[i].pending, limit);
        return sum;
}

/* What is pending before what is used: what has the driver's answer is one or the other. */
int page_lower_quota(struct page *page, uint64_t quota, uint64_t *ret_held)
{
        uint64_t former = page->quota, pending;

        *ret_held = sum_used(page, former);
        if (*ret_held > quota)
                return -EDQUOT;
        atomic_store(&page->map->quota, quota);
        pending = sum_pending(page, former);
        *ret_held = sum_used(page, former);
        if (*ret_held <= quota && pending <= quota - *ret_held) {
                page->quota = quota;
                return 0;
        }
        atomic_store(&page->map->quota, former);
        return *ret_held > quota ? -EDQUOT : -EAGAIN;
}

void page_write_ceiling(struct page *page, uint64_t bytes, uint64_t until_ns)
{
        atomic_store(&page->map->ceiling_until_ns, until_ns);
        atomic_store(&page->map->ceiling, bytes);
}

void page_write_waits(struct page *page, bool waits)
{
        if (atomic_load_explicit(&page->map->waits, memory_order_relaxed) != waits)
                atomic_store(&page->map->waits, waits);
}

/* What was asked for and nobody wants any more needs no answer. */
static bool is_asking(const struct instance_page_slot *slot)
{
        return (uint32_t)atomic_load(&slot->answer) != atomic_load(&slot->n_asks) &&
               atomic_load(&slot->wanted) > 0;
}

bool page_is_asking(const struct page *page)
{
        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++)
                if (page->taken[i] && is_asking(&page->map->slot[i]))
                        return true;
        return false;
}

void page_answer(struct page *page, bool is_denied)
{
        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++) {
                struct instance_page_slot *slot = &page->map->slot[i];

                if (page->taken[i] && is_asking(slot))
                        atomic_store(&slot->answer, atomic_load(&slot->n_asks) |
                                                            (is_denied ? INSTANCE_PAGE_DENIED : 0));
        }
}

void page_read(const struct page *page, uint32_t slot, uint64_t limit, struct page_use *ret_use)
{
        const struct instance_page_slot *from = &page->map->slot[slot];
        uint64_t movable = read_limited(&from->used[INSTANCE_PAGE_MOVABLE], limit);

        *ret_use = (struct page_use){
                .movable = movable,
                .fixed = read_limited(&from->used[INSTANCE_PAGE_FIXED], limit - movable),
                .peak = read_limited(&from->peak, limit),
                .launches = read_limited(&from->n_launches, INT64_MAX),
                .refused = read_limited(&from->n_refused, INT64_MAX),
                .holds = atomic_load_explicit(&from->holds, memory_order_relaxed),
                .whole = atomic_load_explicit(&from->whole, memory_order_relaxed),
                .had_context = atomic_load_explicit(&from->beside, memory_order_relaxed) > 0,
        };
}

/* Of what contexts took, ever: more is nonsense. */
#define CLAIM_MAX ((uint64_t)1 << 50)

static uint64_t smaller(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

uint64_t page_read_pending(const struct page *page, uint32_t slot, uint64_t limit)
{
        return smaller(atomic_load(&page->map->slot[slot].pending), limit);
}

/* In order: who is not told as pending has the driver's answer, or will see the ceiling. */
void page_read_claim(const struct page *page, uint64_t limit, struct page_claim *ret_claim)
{
        struct page_claim claim = { 0 };

        for (uint32_t i = 0; i < INSTANCE_PAGE_SLOTS; i++) {
                const struct instance_page_slot *slot = &page->map->slot[i];

                if (!page->taken[i])
                        continue;
                claim.pending += smaller(atomic_load(&slot->pending), limit);
                claim.wanted += smaller(atomic_load(&slot->wanted), limit);
                claim.taken += smaller(atomic_load(&slot->beside), CLAIM_MAX);
                for (int kind = 0; kind < INSTANCE_PAGE_KINDS; kind++)
                        claim.taken += smaller(atomic_load(&slot->used[kind]), limit);
        }
        claim.pending = smaller(claim.pending, limit);
        claim.wanted = smaller(claim.wanted, limit);
        *ret_claim = claim;
}
